import { posix } from 'node:path'

export interface FolderNode {
  readonly kind: 'folder'
  readonly entries: ReadonlyMap<string, number>
  readonly mode: number
}

export interface FileNode {
  readonly kind: 'file'
  readonly bytes: Buffer
  readonly mode: number
}

export interface LinkNode {
  readonly kind: 'link'
  readonly target: string
}

export type Node = FolderNode | FileNode | LinkNode

/** A whole disk in one state: nodes by inode number, so that hard links are what they are. Never changes. */
export type DiskState = ReadonlyMap<number, Node>

export const TOP = 1
export const EMPTY_DISK: DiskState = new Map([[TOP, { kind: 'folder', entries: new Map(), mode: 0o755 }]])

/** Links that Linux follows on one path. */
const MAX_LINKS = 40

export type Lookup =
  | { readonly found: true, readonly inode: number, readonly node: Node, /** Without links. */ readonly path: string }
  | { readonly found: false, readonly why: 'missing' | 'forbidden' }

const MISSING: Lookup = { found: false, why: 'missing' }
const FORBIDDEN: Lookup = { found: false, why: 'forbidden' }

/**
 * Where a path leads, as the kernel resolves it.
 * @param path absolute, `/` being the top of the model
 * @param follow whether a link at the end is followed
 * @param bound whether permissions bind the service: not root
 */
export function lookup (disk: DiskState, path: string, { follow = true, bound = false } = {}): Lookup {
  let rest = path.split('/').filter((name) => name !== '')
  let trail: Array<{ readonly name: string, readonly inode: number }> = []
  let links = 0
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    const folder = disk.get(trail.at(-1)?.inode ?? TOP)
    if (folder?.kind !== 'folder') return MISSING
    if (bound && (folder.mode & 0o100) === 0) return FORBIDDEN
    if (name === '.') continue
    if (name === '..') {
      trail = trail.slice(0, -1)
      continue
    }
    const inode = folder.entries.get(name)
    const node = inode === undefined ? undefined : disk.get(inode)
    if (inode === undefined || node === undefined) return MISSING
    if (node.kind === 'link' && (follow || rest.length > 0)) {
      if (++links > MAX_LINKS) return MISSING
      if (node.target.startsWith('/')) trail = []
      rest = [...node.target.split('/').filter((part) => part !== ''), ...rest]
    } else trail = [...trail, { name, inode }]
  }
  const inode = trail.at(-1)?.inode ?? TOP
  const node = disk.get(inode)
  return node === undefined
    ? MISSING
    : {
        found: true, inode, node, path: `/${trail.map(({ name }) => name).join('/')}`
      }
}

export function nodeAt (disk: DiskState, path: string, follow = false): Node | undefined {
  const at = lookup(disk, path, { follow })
  return at.found ? at.node : undefined
}

/** The folder at a path, links followed. */
export function folderAt (disk: DiskState, path: string): FolderNode | undefined {
  const node = nodeAt(disk, path, true)
  return node?.kind === 'folder' ? node : undefined
}

/** The same disk with one node more, or another one in its place. */
export function withNode (disk: DiskState, inode: number, node: Node): DiskState {
  return new Map(disk).set(inode, node)
}

/** The same disk with the entry `path` naming another inode, or, without one, with no such entry. */
export function withEntry (disk: DiskState, path: string, inode: number | undefined): DiskState {
  const parent = lookup(disk, posix.dirname(path))
  if (!parent.found || parent.node.kind !== 'folder') throw new Error(`the model has no folder for ${path}`)
  const entries = new Map(parent.node.entries)
  if (inode === undefined) entries.delete(posix.basename(path))
  else entries.set(posix.basename(path), inode)
  return withNode(disk, parent.inode, { ...parent.node, entries })
}

/** Without the nodes that no name leads to. */
export function withoutGarbage (disk: DiskState): DiskState {
  const kept = new Map<number, Node>()
  const due = [TOP]
  for (let inode = due.pop(); inode !== undefined; inode = due.pop()) {
    const node = disk.get(inode)
    if (node === undefined || kept.has(inode)) continue
    kept.set(inode, node)
    if (node.kind === 'folder') due.push(...node.entries.values())
  }
  return kept
}

/** What no answer may hold (K8), by the words of the contract and not by the code of the service. */

/** Texts of ignore files, and what each of them hides: segments of a path, and whether it is a folder. */
export const IGNORE_TEXTS: Readonly<Record<string, (segments: readonly string[], isFolder: boolean) => boolean>> = {
  '': () => false,
  '# nothing\n': () => false,
  '*.txt\n': (segments) => segments.some((name) => name.endsWith('.txt')),
  'docs/\n': (segments, isFolder) => (isFolder ? segments : segments.slice(0, -1)).includes('docs'),
  'link.md\n/data.bin\n': (segments) => segments.includes('link.md') || segments[0] === 'data.bin',
  'SKILL.md\n': (segments) => segments.includes('SKILL.md'),
  '*\n!SKILL.md\n!.skillignore\n': (segments) =>
    segments.length > 1 || !['SKILL.md', '.skillignore'].includes(segments[0] ?? '')
}

/** Names of files that editors and systems leave behind, and secrets. */
export const JUNK = [
  '.DS_Store', 'notes.txt~', '.notes.txt.swp', '4913', '.env.local', 'node_modules/x/index.js',
  'docs/__pycache__/a.pyc', '._notes.txt', '..data/SKILL.md'
] as const

const HIDDEN_FOLDERS = ['.git', '.hg', '.svn', 'node_modules', '__pycache__', '..data']
const HIDDEN_FILES = ['.env', '.env.local', '.DS_Store', 'notes.txt~', '.notes.txt.swp', '4913', '._notes.txt']

/** @param ignore text of the skill's ignore file, as far as it has one */
export function isHiddenInModel (path: string, isFolder: boolean, ignore: string | undefined): boolean {
  const segments = path.split('/').filter((name) => name !== '')
  if (segments.some((name) => HIDDEN_FOLDERS.includes(name))) return true
  if (!isFolder && HIDDEN_FILES.includes(segments.at(-1) ?? '')) return true
  return ignore !== undefined && IGNORE_TEXTS[ignore]?.(segments, isFolder) === true
}
