import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { yieldIfNeeded } from '../../core/shared/async.ts'
import type { View } from '../../core/view.ts'
import { formatCursor, pageStart } from '../../listing/cursor.ts'
import { MCP_PAGE_ENTRIES } from '../limits.ts'

export interface Page<Item> {
  readonly items: Item[]
  readonly nextCursor?: string
}

/**
 * Reads one page of a list of skills. A cursor contains the last name of the previous page, so skills that come or go
 * shift nothing, and a cursor of one list also works for the others of the same view.
 * @param make makes the item of a skill; undefined if it has none
 * @param isFull whether the page ends here, after at least one item
 * @throws {ProtocolError} -32602 for an invalid cursor
 */
export async function readPage<Item> (
  skills: View, cursor: string | undefined, make: (name: string) => Promise<Item | undefined>, isFull = () => false
): Promise<Page<Item>> {
  const names = await skills.list()
  const question = skills.scope === '' ? 'mcp' : `mcp ${skills.scope}`
  const start = pageStart(question, names, cursor)
  if (start === undefined) throw invalidCursor()
  const items: Item[] = []
  for (let i = start; i < names.length; i++) {
    const name = names[i] ?? ''
    const item = await make(name)
    if (item !== undefined) items.push(item)
    if (items.length > 0 && i < names.length - 1 && (items.length >= MCP_PAGE_ENTRIES || isFull())) {
      return { items, nextCursor: formatCursor(question, name, i) }
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
