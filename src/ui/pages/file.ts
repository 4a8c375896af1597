import { skillBody } from '../../core/format/main-file.ts'
import { mediaType } from '../../core/read/media-type.ts'
import { SkillError } from '../../core/shared/errors.ts'
import { baseName } from '../../core/shared/paths.ts'
import { counted, withoutEndSlashes } from '../../core/shared/text.ts'
import { html, type Html, trusted, visible } from '../markup/html.ts'
import type { Rendering } from '../markdown/render.ts'
import type { PageMaker, PageRequest } from '../pages.ts'
import { crumbs, folderPage } from './files.ts'
import type { Addresses, Page } from './layout.ts'
import { digest, size } from './parts.ts'
import { orSentence, plainText } from './skill.ts'
import { type Source, sourceView } from './source.ts'

/** Page of a file: its text with an address for each line, or whatever can be shown of it; or of a folder. */
export const page: PageMaker = async (asked) => {
  const { name, addresses } = asked
  const shown = await readFile(asked)
  if (shown.folder === undefined) return filePage(shown, addresses)
  return folderPage(name, shown.folder, shown.manifest, addresses)
}

type ShownFile = Extract<Awaited<ReturnType<typeof readFile>>, { readonly folder?: undefined }>

async function readFile ({ skills, name, path, query: { view }, render }: PageRequest) {
  return await skills.read(name, async (state) => {
    const listed = await orSentence(() => state.manifest())
    const manifest = typeof listed === 'string' ? undefined : listed
    const folder = withoutEndSlashes(path)
    const isFolder = folder === '' || manifest?.files.some((file) => file.path.startsWith(`${folder}/`))
    if (manifest !== undefined && isFolder) return { folder, manifest }
    const content = await state.file(path).catch((error: unknown) => {
      if (!(error instanceof SkillError) || error.code !== 'file_too_large') throw error
    })
    const text = content?.text?.content
    const isMarkdown = /\.mdx?$/i.test(path) && text !== undefined
    return {
      name,
      path,
      mediaType: mediaType(path, text !== undefined),
      /** Text of the file; undefined if it is not text, or has more than 10 MiB. */
      text,
      encoding: content?.text?.encoding,
      /** Size of the file; undefined if it is too large. */
      bytes: content?.bytes.length,
      digest: content?.digest,
      isMarkdown,
      /** Undefined if the source is shown. */
      rendering: isMarkdown && view === 'rendered'
        ? render({ path, text: skillBody(text), manifest, level: 1 })
        : undefined
    }
  })
}

function filePage (file: ShownFile, addresses: Addresses): Page {
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

function meta (file: ShownFile, source: Source | undefined): Html {
  const { text, bytes, mediaType, encoding, digest: whole } = file
  const hasLines = source !== undefined && !source.isCut && text !== ''
  return html`<p class="meta">${hasLines && html`<span>${counted(source.lines, 'line')}</span> `}${
    bytes !== undefined && size(bytes)} <span>${mediaType}</span>${
    encoding !== undefined && encoding !== 'utf-8' && html` <span>${encoding}</span>`}${
    text === undefined && whole !== undefined && html` ${digest(whole)}`}</p>`
}

function toggle ({ name, path, rendering }: ShownFile, addresses: Addresses): Html {
  const address = addresses.file(name, path)
  return rendering === undefined
    ? html`<a href="${address}?view=rendered">Rendered</a>`
    : html`<a href="${address}">Source</a>`
}

function rendered ({ text = '' }: ShownFile, rendering: Rendering): Html {
  return 'html' in rendering
    ? html`<div class="prose" dir="auto">${trusted(rendering.html)}</div>`
    : plainText(text, rendering.plain)
}

function shown (
  { path, mediaType, text, bytes }: ShownFile, source: Source | undefined, address: string
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
