import { counted } from '../../core/shared/text.ts'
import type { Addresses } from '../addresses.ts'
import { type Changes, type FileChange, readChanges } from '../changes.ts'
import { html, type Html, trusted, visible } from '../markup/html.ts'
import { missingSkill } from '../missing.ts'
import type { PageMaker } from '../pages.ts'
import { crumbs } from './files.ts'
import type { Page } from './layout.ts'
import { digest } from './parts.ts'

interface ShownChange extends FileChange {
  /** Markup of what differs; undefined where texts are not compared. */
  readonly difference: string | undefined
}

interface ChangesContent extends Omit<Changes, 'files'> {
  readonly name: string
  readonly files: readonly ShownChange[] | undefined
}

/** What changed in a skill since one of its revisions. */
export const page: PageMaker = {
  async make ({ skills, name, query: { from }, addresses, compare }) {
    const { files, ...changes } = await readChanges(skills, name, typeof from === 'string' && from !== '' ? from : undefined)
    // One after the other: the first texts that differ too much leave no time for the others.
    const shown: ShownChange[] = []
    for (const change of files ?? []) shown.push({ ...change, difference: await compare(change) })
    return changesPage({ ...changes, name, files: files && shown }, addresses)
  },
  explain: async (error, { skills, name, addresses }) => missingSkill(error, skills, name, addresses)
}

function changesPage ({ name, present, revisions, from, files }: ChangesContent, addresses: Addresses): Page {
  const page = `${addresses.skill(name)}/changes`
  return {
    title: `Changes – ${name} – Skills`,
    current: 'skills',
    isOfProcess: true,
    main: html`<div class="file changes">
${crumbs(name, '', addresses)}
<h1>What changed</h1>
${from !== undefined && html`<p class="meta"><span>from ${digest(from)} to ${digest(present)}</span></p>`}
${files === undefined ? unknown(from) : files.length === 0 ? html`<p class="nothing">Nothing: this is the present revision.</p>` : changeList(files, name, from ?? '', addresses)}
${revisions.length > 0 && html`<section aria-labelledby="revisions"><h2 id="revisions">Compare with</h2>
<ol class="revisions">${revisions.map((revision, index) => html`
<li><a href="${page}?from=${encodeURIComponent(revision)}"${revision === from && html` aria-current="true"`}>${index === 0 ? 'the revision before' : `${index + 1} revisions before`}</a> ${digest(revision)}</li>`)}
</ol></section>`}
</div>`
  }
}

function unknown (from: string | undefined): Html {
  return from === undefined
    ? html`<p class="nothing">Since somebody first asked this service for the skill, nothing has changed in it. A revision stays comparable for some minutes after the skill has moved on.</p>`
    : html`<p class="nothing">The revision ${digest(from)} is not kept any more: a revision stays comparable for some minutes after the skill has moved on.</p>`
}

function changeList (files: readonly ShownChange[], name: string, from: string, addresses: Addresses): Html {
  return html`<p class="note">${counted(files.length, 'file')}</p>
${files.map((change) => html`
<section><h2><span class="label ${change.kind}">${change.kind}</span> ${file(change, name, addresses)}</h2>
${change.kind === 'renamed' && html`<p class="note">It was <bdi>${visible(change.pathBefore ?? '')}</bdi>.</p>`}
${change.kind === 'changed' && (change.difference === undefined
  ? html`<p class="note">Not compared here: it is not text, too large, or too much is different. <a href="${addresses.bytes(name, change.path)}?revision=${encodeURIComponent(from)}">Before</a>, <a href="${addresses.bytes(name, change.path)}">now</a>.</p>`
  : trusted(change.difference))}</section>`)}`
}

function file ({ kind, path }: FileChange, name: string, addresses: Addresses): Html {
  const label = html`<bdi>${visible(path)}</bdi>`
  return kind === 'removed' ? label : html`<a href="${addresses.file(name, path)}">${label}</a>`
}
