import { escapeVisibly, html, type Html, isHidden, trusted } from '../markup/html.ts'

/** Longest part of a text that a page shows, from its beginning, in UTF-16 code units and in lines. */
export const MAX_SHOWN_CHARACTERS = 262_144
const MAX_SHOWN_LINES = 10_000

const BYTE_ORDER_MARK = '\ufeff'

/** Most marks for hidden characters, each of 80 characters. */
const MAX_SHOWN_MARKS = 5_000

export interface Source {
  readonly markup: Html
  /** Number of lines in the markup. */
  readonly lines: number
  /** Whether the text is longer. */
  readonly isCut: boolean
}

/** Shows a text unrendered, with an address for each line: `#L12`. */
export function sourceView (text: string): Source {
  const shown = text.slice(0, endOfShown(text))
  // A byte order mark is not shown as a hidden character.
  const mark = shown.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : ''
  let markup = ''
  let lines = 0
  let start = 0
  // A line end at the end of a file does not begin another line.
  while (lines < MAX_SHOWN_LINES && (start < shown.length || lines === 0)) {
    const lineEnd = shown.indexOf('\n', start)
    const end = lineEnd === -1 ? shown.length : lineEnd
    lines++
    const line = start === 0 ? mark + escapeVisibly(shown, mark.length, end) : escapeVisibly(shown, start, end)
    markup += `<span class="line"><a id="L${lines}" href="#L${lines}" tabindex="-1">${lines}</a>${line}\n</span>`
    start = end + 1
  }
  return {
    markup: html`<pre class="source"><code>${trusted(markup)}</code></pre>`,
    lines,
    isCut: text.length > shown.length || start < shown.length
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
