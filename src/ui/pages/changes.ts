import { counted } from '../../core/shared/text.ts'
import type { Addresses } from '../addresses.ts'
import { type Changes, type FileChange, readChanges } from '../changes.ts'
import { html, type Html, visible } from '../markup/html.ts'
import type { PageMaker } from '../pages.ts'
import { crumbs } from './files.ts'
import type { Page } from './layout.ts'
import { digest } from './parts.ts'

/** What changed in a skill since one of its revisions. */
export const page: PageMaker = async ({ skills, name, query: { from }, addresses }) => {
  const wanted = typeof from === 'string' && from !== '' ? from : undefined
  return changesPage(await readChanges(skills, name, wanted), name, addresses)
}

function changesPage ({ present, revisions, from, files }: Changes, name: string, addresses: Addresses): Page {
  const page = `${addresses.skill(name)}/changes`
  return {
    title: `Changes – ${name} – Skills`,
    current: 'skills',
    isOfProcess: true,
    main: html`<div class="file changes">
${crumbs(name, '', addresses)}
<h1>What changed</h1>
${from !== undefined && html`<p class="meta"><span>from ${digest(from)} to ${digest(present)}</span></p>`}
${files === undefined ? unknown(from) : changeList(files, name, from ?? '', addresses)}
${revisions.length > 0 && html`<section aria-labelledby="revisions"><h2 id="revisions">Compare with</h2>
<ol class="revisions">${revisions.map((revision, index) => html`
<li><a href="${page}?from=${encodeURIComponent(revision)}"${revision === from && html` aria-current="true"`}>${
  index === 0 ? 'the revision before' : `${index + 1} revisions before`}</a> ${digest(revision)}</li>`)}
</ol></section>`}
</div>`
  }
}

function unknown (from: string | undefined): Html {
  const why = from === undefined
    ? 'This service remembers no earlier revision of the skill yet.'
    : html`The revision ${digest(from)} is not kept any more.`
  return html`<p class="nothing">${why} It keeps revisions that were asked for, for
some minutes after the skill has changed.</p>`
}

function changeList (files: readonly FileChange[], name: string, from: string, addresses: Addresses): Html {
  if (files.length === 0) return html`<p class="nothing">Nothing: this is the present revision.</p>`
  return html`<p class="note">${counted(files.length, 'file')}</p>
${files.map((change) => html`
<section><h2><span class="label ${change.kind}">${change.kind}</span> ${file(change, name, addresses)}</h2>
${change.kind === 'changed' && (change.difference ?? notCompared(addresses.bytes(name, change.path), from))}
</section>`)}`
}

function notCompared (address: string, from: string): Html {
  return html`<p class="note">Not compared here: it is not text, too large, or too much is different.
<a href="${address}?revision=${encodeURIComponent(from)}">Before</a>, <a href="${address}">now</a>.</p>`
}

function file ({ kind, path }: FileChange, name: string, addresses: Addresses): Html {
  const label = html`<bdi>${visible(path)}</bdi>`
  return kind === 'removed' ? label : html`<a href="${addresses.file(name, path)}">${label}</a>`
}
