/** Largest edit distance of a typo. */
const MAX_DISTANCE = 2

/** Returns the candidate with the smallest edit distance; undefined if none is near. */
export function nearest (word: string, words: readonly string[]): string | undefined {
  const limit = Math.min(MAX_DISTANCE, word.length - 2)
  const near = words.filter(({ length }) => Math.abs(length - word.length) <= limit)
  const ranked = near.map((candidate) => ({ candidate, distance: editDistance(word, candidate) }))
  const best = ranked.sort((a, b) => a.distance - b.distance)[0]
  return best !== undefined && best.distance <= limit ? best.candidate : undefined
}

/** Computes the Levenshtein distance: letters to insert, remove or replace. */
function editDistance (from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (const [index, letter] of [...from].entries()) {
    const next = [index + 1]
    for (let column = 1; column <= to.length; column++) {
      const replaced = (row[column - 1] ?? 0) + (to[column - 1] === letter ? 0 : 1)
      next.push(Math.min(replaced, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
