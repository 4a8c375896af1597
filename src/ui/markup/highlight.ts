import { foldTerm, isUnspaced, queryTermsOf } from '../../core/search/search-terms.ts'
import { stemOf } from '../../core/search/stems.ts'
import { escapeVisibly, type Html, trusted, visible } from './html.ts'

const WORDS = /[\p{L}\p{N}\p{M}]+/gu

/** Shortest words that a search completes. */
const MIN_PREFIX = 3

/** Text of a skill as `visible` shows it, with the words that a search has found in it marked. */
export function highlighter (query: string): (text: string) => Html {
  const terms = queryTermsOf(query)
  if (terms.length === 0) return visible
  const stems = terms.map(stemOf)
  const pairs = terms.filter(isUnspaced)
  const isFound = (word: string): boolean => stems.some((stem) => stem?.fits(word)) || terms.some((term) => word.startsWith(term) && (term.length >= MIN_PREFIX || term === word)) ||
    pairs.some((pair) => word.includes(pair))
  return (text) => {
    let markup = ''
    let start = 0
    for (const { 0: word, index } of text.matchAll(WORDS)) {
      if (!isFound(foldTerm(word))) continue
      markup += `${escapeVisibly(text, start, index)}<mark>${escapeVisibly(text, index, index + word.length)}</mark>`
      start = index + word.length
    }
    return trusted(markup + escapeVisibly(text, start))
  }
}
