import { sha256 } from '../digest.ts'
import { MAX_CURSOR_CHARACTERS } from '../limits.ts'

/** Where a page ended. */
export interface PagePosition {
  /** Name of the last skill that was looked at. */
  readonly after: string
  /** Of a search: the skill's score, and the ranking that it stands in. */
  readonly ranked?: { readonly score: number, readonly ranking: string }
}

const SEAL_CHARACTERS = 16
const RANKING = /^[\da-f]{16}$/

/** Sixteen hexadecimal digits that stand for a text. */
export function fingerprint (text: string): string {
  const digest = sha256(text)
  const start = digest.indexOf(':') + 1
  return digest.slice(start, start + SEAL_CHARACTERS)
}

/**
 * A position as an opaque text.
 * @param scope what the pages are of: a cursor is good for the same question only
 */
export function formatCursor (scope: string, { after, ranked }: PagePosition): string {
  // No name of a skill holds a line end.
  const fields = [ranked?.score ?? '', ranked?.ranking ?? '', after].join('\n')
  return Buffer.from(`${seal(scope, fields)}${fields}`).toString('base64url')
}

/**
 * The position that a cursor holds; undefined for one that is damaged, made up, or another question's. The seal is no
 * secret: whoever makes one up with it gets a place in a list, which is all that a cursor is.
 */
export function parseCursor (scope: string, cursor: string): PagePosition | undefined {
  if (cursor.length > MAX_CURSOR_CHARACTERS) return undefined
  const text = Buffer.from(cursor, 'base64url').toString()
  // One position has one cursor: Buffer reads much that it would never write.
  if (Buffer.from(text).toString('base64url') !== cursor) return undefined
  const fields = text.slice(SEAL_CHARACTERS)
  if (text.slice(0, SEAL_CHARACTERS) !== seal(scope, fields)) return undefined
  const [score = '', ranking = '', after, ...rest] = fields.split('\n')
  if (after === undefined || rest.length > 0) return undefined
  if (score === '' && ranking === '') return { after }
  return score !== '' && Number.isFinite(Number(score)) && RANKING.test(ranking) ? { after, ranked: { score: Number(score), ranking } } : undefined
}

function seal (scope: string, fields: string): string {
  return fingerprint(`${scope}\n${fields}`)
}
