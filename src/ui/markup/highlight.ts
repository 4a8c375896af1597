import { canBegin, queryTermsOf, termsOf } from '../../core/search/search-terms.ts'
import { stemOf } from '../../core/search/stems.ts'
import { escapeVisibly, type Html, trusted, visible } from './html.ts'

const WORDS = /[\p{L}\p{N}\p{M}]+/gu

/** Text of a skill as `visible` shows it, with marks on the words by which the index finds it. */
export function highlighter (query: string): (text: string) => Html {
  const terms = queryTermsOf(query)
  if (terms.length === 0) return visible
  const stems = terms.map(stemOf)
  const isFound = (word: string): boolean => terms.some((term, index) => word === term || (canBegin(term) && word.startsWith(term)) || stems[index]?.fits(word) === true)
  return (text) => {
    let markup = ''
    let start = 0
    for (const { 0: word, index } of text.matchAll(WORDS)) {
      if (!termsOf(word).some(isFound)) continue
      markup += `${escapeVisibly(text, start, index)}<mark>${escapeVisibly(text, index, index + word.length)}</mark>`
      start = index + word.length
    }
    return trusted(markup + escapeVisibly(text, start))
  }
}
