import { readFile } from 'node:fs/promises'
import { posix } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { LayoutTree, TreeEntry } from '../../core/layout/layout.ts'
import { compareCodePoints } from '../../core/shared/text.ts'
import { SourceError } from '../source-error.ts'
import { MAX_PATH_BYTES } from '../../core/shared/limits.ts'
import { foldersAbove, quotePath } from '../../core/shared/paths.ts'

/** A file or link of a source in one state. */
export interface SourceEntry {
  /** `/` between segments. */
  readonly path: string
  readonly kind: 'file' | 'link' | 'submodule'
  /** Equal for equal bytes within one source: the id of a blob, or a digest. */
  readonly id: string
  /** Bytes. */
  readonly size: number
  /** Where a link leads to, as it is written. */
  readonly target?: string
  /** The file of this machine that has its bytes already. */
  readonly stored?: string
}

/** All that a source holds in one state. */
export interface SourceFiles {
  readonly entries: readonly SourceEntry[]
  /** Writes files that are not stored yet to new paths, whose folders are there. */
  write (files: Iterable<{ readonly entry: SourceEntry, readonly path: string }>, signal: AbortSignal): Promise<void>
  read (entry: SourceEntry): Promise<Buffer>
}

/** Files that were unpacked or downloaded into a folder of this machine. */
export function storedFiles (entries: readonly SourceEntry[]): SourceFiles {
  return { entries, write: async () => {}, read: ({ stored = '' }) => readFile(stored) }
}

/** What a source may hold, and what is published of it. */
export const MAX_ENTRIES = 200_000
const MAX_DEPTH = 20

const MAX_LINKS_ON_A_PATH = 40
/** Segments of a path and of all links on it: 40 links of full length have 80,000. */
const MAX_STEPS_ON_A_PATH = 256
/** Links that are followed before others get a turn: each may take all of these steps. */
const LINKS_PER_TURN = 1_000

type Node = Folder | SourceEntry
type Folder = Map<string, Node>

/**
 * Refuses a state that is too large, or that no file system holds as it is.
 * @param where names the state in the sentence
 * @throws SourceError
 */
export function checkEntries (entries: readonly SourceEntry[], where: string): void {
  if (entries.length > MAX_ENTRIES) throw new SourceError('too_large', `${where} has more than ${MAX_ENTRIES} files`)
  const refuse = (path: string, problem: string): never => {
    throw new SourceError('refused_tree', `${where} is refused: ${quotePath(path)} ${problem}`)
  }
  const names = new Set<string>()
  for (const { path } of entries) {
    const problem = pathProblem(path)
    if (problem !== undefined) refuse(path, problem)
    if (names.has(path)) refuse(path, 'is there twice')
    names.add(path)
  }
  for (const { path } of entries) {
    const both = foldersAbove(path).find((folder) => names.has(folder))
    if (both !== undefined) refuse(both, 'is a file and a folder')
  }
}

/** Why no source may have this path; undefined: it may. */
export function pathProblem (path: string): string | undefined {
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return `is longer than ${MAX_PATH_BYTES} bytes`
  const segments = path.split('/')
  if (segments.length > MAX_DEPTH) return `lies deeper than ${MAX_DEPTH} folders`
  if (path.includes('\0') || !path.isWellFormed()) return 'is not a file name'
  if (segments.some((segment) => ['', '.', '..'].includes(segment))) return 'leads out of its folder'
  // Never served, and no honest source has it.
  if (segments.some((segment) => segment.toLowerCase() === '.git')) return 'would be a repository of its own'
  return undefined
}

/** A state as folders, in which links inside lead on. */
export class SourceTree implements LayoutTree {
  readonly #files: SourceFiles
  readonly #top: Folder = new Map()
  readonly #base: string
  readonly #unresolved = new Set<SourceEntry>()

  /** @param base the folder that is the top; '' for all */
  constructor (files: SourceFiles, base = '') {
    this.#files = files
    this.#base = base
    for (const entry of files.entries) this.#put(entry)
  }

  #put (entry: SourceEntry): void {
    let folder = this.#top
    const segments = entry.path.split('/')
    const name = segments.pop() ?? ''
    for (const segment of segments) {
      const next = folder.get(segment)
      if (next instanceof Map) folder = next
      else folder.set(segment, folder = new Map())
    }
    folder.set(name, entry)
  }

  async entries (folder: string): Promise<readonly TreeEntry[]> {
    const found = this.#find(folder)
    if (!(found?.node instanceof Map)) return []
    const entries: TreeEntry[] = []
    let links = 0
    for (const [name, node] of found.node) {
      if (node instanceof Map) {
        entries.push({ name, kind: 'folder', linked: false })
        continue
      }
      const isLink = node.kind === 'link'
      if (isLink && ++links % LINKS_PER_TURN === 0) await nextTurn()
      const own = node.kind === 'file' ? node : undefined
      const target = isLink ? this.#resolve(posix.join(found.path, name))?.node : own
      if (target === undefined) this.#unresolved.add(node)
      else entries.push({ name, kind: target instanceof Map ? 'folder' : 'file', linked: isLink })
    }
    return entries.sort((a, b) => compareCodePoints(a.name, b.name))
  }

  /** Submodules, and links that lead to nothing in the tree, of all folders that were listed. */
  get unresolved (): ReadonlySet<SourceEntry> {
    return this.#unresolved
  }

  async realPath (folder: string): Promise<string> {
    return this.#find(folder)?.path ?? folder
  }

  async read (file: string, limit: number): Promise<Buffer | undefined> {
    const found = this.#find(file)
    if (found === undefined || found.node instanceof Map) return undefined
    return found.node.size > limit ? undefined : await this.#files.read(found.node)
  }

  isFolder (folder: string): boolean {
    return this.#find(folder)?.node instanceof Map
  }

  /** All entries below a folder, with their paths relative to it, in no order. Links in it stay links. */
  below (folder: string): Array<{ readonly path: string, readonly entry: SourceEntry }> {
    const found: Array<{ path: string, entry: SourceEntry }> = []
    const collect = (node: Folder, prefix: string): void => {
      for (const [name, child] of node) {
        if (child instanceof Map) collect(child, `${prefix}${name}/`)
        else found.push({ path: `${prefix}${name}`, entry: child })
      }
    }
    const start = this.#find(folder)?.node
    if (start instanceof Map) collect(start, '')
    return found
  }

  #find (path: string): { readonly node: Node, readonly path: string } | undefined {
    return this.#resolve(posix.join(this.#base, path))
  }

  /** Follows links, lexically as the kernel would, inside the tree. */
  #resolve (path: string): { readonly node: Node, readonly path: string } | undefined {
    const rest = stepsOf(path)
    let links = 0
    let steps = 0
    const parents: Array<readonly [name: string, folder: Folder]> = []
    let node: Node = this.#top
    for (let name = rest.pop(); name !== undefined; name = rest.pop()) {
      if (++steps > MAX_STEPS_ON_A_PATH) return undefined
      if (name === '..') {
        if (parents.length === 0) return undefined
        parents.pop()
        node = parents.at(-1)?.[1] ?? this.#top
        continue
      }
      if (!(node instanceof Map)) return undefined
      const child: Node | undefined = node.get(name)
      if (child === undefined) return undefined
      if (child instanceof Map) {
        parents.push([name, child])
        node = child
      } else if (child.kind === 'link') {
        const { target = '/' } = child
        if (++links > MAX_LINKS_ON_A_PATH || target.startsWith('/')) return undefined
        rest.push(...stepsOf(target))
      } else {
        if (rest.length > 0) return undefined
        return { node: child, path: [...parents.map(([parent]) => parent), name].join('/') }
      }
    }
    return { node, path: parents.map(([name]) => name).join('/') }
  }
}

/** The segments of a path, the last one first. */
function stepsOf (path: string): string[] {
  return path.split('/').filter((segment) => segment !== '' && segment !== '.').reverse()
}
