import { sha256 } from '../shared/digest.ts'

/** Where a page ended: after this name, which was at this place of the list. */
export interface PagePosition {
  readonly after: string
  readonly index: number
}

/**
 * A position as opaque text.
 * @param question what the pages list: a cursor is valid for the same question only
 */
export function formatCursor (question: string, { after, index }: PagePosition): string {
  return Buffer.from(JSON.stringify([sha256(question), after, index])).toString('base64url')
}

/**
 * The position in a cursor; undefined for one that is damaged or of another question. A made-up cursor begins a page
 * elsewhere, and nothing more.
 */
export function parseCursor (question: string, cursor: string): PagePosition | undefined {
  try {
    const [id, after, index] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[]
    return id === sha256(question) && typeof after === 'string' && Number.isInteger(index)
      ? { after, index: Number(index) }
      : undefined
  } catch {
    return undefined
  }
}
