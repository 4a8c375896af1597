import { OUTCOMES, type TargetVerdict, TARGETS } from '../../verdicts/index.ts'
import { html, type Html } from '../markup/html.ts'
import { outcome } from './parts.ts'

/** What agents, validators and upload services do with a skill, the worst first, and which findings that rests on. */
export function targetTable (verdicts: readonly TargetVerdict[]): Html {
  const worstFirst = verdicts.toSorted((a, b) => OUTCOMES.indexOf(b.verdict) - OUTCOMES.indexOf(a.verdict))
  return html`<div class="table" tabindex="0"><table><thead><tr><th scope="col">Client</th><th scope="col">What it does</th><th scope="col">Because of</th><th scope="col">Rules of</th></tr></thead>
<tbody>${worstFirst.map(({ target, verdict, because = [], read }) => html`
<tr><td>${TARGETS[target].title}</td><td>${outcome(verdict)}</td><td>${because.map((code) => html`<a href="#${code}"><code>${code}</code></a> `)}</td><td><time datetime="${read}" title="${TARGETS[target].source}">${read}</time></td></tr>`)}
</tbody></table></div>`
}

/** In how many of them it works at least as written. */
export function summary (verdicts: readonly TargetVerdict[]): string {
  const taken = verdicts.filter(({ verdict }) => verdict !== 'not_loaded' && verdict !== 'refused')
  return taken.length === verdicts.length ? `works in all ${verdicts.length} clients` : `works in ${taken.length} of ${verdicts.length} clients`
}
