/** What a `Range` header selects; `end` is inclusive, both in bytes. */
type RangeSelection =
  | { readonly kind: 'full' }
  | { readonly kind: 'partial', readonly start: number, readonly end: number }
  | { readonly kind: 'unsatisfiable' }

/** The representation that a range is taken of. */
interface RangeTarget {
  /** In bytes. */
  readonly size: number
  /** Strong, with its quotes. */
  readonly etag: string | undefined
}

/** One range. A list does not match, and is answered in full: parts are never multiplied (CVE-2025-62727). */
const SINGLE_RANGE = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i

const FULL: RangeSelection = { kind: 'full' }
const UNSATISFIABLE: RangeSelection = { kind: 'unsatisfiable' }

/**
 * What to send for a GET with these `Range` and `If-Range` headers (RFC 9110 §14, §13.1.5). Invalid or several ranges
 * are ignored, as the RFC wants for the former and allows for the latter. Not for HEAD: it has no Range.
 */
export function selectRange (
  range: string | undefined, ifRange: string | undefined, target: RangeTarget
): RangeSelection {
  if (range === undefined || !isCurrent(ifRange, target)) return FULL
  const match = SINGLE_RANGE.exec(range)
  if (match === null) return FULL
  const [, first = '', last = ''] = match
  if (first === '') return last === '' ? FULL : selectSuffix(Number(last), target.size)
  const start = Number(first)
  if (last !== '' && Number(last) < start) return FULL
  if (start >= target.size) return UNSATISFIABLE
  return { kind: 'partial', start, end: last === '' ? target.size - 1 : Math.min(Number(last), target.size - 1) }
}

/** The last bytes; all of them when there are fewer. Of an empty file no range can be written down. */
function selectSuffix (length: number, size: number): RangeSelection {
  if (length === 0) return UNSATISFIABLE
  return size === 0 ? FULL : { kind: 'partial', start: Math.max(0, size - length), end: size - 1 }
}

/** `If-Range` compares strongly, so neither a weak tag nor a date ever matches: two edits can share a second. */
function isCurrent (ifRange: string | undefined, { etag }: RangeTarget): boolean {
  return ifRange === undefined || ifRange === etag
}
