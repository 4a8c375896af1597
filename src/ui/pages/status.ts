import type { SkillStatus } from '../../core/skill-source.ts'
import { explainStatus } from '../../http/readiness.ts'
import type { Addresses } from '../addresses.ts'
import { html, visible } from '../html.ts'
import type { Page } from './layout.ts'
import { count, factList } from './parts.ts'

const STATES = { ok: 'there', missing: 'missing', unreadable: 'not readable', failed: 'cannot be listed' } as const
const WATCHERS = { starting: 'starting', watching: 'following changes', degraded: 'compared at intervals only', off: 'off' } as const

/** What /readyz says, for people. */
export function statusPage (status: SkillStatus, addresses: Addresses): Page {
  const { ready, skills, roots, watcher, failures, hanging } = status
  const detail = explainStatus(status)
  return {
    title: 'Status – Skills',
    current: 'status',
    main: html`<h1>Status</h1>
<p class="lead"><span class="verdict ${ready ? detail === undefined ? 'good' : 'warning' : 'error'}">${ready ? 'ready' : 'not ready'}</span> ${detail ?? `${count(skills, 'skill')}, and nothing is wrong`}.</p>
<section aria-labelledby="roots"><h2 id="roots">Folders</h2>
<div class="table" tabindex="0"><table><thead><tr><th scope="col">Name</th><th scope="col">Kind</th><th scope="col">State</th><th scope="col" class="align-right">Skills</th></tr></thead>
<tbody>${roots.map(({ name, type, state, skills }) => html`
<tr><td><bdi>${visible(name)}</bdi></td><td>${type}</td><td><span class="verdict ${state === 'ok' ? 'good' : 'error'}">${STATES[state]}</span></td><td class="align-right">${skills.toLocaleString('en')}</td></tr>`)}
</tbody></table></div></section>
<section aria-labelledby="index"><h2 id="index">Index</h2>
${factList([
  ['Changes on the disk', WATCHERS[watcher.status]],
  ['How', watcher.mode === 'polling' ? 'by polling' : 'by events of the operating system'],
  watcher.lastError === undefined ? undefined : ['Last error', html`<code>${watcher.lastError}</code>`],
  failures.length === 0 ? undefined : ['Failures', failures.join(', ')],
  hanging.length === 0 ? undefined : ['Disk does not answer', html`<ul>${hanging.map((name) => html`<li><a href="${addresses.skill(name)}"><bdi>${visible(name)}</bdi></a></li>`)}</ul>`]
])}
<p class="actions"><a href="${addresses.at('readyz')}">The same as JSON</a></p></section>`
  }
}
