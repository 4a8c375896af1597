import { isMainFile } from '../../core/format/main-files.ts'
import type { SkillState } from '../../core/revisions/state.ts'
import { RevisionChangedError, SkillError } from '../../core/shared/errors.ts'
import type { Manifest } from '../../core/shared/skill.ts'
import { counted } from '../../core/shared/text.ts'
import type { View } from '../../core/view.ts'
import { escapeVisibly, html, type Html, trusted, visible } from '../markup/html.ts'
import type { PageMaker } from '../pages.ts'
import { crumbs } from './files.ts'
import type { Addresses, Page } from './layout.ts'
import { digest } from './parts.ts'

/** Most files whose texts are compared, and the longest text, in UTF-16 code units. */
const MAX_COMPARED_FILES = 20
const MAX_COMPARED_CHARACTERS = 65_536

/** Unchanged lines that are shown around a change. */
const CONTEXT_LINES = 3

/** Most lines that may differ: the time grows with their square. */
const MAX_EDITS = 1_000

const ELEMENTS: Readonly<Record<string, string>> = { '+': 'ins', '-': 'del' }

/** Beginning of Git's note that a file does not end with a line end. */
const NOTE = '\\'

interface FileChange {
  readonly kind: 'added' | 'removed' | 'changed'
  readonly path: string
  /** Difference of a changed file; absent for large files and those beyond the first MAX_COMPARED_FILES. */
  readonly difference?: Html | undefined
}

/** What changed in a skill since one of its kept revisions; default: since the latest before the present one. */
export const page: PageMaker = async ({ skills, name, query: { from: wanted }, addresses }) => {
  const after = await skills.read(name, (state) => state.manifest())
  const present = after.revision
  const revisions = skills.keptRevisions(name).filter((revision) => revision !== present)
  const from = typeof wanted === 'string' && wanted !== '' ? wanted : revisions[0]
  const files = from === undefined ? undefined : await compare(skills, name, from, after)
  return changesPage({ present, revisions, from, files }, name, addresses)
}

/** Undefined for a revision that is not kept. */
async function compare (
  skills: View, name: string, from: string, after: Manifest
): Promise<readonly FileChange[] | undefined> {
  if (from === after.revision) return []
  try {
    const before = await skills.at(from).read(name, (state) => state.manifest())
    const changes = compareManifests(before, after)
    const paths = changes.filter(({ kind }) => kind === 'changed').slice(0, MAX_COMPARED_FILES).map(({ path }) => path)
    const textsIn = (revision: string) => skills.at(revision).read(name, (state) => readTexts(state, paths))
    const [old, now] = [await textsIn(from), await textsIn(after.revision)]
    return await Promise.all(changes.map(async (change) => {
      const [oldText, newText] = [old.get(change.path), now.get(change.path)]
      const isCompared = oldText !== undefined && newText !== undefined
      return { ...change, difference: isCompared ? await renderDiff(oldText, newText) : undefined }
    }))
  } catch (error) {
    if (error instanceof RevisionChangedError) return undefined
    throw error
  }
}

function compareManifests (before: Manifest, after: Manifest): readonly FileChange[] {
  const old = new Map(before.files.map((file) => [file.path, file.digest]))
  const now = new Map(after.files.map((file) => [file.path, file.digest]))
  const paths = [...new Set([...now.keys(), ...old.keys()])].filter((path) => old.get(path) !== now.get(path))
  // The main file comes first, since it decides when a model picks the skill.
  return paths.toSorted((a, b) => Number(isMainFile(b)) - Number(isMainFile(a))).map((path) =>
    ({ path, kind: !old.has(path) ? 'added' : now.has(path) ? 'changed' : 'removed' }))
}

async function readTexts (state: SkillState, paths: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>()
  for (const path of paths) {
    try {
      const { text } = await state.file(path)
      if (text !== undefined && text.content.length <= MAX_COMPARED_CHARACTERS) texts.set(path, text.content)
    } catch (error) {
      // A file that is too large or not readable cannot be compared.
      if (!(error instanceof SkillError) || error.code === 'skill_changing' || error instanceof RevisionChangedError) {
        throw error
      }
    }
  }
  return texts
}

interface Changes {
  readonly present: string
  /** Revisions that can be compared, the latest first. */
  readonly revisions: readonly string[]
  readonly from: string | undefined
  readonly files: readonly FileChange[] | undefined
}

function changesPage ({ present, revisions, from, files }: Changes, name: string, addresses: Addresses): Page {
  const page = `${addresses.skill(name)}/changes`
  return {
    title: `Changes – ${name} – Skills`,
    current: 'skills',
    showsProcessState: true,
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
    ? 'There is no earlier revision to compare with.'
    : html`There is nothing to compare with: the revision ${digest(from)} is not kept.`
  return html`<p class="nothing">${why} The service keeps a revision for some minutes if somebody
has asked for all files of the skill, or for this page, before a change.</p>`
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

/** Renders the differences between two texts, line by line; returns undefined if there are too many. */
async function renderDiff (before: string, after: string): Promise<Html | undefined> {
  if (before === after) return note('The text is the same: the bytes of the file differ in their encoding.')
  const { structuredPatch } = await import('diff')
  const patch = structuredPatch('', '', before, after, '', '', { context: CONTEXT_LINES, maxEditLength: MAX_EDITS })
  if (patch === undefined) return undefined
  const hunks = patch.hunks.map(({ newStart, lines }) =>
    `<span class="hunk">line ${newStart}\n</span>${lines.map(renderLine).join('')}`)
  const onlyLineEnds = withoutLineEnds(before) === withoutLineEnds(after)
  return html`${onlyLineEnds && note('Only line ends differ.')}<pre class="source diff" tabindex="0"><code>${
    trusted(hunks.join(''))}</code></pre>`
}

function note (sentence: string): Html {
  return html`<p class="note">${sentence}</p>`
}

function withoutLineEnds (text: string): string {
  const lines = text.replaceAll(/\r\n?/g, '\n')
  return lines.endsWith('\n') ? lines.slice(0, -1) : lines
}

function renderLine (line: string): string {
  const element = ELEMENTS[line.charAt(0)] ?? 'span'
  return line.startsWith(NOTE) ? '' : `<${element}>${escapeVisibly(line)}\n</${element}>`
}
