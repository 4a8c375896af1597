/** A word of the index, and how many characters of it are wrong. */
interface SimilarWord {
  readonly index: number
  readonly distance: number
}

/** More than any distance that is asked for. */
const FAR = 255

/** Words, sorted by UTF-16 code unit, and how many characters each has in common with the one before. */
interface SortedWords {
  readonly words: readonly string[]
  readonly common: Uint8Array
  /** Length of each word, 255 for a longer one: most words are ruled out without touching them. */
  readonly lengths: Uint8Array
}

/**
 * The words with at most `max` characters inserted, left out or exchanged (Levenshtein). Words that begin alike share the
 * rows of the matrix, and all words with a hopeless beginning are skipped together. Only cells near the diagonal are
 * computed: the others are greater than `max`.
 */
export function similarWords ({ words, common, lengths }: SortedWords, term: string, max: number): SimilarWord[] {
  const found: SimilarWord[] = []
  const width = term.length + 2
  const lastRow = term.length + max
  // Row r is of the first r characters of the word.
  const rows = new Uint8Array((lastRow + 1) * width).fill(FAR)
  for (let column = 0; column <= max; column++) rows[column] = column
  // Rows that hold for the beginning that the next word has in common with the last one.
  let filled = 0
  for (let index = 0; index < words.length;) {
    filled = Math.min(filled, common[index] ?? 0)
    const length = lengths[index] ?? 0
    if (length < term.length - max || length > lastRow) {
      index++
      continue
    }
    const word = words[index] ?? ''
    let row = filled
    let isHopeless = false
    while (row < word.length && !isHopeless) isHopeless = fillRow(rows, ++row, width, word, term, max) > max
    const distance = rows[row * width + term.length] ?? FAR
    if (!isHopeless && distance <= max) found.push({ index, distance })
    filled = row
    index++
    if (!isHopeless) continue
    while ((common[index] ?? 0) >= row) index++
  }
  return found
}

/** Writes the row of the first `row` characters. Returns the least distance in it. */
function fillRow (rows: Uint8Array, row: number, width: number, word: string, term: string, max: number): number {
  const above = (row - 1) * width
  const here = row * width
  const character = word.charCodeAt(row - 1)
  const first = Math.max(row - max, 1)
  const last = Math.min(row + max, term.length)
  let least = row <= max ? row : FAR
  rows[here + first - 1] = least
  for (let column = first; column <= last; column++) {
    const exchanged = (rows[above + column - 1] ?? FAR) + (term.charCodeAt(column - 1) === character ? 0 : 1)
    const value = Math.min(exchanged, (rows[above + column] ?? FAR) + 1, (rows[here + column - 1] ?? FAR) + 1, FAR)
    rows[here + column] = value
    if (value < least) least = value
  }
  return least
}
