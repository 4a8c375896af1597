/** Byte offsets of frontmatter and body in a main file. Fences and a BOM belong to neither. */
export type FrontmatterLocation =
  | { readonly kind: 'found', readonly start: number, readonly end: number, readonly bodyStart: number }
  | { readonly kind: 'missing' | 'unclosed', readonly bodyStart: number }

const BOM = Buffer.from('\uFEFF')
/** Without the flag `m`, for which a lone CR would end a line. */
const OPENING_FENCE = /^(?:\xEF\xBB\xBF)?---[ \t]*(?:\r?\n|$)/
const CLOSING_FENCE = /(?<=\n)---[ \t]*(?:\r?\n|$)/g

/** Finds the two fences: the first line, and the next one that is `---`. Takes linear time. */
export function locateFrontmatter (bytes: Buffer): FrontmatterLocation {
  // In Latin-1 each character is one byte, so indices are byte offsets.
  const text = bytes.toString('latin1')
  const fileStart = bytes.subarray(0, BOM.length).equals(BOM) ? BOM.length : 0
  const start = OPENING_FENCE.exec(text)?.[0].length
  if (start === undefined) return { kind: 'missing', bodyStart: fileStart }
  CLOSING_FENCE.lastIndex = start
  const closing = CLOSING_FENCE.exec(text)
  if (closing === null) return { kind: 'unclosed', bodyStart: fileStart }
  return { kind: 'found', start, end: closing.index, bodyStart: closing.index + closing[0].length }
}
