import { basename } from 'node:path/posix'
import { SkillError } from '../../core/shared/errors.ts'
import { counted, grouped } from '../../core/shared/text.ts'
import { MAIN_FILE } from '../../http/problem.ts'
import { describeState } from '../../listing/entry.ts'
import type { TrustReport } from '../../schemas/trust.ts'
import { skillBody } from '../../core/format/main-file.ts'
import type { TargetVerdict } from '../../verdicts/client-verdicts.ts'
import { OUTCOMES, TARGET_NAMES, type TargetName, TARGETS } from '../../verdicts/targets.ts'
import { type Content, html, type Html, trusted, visible } from '../markup/html.ts'
import type { PageMaker, PageRequest } from '../pages.ts'
import { type Snippet, snippets } from '../snippets.ts'
import { fileTree } from './files.ts'
import type { Addresses, Page } from './layout.ts'
import { digest, factList, findingList, type Mark, mark, outcome, size, snippetList, table, verdict } from './parts.ts'
import { sourceView } from './source.ts'

/** Page of a skill: its purpose, its findings, how to use it, and its content. */
export const page: PageMaker = async (asked) => skillPage(await readSkill(asked), asked.addresses)

type SkillContent = Awaited<ReturnType<typeof readSkill>>

async function readSkill ({ skills, validate, name, base, render }: PageRequest) {
  const { main, ...shown } = await skills.read(name, async (state) => {
    // Targets decide on the severities of findings. The page shows those of the catalog, without targets.
    const entry = await describeState(state, async (all) =>
      ({ ...await validate(all), targets: (await validate(all, TARGET_NAMES)).targets ?? [] }))
    return {
      entry,
      /** Undefined when the files cannot be listed. */
      manifest: entry.revision === null ? undefined : await state.manifest(),
      /** Path of the main file; `SKILL.md` if there is none. */
      mainFile: basename(state.skill.metadata.path),
      main: await orSentence(() => state.mainFile())
    }
  })
  const { mainFile, manifest } = shown
  const text = typeof main === 'string' ? undefined : main.utf8
  const body = text === undefined ? '' : skillBody(text)
  return {
    ...shown,
    /** Text after the frontmatter. */
    body,
    rendering: text === undefined ? undefined : render({ path: mainFile, text: body, manifest, level: 2 }),
    /** Why it cannot be read as text, without a full stop. */
    problem: typeof main === 'string' ? main : text === undefined ? `${mainFile} is not UTF-8` : undefined,
    base,
    /** Name of the skill's root. */
    root: skills.rootOf(name)
  }
}

/** Returns the error message if the content cannot be read; rethrows if the skill changed or is gone. */
export async function orSentence<T> (read: () => T | Promise<T>): Promise<T | string> {
  try {
    return await read()
  } catch (error) {
    if (!(error instanceof SkillError) || error.code === 'skill_changing' || error.code === 'skill_not_found') {
      throw error
    }
    return error.message.replace(MAIN_FILE, 'SKILL.md')
  }
}

function skillPage (content: SkillContent, addresses: Addresses): Page {
  const { entry, manifest, mainFile, base } = content
  const { name, description, findings } = entry
  return {
    title: `${name} – Skills`,
    current: 'skills',
    ...entry.revision !== null && {
      changes: `${addresses.skill(name)}/changes?from=${encodeURIComponent(entry.revision)}`
    },
    main: html`<div class="columns skill">
<div class="head">
<nav class="crumbs" aria-label="Breadcrumb"><ol><li><a href="${addresses.home}">Skills</a></li></ol></nav>
<h1><bdi>${visible(name)}</bdi></h1>
<p class="lead" dir="auto">${description === '' ? html`<em>No description</em>` : visible(description)}</p>
<p class="meta">${verdict(findings)} <a href="#targets">${summary(entry.targets)}</a>${
  entry.file_count !== null && html` <a href="#files">${counted(entry.file_count, 'file')}</a>`}${
  entry.size_bytes !== null && html` ${size(entry.size_bytes)}`}</p>
</div>
<aside aria-labelledby="use"><section><h2 id="use">Use it</h2>
${snippetList(snippets(base, name), base, missingFor(content))}</section>
${facts(content, addresses)}
</aside>
<div class="body">
${findings.length > 0 && html`<section aria-labelledby="findings"><h2 id="findings">Findings</h2>
${findingList(findings, name, mainFile, addresses)}</section>`}
<section aria-labelledby="instructions"><div class="title"><h2 id="instructions">Instructions</h2>
${content.problem === undefined && html`<p class="actions"><a href="${addresses.file(name, mainFile)}">Source</a>
<a href="${addresses.bytes(name, mainFile)}">Raw</a></p>`}</div>
${frontmatter(entry)}
${instructions(content)}
</section>
${manifest !== undefined && html`<section aria-labelledby="files"><div class="title"><h2 id="files">Files</h2>
<p class="actions"><a href="${
  addresses.at(`skills/${encodeURIComponent(name)}/archive.zip`)}">Download as ZIP</a></p></div>
${fileTree(manifest, name, addresses)}</section>`}
<section aria-labelledby="targets"><h2 id="targets">Where it works</h2>
${targetTable(entry.targets)}</section>
</div>
</div>`
  }
}

/** Returns why clients do not get the skill, by their API. */
function missingFor ({ entry, manifest, problem }: SkillContent): Partial<Record<Snippet['through'], string>> {
  const { targets, revision, findings } = entry
  const isListed = (name: TargetName) => revision !== null && targets.some(({ target, verdict }) =>
    target === name && verdict !== 'not_loaded' && verdict !== 'refused')
  const hasBytes = problem === undefined || findings.some(({ code }) => code === 'main_file_not_utf8')
  return {
    ...!hasBytes && { 'main file': 'SKILL.md cannot be read: see the findings.' },
    ...manifest === undefined && { archive: 'The skill has no archive: see the findings.' },
    ...!isListed('discovery-0.1.0') && !isListed('discovery-0.2.0') && {
      discovery: 'This client would not list the skill: see the findings.'
    },
    ...!isListed('mcp') && { mcp: 'MCP does not list the skill: see the findings.' }
  }
}

function facts ({ entry, root }: SkillContent, addresses: Addresses): Html {
  const { name, revision, type, trust, tokens: { listed, body, all_files: all, method } } = entry
  const earlier = html`<a href="${addresses.skill(name)}/changes">Earlier revisions</a>`
  return html`<section aria-labelledby="facts"><h2 id="facts">Facts</h2>
${factList([
  root === undefined ? undefined : ['Folder', html`<bdi>${visible(root)}</bdi>${type === 'personal' && ', personal'}`],
  trust === undefined ? undefined : ['Origin', origin(trust)],
  revision === null ? undefined : ['Revision', html`<ul><li>${digest(revision)}</li><li>${earlier}</li></ul>`],
  ['Tokens', html`<ul title="${method}"><li>≈ ${grouped(listed)} in each turn</li>${
    body !== null && html`<li>≈ ${grouped(body)} in use</li>`}${
    all !== null && html`<li>≈ ${grouped(all)} with all files</li>`}</ul>`]
])}
<p class="actions"><a href="${addresses.at(`catalog/${encodeURIComponent(name)}`)}">As JSON</a></p></section>`
}

const ORIGINS: Readonly<Record<NonNullable<TrustReport['status']>, Mark>> = {
  valid: ['signed', 'good'],
  unsigned: ['not signed', 'warning'],
  stale: ['changed since it was signed', 'error'],
  untrusted: ['signed by an unknown signer', 'error'],
  expired: ['signed with a certificate that has expired', 'error'],
  invalid: ['signature not valid', 'error'],
  denied: ['denied', 'error']
}

/** Shows the state of signature and lock. */
function origin ({ status, signer, pinned }: TrustReport): Html {
  const by = signer !== null && html` by <bdi>${visible(signer)}</bdi>`
  return html`<ul>${status !== null && html`<li>${mark(...ORIGINS[status])}${by}</li>`}${pinned !== null && html`
<li>${pinned ? 'this revision is locked' : mark('not in the lock', 'warning')}</li>`}</ul>`
}

/** Lists all fields but those in the heading, whatever their types. */
function frontmatter ({ frontmatter, name }: SkillContent['entry']): Html | false {
  const fields = Object.entries(frontmatter as Readonly<Record<string, unknown>>)
    .filter(([key, value]) => key !== 'description' && !(key === 'name' && value === name))
  if (fields.length === 0) return false
  return html`<div class="frontmatter">${factList(fields.map(([key, value]) => [key, fieldValue(value)]))}</div>`
}

function fieldValue (value: unknown): Content {
  if (typeof value === 'string') return html`<span dir="auto">${visible(value)}</span>`
  if (typeof value !== 'object' || value === null) return html`<code>${String(value)}</code>`
  if (Array.isArray(value)) return html`<ul>${value.map((item) => html`<li>${fieldValue(item)}</li>`)}</ul>`
  return factList(Object.entries(value).map(([key, item]) => [key, fieldValue(item)]))
}

function instructions ({ problem, body, rendering }: SkillContent): Html {
  if (problem !== undefined) return html`<p class="nothing">${visible(problem)}.</p>`
  if (rendering !== undefined && 'html' in rendering) {
    return body.trim() === ''
      ? html`<p class="nothing">There is nothing after the frontmatter.</p>`
      : html`<div class="prose" dir="auto">${trusted(rendering.html)}</div>`
  }
  return plainText(body, rendering?.plain ?? 'large')
}

const REASONS = {
  large: 'it is too large to be rendered',
  deep: 'its quotations or lists are nested too deeply to be rendered'
} as const

/** Shows a text that is not rendered, with the reason. */
export function plainText (text: string, why: keyof typeof REASONS): Html {
  const { markup, isCut } = sourceView(text)
  return html`<p class="note">Shown as plain text: ${REASONS[why]}.${isCut && ' This is its beginning.'}</p>
${markup}`
}

/** Creates the table of clients: the outcome in each, the worst first, and the findings that lead to it. */
function targetTable (verdicts: readonly TargetVerdict[]): Html {
  const worstFirst = verdicts.toSorted((a, b) => OUTCOMES.indexOf(b.verdict) - OUTCOMES.indexOf(a.verdict))
  const heads = ['Client', 'What it does', 'Because of', 'Rules of']
  return table(heads, [], worstFirst.map(({ target, verdict, because = [], read }) => [
    TARGETS[target].title,
    outcome(verdict),
    because.map((code) => html`<a href="#${code}"><code>${code}</code></a> `),
    html`<time datetime="${read}" title="${TARGETS[target].source}">${read}</time>`
  ]))
}

/** Says how many clients load the skill. */
function summary (verdicts: readonly TargetVerdict[]): string {
  const taken = verdicts.filter(({ verdict }) => verdict !== 'not_loaded' && verdict !== 'refused').length
  return `works in ${taken === verdicts.length ? 'all' : `${taken} of`} ${verdicts.length} clients`
}
