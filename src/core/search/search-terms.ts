import { MAX_QUERY_TERMS, MAX_TERM_CHARACTERS } from '../limits.ts'

/** Where words may be: what is not ASCII is looked at closer. Nearly all text is ASCII, and these two are fast. */
const CANDIDATES = /[a-z\d\u0080-\uffff]+/g
const ASCII_WORD = /^[a-z\d]+$/

/** Scripts whose writers put no blanks between words. */
const UNSPACED = String.raw`(?=[\p{L}\p{N}\p{M}])[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmr}\p{scx=Mymr}]`
const UNSPACED_START = new RegExp(`^${UNSPACED}`, 'u')
const RUNS = new RegExp(String.raw`(?:${UNSPACED})+|(?:(?!${UNSPACED})[\p{L}\p{N}\p{M}])+`, 'gu')

/** Accents of Latin, Greek and Cyrillic letters once they are taken apart; a Japanese voicing mark is none of them. */
const ACCENTS = /[\u0300-\u036f]/g

/**
 * Marks beyond those that text in use has in a row (UAX #15 §13): normalizing takes quadratic time to sort them. The two
 * half-width voicing marks become such marks.
 */
const MAX_MARKS = 30
const ENDLESS_MARKS = new RegExp(String.raw`([\p{M}\uff9e\uff9f]{${MAX_MARKS}})[\p{M}\uff9e\uff9f]+`, 'gu')

/**
 * Words as the index has them: lower case, without accents and compatibility forms, cut. Where a script has no blanks
 * each pair of neighbours is a word; the last character of such a run stands alone too, so that every single one is
 * the beginning of a word.
 */
export function termsOf (text: string): string[] {
  return words(text, true)
}

/** The words of a query, each once; those past MAX_QUERY_TERMS are left out. */
export function queryTermsOf (query: string): readonly string[] {
  return [...new Set(words(query, false))].slice(0, MAX_QUERY_TERMS)
}

/** Whether a word is one of a script without blanks, which no misspelling turns into another word. */
export function isUnspaced (term: string): boolean {
  return UNSPACED_START.test(term)
}

function words (text: string, withLast: boolean): string[] {
  const found: string[] = []
  for (const candidate of text.toLowerCase().match(CANDIDATES) ?? []) {
    // Only ligatures, of which one can be four words, make more of them than there are characters.
    if (found.length > text.length + MAX_TERM_CHARACTERS) break
    if (ASCII_WORD.test(candidate)) found.push(cut(candidate))
    // One by one: as arguments of one call, the words of a long run would overflow the stack.
    else for (const word of closerWords(candidate, withLast)) found.push(word)
  }
  return found
}

function closerWords (text: string, withLast: boolean): string[] {
  const folded = (text.length > MAX_MARKS ? text.replaceAll(ENDLESS_MARKS, '$1') : text).normalize('NFKD').replaceAll(ACCENTS, '').normalize('NFC').toLowerCase()
    // One ligature can stand for eighteen characters, and a body may hold nothing else.
    .slice(0, text.length + MAX_TERM_CHARACTERS)
  return (folded.match(RUNS) ?? []).flatMap((run) => isUnspaced(run) ? pairs(run, withLast) : cut(run))
}

function cut (word: string): string {
  return word.length > MAX_TERM_CHARACTERS ? word.slice(0, MAX_TERM_CHARACTERS) : word
}

function pairs (run: string, withLast: boolean): string[] {
  const characters = Array.from(run)
  const last = characters.at(-1) ?? ''
  if (characters.length === 1) return [last]
  const found = characters.slice(1).map((character, index) => `${characters[index]}${character}`)
  return withLast ? [...found, last] : found
}
