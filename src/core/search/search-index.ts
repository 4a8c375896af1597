import type SearchableMap from 'minisearch/SearchableMap'
import { MAX_MISSPELT_TERMS } from '../limits.ts'
import { isUnspaced, queryTermsOf, termsOf } from './search-terms.ts'

/** The searched text of a skill. */
export interface SearchDocument {
  /** The folder's name. */
  readonly name: string
  /** The frontmatter's name, or the folder's. */
  readonly displayName: string
  readonly description: string
  readonly body: string
}

/** A skill that was found. */
export interface SearchHit {
  readonly name: string
  /** The greater the better; comparable within one answer only. */
  readonly score: number
}

/**
 * Weight of a word by the text that it stands in. The sum fits one byte, and each weight exceeds all below it together:
 * a word in a name beats the same word in a description, and that beats it in a body, however often it occurs there.
 */
const NAME_WEIGHT = 128
const DESCRIPTION_WEIGHT = 64
const BODY_WEIGHT = 31

/** Added for a name of one word, and in parts for longer names: `pdf` comes before `pdf-forms`. */
const SHORT_NAME_WEIGHT = 32

/** Occurrences at which a word has half of BODY_WEIGHT. */
const HALF_WEIGHT_COUNT = 2

/** Share of the weight that counts when a document has only a longer word that begins so, or a similar word. */
const PREFIX_QUALITY = 0.6
const FUZZY_QUALITY = 0.4

/** Shortest words that match as prefixes: shorter ones begin too many words. */
const MIN_ASCII_PREFIX = 3
const MIN_PREFIX = 2

/** Shortest words in which one, or two, characters may be wrong. */
const ONE_WRONG_FROM = 4
const TWO_WRONG_FROM = 8

/** Dead document numbers that are kept without a sweep, beside as many as there are documents. */
const MAX_DEAD = 64

/** Scores are compared to a thousandth. */
const SCORE_STEPS = 1_000
/** More than there are skills. */
const MAX_PLACES = 2 ** 24

/** A document's number, shifted, and the weight of the word in the document: the engine keeps it in the array itself. */
type Posting = number

const WEIGHT_BITS = 8
const WEIGHT_MASK = 0xff

/** A word, and the documents that have it. */
interface Entry {
  readonly word: string
  postings: Posting[]
}

/** A word that a query's word stands for, and how well it fits, up to 1. */
interface Match {
  readonly entry: Entry
  readonly quality: number
}

/**
 * Inverted index of the skills, for `SkillSearch`. Figure: p99 of a search among 10,000 skills at most 25 ms. Measured
 * with bodies of 1 to 8 KiB, CPU time: 6 ms and 80 MB of heap. MiniSearch took 41 ms and 220 MB although stop words and
 * prefixes were left out, FlexSearch 35 ms and 125 MB for the first 100 hits of a field, Orama seconds and 530 MB.
 * MiniSearch's radix tree finds prefixes and similar words here; postings are arrays of integers.
 *
 * A replaced document gets a new number. Postings of dead numbers are skipped until `sweep` removes them.
 */
export class SearchIndex {
  /** The same entries twice: the map is several times faster for exact words, most of all while indexing. */
  readonly #entries = new Map<string, Entry>()
  readonly #tree: SearchableMap<Entry>
  readonly #numbers = new Map<string, number>()
  readonly #isLive: boolean[] = []
  readonly #freeNumbers: number[] = []
  #dead: number[] = []
  /** Of the last search: the catalog hands out the same array while it stays the same, and 10,000 lookups take 4 ms. */
  #order: { readonly names: readonly string[], readonly numbers: Int32Array } | undefined

  constructor (tree: SearchableMap<Entry>) {
    this.#tree = tree
  }

  has (name: string): boolean {
    return this.#numbers.has(name)
  }

  /** Adds a document, or replaces the one of the same name. */
  put (document: SearchDocument): void {
    this.remove(document.name)
    this.#order = undefined
    const number = this.#freeNumbers.pop() ?? this.#isLive.length
    this.#isLive[number] = true
    this.#numbers.set(document.name, number)
    for (const [word, weight] of weigh(document)) this.#post(word, (number << WEIGHT_BITS) | weight)
  }

  remove (name: string): void {
    const number = this.#numbers.get(name)
    if (number === undefined) return
    this.#numbers.delete(name)
    this.#order = undefined
    this.#isLive[number] = false
    this.#dead.push(number)
  }

  /**
   * The documents with at least one word of the query, the best first.
   * @param names of all documents that may be found, in the order of equally good ones
   */
  search (query: string, names: readonly string[]): SearchHit[] {
    const scores = this.#score(queryTermsOf(query))
    // Score and place in one number: plain numbers are sorted in a third of the time. First the greater score, then the lower place.
    const keys = new Float64Array(names.length)
    const numbers = this.#numbersOf(names)
    let count = 0
    for (let place = 0; place < numbers.length; place++) {
      const score = scores[numbers[place] ?? 0] ?? 0
      if (score > 0) keys[count++] = place - Math.ceil(score * SCORE_STEPS) * MAX_PLACES
    }
    return Array.from(keys.subarray(0, count).sort(), (key) => {
      const steps = Math.ceil(-key / MAX_PLACES)
      return { name: names[key + steps * MAX_PLACES] ?? '', score: steps / SCORE_STEPS }
    })
  }

  /** Removes the postings of dead numbers when there are many; `yieldIfNeeded` cuts the work in slices. */
  async sweep (yieldIfNeeded: () => Promise<void> | undefined): Promise<void> {
    if (this.#dead.length <= this.#numbers.size + MAX_DEAD) return
    const dead = this.#dead
    this.#dead = []
    for (const entry of this.#entries.values()) {
      entry.postings = entry.postings.filter((posting) => this.#isLive[posting >>> WEIGHT_BITS])
      if (entry.postings.length === 0) {
        this.#entries.delete(entry.word)
        this.#tree.delete(entry.word)
      }
      await yieldIfNeeded()
    }
    // Only now: reused before the last word is swept, a number would stand for two documents.
    this.#freeNumbers.push(...dead)
  }

  /** The document's number for each name; for an unknown name, a number that no document has. */
  #numbersOf (names: readonly string[]): Int32Array {
    if (this.#order?.names !== names) {
      this.#order = { names, numbers: Int32Array.from(names, (name) => this.#numbers.get(name) ?? this.#isLive.length) }
    }
    return this.#order.numbers
  }

  #post (word: string, posting: Posting): void {
    const known = this.#entries.get(word)
    if (known !== undefined) {
      known.postings.push(posting)
      return
    }
    // A copy: V8 keeps the whole text alive for a part of it.
    const own = Buffer.from(word).toString()
    // Most words have one posting: an array that begins empty would reserve sixteen more.
    const entry = { word: own, postings: [posting] }
    this.#entries.set(own, entry)
    this.#tree.set(own, entry)
  }

  /** The score of each document, by number. */
  #score (terms: readonly string[]): Float64Array {
    const count = this.#isLive.length
    const scores = new Float64Array(count)
    const matched = new Uint8Array(count)
    const weights = new Float64Array(count)
    let totalRarity = 0
    let misspelt = 0
    for (const term of terms) {
      let found = this.#weighInto(weights.fill(0), this.#matches(term))
      if (found === 0 && misspelt++ < MAX_MISSPELT_TERMS) found = this.#weighInto(weights, this.#similar(term))
      if (found === 0) continue
      const rarity = Math.log(1 + this.#numbers.size / found)
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
  #weighInto (weights: Float64Array, matches: readonly Match[]): number {
    let found = 0
    for (const { entry, quality } of matches) {
      for (const posting of entry.postings) {
        const number = posting >>> WEIGHT_BITS
        const weight = (posting & WEIGHT_MASK) * quality
        const known = weights[number] ?? 0
        if (weight <= known || !this.#isLive[number]) continue
        if (known === 0) found++
        weights[number] = weight
      }
    }
    return found
  }

  /** The word itself, and the words that begin with it. */
  #matches (term: string): Match[] {
    const exact = this.#entries.get(term)
    const matches = exact === undefined ? [] : [{ entry: exact, quality: 1 }]
    if (!canBegin(term)) return matches
    for (const entry of this.#tree.atPrefix(term).values()) {
      if (entry !== exact) matches.push({ entry, quality: PREFIX_QUALITY * term.length / entry.word.length })
    }
    return matches
  }

  /** Words of another spelling. */
  #similar (term: string): Match[] {
    const wrong = maxWrong(term)
    if (wrong === 0) return []
    return Array.from(this.#tree.fuzzyGet(term, wrong).values(), ([entry, distance]) =>
      ({ entry, quality: FUZZY_QUALITY * (1 - distance / term.length) }))
  }
}

/** Loads the library here and not with the process: most processes never search. */
export async function createSearchIndex (): Promise<SearchIndex> {
  const { default: SearchableMap } = await import('minisearch/SearchableMap')
  return new SearchIndex(new SearchableMap<Entry>())
}

/** Each word of a document with its weight, 1 to 255. */
function weigh ({ name, displayName, description, body }: SearchDocument): Map<string, number> {
  const weights = new Map<string, number>()
  const add = (word: string, weight: number) => weights.set(word, (weights.get(word) ?? 0) + weight)
  for (const word of termsOf(body)) add(word, 1)
  for (const [word, count] of weights) weights.set(word, Math.ceil(BODY_WEIGHT * count / (count + HALF_WEIGHT_COUNT)))
  for (const word of new Set(termsOf(description))) add(word, DESCRIPTION_WEIGHT)
  const nameWords = new Set(termsOf(displayName === name ? name : `${name} ${displayName}`))
  for (const word of nameWords) add(word, NAME_WEIGHT + Math.floor(SHORT_NAME_WEIGHT / nameWords.size))
  return weights
}

function canBegin (term: string): boolean {
  if (isUnspaced(term)) return true
  return term.length >= (/^[a-z\d]/.test(term) ? MIN_ASCII_PREFIX : MIN_PREFIX)
}

function maxWrong (term: string): number {
  if (term.length < ONE_WRONG_FROM || isUnspaced(term)) return 0
  return term.length < TWO_WRONG_FROM ? 1 : 2
}
