import { wordMatcher } from '../../core/search/words.ts'
import { escapeVisibly, type Html, trusted, visible } from './html.ts'

const WORDS = /[\p{L}\p{N}\p{M}]+/gu

/** Text of a skill as `visible` shows it, with marks on the words by which the index finds it. */
export function highlighter (query: string): (text: string) => Html {
  if (query.trim() === '') return visible
  const isFound = wordMatcher(query)
  return (text) => {
    let markup = ''
    let start = 0
    for (const { 0: word, index } of text.matchAll(WORDS)) {
      if (!isFound(word)) continue
      markup += `${escapeVisibly(text, start, index)}<mark>${escapeVisibly(text, index, index + word.length)}</mark>`
      start = index + word.length
    }
    return trusted(markup + escapeVisibly(text, start))
  }
}
