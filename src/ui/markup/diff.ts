import { structuredPatch } from 'diff'
import { escapeVisibly, html, type Html, trusted } from './html.ts'

/** Lines around a change. */
const CONTEXT_LINES = 3

/** Most lines that may differ: the time grows with their square. */
const MAX_EDITS = 1_000

const ELEMENTS: Readonly<Record<string, string>> = { '+': 'ins', '-': 'del' }

/** Git's note that the line before ends its file without a line end. */
const NOTE = '\\'

/** The differences between two texts, line by line; undefined when there are too many. */
export function renderDiff (before: string, after: string): Html | undefined {
  if (before === after) return note('The text is the same: the bytes of the file differ in their encoding.')
  const patch = structuredPatch('', '', before, after, '', '', { context: CONTEXT_LINES, maxEditLength: MAX_EDITS })
  if (patch === undefined) return undefined
  const hunks = patch.hunks.map(({ newStart, lines }) =>
    `<span class="hunk">line ${newStart}\n</span>${lines.map(renderLine).join('')}`)
  const onlyLineEnds = withoutLineEnds(before) === withoutLineEnds(after)
  return html`${onlyLineEnds && note('Only line ends differ.')}<pre class="source diff" tabindex="0"><code>${
    trusted(hunks.join(''))}</code></pre>`
}

function note (sentence: string): Html {
  return html`<p class="note">${sentence}</p>`
}

function withoutLineEnds (text: string): string {
  const lines = text.replaceAll(/\r\n?/g, '\n')
  return lines.endsWith('\n') ? lines.slice(0, -1) : lines
}

function renderLine (line: string): string {
  const element = ELEMENTS[line.charAt(0)] ?? 'span'
  return line.startsWith(NOTE) ? '' : `<${element}>${escapeVisibly(line)}\n</${element}>`
}
