import type { DiscoveryVersion } from '../../core/clients/discovery.ts'
import { isOffered } from '../../core/clients/discovery.ts'
import type { Manifest } from '../../core/content/manifest.ts'
import type { CatalogEntry } from '../../core/listing/entry.ts'
import type { Addresses } from '../addresses.ts'
import { type Content, html, type Html, trusted, visible } from '../html.ts'
import type { Rendering } from '../markdown-renderer.ts'
import { snippets } from '../snippets.ts'
import type { Page } from './layout.ts'
import { count, digest, factList, findingList, size, verdict } from './parts.ts'
import { sourceView } from './source.ts'
import { snippetList } from './use.ts'

/** Files in the list of a page. */
const MAX_LISTED_FILES = 500

export interface SkillContent {
  readonly entry: CatalogEntry
  /** Undefined when the files cannot be listed. */
  readonly manifest: Manifest | undefined
  readonly mainFile: string
  /** Why there is no text of the main file, in a sentence. */
  readonly problem: string | undefined
  /** Text after the frontmatter. */
  readonly body: string
  readonly rendering: Rendering | undefined
  readonly base: string
}

/** A skill: what it is for, whether it is all right, how to use it, and everything that is in it. */
export function skillPage (content: SkillContent, addresses: Addresses): Page {
  const { entry, manifest, mainFile, base } = content
  const { name, description, findings } = entry
  return {
    title: `${name} – Skills`,
    current: 'skills',
    main: html`<div class="skill">
<div class="head">
<h1><bdi>${visible(name)}</bdi></h1>
<p class="lead" dir="auto">${description === '' ? html`<em>No description</em>` : visible(description)}</p>
<p class="meta">${verdict(findings)} <a href="#files">${entry.file_count === null ? 'files' : count(entry.file_count, 'file')}</a>${entry.size_bytes !== null && html` ${size(entry.size_bytes)}`}</p>
</div>
<aside aria-labelledby="use"><section class="use"><h2 id="use">Use it</h2>
${snippetList(snippets(base, name), base, missingFor(entry))}</section>
${facts(entry)}
</aside>
<div class="body">
${findings.length > 0 && html`<section aria-labelledby="findings"><h2 id="findings">Findings</h2>
${findingList(findings, name, mainFile, addresses)}</section>`}
<section aria-labelledby="instructions"><div class="title"><h2 id="instructions">Instructions</h2>
${content.problem === undefined && html`<p><a href="${addresses.file(name, mainFile)}">Source</a> <a href="${addresses.bytes(name, mainFile)}">Raw</a></p>`}</div>
${frontmatter(entry)}
${instructions(content)}
</section>
${manifest !== undefined && html`<section aria-labelledby="files"><div class="title"><h2 id="files">Files</h2><p><a href="${addresses.at(`skills/${encodeURIComponent(name)}/archive.zip`)}">Download as ZIP</a></p></div>
${fileList(manifest, name, addresses)}</section>`}
</div>
</div>`
  }
}

/** Why clients of a door do not get the skill. */
function missingFor ({ findings, revision }: CatalogEntry): { discovery?: string, mcp?: string } {
  const versions: readonly DiscoveryVersion[] = ['0.1.0', '0.2.0']
  const offered = revision !== null && versions.some((version) => isOffered(findings, version))
  const listed = revision !== null && !findings.some(({ code, severity }) => code.startsWith('mcp_') && severity === 'warning')
  return {
    ...!offered && { discovery: 'This client does not get the skill as it is: see its findings.' },
    ...!listed && { mcp: 'MCP does not list the skill as it is: see its findings.' }
  }
}

function facts ({ revision, type }: CatalogEntry): Html {
  return html`<section aria-label="Facts">${factList([
    ['Root', type],
    revision === null ? undefined : ['Revision', digest(revision)]
  ])}</section>`
}

/** Every field but those in the heading, whatever its type. */
function frontmatter ({ frontmatter, name }: CatalogEntry): Html | false {
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
    return body.trim() === '' ? html`<p class="nothing">There is nothing after the frontmatter.</p>` : html`<div class="prose" dir="auto">${trusted(rendering.html)}</div>`
  }
  return plainText(body, rendering?.plain ?? 'large')
}

/** A text that is not rendered, and why. */
export function plainText (text: string, why: 'large' | 'slow'): Html {
  const { markup, isCut } = sourceView(text)
  return html`<p class="note">Shown as plain text: ${why === 'large' ? 'it is too large to be rendered' : 'rendering it takes too long'}.${isCut && ' This is its beginning.'}</p>
${markup}`
}

function fileList ({ files }: Manifest, name: string, addresses: Addresses): Html {
  return html`<ul class="files">${files.slice(0, MAX_LISTED_FILES).map(({ path, size_bytes: bytes }) => {
    const folder = path.slice(0, path.lastIndexOf('/') + 1)
    return html`
<li><a href="${addresses.file(name, path)}"><bdi>${folder !== '' && html`<span class="folder">${visible(folder)}</span>`}${visible(path.slice(folder.length))}</bdi></a> ${size(bytes)}</li>`
  })}
</ul>
${files.length > MAX_LISTED_FILES && html`<p class="note">${count(files.length - MAX_LISTED_FILES, 'more file')}: <a href="${addresses.at(`skills/${encodeURIComponent(name)}/files`)}">all of them as JSON</a>.</p>`}`
}
