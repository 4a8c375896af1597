import { structuredPatch } from 'diff'
import { escapeVisibly } from './html.ts'

/** Lines around a change, and most lines that may differ: the time grows with their square. */
const CONTEXT_LINES = 3
const MAX_EDITS = 4_000

const ELEMENTS: Readonly<Record<string, string>> = { '+': 'ins', '-': 'del', ' ': 'span' }

/** What differs between two texts, line by line; empty when too much does. */
export function renderDiff (before: string, after: string): string {
  const patch = structuredPatch('', '', before, after, '', '', { context: CONTEXT_LINES, maxEditLength: MAX_EDITS })
  if (patch === undefined) return ''
  const hunks = patch.hunks.map(({ newStart, lines }) => `<span class="hunk">line ${newStart}\n</span>${lines.map(renderLine).join('')}`)
  return `<pre class="source diff" tabindex="0"><code dir="auto">${hunks.join('')}</code></pre>`
}

function renderLine (line: string): string {
  const element = ELEMENTS[line.charAt(0)]
  // Git's note that a file ends without a line end.
  if (element === undefined) return ''
  return `<${element}>${escapeVisibly(line)}\n</${element}>`
}
