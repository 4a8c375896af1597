import { type Outcome, OUTCOMES, type TargetVerdict } from '../../verdicts/index.ts'
import { html, type Html } from '../html.ts'
import { titles } from './parts.ts'

/** What is said before the names of targets, and how bad it is. */
const WORDS = {
  ok: ['works', 'in', 'good'],
  warned: ['works with a warning', 'in', 'warning'],
  changed: ['read differently', 'by', 'warning'],
  cut: ['cut', 'by', 'warning'],
  not_loaded: ['not loaded', 'by', 'error'],
  refused: ['refused', 'by', 'error']
} as const satisfies Record<Outcome, readonly [what: string, preposition: string, kind: string]>

/** What agents, validators and upload services do with a skill, the worst first. */
export function targetList (verdicts: readonly TargetVerdict[]): Html {
  const groups = OUTCOMES.toReversed().map((outcome) => ({ outcome, targets: verdicts.filter(({ verdict }) => verdict === outcome).map(({ target }) => target) }))
  return html`<ul class="targets">${groups.filter(({ targets }) => targets.length > 0).map(({ outcome, targets }) => {
    const [what, preposition, kind] = WORDS[outcome]
    return html`
<li><span class="verdict ${kind}">${what}</span> ${preposition} ${titles(targets)}</li>`
  })}
</ul>`
}
