import { OUTCOMES, type TargetVerdict, TARGETS } from '../../verdicts/index.ts'
import { html, type Html } from '../markup/html.ts'
import { outcome, table } from './parts.ts'

/** What clients do with a skill, the worst first, and because of which findings. */
export function targetTable (verdicts: readonly TargetVerdict[]): Html {
  const worstFirst = verdicts.toSorted((a, b) => OUTCOMES.indexOf(b.verdict) - OUTCOMES.indexOf(a.verdict))
  const heads = ['Client', 'What it does', 'Because of', 'Rules of']
  return table(heads, [], worstFirst.map(({ target, verdict, because = [], read }) => [
    TARGETS[target].title,
    outcome(verdict),
    because.map((code) => html`<a href="#${code}"><code>${code}</code></a> `),
    html`<time datetime="${read}" title="${TARGETS[target].source}">${read}</time>`
  ]))
}

/** In how many of them it works at least as written. */
export function summary (verdicts: readonly TargetVerdict[]): string {
  const taken = verdicts.filter(({ verdict }) => verdict !== 'not_loaded' && verdict !== 'refused').length
  return `works in ${taken === verdicts.length ? 'all' : `${taken} of`} ${verdicts.length} clients`
}
