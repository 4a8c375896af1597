import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { yieldIfNeeded } from '../../core/shared/async.ts'
import { formatCursor, pageStart } from '../../listing/cursor.ts'

export interface Page<Item> {
  readonly items: Item[]
  readonly nextCursor?: string
}

/** All MCP lists are sorted by skill name, so a cursor of one list also works for the others of the same view. */
const questionOf = (scope: string) => scope === '' ? 'mcp' : `mcp ${scope}`

/**
 * Reads one page. A cursor contains the last name of the previous page, so skills that come or go shift nothing.
 * @param scope key of the view
 * @param names sorted by code point
 * @param make makes the item of a name on this page; undefined if it has none
 * @param isFull whether the page ends here, after at least one item
 * @throws {ProtocolError} -32602 for an invalid cursor
 */
export async function readPage<Item> (
  scope: string, names: readonly string[], cursor: string | undefined,
  make: (name: string) => Promise<Item | undefined>, isFull: (items: readonly Item[]) => boolean
): Promise<Page<Item>> {
  const start = pageStart(questionOf(scope), names, cursor)
  if (start === undefined) throw invalidCursor()
  const items: Item[] = []
  for (let i = start; i < names.length; i++) {
    const name = names[i] ?? ''
    const item = await make(name)
    if (item !== undefined) items.push(item)
    if (items.length > 0 && i < names.length - 1 && isFull(items)) {
      return { items, nextCursor: formatCursor(questionOf(scope), name, i) }
    }
    await yieldIfNeeded()
  }
  return { items }
}

/** Refuses any cursor, for a list of one page. */
export function checkOnlyPage (cursor: string | undefined): void {
  if (cursor !== undefined) throw invalidCursor()
}

function invalidCursor (): ProtocolError {
  const sentence = 'Invalid cursor: send nextCursor of the page before, or no cursor'
  return new ProtocolError(ProtocolErrorCode.InvalidParams, sentence)
}
