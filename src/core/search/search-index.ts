import { MAX_MISSPELT_TERMS } from '../shared/limits.ts'
import { copyOf } from '../shared/text.ts'
import { canBegin, isUnspaced, queryTermsOf } from './search-terms.ts'
import { createSegment, mergeSegments, type Posting, type Segment, WEIGHT_BITS, WEIGHT_MASK } from './segment.ts'
import { similarWords } from './similar-words.ts'
import { stemOf } from './stems.ts'
import { isStopWord } from './stop-words.ts'
import { NAME_WEIGHT, type SearchDocument, weigh } from './weights.ts'

/** What was found, the best first: two lists, since an object for each of 10,000 names would be most of a search's garbage. */
export interface Ranking {
  readonly names: readonly string[]
  /** Of each name. The greater the better; comparable within one answer only. */
  readonly scores: ArrayLike<number>
}

/** Share of the weight that counts when a document has only another form of the word, a longer word, or a similar one. */
const STEM_QUALITY = 0.8
const PREFIX_QUALITY = 0.6
const FUZZY_QUALITY = 0.4

/** Shortest words in which one, or two, characters may be wrong, and again none: longer ones are no words. */
const ONE_WRONG_FROM = 4
const TWO_WRONG_FROM = 8
const NONE_WRONG_FROM = 33

/** In a query with several words, a hit with less than this share of the best score is noise. */
const MIN_SHARE_OF_BEST = 0.03

/** Dead document numbers that are kept without a sweep, beside as many as there are documents. */
const MAX_DEAD = 64

/** Postings of changed documents that wait for a segment of their own: about 250 documents, whose words are sorted in 10 ms. */
const MAX_PENDING = 65_536

/** Segments of about one size that become one, and how much smaller counts as one size. */
const MERGED_TOGETHER = 4
const SIZE_RATIO = 3

/** Scores are compared to a thousandth. */
const SCORE_STEPS = 1_000
/** Greater than the number of skills. */
const MAX_PLACES = 2 ** 24

/** The documents that one search may find. */
interface Selection {
  /** In the order of the names; an unknown name has a number that no document has. */
  readonly numbers: Int32Array
  /** 1 for each selected document, by its number. */
  readonly isIn: Uint8Array
  /** How many of the names have a document. */
  readonly count: number
}

/** What a search computes, by document number, and the keys by which it sorts what it found. */
interface Scratch {
  readonly scores: Float64Array
  readonly matched: Uint8Array
  readonly weights: Float64Array
  readonly keys: Float64Array
}

function createScratch (size: number): Scratch {
  return { scores: new Float64Array(size), matched: new Uint8Array(size), weights: new Float64Array(size), keys: new Float64Array(size) }
}

/** Words of a segment that match a word of the query. */
interface Match {
  readonly postings: Uint32Array
  /** How well the word fits, up to 1. */
  readonly quality: number
}

/**
 * Inverted index of the skills, for `SkillSearch`. Figures: p99 of a search among 10,000 skills at most 25 ms, and at most
 * 150 MB for 18,000. A log of segments as in Lucene: changed documents make small ones, which are merged in slices. With
 * bodies of 2 to 8 KiB, MiniSearch took 41 ms and 220 MB for 10,000. FlexSearch took 35 ms and 125 MB, Orama 530 MB.
 *
 * A replaced document gets a new number. Postings of dead numbers are skipped until a merge leaves them out.
 */
export class SearchIndex {
  #segments: readonly Segment[] = []
  #pending = new Map<string, Posting[]>()
  #pendingSize = 0
  readonly #numbers = new Map<string, number>()
  readonly #isLive: boolean[] = []
  readonly #freeNumbers: number[] = []
  #dead: number[] = []
  /** For one search at a time: new ones for each would be half a megabyte of garbage among 18,000 skills. */
  #scratch: Scratch = createScratch(0)
  /** By names that were searched: the catalog hands out the same array while it stays the same, and 10,000 lookups take 4 ms. */
  #selections = new WeakMap<readonly string[], Selection>()

  has (name: string): boolean {
    return this.#numbers.has(name)
  }

  /**
   * Adds a document, or replaces the one of the same key.
   * @param key what searches call it
   */
  put (document: SearchDocument, key: string): void {
    this.remove(key)
    this.#selections = new WeakMap()
    const number = this.#freeNumbers.pop() ?? this.#isLive.length
    this.#isLive[number] = true
    this.#numbers.set(key, number)
    for (const [word, weight] of weigh(document)) this.#post(word, (number << WEIGHT_BITS) | weight)
    if (this.#pendingSize > MAX_PENDING) this.#flush()
  }

  remove (name: string): void {
    const number = this.#numbers.get(name)
    if (number === undefined) return
    this.#numbers.delete(name)
    this.#selections = new WeakMap()
    this.#isLive[number] = false
    this.#dead.push(number)
  }

  /**
   * The documents with at least one word of the query, the best first. Documents outside of `names` do not influence the scores.
   * @param names the keys of all documents that may be found, in the order of equally good ones
   * @param shownNames what the ranking calls them, in the same order
   */
  search (query: string, names: readonly string[], shownNames = names): Ranking {
    this.#flush()
    const terms = queryTermsOf(query)
    // Words like "it" are in every text, and may be the name of a skill.
    const selection = this.#select(names)
    const scores = this.#score(terms, selection, terms.every(isStopWord) ? NAME_WEIGHT : 0)
    // Score and place in one number: plain numbers are sorted in a third of the time. First the greater score, then the lower place.
    const { numbers } = selection
    const { keys } = this.#scratch
    let best = 0
    for (let number = 0; number < this.#isLive.length; number++) best = Math.max(best, scores[number] ?? 0)
    const least = terms.length < 2 ? 0 : MIN_SHARE_OF_BEST * best
    let count = 0
    for (let place = 0; place < numbers.length; place++) {
      const score = scores[numbers[place] ?? 0] ?? 0
      if (score > least) keys[count++] = place - Math.ceil(score * SCORE_STEPS) * MAX_PLACES
    }
    const sorted = keys.subarray(0, count).sort()
    const ranking = { names: new Array<string>(count), scores: new Float64Array(count) }
    for (let rank = 0; rank < count; rank++) {
      const key = sorted[rank] ?? 0
      const steps = Math.ceil(-key / MAX_PLACES)
      ranking.names[rank] = shownNames[key + steps * MAX_PLACES] ?? ''
      ranking.scores[rank] = steps / SCORE_STEPS
    }
    return ranking
  }

  /**
   * Merges segments of about one size, and all of them when there are many dead numbers. Only one call at a time.
   * @param yieldIfNeeded cuts the work in slices
   * @param isFinal merge all in any case
   */
  async tidy (yieldIfNeeded: () => Promise<void> | undefined, isFinal = false): Promise<void> {
    const isWhole = isFinal || this.#dead.length > this.#numbers.size + MAX_DEAD
    if (isWhole) this.#flush()
    const first = isWhole ? 0 : this.#firstToMerge()
    const merged = this.#segments.slice(first)
    if (merged.length < (isWhole ? 1 : MERGED_TOGETHER)) return
    const dead = isWhole ? this.#dead.splice(0) : []
    const segment = await mergeSegments(merged, (number) => this.#isLive[number] === true, yieldIfNeeded)
    // Segments that were added meanwhile follow.
    this.#segments = [...this.#segments.slice(0, first), segment, ...this.#segments.slice(first + merged.length)]
    // Only now: reused before the last word is merged, a number would stand for two documents.
    for (const number of dead) this.#freeNumbers.push(number)
  }

  /** The first of the last segments that are of about one size together. */
  #firstToMerge (): number {
    let first = this.#segments.length
    for (let size = 0; first > 0; first--) {
      const before = this.#segments[first - 1]?.size ?? 0
      if (size > 0 && before > SIZE_RATIO * size) break
      size += before
    }
    return first
  }

  #select (names: readonly string[]): Selection {
    let selection = this.#selections.get(names)
    if (selection === undefined) {
      const none = this.#isLive.length
      const numbers = Int32Array.from(names, (name) => this.#numbers.get(name) ?? none)
      const isIn = new Uint8Array(none)
      let count = 0
      for (const number of numbers) {
        if (number === none) continue
        isIn[number] = 1
        count++
      }
      this.#selections.set(names, selection = { numbers, isIn, count })
    }
    return selection
  }

  #post (word: string, posting: Posting): void {
    this.#pendingSize++
    const known = this.#pending.get(word)
    if (known !== undefined) known.push(posting)
    // Shorter words are copies.
    else this.#pending.set(word.length > 12 ? copyOf(word) : word, [posting])
  }

  #flush (): void {
    if (this.#pendingSize === 0) return
    this.#segments = [...this.#segments, createSegment(this.#pending)]
    this.#pending = new Map()
    this.#pendingSize = 0
  }

  /** The score of each document, by number. */
  #score (terms: readonly string[], { numbers, isIn, count: size }: Selection, minWeight: number): Float64Array {
    const count = this.#isLive.length
    if (this.#scratch.keys.length < Math.max(count, numbers.length)) this.#scratch = createScratch(Math.max(count, numbers.length))
    const { scores, matched, weights } = this.#scratch
    scores.fill(0, 0, count)
    matched.fill(0, 0, count)
    let unit = 0
    let totalRarity = 0
    let misspelt = 0
    for (const term of terms) {
      let found = this.#weighInto(weights.fill(0, 0, count), this.#matches(term), isIn, minWeight)
      if (found === 0 && misspelt++ < MAX_MISSPELT_TERMS) found = this.#weighInto(weights, this.#similar(term), isIn, minWeight)
      if (found === 0) continue
      const logarithm = Math.log(1 + size / found)
      // The first word has exactly 1: a product that is divided again would have a rounding error for each number of documents.
      const rarity = logarithm / (unit ||= logarithm)
      totalRarity += rarity
      for (let number = 0; number < count; number++) {
        const weight = weights[number] ?? 0
        if (weight === 0) continue
        scores[number] = (scores[number] ?? 0) + weight * rarity
        matched[number] = (matched[number] ?? 0) + 1
      }
    }
    // A document with all words comes before one that has one word often. The total makes the score of one word independent of other documents.
    for (let number = 0; number < count; number++) scores[number] = (scores[number] ?? 0) / totalRarity * (matched[number] ?? 0) / terms.length
    return scores
  }

  /** Writes the best weight of some matches in each document, by number. Returns how many documents have one. */
  #weighInto (weights: Float64Array, matches: readonly Match[], isIn: Uint8Array, minWeight: number): number {
    let found = 0
    for (const { postings, quality } of matches) {
      for (let index = 0; index < postings.length; index++) {
        const posting = postings[index] ?? 0
        const number = posting >>> WEIGHT_BITS
        const full = posting & WEIGHT_MASK
        const weight = full * quality
        const known = weights[number] ?? 0
        if (weight <= known || full < minWeight || isIn[number] !== 1) continue
        if (known === 0) found++
        weights[number] = weight
      }
    }
    return found
  }

  /** The word itself, its other forms, and the words that begin with it. */
  #matches (term: string): Match[] {
    const matches: Match[] = []
    const stem = stemOf(term)
    const isPrefix = canBegin(term)
    for (const segment of this.#segments) {
      const [first, end] = segment.range(stem?.beginning ?? term)
      for (let index = first; index < end; index++) {
        const word = segment.words[index] ?? ''
        const quality = word === term
          ? 1
          : Math.max(isPrefix && word.startsWith(term) ? PREFIX_QUALITY * term.length / word.length : 0, stem?.fits(word) === true ? STEM_QUALITY : 0)
        if (quality > 0) matches.push({ postings: segment.postingsAt(index), quality })
        else if (stem === undefined && !isPrefix) break
      }
    }
    return matches
  }

  /** Words of another spelling. */
  #similar (term: string): Match[] {
    const wrong = maxWrong(term)
    if (wrong === 0) return []
    return this.#segments.flatMap((segment) => similarWords(segment, term, wrong).map(({ index, distance }) =>
      ({ postings: segment.postingsAt(index), quality: FUZZY_QUALITY * (1 - distance / term.length) })))
  }
}

function maxWrong (term: string): number {
  if (term.length < ONE_WRONG_FROM || term.length >= NONE_WRONG_FROM || isUnspaced(term)) return 0
  return term.length < TWO_WRONG_FROM ? 1 : 2
}
