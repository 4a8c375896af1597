import type { ListedFile, Manifest } from '../../core/shared/skill.ts'
import { counted } from '../../core/shared/text.ts'
import { type Content, html, type Html, visible } from '../markup/html.ts'
import type { Addresses, Page } from './layout.ts'
import { size } from './parts.ts'
import { baseName } from '../../core/shared/paths.ts'

/** Most entries that a list shows. */
const MAX_LISTED = 500

/** Deepest folders of a tree; deeper files are listed by their paths. */
const MAX_TREE_DEPTH = 6

/** Creates the page of a folder: its files, and its folders with their sizes. */
export function folderPage (name: string, path: string, manifest: Manifest, addresses: Addresses): Page {
  const prefix = path === '' ? '' : `${path}/`
  const below = manifest.files.filter((file) => file.path.startsWith(prefix))
  const { folders, files } = contentsOf(below, prefix)
  const items = [
    ...Array.from(folders, ([folder, inside]) => html`
<li class="folder"><a href="${addresses.file(name, prefix + folder)}"><bdi>${visible(folder)}/</bdi></a> <span>${
  counted(inside.length, 'file')}</span> ${size(sumOf(inside))}</li>`),
    ...files.map((file) => fileItem(file, prefix, name, addresses))
  ]
  return {
    title: `${path === '' ? 'Files' : path} – ${name} – Skills`,
    current: 'skills',
    main: html`<div class="file">
${crumbs(name, path, addresses)}
<h1>${path === '' ? 'Files' : html`<bdi>${visible(baseName(path))}/</bdi>`}</h1>
<p class="meta"><span>${counted(below.length, 'file')}</span> ${size(sumOf(below))}</p>
<ul class="files">${items.slice(0, MAX_LISTED)}
</ul>
${more(items.length - MAX_LISTED, name, addresses)}
</div>`
  }
}

/** Creates the links to the skill, and to its folders above a path. */
export function crumbs (name: string, path: string, addresses: Addresses): Html {
  const segments = path.split('/').slice(0, -1)
  const link = (address: string, text: string) => html`<li><a href="${address}"><bdi>${visible(text)}</bdi></a></li>`
  return html`<nav class="crumbs" aria-label="Breadcrumb"><ol>${link(addresses.home, 'Skills')}${
    link(addresses.skill(name), name)}${segments.map((segment, index) =>
    link(addresses.file(name, segments.slice(0, index + 1).join('/')), segment))}</ol></nav>`
}

export function fileTree ({ files }: Manifest, name: string, addresses: Addresses): Html {
  if (files.length === 0) return html`<p class="nothing">The skill has no files.</p>`
  return html`${branch(files.slice(0, MAX_LISTED), '', 1, name, addresses)}
${more(files.length - MAX_LISTED, name, addresses)}`
}

function branch (
  below: readonly ListedFile[], prefix: string, depth: number, name: string, addresses: Addresses
): Html {
  const { folders, files } = depth > MAX_TREE_DEPTH ? { folders: [], files: below } : contentsOf(below, prefix)
  return html`<ul class="files">${files.map((file) => fileItem(file, prefix, name, addresses))}${
    Array.from(folders, ([folder, inside]) => html`
<li class="folder"><a href="${addresses.file(name, prefix + folder)}"><bdi>${visible(folder)}/</bdi></a>
${branch(inside, `${prefix}${folder}/`, depth + 1, name, addresses)}</li>`)}
</ul>`
}

function fileItem ({ path, size_bytes: bytes }: ListedFile, prefix: string, name: string, addresses: Addresses): Html {
  return html`
<li><a href="${addresses.file(name, path)}"><bdi>${visible(path.slice(prefix.length))}</bdi></a> ${size(bytes)}</li>`
}

function more (left: number, name: string, addresses: Addresses): Content {
  return left > 0 && html`<p class="note">${counted(left, 'more entry', 'more entries')}:
<a href="${addresses.at(`skills/${encodeURIComponent(name)}/files`)}">all files as JSON</a>.</p>`
}

/** What is in a folder: files, and folders with everything below them. */
function contentsOf (below: readonly ListedFile[], prefix: string) {
  const folders = new Map<string, ListedFile[]>()
  const files: ListedFile[] = []
  for (const file of below) {
    const slash = file.path.indexOf('/', prefix.length)
    if (slash === -1) {
      files.push(file)
      continue
    }
    const folder = file.path.slice(prefix.length, slash)
    folders.set(folder, folders.get(folder) ?? [])
    folders.get(folder)?.push(file)
  }
  return { folders, files }
}

function sumOf (files: readonly ListedFile[]): number {
  return files.reduce((sum, file) => sum + file.size_bytes, 0)
}
