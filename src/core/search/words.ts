import { stemmer } from 'stemmer'
import { MAX_SEARCHED_CHARACTERS } from '../shared/limits.ts'

/** Most words of a query, and longest word in characters. */
const MAX_QUERY_TERMS = 16
const MAX_TERM_CHARACTERS = 64

/** Letters, digits and marks; scripts that are written without blanks between words. */
const LETTER = String.raw`[\p{L}\p{N}\p{M}]`
const UNSPACED = String.raw`[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmr}\p{scx=Mymr}]`
const RUN = new RegExp(String.raw`(?:(?=${LETTER})${UNSPACED})+|(?:(?!${UNSPACED})${LETTER})+`, 'gu')
const UNSPACED_START = new RegExp(`^${UNSPACED}`, 'u')

/** Tokens: `.NET`; `C#` and `C++`; joined words such as `front-end`; flags and emoji. */
const TOKEN = new RegExp([
  String.raw`(?<!${LETTER})\.net(?!${LETTER})`,
  String.raw`(?<!${LETTER})[a-z](?:#|\+\+)(?!${LETTER})`,
  String.raw`${LETTER}+(?:[-_.'\u2010\u2011\u2019]${LETTER}+)*`,
  String.raw`\p{RI}{2}|\p{ExtPict}`
].join('|'), 'gu')

const JOINER = /[-_.'\u2010\u2011\u2019]/

/** Names of languages and platforms, with their spellings in letters. */
const SPELLINGS: ReadonlyMap<string, readonly string[]> = new Map([
  ['.net', ['.net', 'dotnet']], ['c#', ['c#', 'csharp']], ['c++', ['c++', 'cpp']], ['f#', ['f#', 'fsharp']]
])

/** Accents of Latin, Greek and Cyrillic letters. Japanese voicing marks are kept, since they distinguish letters. */
const ACCENTS = /[\u0300-\u036f]/g

/** More combining marks in a row than real text has (UAX #15 §13). Normalization would sort them in quadratic time. */
const ENDLESS_MARKS = /([\p{M}\uff9e\uff9f]{30})[\p{M}\uff9e\uff9f]+/gu

/**
 * Splits a text into words, without upper case, accents and compatibility forms. Words that are joined by a hyphen and
 * the like are added as one, so that `frontend` finds `front-end`. In scripts without blanks each pair of characters,
 * and the last character, is a word: any single character then begins a word.
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

/** Returns a word and its stem. */
export function formsOf (word: string): string[] {
  return [...new Set([word, stemmer(word)])]
}

/** Returns the words to search for. Stop words and single characters count only where there are no others. */
export function queryWords (query: string): readonly string[] {
  const all = [...new Set(tokenize(query))]
  const isCharacter = (word: string): boolean => isUnspaced(word) && Array.from(word).length === 1
  const significant = all.filter((word) => !STOP_WORDS.has(word) && !isCharacter(word))
  return (significant.length > 0 ? significant : all).slice(0, MAX_QUERY_TERMS)
}

/** Whether the last word of a query may be a prefix. Very short words would match too much. */
export function allowsPrefix (word: string): boolean {
  return isUnspaced(word) || word.length > 2
}

export function allowsTypo (word: string): boolean {
  return !isUnspaced(word) && word.length > 3
}

export const STOP_WORDS: ReadonlySet<string> = new Set(`
  a about above after again against all also am an and any are aren as at be because been before being below
  between both but by can cannot could couldn d did didn do does doesn doing don down each few for from had hadn
  has hasn have haven having he her here hers herself him himself his how i if in into is isn it its itself just
  let ll may me more most much must my myself need needs no nor not now of off on once one only or other our ours
  ourselves out over own per please s shall she should shouldn so some such t than that the their theirs them
  themselves then there these they this those through to too under until up us used uses using ve very want wants
  was wasn we were weren what when where whether which while who whom whose why will with won would wouldn you
  your yours yourself yourselves
`.trim().split(/\s+/))
