import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { createSlicer } from '../../core/async.ts'
import { compareCodePoints } from '../../core/text.ts'

export interface Page<Item> {
  readonly items: Item[]
  readonly nextCursor?: string
}

/**
 * One page of items. A cursor names the last entry of the page before, so that names that come and go meanwhile shift nothing.
 *
 * @param names sorted by code point
 * @param make the item of a name, asked for the names of this page only; undefined for a name without an item
 * @param isFull whether the page ends here, after at least one item
 * @throws {ProtocolError} -32602 for a cursor that no page had
 */
export async function readPage<Item> (
  names: readonly string[], cursor: string | undefined, make: (name: string) => Promise<Item | undefined>, isFull: (items: readonly Item[]) => boolean
): Promise<Page<Item>> {
  const yieldIfNeeded = createSlicer()
  const items: Item[] = []
  for (let i = cursor === undefined ? 0 : firstAfter(names, decodeCursor(cursor)); i < names.length; i++) {
    const name = names[i] ?? ''
    const item = await make(name)
    if (item !== undefined) items.push(item)
    if (items.length > 0 && i < names.length - 1 && isFull(items)) return { items, nextCursor: encodeCursor(name) }
    await yieldIfNeeded()
  }
  return { items }
}

const MARK = 'after:'

function encodeCursor (name: string): string {
  return Buffer.from(MARK + name).toString('base64url')
}

function decodeCursor (cursor: string): string {
  const text = Buffer.from(cursor, 'base64url').toString()
  // Buffer skips what is no base64url, so that other texts decode to the same name.
  if (!text.startsWith(MARK) || encodeCursor(text.slice(MARK.length)) !== cursor) {
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'Invalid cursor: use nextCursor of the page before, or none')
  }
  return text.slice(MARK.length)
}

function firstAfter (names: readonly string[], name: string): number {
  let low = 0
  let high = names.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (compareCodePoints(names[middle] ?? '', name) > 0) high = middle
    else low = middle + 1
  }
  return low
}
