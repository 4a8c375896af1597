import type { Finding } from '../../core/shared/skill.ts'
import { counted, grouped } from '../../core/shared/text.ts'
import { type Outcome, TARGETS } from '../../verdicts/targets.ts'
import { type Content, html, type Html, visible } from '../markup/html.ts'
import type { Snippet } from '../snippets.ts'
import type { Addresses } from './layout.ts'

/** Most clients that a finding names; the table of the page has all of them. */
const MAX_NAMED = 4

const UNITS = ['bytes', 'kB', 'MB', 'GB'] as const

/** Shows a size in rounded units, with the exact bytes in the title. */
export function size (bytes: number): Html {
  let value = bytes
  let unit = 0
  while (value >= 1_000 && unit < UNITS.length - 1) {
    value /= 1_000
    unit++
  }
  const text = unit === 0 || value >= 10 ? grouped(Math.round(value)) : value.toFixed(1)
  return html`<span title="${grouped(bytes)} bytes">${text} ${bytes === 1 ? 'byte' : UNITS[unit]}</span>`
}

/** The worst severity among findings, with a colour. */
export function verdict (findings: readonly Finding[]): Html {
  const errors = findings.filter(({ severity }) => severity === 'error').length
  const warnings = findings.filter(({ severity }) => severity === 'warning').length
  if (errors > 0) return mark(counted(errors, 'error'), 'error')
  return warnings > 0 ? mark(counted(warnings, 'warning'), 'warning') : mark('valid', 'good')
}

/** Words, and the colour that they have. */
export type Mark = readonly [what: string, quality: 'good' | 'warning' | 'error']

export function mark (...[what, quality]: Mark): Html {
  return html`<span class="verdict ${quality}">${what}</span>`
}

/** Label and severity of each outcome. */
const OUTCOME_WORDS: Readonly<Record<Outcome, Mark>> = {
  ok: ['works', 'good'],
  warned: ['works, with a warning', 'warning'],
  changed: ['changes a value', 'warning'],
  cut: ['truncates a text', 'warning'],
  not_loaded: ['does not load it', 'error'],
  refused: ['refuses it', 'error']
}

export function outcome (verdict: Outcome): Html {
  return mark(...OUTCOME_WORDS[verdict])
}

/** @param mainFile path of the file that a finding is about if it names no other */
export function findingList (
  findings: readonly Finding[], name: string, mainFile: string | undefined, addresses: Addresses
): Html {
  const firsts = new Map(findings.toReversed().map((found) => [found.code, found]))
  return html`<ul class="findings">${findings.map((found) => {
    const { severity, message, fix, code, targets = [], line, file = mainFile } = found
    const clients = targets.length > MAX_NAMED
      ? html` <a href="#targets">matters to ${targets.length} clients</a>`
      : targets.length > 0 && html` <span>matters to ${titles(targets)}</span>`
    const where = line !== undefined && file !== undefined &&
      html`<a href="${addresses.file(name, file)}#L${line}">${file === mainFile ? '' : visible(file)} line ${line}</a> `
    return html`
<li class="${severity}"${firsts.get(code) === found && html` id="${code}"`}><p><strong>${severity}</strong>
<span dir="auto">${visible(sentence(message))}</span></p>
<p class="fix"><span class="label">Fix</span> <span dir="auto">${visible(sentence(fix))}</span></p>
<p class="meta">${where}<code>${code}</code>${clients}</p></li>`
  })}
</ul>`
}

function titles (targets: readonly string[]): string {
  const table: Readonly<Record<string, { readonly title: string }>> = TARGETS
  return targets.map((target) => table[target]?.title ?? target).join(', ')
}

/** Capitalizes a sentence of a finding. */
function sentence (text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** Creates a list of terms with their values; skips undefined facts. */
export function factList (facts: ReadonlyArray<readonly [term: string, value: Content] | undefined>): Html {
  return html`<dl class="facts">${facts.filter((fact) => fact !== undefined).map(([term, value]) => html`
<div><dt>${visible(term)}</dt><dd>${value}</dd></div>`)}
</dl>`
}

/** Shows the beginning of a digest, and all of it in the title. */
export function digest (text: string): Html {
  return html`<code title="${text}">${text.slice(0, 'sha256:'.length + 12)}</code>`
}

/** @param numbers heads of the last columns, which hold numbers */
export function table (
  heads: readonly string[], numbers: readonly string[], rows: ReadonlyArray<readonly Content[]>
): Html {
  const align = (column: number) => column >= heads.length && html` class="align-right"`
  return html`<div class="table" tabindex="0"><table><thead><tr>${[...heads, ...numbers].map((head, column) => html`
<th scope="col"${align(column)}>${head}</th>`)}</tr></thead>
<tbody>${rows.map((cells) => html`
<tr>${cells.map((cell, column) => html`<td${align(column)}>${cell}</td>`)}</tr>`)}
</tbody></table></div>`
}

/**
 * Creates snippets as tabs, which are radio buttons and need no script. They have the address that the request was sent
 * to; the script replaces it by that in the browser's address bar, which a proxy may have changed.
 * @param missing reason why a client does not get the skill, by the API that it uses
 */
export function snippetList (
  list: readonly Snippet[], base: string, missing: Readonly<Partial<Record<Snippet['through'], string>>> = {}
): Html {
  return html`<fieldset class="snippets" data-base="${base}"><legend class="unseen">Client</legend>${
    list.map(({ id, client, where, text, through }, index) => html`
<input type="radio" name="use" id="use-${id}"${index === 0 && html` checked`}><label for="use-${id}">${client}</label>
<div class="snippet">${missing[through] === undefined
  ? html`<p>${where}</p><pre tabindex="0"><code>${text}</code></pre>
<button type="button" class="copy" hidden>Copy</button>`
  : html`<p class="nothing">${missing[through]}</p>`}</div>`)}
</fieldset>`
}
