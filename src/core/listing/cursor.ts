import { sha256 } from '../shared/digest.ts'

/** Longest cursor that is read, in characters: three times what the longest folder name takes. */
export const MAX_CURSOR_CHARACTERS = 1_536

/** Where a page ended: after this name, which had this score if the pages are of a search. */
export interface PagePosition {
  readonly after: string
  readonly score?: number
}

const CHECKSUM_CHARACTERS = 8
const CHECKSUM_START = 'sha256:'.length

/**
 * A position as opaque text.
 * @param question what the pages list: a cursor is valid for the same question only
 */
export function formatCursor (question: string, { after, score }: PagePosition): string {
  const fields = `${score ?? ''}\n${after}`
  const checksum = sha256(`${question}\n${fields}`).slice(CHECKSUM_START, CHECKSUM_START + CHECKSUM_CHARACTERS)
  return Buffer.from(checksum + fields).toString('base64url')
}

/**
 * The position in a cursor; undefined for one that is damaged or of another question. The checksum is not a secret: a
 * made-up cursor begins a page elsewhere, and nothing more.
 */
export function parseCursor (question: string, cursor: string): PagePosition | undefined {
  if (cursor.length > MAX_CURSOR_CHARACTERS) return undefined
  const fields = Buffer.from(cursor, 'base64url').toString().slice(CHECKSUM_CHARACTERS)
  const end = fields.indexOf('\n')
  const after = fields.slice(end + 1)
  const score = Number(fields.slice(0, end))
  const position = end === 0 ? { after } : { after, score }
  // What was not written by `formatCursor` differs: the checksum, and whatever Buffer and Number ignore.
  return Number.isFinite(score) && formatCursor(question, position) === cursor ? position : undefined
}
