import type { CatalogEntry } from '../../core/listing/entry.ts'
import { MAX_QUERY_CODE_POINTS } from '../../core/ground/limits.ts'
import { snippets } from '../snippets.ts'
import type { Addresses } from '../addresses.ts'
import { html, type Html, visible } from '../html.ts'
import type { Page } from './layout.ts'
import { count, size, verdict } from './parts.ts'
import { snippetList } from './use.ts'

export interface ListQuestion {
  readonly query: string
  readonly valid: boolean | undefined
  readonly cursor: string | undefined
}

export interface ListContent extends ListQuestion {
  readonly entries: readonly CatalogEntry[]
  readonly total: number
  readonly nextCursor: string | undefined
  readonly isComplete: boolean
  /** Address of the service, as this page was asked for. */
  readonly base: string
}

/** The list of skills, or what a search has found. */
export function listPage (content: ListContent, addresses: Addresses): Page {
  const { query, entries } = content
  return {
    title: query === '' ? 'Skills' : `${query} – Skills`,
    current: 'skills',
    main: html`<h1>Skills</h1>
<search><form class="search" action="${addresses.home}" method="get">
<label for="q">Search names, descriptions and texts</label>
<div><input id="q" name="q" type="search" value="${query}" maxlength="${MAX_QUERY_CODE_POINTS}" autocomplete="off" spellcheck="false" aria-keyshortcuts="/ Control+K">
<button>Search</button></div>
${content.valid !== undefined && html`<input type="hidden" name="valid" value="${String(content.valid)}">`}
</form></search>
<p class="count" id="count" role="status">${countLine(content)}</p>
<div id="results">
${filters(content, addresses)}
${entries.length === 0 && nothing(content, addresses)}
<ul class="skills">${entries.map((entry) => item(entry, addresses))}
</ul>
${pages(content, addresses)}
</div>
<section class="use" aria-labelledby="use"><h2 id="use">Use all of them</h2>
${snippetList(snippets(content.base), content.base)}
</section>`
  }
}

function item ({ name, description, findings, file_count: files, size_bytes: bytes, type }: CatalogEntry, addresses: Addresses): Html {
  return html`
<li><h2><a href="${addresses.skill(name)}"><bdi>${visible(name)}</bdi></a></h2>
<p class="description" dir="auto">${description === '' ? html`<em>No description</em>` : visible(description)}</p>
<p class="meta">${verdict(findings)}${files !== null && html` <span>${count(files, 'file')}</span>`}${bytes !== null && html` ${size(bytes)}`}${type === 'personal' && html` <span>personal</span>`}</p></li>`
}

function countLine ({ total, query, isComplete, valid }: ListContent): string {
  const what = `${count(total, valid === true ? 'valid skill' : 'skill')}${valid === false ? ' with errors' : ''}`
  return `${what}${query === '' ? '' : ` for “${query}”`}${isComplete ? '' : '. Texts are still being indexed: search again in a few seconds'}`
}

function filters ({ query, valid }: ListContent, addresses: Addresses): Html {
  const choices = [['All', undefined], ['Valid', true], ['With errors', false]] as const
  return html`<nav class="filters" aria-label="Filter"><ul>${choices.map(([label, value]) => html`
<li><a href="${listAddress(addresses, { query, valid: value, cursor: undefined })}"${value === valid && html` aria-current="true"`}>${label}</a></li>`)}
</ul></nav>`
}

function pages ({ query, valid, cursor, nextCursor }: ListContent, addresses: Addresses): Html | false {
  if (cursor === undefined && nextCursor === undefined) return false
  return html`<nav class="pages" aria-label="Pages">
${cursor !== undefined && html`<a href="${listAddress(addresses, { query, valid, cursor: undefined })}">First page</a>`}
${nextCursor !== undefined && html`<a rel="next" href="${listAddress(addresses, { query, valid, cursor: nextCursor })}">Next page</a>`}
</nav>`
}

function nothing ({ query, valid }: ListContent, addresses: Addresses): Html {
  if (query === '' && valid === undefined) {
    return html`<p class="nothing">There is no skill yet. A skill is a folder with a <code>SKILL.md</code>: put one into a folder that this service serves, and load this page again.</p>`
  }
  return html`<p class="nothing">No skill fits. <a href="${addresses.home}">Show all skills</a>${query !== '' && valid !== undefined &&
    html`, or <a href="${listAddress(addresses, { query, valid: undefined, cursor: undefined })}">search among all of them</a>`}.</p>`
}

function listAddress (addresses: Addresses, { query, valid, cursor }: ListQuestion): string {
  const parameters = new URLSearchParams({ ...query !== '' && { q: query }, ...valid !== undefined && { valid: String(valid) }, ...cursor !== undefined && { cursor } })
  return parameters.size === 0 ? addresses.home : `${addresses.home}?${parameters.toString()}`
}
