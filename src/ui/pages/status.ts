import { counted, grouped } from '../../core/shared/text.ts'
import type { SkillStatus } from '../../core/skill-source.ts'
import { HttpProblem } from '../../http/problem.ts'
import { judgeReadiness, type Readiness } from '../../http/readiness.ts'
import type { SourceStatus } from '../../schemas/health.ts'
import type { Addresses } from '../addresses.ts'
import { html, type Html, visible } from '../markup/html.ts'
import type { PageMaker } from '../pages.ts'
import { listAddress } from '../question.ts'
import type { Page } from './layout.ts'
import { factList } from './parts.ts'

const STATES = { ok: 'there', waiting: 'not fetched yet', missing: 'missing', unreadable: 'not readable', failed: 'cannot be listed' } as const
const WATCHERS = { starting: 'starting', watching: 'following changes', degraded: 'compared at intervals only', off: 'off' } as const
const SOURCE_STATES = { waiting: ['not fetched yet', 'warning'], ok: ['up to date', 'good'], stale: ['not up to date', 'warning'], failed: ['fails', 'error'] } as const

/** What /readyz says, for people. */
export const page: PageMaker = {
  async make ({ request, skills, readiness, addresses }) {
    // As of /readyz, callers without credentials learn no more than whether the service is ready.
    if (request.principal?.kind === 'anonymous') throw new HttpProblem('unauthenticated', undefined, { 'www-authenticate': 'Bearer realm="skillserve"' })
    const status = await skills.freshStatus()
    return statusPage(status, judgeReadiness(status, readiness), addresses)
  }
}

function statusPage (status: SkillStatus, { isReady, reasons, sources, quarantined }: Readiness, addresses: Addresses): Page {
  const { skills, roots, watcher, failures, hanging } = status
  const [reason, ...others] = reasons.map(readable)
  return {
    title: 'Status – Skills',
    current: 'status',
    isOfProcess: true,
    main: html`<h1>Status</h1>
<p class="lead"><span class="verdict ${isReady ? reason === undefined ? 'good' : 'warning' : 'error'}">${isReady ? 'ready' : 'not ready'}</span> – ${reason === undefined ? `${counted(skills, 'skill')}, and nothing is wrong.` : others.length === 0 ? `${reason}.` : `${reasons.length} things are wrong:`}</p>
${others.length > 0 && html`<ul class="reasons">${[reason, ...others].map((each) => html`<li>${each}</li>`)}</ul>`}
<section aria-labelledby="roots"><h2 id="roots">Folders</h2>
<div class="table" tabindex="0"><table><thead><tr><th scope="col">Name</th><th scope="col">Kind</th><th scope="col">State</th><th scope="col" class="align-right">Skills</th><th scope="col" class="align-right">Left out</th></tr></thead>
<tbody>${roots.map(({ name, type, state, skills, skipped }) => html`
<tr><td><a href="${listAddress(addresses, { root: name })}"><bdi>${visible(name)}</bdi></a></td><td>${type}</td><td><span class="verdict ${state === 'ok' ? 'good' : state === 'waiting' ? 'warning' : 'error'}">${STATES[state]}</span></td><td class="align-right">${grouped(skills)}</td><td class="align-right">${grouped(skipped)}</td></tr>`)}
</tbody></table></div></section>
${sources !== undefined && sources.length > 0 && sourceTable(sources)}
<section aria-labelledby="index"><h2 id="index">Index</h2>
${factList([
  ['Changes on the disk', WATCHERS[watcher.status]],
  ['How', watcher.mode === 'polling' ? 'by polling' : 'by events of the operating system'],
  watcher.lastError === undefined ? undefined : ['Last error', html`<code>${watcher.lastError}</code>`],
  failures.length === 0 ? undefined : ['Failures', failures.join(', ')],
  quarantined === undefined ? undefined : ['Quarantined', html`${counted(quarantined, 'folder')}${quarantined > 0 && ', kept back by the lock or the trust file: the log and skillserve verify say why'}`],
  hanging.length === 0 ? undefined : ['Disk does not answer', html`<ul>${hanging.map((name) => html`<li><a href="${addresses.skill(name)}"><bdi>${visible(name)}</bdi></a></li>`)}</ul>`]
])}
<p class="actions"><a href="${addresses.at('readyz')}">As JSON</a></p></section>`
  }
}

function sourceTable (sources: readonly SourceStatus[]): Html {
  return html`<section aria-labelledby="sources"><h2 id="sources">Sources</h2>
<div class="table" tabindex="0"><table><thead><tr><th scope="col">Name</th><th scope="col">Kind</th><th scope="col">State</th><th scope="col">Revision</th><th scope="col">Checked</th><th scope="col" class="align-right">Skills</th></tr></thead>
<tbody>${sources.map(({ name, kind, state, error, failing_since: since, revision, checked_at: checked, skills, left_out: leftOut }) => {
  const [what, quality] = SOURCE_STATES[state]
  return html`
<tr><td><bdi>${visible(name)}</bdi></td><td>${kind}</td><td><span class="verdict ${quality}">${what}</span>${error !== undefined && html`<br>${visible(error.message)}${since !== undefined && html`, since ${time(since)}`}`}${leftOut !== undefined && html`<br>${counted(leftOut.count, 'entry', 'entries')} left out`}</td><td>${revision !== undefined && html`<code>${visible(shortened(revision))}</code>`}</td><td>${checked === undefined ? 'never' : time(checked)}</td><td class="align-right">${grouped(skills)}</td></tr>`
})}
</tbody></table></div></section>`
}

function time (iso: string): Html {
  return html`<time datetime="${iso}">${readable(iso)}</time>`
}

/** A text with times as people read them. */
function readable (text: string): string {
  return text.replaceAll(/(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z/g, '$1 $2 UTC')
}

/** `main@sha1:0123456789ab`. */
function shortened (revision: string): string {
  return revision.replace(/([\da-f]{12})[\da-f]{20,}/, '$1')
}
