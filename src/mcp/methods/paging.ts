import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { yieldIfNeeded } from '../../core/shared/async.ts'
import { formatCursor, pageStart } from '../../listing/cursor.ts'

export interface Page<Item> {
  readonly items: Item[]
  readonly nextCursor?: string
}

/** All lists of this API are of names in the same order. A cursor of one is good for another of the same skills. */
const questionOf = (scope: string) => scope === '' ? 'mcp' : `mcp ${scope}`

/**
 * One page of items. A cursor names the last entry of the page before, so that names that come and go meanwhile shift
 * nothing.
 *
 * @param scope names the set of skills
 * @param names sorted by code point
 * @param make the item of a name, asked for the names of this page only; undefined for a name without an item
 * @param isFull whether the page ends here, after at least one item
 * @throws {ProtocolError} -32602 for a cursor that no page had
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

/** Refuses every cursor of a list that has one page. */
export function checkOnlyPage (cursor: string | undefined): void {
  if (cursor !== undefined) throw invalidCursor()
}

function invalidCursor (): ProtocolError {
  const sentence = 'Invalid cursor: use nextCursor of the page before, or none'
  return new ProtocolError(ProtocolErrorCode.InvalidParams, sentence)
}
