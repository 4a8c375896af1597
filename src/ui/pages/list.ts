import { counted, grouped } from '../../core/shared/text.ts'
import type { CatalogEntry } from '../../listing/entry.ts'
import { readCatalogPage } from '../../listing/pages.ts'
import { HttpProblem } from '../../http/problem.ts'
import { DEFAULT_PAGE_ENTRIES, MAX_QUERY_CODE_POINTS } from '../../schemas/catalog.ts'
import type { EntryVerdicts } from '../../verdicts/entry.ts'
import { TARGET_NAMES, TARGETS } from '../../verdicts/targets.ts'
import { type Content, html, type Html, visible } from '../markup/html.ts'
import type { PageMaker, PageRequest } from '../pages.ts'
import {
  CHOICE_PARAMETERS, CHOICES, countValid, filterOf, listAddress, type ListQuestion, readQuestion
} from '../question.ts'
import { snippets } from '../snippets.ts'
import type { Addresses, Page } from './layout.ts'
import { outcome, size, snippetList, verdict } from './parts.ts'

/** Number of skills that each filter leaves. Beyond one page, only those that the index has without reading entries. */
type Counts = Partial<Record<'all' | typeof CHOICES[number], number | undefined>>

type EntryReader = Parameters<typeof readCatalogPage<EntryVerdicts>>[0]

const LABELS = { valid: 'Valid', warnings: 'Warnings', errors: 'Errors' } as const
const SUFFIXES = { valid: 'that are valid', warnings: 'with warnings', errors: 'with errors' } as const

/** Longest description on the list, in UTF-16 code units. The skill's page has all of it. */
const MAX_DESCRIPTION = 500

/** The smallest skill that is valid. */
const EXAMPLE = '---\nname: my-skill\ndescription: What it does. Use when …\n---\n\n# Steps\n'

/** Page with the list of skills, or with the matches of a search. */
export const page: PageMaker = async (asked) => listPage(await readList(asked), asked.addresses)

type ListContent = Awaited<ReturnType<typeof readList>>

async function readList ({ request, skills, validate, query: parameters, base }: PageRequest) {
  const question = readQuestion(parameters)
  const { query, root, target, cursor } = question
  const { valid, filter } = filterOf(question)
  const reader: EntryReader = {
    skills, validate: target === undefined ? validate : (state) => validate(state, [target])
  }
  const found = await readCatalogPage(reader, { limit: DEFAULT_PAGE_ENTRIES, query, valid, root, filter, cursor })
  if (found === undefined) throw new HttpProblem('bad_cursor')
  request.found = found.total
  const entries = found.entries.map((text) => {
    const entry = JSON.parse(text) as CatalogEntry & EntryVerdicts
    return { ...entry, root: skills.rootOf(entry.name) }
  })
  return {
    ...question,
    ...found,
    entries,
    roots: [...new Set(skills.roots.map((each) => each.name))],
    counts: await countSkills(reader, question),
    /** Whether entries were read to find those that match. */
    isFiltered: filter !== undefined,
    base
  }
}

async function countSkills (reader: EntryReader, question: ListQuestion): Promise<Counts> {
  const { skills } = reader
  const { query, root, target } = question
  const found = query === '' ? await skills.list() : await skills.search(query)
  const names = root === undefined ? found : found.filter((name) => skills.rootOf(name) === root)
  const valid = countValid(skills, names)
  const counts: Counts = { all: names.length, ...target === undefined && { valid, errors: names.length - valid } }
  if (names.length > DEFAULT_PAGE_ENTRIES) return counts
  for (const choice of CHOICES) {
    const wanted = { limit: DEFAULT_PAGE_ENTRIES, query, root, ...filterOf({ ...question, choice }) }
    counts[choice] ??= (await readCatalogPage(reader, wanted))?.entries.length
  }
  return counts
}

function listPage (content: ListContent, addresses: Addresses): Page {
  const { query, entries, roots } = content
  return {
    title: query === '' ? 'Skills' : `${query} – Skills`,
    current: 'skills',
    main: html`<div class="columns list">
<div class="lead-column">
<h1>Skills</h1>
<search>${form(content, addresses)}</search>
<p class="count" id="count" role="status">${countLine(content)}</p>
<div id="results">
${choices(content, addresses)}
${entries.length === 0 && nothing(content, addresses)}
<ul class="skills">${entries.map((entry) => item(entry, roots.length > 1, addresses))}
</ul>
${pages(content, addresses)}
</div>
</div>
<aside aria-labelledby="use"><h2 id="use">Use all of them</h2>
${snippetList(snippets(content.base), content.base)}
</aside>
</div>`
  }
}

function form ({ query, choice, root, target, roots }: ListContent, addresses: Addresses): Html {
  const [name, value] = choice === undefined ? [] : CHOICE_PARAMETERS[choice]
  const folders = root === undefined || roots.includes(root) ? roots : [...roots, root]
  return html`<form class="search" action="${addresses.home}" method="get">
<div class="field"><label class="unseen" for="q">Search names, descriptions and headings</label>
<input id="q" name="q" type="search" value="${query}" placeholder="Search skills" maxlength="${MAX_QUERY_CODE_POINTS}"
autocomplete="off" spellcheck="false" aria-keyshortcuts="/ Control+K">
<button>Search</button></div>
<div class="refine">${folders.length > 1 && html`
<label>Folder ${select('root', 'all', folders.map((folder) => [folder, folder]), root)}</label>`}
<label>Validated for ${
  select('target', 'the format', TARGET_NAMES.map((each) => [each, TARGETS[each].title]), target)}</label></div>
${name !== undefined && html`<input type="hidden" name="${name}" value="${value}">`}
</form>`
}

function select (
  name: string, none: string, options: ReadonlyArray<readonly [value: string, label: string]>,
  chosen: string | undefined
): Html {
  return html`<select name="${name}"><option value="">${none}</option>${options.map(([value, label]) => html`
<option value="${value}"${value === chosen && html` selected`}>${label}</option>`)}</select>`
}

function item (entry: ListContent['entries'][number], showsRoot: boolean, addresses: Addresses): Html {
  const { name, description, findings, file_count: files, size_bytes: bytes, root, tokens, targets } = entry
  const facts: readonly Content[] = [
    files !== null && counted(files, 'file'),
    bytes !== null && size(bytes),
    tokens.body !== null && html`<span title="${tokens.method}">≈ ${counted(tokens.body, 'token')}</span>`,
    showsRoot && root !== undefined && html`in <bdi>${visible(root)}</bdi>`
  ]
  return html`
<li><h2><a href="${addresses.skill(name)}"><bdi>${visible(name)}</bdi></a></h2>
<p class="description" dir="auto">${
  description === '' ? html`<em>No description</em>` : visible(shortened(description))}</p>
<p class="state">${targets?.[0] === undefined ? verdict(findings) : outcome(targets[0].verdict)}</p>
<p class="meta">${facts.filter((fact) => fact !== false).map((fact) => html`<span>${fact}</span> `)}</p></li>`
}

function shortened (description: string): string {
  if (description.length <= MAX_DESCRIPTION) return description
  return `${description.slice(0, MAX_DESCRIPTION).replace(/[\uD800-\uDBFF]$/, '')}…`
}

function countLine (content: ListContent): string {
  const { entries, total, end, isFiltered, query, choice, cursor, nextCursor, target } = content
  const isAll = !isFiltered || (cursor === undefined && nextCursor === undefined)
  const until = `${grouped(end)} of ${grouped(total)}`
  return [
    counted(isFiltered ? entries.length : total, 'skill'),
    choice === undefined ? '' : ` ${SUFFIXES[choice]}`,
    target === undefined ? '' : ` for ${TARGETS[target].title}`,
    query === '' ? '' : ` for “${query}”`,
    isAll ? '' : cursor === undefined ? ` among the first ${until}` : ` on this page, which ends at ${until}`
  ].join('')
}

function choices (question: ListContent, addresses: Addresses): Html {
  return html`<nav class="tabs" aria-label="Filter"><ul>${[undefined, ...CHOICES].map((choice) => {
    const count = question.counts[choice ?? 'all']
    return html`
<li><a href="${listAddress(addresses, { ...question, choice, cursor: undefined })}"${
  choice === question.choice && html` aria-current="true"`}>${choice === undefined ? 'All' : LABELS[choice]}${
  count !== undefined && html` <span class="count-of">${grouped(count)}</span>`}</a></li>`
  })}
</ul></nav>`
}

function pages (question: ListContent, addresses: Addresses): Html | false {
  const { cursor, nextCursor } = question
  if (cursor === undefined && nextCursor === undefined) return false
  return html`<nav class="pages" aria-label="Pages">
${cursor !== undefined && html`<a href="${listAddress(addresses, { ...question, cursor: undefined })}">First page</a>`}
${nextCursor !== undefined && html`<a rel="next" href="${
  listAddress(addresses, { ...question, cursor: nextCursor })}">Next page</a>`}
</nav>`
}

/** Explains why the list is empty, and what to do about it. */
function nothing (question: ListContent, addresses: Addresses): Html {
  const { query, choice, root, target, nextCursor } = question
  if (nextCursor !== undefined) {
    return html`<p class="nothing">No match so far. Continue on the next page.</p>`
  }
  const isRefined = choice !== undefined || root !== undefined || target !== undefined
  if (query !== '' || isRefined) {
    const among = query !== '' && isRefined &&
      html`<a href="${listAddress(addresses, { query })}">Search among all skills</a> `
    return html`<p class="nothing">No matching skills. ${among}<a href="${addresses.home}">Show all skills</a></p>`
  }
  return html`<div class="nothing"><p>There is no skill yet. A skill is a folder with a <code>SKILL.md</code>:
put one into a folder that this service serves, and load this page again.</p>
<pre tabindex="0"><code>${EXAMPLE}</code></pre></div>`
}
