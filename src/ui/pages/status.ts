import { counted, grouped } from '../../core/shared/text.ts'
import { HttpProblem } from '../../http/problem.ts'
import { readinessOf, type SkillStatus, statusOf } from '../../http/readiness.ts'
import type { Quarantined, SourceStatus } from '../../schemas/health.ts'
import { type Content, html, type Html, visible } from '../markup/html.ts'
import type { PageMaker } from '../pages.ts'
import { countValid, listAddress } from '../question.ts'
import type { Addresses } from './layout.ts'
import { factList, mark, table } from './parts.ts'

/** Shown as its beginning: `main@sha1:0123456789ab`. */
const LONG_HASH = /([\da-f]{12})[\da-f]{20,}/

const STATES = {
  ok: 'available',
  indexing: 'being read',
  waiting: 'not fetched yet',
  missing: 'missing',
  unreadable: 'not readable',
  failed: 'cannot be listed'
} as const
const WATCHERS = {
  starting: 'starting', watching: 'working', degraded: 'failed: folders are compared at intervals', off: 'off'
} as const
const SOURCE_STATES = {
  waiting: ['not fetched yet', 'warning'],
  ok: ['up to date', 'good'],
  stale: ['not up to date', 'warning'],
  failed: ['failing', 'error']
} as const

/** Page with the content of /readyz. */
export const page: PageMaker = async ({ request, skills, readiness, addresses }) => {
  // Callers without credentials only learn whether the service is ready, as from /readyz.
  if (request.principal?.kind === 'anonymous') {
    throw new HttpProblem('unauthenticated', undefined, { 'www-authenticate': 'Bearer realm="skillserve"' })
  }
  await skills.sync()
  const status = statusOf(skills)
  const { isReady, reasons, sources, quarantined } = readinessOf(status, readiness)
  const { roots, skills: count } = status
  const quality = !isReady ? 'error' : reasons.length > 0 ? 'warning' : 'good'
  const errors = status.ready ? Math.max(count - countValid(skills, skills.indexedNames()), 0) : 0
  const skipped = roots.reduce((sum, root) => sum + root.skipped, 0)
  const refused = quarantined?.count ?? 0
  return {
    title: 'Status – Skills',
    current: 'status',
    showsProcessState: true,
    main: html`<h1>Status</h1>
<p class="lead">${mark(isReady ? 'ready' : 'not ready', quality)} – ${counted(count, 'skill')}${errors > 0 && html`,
<a href="${listAddress(addresses, { choice: 'errors' })}">${grouped(errors)} with errors</a>`}${skipped > 0 && html`,
${counted(skipped, 'entry', 'entries')} skipped: the log names each and says why`}${refused > 0 && html`,
<a href="#quarantined">${counted(refused, 'skill')} quarantined</a>`}.</p>
${reasons.length > 0 && html`<ul class="reasons">${reasons.map((reason) => html`<li>${readable(reason)}</li>`)}</ul>`}
<section aria-labelledby="roots"><h2 id="roots">Folders</h2>
${table(['Name', 'Kind', 'State'], ['Skills', 'Skipped'], roots.map(({ name, type, state, skills, skipped }) => [
  html`<a href="${listAddress(addresses, { root: name })}"><bdi>${visible(name)}</bdi></a>`,
  type,
  mark(STATES[state], state === 'ok' ? 'good' : state === 'waiting' ? 'warning' : 'error'),
  grouped(skills),
  grouped(skipped)
]))}</section>
${sources !== undefined && html`<section aria-labelledby="sources"><h2 id="sources">Sources</h2>
${table(['Name', 'Kind', 'State', 'Revision', 'Checked'], ['Skills'], sources.map(sourceRow))}</section>`}
${quarantined !== undefined && refused > 0 && quarantine(quarantined)}
${index(status, addresses)}`
  }
}

function quarantine ({ count, first }: Quarantined): Html {
  return html`<section aria-labelledby="quarantined"><h2 id="quarantined">Quarantined</h2>
<p>These skills are not served: the lock or the trust file refuses them.${count > first.length && html`
The first ${grouped(first.length)} of ${grouped(count)}; the log has all.`}</p>
${table(['Skill', 'Folder', 'Reason'], [], first.map(({ name, root, code, message }) => [
  html`<bdi>${visible(name)}</bdi>`, html`<bdi>${visible(root)}</bdi>`, html`${visible(message)} <code>${code}</code>`
]))}</section>`
}

function index ({ watcher, failures }: SkillStatus, addresses: Addresses): Html {
  return html`<section aria-labelledby="index"><h2 id="index">Index</h2>
${factList([
  ['File watching', WATCHERS[watcher.status]],
  ['By', watcher.mode === 'polling' ? 'polling' : 'events of the operating system'],
  watcher.lastError === undefined ? undefined : ['Last error', html`<code>${watcher.lastError}</code>`],
  failures.length === 0 ? undefined : ['Failures', failures.join(', ')]
])}
<p class="actions"><a href="${addresses.at('readyz')}">As JSON</a></p></section>`
}

function sourceRow (source: SourceStatus): readonly Content[] {
  const { name, kind, state, error, failing_since: since, revision, checked_at: checked, left_out: left } = source
  const [what, quality] = SOURCE_STATES[state]
  const sinceWhen = since !== undefined && html`, since ${time(since)}`
  return [
    html`<bdi>${visible(name)}</bdi>`,
    kind,
    html`${mark(what, quality)}${error !== undefined && html`<br>${visible(error.message)}${sinceWhen}`}${
      left !== undefined && html`<br>${counted(left.count, 'entry', 'entries')} skipped`}`,
    revision !== undefined && html`<code>${visible(revision.replace(LONG_HASH, '$1'))}</code>`,
    checked === undefined ? 'never' : time(checked),
    grouped(source.skills)
  ]
}

function time (iso: string): Html {
  return html`<time datetime="${iso}">${readable(iso)}</time>`
}

/** Formats the times in a text for people. */
function readable (text: string): string {
  return text.replaceAll(/(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z/g, '$1 $2 UTC')
}
