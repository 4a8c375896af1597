import MiniSearch, { type SearchResult } from 'minisearch'
import { stemmer } from 'stemmer'
import { MAX_MISSPELT_TERMS, MAX_QUERY_TERMS, MAX_SEARCHED_CHARACTERS, MAX_TERM_CHARACTERS } from '../shared/limits.ts'
import { compareCodePoints } from '../shared/text.ts'

/** What is searched of a skill. */
export interface SearchedSkill {
  /** The folder's name. */
  readonly name: string
  /** The frontmatter's name, or the folder's. */
  readonly label: string
  readonly description: string
  /** Headings of the body. */
  readonly headings: readonly string[]
}

/** A skill that was found. Scores are comparable within one answer only: the greater the better. */
export interface SearchHit<Key> {
  readonly key: Key
  readonly score: number
}

type Document = Readonly<Record<'name' | 'label' | 'description' | 'headings', string>> & { readonly key: unknown }

/** Documents that `addAll` adds in one turn of the event loop. */
const CHUNK_SIZE = 20
/** Scores are compared to a thousandth, so that equal documents are equal whatever was in the index before. */
const SCORE_STEPS = 1_000

/**
 * Ranked search over name, description and headings of skills. It knows nothing of roots or callers: a predicate
 * says which skills may be found.
 * @template Key identifies a skill: a string, or an object
 */
export class SkillSearch<Key> {
  readonly #index = new MiniSearch<Document>({
    idField: 'key',
    fields: ['name', 'label', 'description', 'headings'],
    storeFields: ['name'],
    tokenize,
    // A name may consist of small words only.
    processTerm: (term, field) => field === 'name' || !STOP_WORDS.has(term) ? formsOf(term) : null,
    searchOptions: {
      boost: { name: 4, label: 2, description: 2, headings: 1 },
      // Longer words are many: together they must not outweigh the word itself.
      weights: { prefix: 0.1, fuzzy: 0.1 },
      tokenize: (words) => words.split(' '),
      processTerm: formsOf
    }
  })

  /** What is in the index, by key. */
  readonly #skills = new Map<Key, SearchedSkill>()

  /** Adds skills that are not in the index yet, in slices: requests are answered meanwhile. */
  async addAll (skills: ReadonlyArray<readonly [key: Key, skill: SearchedSkill]>): Promise<void> {
    for (const [key, skill] of skills) this.#skills.set(key, skill)
    await this.#index.addAllAsync(skills.map(([key, skill]) => toDocument(key, skill)), { chunkSize: CHUNK_SIZE })
  }

  /** Adds a skill, or replaces the one with this key. */
  put (key: Key, skill: SearchedSkill): void {
    this.discard(key)
    this.#skills.set(key, skill)
    this.#index.add(toDocument(key, skill))
  }

  /**
   * Removes a skill, if it is there. `MiniSearch.discard` would count it in the next search still, for some of the
   * others.
   */
  discard (key: Key): void {
    const known = this.#skills.get(key)
    if (known === undefined) return
    this.#skills.delete(key)
    this.#index.remove(toDocument(key, known))
  }

  /**
   * Skills with at least one word of the query, the best first. The last word may be the beginning of a longer one, and
   * a word that no visible skill has may be misspelt. Skills that `sees` refuses influence the order at most.
   */
  search (query: string, sees: (key: Key) => boolean = () => true, limit = Infinity): ReadonlyArray<SearchHit<Key>> {
    const words = queryWords(query)
    const exact = this.#find(words, sees)
    const known = new Set(exact.flatMap(({ queryTerms }) => queryTerms))
    const unknown = words.filter((word) => maxWrong(word) > 0 && !formsOf(word).some((form) => known.has(form)))
    const results = unknown.length === 0 ? exact : this.#find(words, sees, unknown.slice(0, MAX_MISSPELT_TERMS))
    return results
      .map((result) => ({ result, score: Math.round(result.score * SCORE_STEPS) / SCORE_STEPS }))
      .sort((a, b) => b.score - a.score || compareCodePoints(String(a.result['name']), String(b.result['name'])))
      .slice(0, limit)
      .map(({ result, score }) => ({ key: result.id, score }))
  }

  #find (words: readonly string[], sees: (key: Key) => boolean, misspelt: readonly string[] = []): SearchResult[] {
    const last = words.at(-1) ?? ''
    return this.#index.search(words.join(' '), {
      prefix: (term) => term === last && canBegin(term),
      fuzzy: (term) => misspelt.includes(term) && maxWrong(term),
      filter: ({ id }) => sees(id)
    })
  }
}

function toDocument (key: unknown, { name, label, description, headings }: SearchedSkill): Document {
  return { key, name, label: label === name ? '' : label, description, headings: headings.join('\n') }
}

/** Letters, digits and marks; scripts that are written without blanks between words. */
const LETTER = String.raw`[\p{L}\p{N}\p{M}]`
const UNSPACED = String.raw`[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmr}\p{scx=Mymr}]`
const RUN = new RegExp(String.raw`(?:(?=${LETTER})${UNSPACED})+|(?:(?!${UNSPACED})${LETTER})+`, 'gu')
const UNSPACED_START = new RegExp(`^${UNSPACED}`, 'u')

/** `.NET`; `C#` and `C++`; words that are joined to one, as in `front-end`; and pictures. */
const TOKEN = new RegExp([
  String.raw`(?<!${LETTER})\.net(?!${LETTER})`,
  String.raw`(?<!${LETTER})[a-z](?:#|\+\+)(?!${LETTER})`,
  String.raw`${LETTER}+(?:[-_.'\u2010\u2011\u2019]${LETTER}+)*`,
  String.raw`\p{RI}{2}|\p{ExtPict}`
].join('|'), 'gu')

/** Names of languages and platforms as they are written without their signs. */
const SPELLINGS: ReadonlyMap<string, readonly string[]> = new Map([
  ['.net', ['.net', 'dotnet']], ['c#', ['c#', 'csharp']], ['c++', ['c++', 'cpp']], ['f#', ['f#', 'fsharp']]
])

const ASCII_WORD = /^[a-z\d]+$/
const JOINER = /[-_.'\u2010\u2011\u2019]/

/** Accents of Latin, Greek and Cyrillic letters. Japanese voicing marks tell letters apart, and stay. */
const ACCENTS = /[\u0300-\u036f]/g

/** Combining marks beyond what real text has (UAX #15 §13): normalization sorts them in quadratic time. */
const ENDLESS_MARKS = /([\p{M}\uff9e\uff9f]{30})[\p{M}\uff9e\uff9f]+/gu

/** Tells whether a search for `query` finds a text by this word of it, misspelt words aside. */
export function wordMatcher (query: string): (word: string) => boolean {
  const words = queryWords(query)
  const forms = new Set(words.flatMap(formsOf))
  const last = words.at(-1) ?? ''
  const isFound = (token: string): boolean => formsOf(token).some((form) => forms.has(form)) ||
    (canBegin(last) && token.startsWith(last))
  return (word) => tokenize(word).some(isFound)
}

/**
 * The words of a text without upper case, accents and compatibility forms. Words that are joined by a hyphen and the
 * like are there by themselves and as one, so that `frontend` finds `front-end`. In scripts without blanks each pair of
 * characters is a word, and so is the last character: any single character then begins a word.
 */
export function tokenize (text: string): string[] {
  const folded = text.slice(0, MAX_SEARCHED_CHARACTERS).toLowerCase().replaceAll(ENDLESS_MARKS, '$1')
    .normalize('NFKD').replaceAll(ACCENTS, '').normalize('NFC')
    // Sharp s and dotless i have the capitals of other letters, and both forms of sigma have one capital.
    .toUpperCase().toLowerCase().replaceAll('ς', 'σ')
  return (folded.match(TOKEN) ?? []).flatMap((token) => SPELLINGS.get(token) ?? wordsOf(token))
    .map((word) => word.slice(0, MAX_TERM_CHARACTERS))
}

function wordsOf (token: string): readonly string[] {
  if (ASCII_WORD.test(token)) return [token]
  const parts = token.split(JOINER)
  const words = parts.flatMap((part) => part.match(RUN) ?? [part])
  const joined = parts.slice(1).map((part, index) => `${parts[index]}${part}`)
  return [...words.flatMap((word) => isUnspaced(word) ? pairsOf(word) : [word]), ...joined]
}

function pairsOf (run: string): string[] {
  const characters = Array.from(run)
  return characters.map((character, index) => `${character}${characters[index + 1] ?? ''}`)
}

function isUnspaced (word: string): boolean {
  return UNSPACED_START.test(word)
}

/** A word, and what it has in common with its other forms. */
function formsOf (word: string): string[] {
  const stem = stemmer(word)
  return stem === word ? [word] : [word, stem]
}

/** The words that are searched for, each once. Stop words and single characters of a run count only by themselves. */
function queryWords (query: string): readonly string[] {
  const all = [...new Set(tokenize(query))]
  const telling = all.filter((word) => !STOP_WORDS.has(word) && !(isUnspaced(word) && Array.from(word).length === 1))
  return (telling.length > 0 ? telling : all).slice(0, MAX_QUERY_TERMS)
}

/** Short words begin too many others. */
function canBegin (word: string): boolean {
  return isUnspaced(word) || word.length >= (/^[a-z\d]/.test(word) ? 3 : 2)
}

/** How many characters of a word may be wrong. Very long ones are not words. */
function maxWrong (word: string): number {
  if (word.length < 4 || word.length > 32 || isUnspaced(word)) return 0
  return word.length < 8 ? 1 : 2
}

/** English words that say nothing of what a skill is for. */
const STOP_WORDS: ReadonlySet<string> = new Set(`
  a about above after again against all also am an and any are aren as at be because been before being below
  between both but by can cannot could couldn d did didn do does doesn doing don down each few for from had hadn
  has hasn have haven having he her here hers herself him himself his how i if in into is isn it its itself just
  let ll may me more most much must my myself need needs no nor not now of off on once one only or other our ours
  ourselves out over own per please s shall she should shouldn so some such t than that the their theirs them
  themselves then there these they this those through to too under until up us used uses using ve very want wants
  was wasn we were weren what when where whether which while who whom whose why will with won would wouldn you
  your yours yourself yourselves
`.trim().split(/\s+/))
