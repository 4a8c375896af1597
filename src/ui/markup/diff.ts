import { structuredPatch } from 'diff'
import { escapeVisibly, html, type Html, trusted } from './html.ts'

/** Lines around a change. */
const CONTEXT_LINES = 3

/** Most lines that may differ: the time grows with their square. */
const MAX_EDITS = 1_000

const ELEMENTS: Readonly<Record<string, string>> = { '+': 'ins', '-': 'del' }

const CARRIAGE_RETURN = '<span class="hidden-character" title="carriage return">U+000D</span>'
const NO_LINE_END = '<span class="hidden-character" title="the file ends here">no line end</span>'

/** Git's note that the line before ends its file without a line end. */
const NOTE = '\\'

/** What differs between two texts, line by line; undefined when too much does. Line ends that differ are marked. */
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

function renderLine (line: string, index: number, lines: readonly string[]): string {
  const kind = line.charAt(0)
  if (kind === NOTE) return ''
  const element = ELEMENTS[kind] ?? 'span'
  if (element === 'span') return `<span>${escapeVisibly(line)}\n</span>`
  const text = line.split('\r').map((part) => escapeVisibly(part)).join(CARRIAGE_RETURN)
  return `<${element}>${text}${lines[index + 1]?.startsWith(NOTE) === true ? NO_LINE_END : ''}\n</${element}>`
}
