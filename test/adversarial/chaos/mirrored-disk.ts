import fs from 'node:fs'
import {
  EMPTY_DISK, lookup, nodeAt, withEntry, withNode, withoutGarbage, type DiskState, type FileNode, type Node
} from './model-disk.ts'

/** What the kernel writes at once, in bytes. */
const PAGE_BYTES = 4096

/** States that are kept for the report of a violation after no request can be answered from them any more. */
const KEPT_FOR_REPORTS = 300

/** One system call that changed the disk, and the disk after it. */
export interface Step {
  readonly index: number
  /** When it was made, on the clock of `performance.now()`. */
  readonly at: number
  readonly what: string
  readonly disk: DiskState
}

/** Every state that the disk has been in, in order; old ones are forgotten. */
class History {
  #last: Step = { index: 0, at: performance.now(), what: 'the beginning', disk: EMPTY_DISK }
  readonly #steps: Step[] = [this.#last]
  #oldest = 0

  get last (): Step { return this.#last }

  add (what: string, disk: DiskState): void {
    this.#last = { index: this.#last.index + 1, at: performance.now(), what, disk }
    this.#steps.push(this.#last)
  }

  /** From this step up to now, latest first: what an answer to a request sent after it may show. */
  since (index: number): readonly Step[] {
    return this.#steps.slice(Math.max(0, index - this.#oldest)).reverse()
  }

  /** The step that was the last one at a time. */
  at (time: number): number {
    const after = this.#steps.findIndex(({ at }) => at > time)
    return Math.max(this.#oldest, (after === -1 ? this.#steps.length : after) - 1 + this.#oldest)
  }

  /** No request that was sent before this step is still waiting for its answer. */
  forget (index: number): void {
    const count = index - KEPT_FOR_REPORTS - this.#oldest
    // In bulk: to move an array by one place for each step would cost more than the step.
    if (count < KEPT_FOR_REPORTS) return
    this.#steps.splice(0, count)
    this.#oldest += count
  }
}

/**
 * Changes a real folder and its model together, one system call at a time; each is one step of the history. Paths
 * begin with `/`, which is the real folder.
 */
export class MirroredDisk {
  readonly folder: string
  readonly history = new History()
  #nextInode = 2

  /** @param folder an empty one */
  constructor (folder: string) {
    this.folder = folder
  }

  get state (): DiskState { return this.history.last.disk }

  has (path: string): boolean {
    return nodeAt(this.state, path) !== undefined
  }

  makeFolder (path: string): void {
    fs.mkdirSync(this.#real(path))
    this.#put(`mkdir ${path}`, path, { kind: 'folder', entries: new Map(), mode: 0o755 })
  }

  /** An empty file. */
  makeFile (path: string): void {
    fs.writeFileSync(this.#real(path), '', { flag: 'wx' })
    this.#put(`creat ${path}`, path, { kind: 'file', bytes: Buffer.alloc(0), mode: 0o644 })
  }

  /**
   * Writes over the beginning of a file, a page in each call, since readers see the pages of a longer one come; what is
   * longer stays.
   */
  write (path: string, bytes: Buffer): void {
    const { inode, node } = this.#at<FileNode>(path)
    const descriptor = fs.openSync(this.#real(path), 'r+')
    for (let start = 0, end = 0; start < bytes.length; start = end) {
      end = Math.min(start + PAGE_BYTES, bytes.length)
      fs.writeSync(descriptor, bytes, start, end - start, start)
      const after = Buffer.concat([bytes.subarray(0, end), node.bytes.subarray(end)])
      this.history.add(`write ${path} ${end} bytes`, withNode(this.state, inode, { ...node, bytes: after }))
    }
    fs.closeSync(descriptor)
  }

  truncate (path: string, length: number): void {
    const { inode, node } = this.#at<FileNode>(path)
    fs.truncateSync(this.#real(path), length)
    this.history.add(`truncate ${path} ${length}`,
      withNode(this.state, inode, { ...node, bytes: node.bytes.subarray(0, length) }))
  }

  /** `to` may be a file or a link, which is replaced. */
  rename (from: string, to: string): void {
    const { inode } = this.#at(from)
    const replaced = lookup(this.state, to, { follow: false })
    fs.renameSync(this.#real(from), this.#real(to))
    // The kernel leaves two names of one inode alone.
    if (replaced.found && replaced.inode === inode) return
    this.history.add(`rename ${from} ${to}`, withEntry(withEntry(this.state, from, undefined), to, inode))
  }

  unlink (path: string): void {
    fs.unlinkSync(this.#real(path))
    this.history.add(`unlink ${path}`, withEntry(this.state, path, undefined))
  }

  removeFolder (path: string): void {
    fs.rmdirSync(this.#real(path))
    this.history.add(`rmdir ${path}`, withEntry(this.state, path, undefined))
  }

  /** @param target relative, or absolute with `/` being the real folder */
  symlink (target: string, path: string): void {
    fs.symlinkSync(target.startsWith('/') ? this.#real(target) : target, this.#real(path))
    this.#put(`symlink ${target} ${path}`, path, { kind: 'link', target })
  }

  hardLink (existing: string, path: string): void {
    fs.linkSync(this.#real(existing), this.#real(path))
    this.history.add(`link ${existing} ${path}`, withEntry(this.state, path, this.#at(existing).inode))
  }

  /** Of a file or a folder. */
  chmod (path: string, mode: number): void {
    const { inode, node } = this.#at<FileNode>(path)
    fs.chmodSync(this.#real(path), mode)
    this.history.add(`chmod ${mode.toString(8)} ${path}`, withNode(this.state, inode, { ...node, mode }))
  }

  /** Removes all there is at a path that no request can reach: one step, however many calls it takes. */
  discard (path: string): void {
    this.#openFolders(path)
    fs.rmSync(this.#real(path), { recursive: true })
    this.history.add(`rm -r ${path}`, withoutGarbage(withEntry(this.state, path, undefined)))
  }

  #openFolders (path: string): void {
    const node = nodeAt(this.state, path)
    if (node?.kind !== 'folder') return
    fs.chmodSync(this.#real(path), 0o755)
    for (const name of node.entries.keys()) this.#openFolders(`${path}/${name}`)
  }

  #real (path: string): string {
    return this.folder + path
  }

  #at<Kind extends Node> (path: string): { readonly inode: number, readonly node: Kind } {
    const at = lookup(this.state, path, { follow: false })
    if (!at.found) throw new Error(`the model has no ${path}`)
    return { inode: at.inode, node: at.node as Kind }
  }

  #put (what: string, path: string, node: Node): void {
    const inode = this.#nextInode++
    this.history.add(what, withEntry(withNode(this.state, inode, node), path, inode))
  }
}
