/** Byte offsets of frontmatter and body in a main file. Fences and a BOM belong to neither. */
export type FrontmatterLocation =
  | { readonly kind: 'found', readonly start: number, readonly end: number, readonly bodyStart: number }
  | { readonly kind: 'missing', readonly bodyStart: number }
  | { readonly kind: 'unclosed', readonly bodyStart: number }

const BOM = Buffer.from('\uFEFF')
const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const BLANK = 0x20
const DASH = 0x2d

export function startsWithBom (bytes: Buffer): boolean {
  return bytes.subarray(0, BOM.length).equals(BOM)
}

/**
 * Finds the two fences: the first line, and the next one that is `---`, with LF or CRLF. Blanks and tabs may follow the
 * dashes. One pass over any bytes.
 */
export function locateFrontmatter (bytes: Buffer): FrontmatterLocation {
  const fileStart = startsWithBom(bytes) ? BOM.length : 0
  const start = endOfFence(bytes, fileStart)
  if (start === undefined) return { kind: 'missing', bodyStart: fileStart }

  for (let lineStart = start; lineStart < bytes.length; lineStart++) {
    if (bytes[lineStart - 1] !== LF) continue
    const bodyStart = endOfFence(bytes, lineStart)
    if (bodyStart !== undefined) return { kind: 'found', start, end: lineStart, bodyStart }
  }
  return { kind: 'unclosed', bodyStart: fileStart }
}

/** The offset after the fence line that begins at `at`, or undefined if no fence begins there. */
function endOfFence (bytes: Buffer, at: number): number | undefined {
  if (bytes[at] !== DASH || bytes[at + 1] !== DASH || bytes[at + 2] !== DASH) return undefined
  let end = at + 3
  while (bytes[end] === BLANK || bytes[end] === TAB) end++
  if (end === bytes.length) return end
  if (bytes[end] === CR) end++
  return bytes[end] === LF ? end + 1 : undefined
}
