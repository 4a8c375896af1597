import { MAX_QUERY_TERMS, MAX_TERM_CHARACTERS } from '../shared/limits.ts'
import { isStopWord } from './stop-words.ts'

/** Runs of letters and digits, and of everything that is not ASCII: nearly all text is ASCII, and needs no Unicode classes. */
const CANDIDATES = /[a-z\d\u0080-\uffff]+/g
const ASCII_WORD = /^[a-z\d]+$/

/** Scripts that are written without blanks between words. */
const UNSPACED = String.raw`(?=[\p{L}\p{N}\p{M}])[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmr}\p{scx=Mymr}]`
const UNSPACED_START = new RegExp(`^${UNSPACED}`, 'u')
const RUNS = new RegExp(String.raw`(?:${UNSPACED})+|(?:(?!${UNSPACED})[\p{L}\p{N}\p{M}])+`, 'gu')

/** Accents of Latin, Greek and Cyrillic letters in decomposed text. Japanese voicing marks tell letters apart, and stay. */
const ACCENTS = /[\u0300-\u036f]/g

/**
 * More combining marks in a row than real text has (UAX #15 §13). Normalization sorts them in quadratic time, so the rest
 * is removed. The two half-width voicing marks become combining marks.
 */
const MAX_MARKS = 30
const ENDLESS_MARKS = new RegExp(String.raw`([\p{M}\uff9e\uff9f]{${MAX_MARKS}})[\p{M}\uff9e\uff9f]+`, 'gu')

/**
 * The words of a text, for the index: in lower case, without accents and compatibility forms, cut to MAX_TERM_CHARACTERS.
 * In scripts without blanks each pair of characters is a word. The last character is a word too, so that every single
 * character begins one.
 */
export function termsOf (text: string): string[] {
  return words(text, true)
}

/** The first MAX_QUERY_TERMS words of a query, each once. Stop words count only when there is no other word. */
export function queryTermsOf (query: string): readonly string[] {
  const all = [...new Set(words(query, false))]
  const telling = all.filter((word) => !isStopWord(word))
  return (telling.length > 0 ? telling : all).slice(0, MAX_QUERY_TERMS)
}

/** Whether a word is of a script without blanks: such words are no misspellings of each other. */
export function isUnspaced (term: string): boolean {
  return UNSPACED_START.test(term)
}

/** Shortest words that match as prefixes: shorter ones begin too many words. */
const MIN_ASCII_PREFIX = 3
const MIN_PREFIX = 2

/** Whether a word of a query also finds the words that begin with it. */
export function canBegin (term: string): boolean {
  if (isUnspaced(term)) return true
  return term.length >= (/^[a-z\d]/.test(term) ? MIN_ASCII_PREFIX : MIN_PREFIX)
}

function words (text: string, withLast: boolean): string[] {
  const found: string[] = []
  for (const candidate of text.toLowerCase().match(CANDIDATES) ?? []) {
    // Only ligatures exceed one word a character: one of them can be four words.
    if (found.length > text.length + MAX_TERM_CHARACTERS) break
    if (ASCII_WORD.test(candidate)) found.push(cut(candidate))
    // One by one: spread into one call, the words of a long run would overflow the stack.
    else for (const word of unicodeWords(candidate, withLast)) found.push(word)
  }
  return found
}

/** A text as words of the index are spelled: without upper case, accents and compatibility forms. */
function foldTerm (text: string): string {
  const bounded = text.length > MAX_MARKS ? text.replaceAll(ENDLESS_MARKS, '$1') : text
  // Upper case first: sharp s and dotless i have the capitals of other letters. The final sigma has that of the other sigma.
  return bounded.normalize('NFKD').replaceAll(ACCENTS, '').normalize('NFC').toUpperCase().toLowerCase().replaceAll('ς', 'σ')
}

function unicodeWords (text: string, withLast: boolean): string[] {
  // One ligature can become eighteen characters, and a body may consist of ligatures.
  const folded = foldTerm(text).slice(0, text.length + MAX_TERM_CHARACTERS)
  return (folded.match(RUNS) ?? []).flatMap((run) => isUnspaced(run) ? pairs(run, withLast) : cut(run))
}

function cut (word: string): string {
  // Half a character at the end would become another one in the index.
  return word.length > MAX_TERM_CHARACTERS ? word.slice(0, MAX_TERM_CHARACTERS).replace(/[\ud800-\udbff]$/, '') : word
}

function pairs (run: string, withLast: boolean): string[] {
  const characters = Array.from(run)
  const last = characters.at(-1) ?? ''
  if (characters.length === 1) return [last]
  const found = characters.slice(1).map((character, index) => `${characters[index]}${character}`)
  return withLast ? [...found, last] : found
}
