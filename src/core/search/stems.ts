import { stemmer } from 'stemmer'

/** Other forms of a word. */
interface Stem {
  /** The beginning that all forms share. */
  readonly beginning: string
  readonly fits: (word: string) => boolean
}

/** Words that may be English, and of these the ones that have shorter forms. Longer forms of a shorter word begin with it. */
const ENGLISH_WORD = /^[a-z]{3,24}$/
const STEMMED_WORD = /^[a-z]{4,24}$/

/** Shorter stems stand for unrelated words. */
const MIN_STEM = 3

/** Longest ending of an English word beyond its stem: responsibilities has nine letters, hospitalizations ten. */
const MAX_ENDING = 10

/** Letters that Porter's rules change at the end of a stem: policy, policies; argue, arguing; scalable, scalability. */
const CHANGED_END = /(?:[iye]|(?<=b)l)$/

/**
 * What an English word and its other forms have in common, by Porter's rules; undefined for words without forms. Only
 * queries are stemmed: the index keeps words as they are, so that names, code and other languages match exactly.
 */
export function stemOf (term: string): Stem | undefined {
  if (!STEMMED_WORD.test(term)) return undefined
  const stem = stemmer(term)
  const unchanged = stem.replace(CHANGED_END, '')
  const beginning = unchanged.length < MIN_STEM ? stem : unchanged
  if (beginning.length < MIN_STEM || !term.startsWith(beginning)) return undefined
  return { beginning, fits: (word) => word.length <= stem.length + MAX_ENDING && ENGLISH_WORD.test(word) && stemmer(word) === stem }
}
