import { escapeVisibly, html, type Html, trusted } from '../markup/html.ts'

/** Most of a text that a page shows: its beginning, in lines and in UTF-16 code units. */
export const MAX_SHOWN_CHARACTERS = 262_144
export const MAX_SHOWN_LINES = 10_000

export interface Source {
  readonly markup: Html
  /** Lines that the markup holds. */
  readonly lines: number
  /** The text goes on. */
  readonly isCut: boolean
}

/** A text as it is, each line with an address: `#L12`. */
export function sourceView (text: string): Source {
  const shown = text.slice(0, MAX_SHOWN_CHARACTERS)
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
