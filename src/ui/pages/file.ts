import { counted } from '../../core/shared/text.ts'
import { skillBody } from '../../core/format/main-file.ts'
import type { Addresses } from '../addresses.ts'
import { readFile, type ShownFile } from '../content.ts'
import { html, type Html, trusted, visible } from '../markup/html.ts'
import type { Rendering } from '../markdown/render.ts'
import type { PageMaker } from '../pages.ts'
import { crumbs, folderPage } from './files.ts'
import type { Page } from './layout.ts'
import { digest, size } from './parts.ts'
import { plainText } from './skill.ts'
import { type Source, sourceView } from './source.ts'
import { baseName } from '../../core/shared/paths.ts'

interface FileContentOfPage extends Omit<ShownFile, 'manifest'> {
  readonly name: string
  readonly path: string
  readonly isMarkdown: boolean
  /** Undefined for the source. */
  readonly rendering: Rendering | undefined
}

/** A file of a skill: its text with an address for each line, or what else can be shown of it; or a folder. */
export const page: PageMaker = async ({ skills, name, path, query: { view }, addresses, render }) => {
  const shown = await skills.read(name, (state) => readFile(state, path))
  if ('folder' in shown) return folderPage(name, shown.folder, shown.manifest, addresses)
  const { manifest, ...file } = shown
  const isMarkdown = /\.mdx?$/i.test(path) && file.text !== undefined
  const isRendered = isMarkdown && view === 'rendered'
  const text = isRendered ? skillBody(file.text ?? '') : ''
  const rendering = isRendered ? render({ path, text, manifest, level: 1 }) : undefined
  return filePage({ ...file, name, path, isMarkdown, rendering }, addresses)
}

function filePage (file: FileContentOfPage, addresses: Addresses): Page {
  const { name, path, rendering } = file
  const source = file.text === undefined ? undefined : sourceView(file.text)
  const address = addresses.bytes(name, path)
  return {
    title: `${path} – ${name} – Skills`,
    current: 'skills',
    main: html`<div class="file">
${crumbs(name, path, addresses)}
<h1><bdi>${visible(baseName(path))}</bdi></h1>
<div class="title">${meta(file, source)}
<p class="actions">${file.isMarkdown && toggle(file, addresses)} <a href="${address}">Raw</a>
<a href="${address}" download>Download</a></p></div>
${rendering === undefined ? shown(file, source, address) : rendered(file, rendering)}
</div>`
  }
}

function meta (file: FileContentOfPage, source: Source | undefined): Html {
  const { text, bytes, mediaType, encoding, digest: whole } = file
  const hasLines = source !== undefined && !source.isCut && text !== ''
  return html`<p class="meta">${hasLines && html`<span>${counted(source.lines, 'line')}</span> `}${
    bytes !== undefined && size(bytes)} <span>${mediaType}</span>${
    encoding !== undefined && encoding !== 'utf-8' && html` <span>${encoding}</span>`}${
    text === undefined && whole !== undefined && html` ${digest(whole)}`}</p>`
}

function toggle ({ name, path, rendering }: FileContentOfPage, addresses: Addresses): Html {
  const address = addresses.file(name, path)
  return rendering === undefined
    ? html`<a href="${address}?view=rendered">Rendered</a>`
    : html`<a href="${address}">Source</a>`
}

function rendered ({ text = '' }: FileContentOfPage, rendering: Rendering): Html {
  return 'html' in rendering
    ? html`<div class="prose" dir="auto">${trusted(rendering.html)}</div>`
    : plainText(text, rendering.plain)
}

function shown (
  { path, mediaType, text, bytes }: FileContentOfPage, source: Source | undefined, address: string
): Html {
  const image = mediaType.startsWith('image/') && html`<p class="picture"><img src="${address}" alt="${path}"></p>`
  if (source === undefined) {
    const download = html`<a href="${address}" download>Download it</a>`
    const why = bytes === undefined ? 'This file is too large to be shown.' : 'This file is not text.'
    return html`${image || html`<p class="nothing">${why} ${download} to look into it.</p>`}`
  }
  const note = html`<p class="note">This is the beginning.
<a href="${address}">The whole file</a> is as it is on the disk.</p>`
  return html`${image}${source.isCut && note}
${text === '' ? html`<p class="nothing">The file is empty.</p>` : source.markup}`
}
