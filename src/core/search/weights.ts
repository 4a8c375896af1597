import { termsOf } from './search-terms.ts'

/** The searched text of a skill. */
export interface SearchDocument {
  /** The folder's name. */
  readonly name: string
  /** The frontmatter's name, or the folder's. */
  readonly displayName: string
  readonly description: string
  readonly body: string
}

/**
 * Weight of a word by the text that it stands in. The sum fits one byte, and each weight exceeds all below it together. A word
 * in a name beats the same word in a description, and that one beats any number of them in a body.
 */
export const NAME_WEIGHT = 128
const DESCRIPTION_WEIGHT = 64
const BODY_WEIGHT = 31

/** Added for a name of one word, and in parts for longer names: `pdf` comes before `pdf-forms`. */
const SHORT_NAME_WEIGHT = 32

/** Occurrences at which a word has half of BODY_WEIGHT. */
const HALF_WEIGHT_COUNT = 2

/** Each word of a document with its weight, 1 to 255. */
export function weigh ({ name, displayName, description, body }: SearchDocument): Map<string, number> {
  const weights = new Map<string, number>()
  const add = (word: string, weight: number) => weights.set(word, (weights.get(word) ?? 0) + weight)
  for (const word of termsOf(body)) add(word, 1)
  for (const [word, count] of weights) weights.set(word, Math.ceil(BODY_WEIGHT * count / (count + HALF_WEIGHT_COUNT)))
  for (const word of new Set(termsOf(description))) add(word, DESCRIPTION_WEIGHT)
  const nameWords = new Set(termsOf(displayName === name ? name : `${name} ${displayName}`))
  for (const word of nameWords) add(word, NAME_WEIGHT + Math.floor(SHORT_NAME_WEIGHT / nameWords.size))
  return weights
}
