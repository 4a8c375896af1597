/** A document's number, shifted, and the weight of the word in the document. */
export type Posting = number

export const WEIGHT_BITS = 8
export const WEIGHT_MASK = 0xff

/** What a byte holds of the length of a word. */
const MAX_LENGTH = 255

/** Greater than every character that a word continues with. */
const AFTER_ALL = '\uffff'

/**
 * A part of the index that never changes: words in order, and the documents that have them. Four bytes a posting and one
 * string a word are what keeps the index of 18,000 skills under 150 MB.
 */
export class Segment {
  /** Sorted by UTF-16 code unit, each once. */
  readonly words: readonly string[]
  /** How many characters each word has in common with the one before. */
  readonly common: Uint8Array
  readonly lengths: Uint8Array
  readonly #postings: Uint32Array
  /** Where the postings of each word begin; one more than there are words. */
  readonly #starts: Uint32Array

  constructor (words: readonly string[], common: Uint8Array, starts: Uint32Array, postings: Uint32Array) {
    this.words = words
    this.common = common
    // With a function of its own, `from` takes four times as long: 50 ms for 250,000 words, in one turn of the event loop.
    this.lengths = Uint8Array.from(words.map(({ length }) => Math.min(length, MAX_LENGTH)))
    this.#starts = starts
    this.#postings = postings
  }

  get size (): number {
    return this.#postings.length
  }

  postingsAt (index: number): Uint32Array {
    return this.#postings.subarray(this.#starts[index], this.#starts[index + 1])
  }

  /** The words that begin so, as indexes from the first to the one after the last. */
  range (prefix: string): readonly [first: number, end: number] {
    const first = indexFrom(this.words, prefix)
    return [first, indexFrom(this.words, prefix + AFTER_ALL, first)]
  }
}

/** The index of the first word from `start` on that is not before `word`. */
function indexFrom (words: readonly string[], word: string, start = 0): number {
  let low = start
  let high = words.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((words[middle] ?? '') < word) low = middle + 1
    else high = middle
  }
  return low
}

export function createSegment (entries: ReadonlyMap<string, readonly Posting[]>): Segment {
  const words = [...entries.keys()].sort()
  const builder = new SegmentBuilder([...entries.values()].reduce((sum, postings) => sum + postings.length, 0))
  for (const word of words) builder.add(word, [entries.get(word) ?? []])
  return builder.build()
}

/**
 * One segment instead of several.
 * @param isLive whether the document of this number is still there: other postings are left out
 * @param yieldIfNeeded cuts the work in slices
 */
export async function mergeSegments (segments: readonly Segment[], isLive: (number: number) => boolean, yieldIfNeeded: () => Promise<void> | undefined): Promise<Segment> {
  const builder = new SegmentBuilder(segments.reduce((sum, { size }) => sum + size, 0))
  const cursors = segments.map((segment) => ({ segment, at: 0 }))
  for (;;) {
    let least: string | undefined
    for (const { segment, at } of cursors) {
      const word = segment.words[at]
      if (word !== undefined && (least === undefined || word < least)) least = word
    }
    if (least === undefined) return builder.build()
    const found: Uint32Array[] = []
    for (const cursor of cursors) if (cursor.segment.words[cursor.at] === least) found.push(cursor.segment.postingsAt(cursor.at++))
    builder.add(least, found, isLive)
    const pause = yieldIfNeeded()
    if (pause !== undefined) await pause
  }
}

class SegmentBuilder {
  readonly #words: string[] = []
  readonly #common: number[] = []
  readonly #starts: number[] = [0]
  readonly #postings: Uint32Array
  #length = 0

  constructor (maxPostings: number) {
    this.#postings = new Uint32Array(maxPostings)
  }

  add (word: string, lists: ReadonlyArray<ArrayLike<Posting>>, isLive?: (number: number) => boolean): void {
    const before = this.#length
    for (const list of lists) {
      for (let index = 0; index < list.length; index++) {
        const posting = list[index] ?? 0
        if (isLive === undefined || isLive(posting >>> WEIGHT_BITS)) this.#postings[this.#length++] = posting
      }
    }
    if (this.#length === before) return
    this.#common.push(commonLength(this.#words.at(-1) ?? '', word))
    this.#words.push(word)
    this.#starts.push(this.#length)
  }

  build (): Segment {
    return new Segment(this.#words, Uint8Array.from(this.#common), Uint32Array.from(this.#starts), this.#postings.slice(0, this.#length))
  }
}

function commonLength (a: string, b: string): number {
  let length = 0
  while (length < a.length && length < b.length && a.charCodeAt(length) === b.charCodeAt(length)) length++
  return length
}
