import type SearchableMap from 'minisearch/SearchableMap'
import { isUnspaced, queryTermsOf, termsOf } from './search-terms.ts'

/** What can be found of a skill. */
export interface SearchDocument {
  /** The folder's name. */
  readonly name: string
  /** The frontmatter's name, or the folder's. */
  readonly label: string
  readonly description: string
  readonly body: string
}

/** A skill that was found. */
export interface SearchHit {
  readonly name: string
  /** The greater the better; to be compared within one answer only. */
  readonly score: number
}

/**
 * What a word weighs by where it stands. The three together fill one byte, and each is more than all that come after it:
 * a word in a name beats the same word in a description, and that beats it in a body, however often it is there.
 */
const NAME_WEIGHT = 128
/** Goes to a name of one word, and in parts to longer ones: `pdf` comes before `pdf-forms`. */
const SHORT_NAME_WEIGHT = 32
const DESCRIPTION_WEIGHT = 64
const BODY_WEIGHT = 31

/** How often a word stands in a body when it weighs half of what it can. */
const HALF_WEIGHT_COUNT = 2

/** What is left of a match that is the beginning of a longer word, or a word spelt otherwise. */
const PREFIX_QUALITY = 0.6
const FUZZY_QUALITY = 0.4

/** A word of ASCII letters that is shorter than this is the beginning of too much. */
const MIN_ASCII_PREFIX = 3
const MIN_PREFIX = 2

/** From how many characters on one, or two, may be wrong. */
const ONE_WRONG_FROM = 4
const TWO_WRONG_FROM = 8

/** Replaced and removed documents that may lie about before the index is swept, beside as many as there are live ones. */
const MAX_DEAD = 64

/** A document's number, shifted, and the weight of the word in it: small enough to be kept in place by the engine. */
type Posting = number

const WEIGHT_BITS = 8
const WEIGHT_MASK = 0xff

/** A word that a word of a query means, and how well that is met. */
interface Match {
  readonly id: number
  readonly quality: number
}

/** What a search counts in: made once, since it takes a megabyte among 50,000 documents. By number of the document. */
interface Scratch {
  readonly weights: Float64Array
  readonly scores: Float64Array
  readonly matched: Uint8Array
}

function createScratch (count: number): Scratch {
  return { weights: new Float64Array(count), scores: new Float64Array(count), matched: new Uint8Array(count) }
}

/** Scores are told apart to a thousandth. */
const SCORE_STEPS = 1_000
/** More than there are skills. */
const PLACES = 2 ** 24

/**
 * Words and where they stand, in memory. The words are in a radix tree of MiniSearch, which knows beginnings and
 * misspellings; where they stand is in arrays of numbers, one for each word. MiniSearch's own index of 10,000 skills took
 * 150 MB of heap where this takes 94, and 450 ms for the slowest of a hundred searches where this takes 20.
 *
 * A document is added under a new number and replaces the old one at once; what is left of that is passed over until it
 * is swept out.
 */
export class SearchIndex {
  readonly #dictionary: SearchableMap<number>
  /** The same words, for exact matches. */
  readonly #terms = new Map<string, number>()
  readonly #words: string[] = []
  readonly #postings: Posting[][] = []
  /** Names of the documents by number; undefined where one was removed. */
  readonly #names: Array<string | undefined> = []
  readonly #numbers = new Map<string, number>()
  readonly #freeTerms: number[] = []
  readonly #freeNumbers: number[] = []
  #dead: number[] = []
  #scratch = createScratch(0)
  /** Of the last search: the catalog gives the same array while it stays the same. */
  #order: { readonly names: readonly string[], readonly numbers: Int32Array } | undefined

  constructor (dictionary: SearchableMap<number>) {
    this.#dictionary = dictionary
  }

  has (name: string): boolean {
    return this.#numbers.has(name)
  }

  /** Adds a document, or puts it in the place of the one of the same name. */
  put (document: SearchDocument): void {
    this.remove(document.name)
    this.#order = undefined
    const number = this.#freeNumbers.pop() ?? this.#names.length
    this.#names[number] = document.name
    this.#numbers.set(document.name, number)
    for (const [term, weight] of weigh(document)) this.#post(term, (number << WEIGHT_BITS) | weight)
  }

  remove (name: string): void {
    const number = this.#numbers.get(name)
    if (number === undefined) return
    this.#numbers.delete(name)
    this.#order = undefined
    this.#names[number] = undefined
    this.#dead.push(number)
  }

  /**
   * The documents with at least one word of the query, the best first.
   * @param names of all documents that may be found, in the order of equally good ones
   */
  search (query: string, names: readonly string[]): SearchHit[] {
    const scores = this.#score(queryTermsOf(query))
    const numbers = this.#numbersOf(names)
    // One number holds score and place, since to sort plain numbers takes a tenth of the time: the greater score first, then the lower place.
    const keys = new Float64Array(numbers.length)
    let count = 0
    for (let place = 0; place < numbers.length; place++) {
      const score = scores[numbers[place] ?? 0] ?? 0
      if (score > 0) keys[count++] = place - Math.round(score * SCORE_STEPS) * PLACES
    }
    return Array.from(keys.subarray(0, count).sort(), (key) => {
      const steps = Math.ceil(-key / PLACES)
      return { name: names[key + steps * PLACES] ?? '', score: steps / SCORE_STEPS }
    })
  }

  /** Frees what removed documents have left, if that is much; `yieldIfNeeded` cuts the work in slices. */
  async sweep (yieldIfNeeded: () => Promise<void> | undefined): Promise<void> {
    if (this.#dead.length <= this.#numbers.size + MAX_DEAD) return
    const dead = this.#dead
    this.#dead = []
    for (const [term, id] of this.#terms) {
      const live = (this.#postings[id] ?? []).filter((posting) => this.#names[posting >>> WEIGHT_BITS] !== undefined)
      this.#postings[id] = live
      if (live.length === 0) {
        this.#terms.delete(term)
        this.#dictionary.delete(term)
        this.#freeTerms.push(id)
      }
      await yieldIfNeeded()
    }
    // Not before: until the last word has been swept, one of these numbers could mean two documents.
    this.#freeNumbers.push(...dead)
  }

  /** The numbers of the documents in this order; of a name that is not known, one that no document has. */
  #numbersOf (names: readonly string[]): Int32Array {
    if (this.#order?.names !== names) {
      this.#order = { names, numbers: Int32Array.from(names, (name) => this.#numbers.get(name) ?? this.#names.length) }
    }
    return this.#order.numbers
  }

  #post (term: string, posting: Posting): void {
    const known = this.#terms.get(term)
    if (known !== undefined) {
      this.#postings[known]?.push(posting)
      return
    }
    const id = this.#freeTerms.pop() ?? this.#postings.length
    // A copy: a part of a string keeps the whole of it in memory.
    const own = Buffer.from(term).toString()
    this.#terms.set(own, id)
    this.#dictionary.set(own, id)
    this.#words[id] = own
    // Most words have one place only: an array that begins empty would keep room for sixteen more.
    this.#postings[id] = [posting]
  }

  /** What each document is worth, by number. */
  #score (terms: readonly string[]): Float64Array {
    const count = this.#names.length
    if (this.#scratch.scores.length < count) this.#scratch = createScratch(count)
    const scores = this.#scratch.scores.fill(0)
    const matched = this.#scratch.matched.fill(0)
    for (const term of terms) {
      const weights = this.#weigh(term)
      let found = 0
      for (let number = 0; number < count; number++) if ((weights[number] ?? 0) > 0) found++
      // What few have says more.
      const rarity = Math.log(1 + this.#numbers.size / found)
      for (let number = 0; number < count; number++) {
        const weight = weights[number] ?? 0
        if (weight === 0) continue
        scores[number] = (scores[number] ?? 0) + weight * rarity
        matched[number] = (matched[number] ?? 0) + 1
      }
    }
    // Who has all words comes before who has one of them often.
    for (let number = 0; number < count; number++) scores[number] = (scores[number] ?? 0) * (matched[number] ?? 0) / terms.length
    return scores
  }

  /** The best weight that a word of a query has in each document, by number. */
  #weigh (term: string): Float64Array {
    const weights = this.#scratch.weights.fill(0)
    for (const { id, quality } of this.#match(term)) {
      for (const posting of this.#postings[id] ?? []) {
        const number = posting >>> WEIGHT_BITS
        const weight = (posting & WEIGHT_MASK) * quality
        if (weight > (weights[number] ?? 0) && this.#names[number] !== undefined) weights[number] = weight
      }
    }
    return weights
  }

  /** The words meant by a word of a query: itself, those that it begins, and only if there are none those that are spelt nearly so. */
  #match (term: string): Match[] {
    const exact = this.#terms.get(term)
    const matches: Match[] = exact !== undefined && this.#isUsed(exact) ? [{ id: exact, quality: 1 }] : []
    if (canBegin(term)) {
      for (const id of this.#dictionary.atPrefix(term).values()) {
        if (id !== exact && this.#isUsed(id)) matches.push({ id, quality: PREFIX_QUALITY * term.length / (this.#words[id] ?? '').length })
      }
    }
    const wrong = maxWrong(term)
    if (matches.length > 0 || wrong === 0) return matches
    return Array.from(this.#dictionary.fuzzyGet(term, wrong).values(), ([id, distance]) =>
      ({ id, quality: FUZZY_QUALITY * (1 - distance / term.length) }))
  }

  /** Whether any document has the word still. */
  #isUsed (id: number): boolean {
    return (this.#postings[id] ?? []).some((posting) => this.#names[posting >>> WEIGHT_BITS] !== undefined)
  }
}

/** The library is loaded here and not with the process: few need it at once. */
export async function createSearchIndex (): Promise<SearchIndex> {
  const { default: SearchableMap } = await import('minisearch/SearchableMap')
  return new SearchIndex(new SearchableMap<number>())
}

/** Each word of a document with its weight, 1 to 255. */
function weigh ({ name, label, description, body }: SearchDocument): Map<string, number> {
  const weights = new Map<string, number>()
  const add = (term: string, weight: number) => weights.set(term, (weights.get(term) ?? 0) + weight)
  for (const term of termsOf(body)) add(term, 1)
  for (const [term, count] of weights) weights.set(term, Math.ceil(BODY_WEIGHT * count / (count + HALF_WEIGHT_COUNT)))
  for (const term of new Set(termsOf(description))) add(term, DESCRIPTION_WEIGHT)
  const nameTerms = new Set(termsOf(label === name ? name : `${name} ${label}`))
  for (const term of nameTerms) add(term, NAME_WEIGHT + Math.floor(SHORT_NAME_WEIGHT / nameTerms.size))
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
