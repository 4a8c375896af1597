import { isHidden } from '../markup/hidden-characters.ts'
import { escapeVisibly, html, type Html, trusted } from '../markup/html.ts'

/** Most of a text that a page shows: its beginning, in lines and in UTF-16 code units. */
export const MAX_SHOWN_CHARACTERS = 262_144
const MAX_SHOWN_LINES = 10_000

/** Marks for what nobody sees, each of 80 characters. */
const MAX_SHOWN_MARKS = 5_000

export interface Source {
  readonly markup: Html
  /** Lines that the markup holds. */
  readonly lines: number
  /** The text goes on. */
  readonly isCut: boolean
}

/** A text as it is, each line with an address: `#L12`. */
export function sourceView (text: string): Source {
  const shown = text.slice(0, endOfShown(text))
  const all = shown.split('\n')
  // What ends a file is no line of its own.
  if (all.at(-1) === '' && all.length > 1) all.pop()
  const lines = all.slice(0, MAX_SHOWN_LINES)
  const markup = lines.map((line, index) => `<span class="line"><a id="L${index + 1}" href="#L${index + 1}" tabindex="-1">${index + 1}</a>${escapeVisibly(line)}\n</span>`).join('')
  return {
    markup: html`<pre class="source"><code dir="auto">${trusted(markup)}</code></pre>`,
    lines: lines.length,
    isCut: text.length > shown.length || all.length > lines.length
  }
}

function endOfShown (text: string): number {
  const end = Math.min(text.length, MAX_SHOWN_CHARACTERS)
  let marks = 0
  let isMarked = false
  for (let i = 0; i < end; i++) {
    const wasMarked = isMarked
    isMarked = isHidden(text, i)
    if (isMarked && !wasMarked && ++marks > MAX_SHOWN_MARKS) return i
  }
  return end
}
