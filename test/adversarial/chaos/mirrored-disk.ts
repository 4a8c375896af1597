import fs from 'node:fs'
import { History } from './history.ts'
import {
  EMPTY_DISK, lookup, nodeAt, withEntry, withNode, withoutGarbage, type DiskState, type FileNode, type Node
} from './model-disk.ts'

/** What the kernel writes at once, in bytes. */
const PAGE_BYTES = 4096

/**
 * Changes a real folder and its model together, one system call at a time; each is one step of the history. Paths
 * begin with `/`, which is the real folder.
 */
export class MirroredDisk {
  readonly folder: string
  readonly history = new History(EMPTY_DISK)
  #nextInode = 2

  /** @param folder an empty one */
  constructor (folder: string) {
    this.folder = folder
  }

  get state (): DiskState {
    return this.history.last.disk
  }

  has (path: string): boolean {
    return nodeAt(this.state, path) !== undefined
  }

  makeFolder (path: string): void {
    fs.mkdirSync(this.#real(path))
    this.#put(`mkdir ${path}`, path, { kind: 'folder', entries: new Map(), mode: 0o755 })
  }

  /** An empty file. */
  makeFile (path: string): void {
    fs.closeSync(fs.openSync(this.#real(path), 'wx', 0o644))
    this.#put(`creat ${path}`, path, { kind: 'file', bytes: Buffer.alloc(0), mode: 0o644 })
  }

  /** Writes over the beginning of a file, a page in each call, since readers see the pages of a longer one come; what is longer stays. */
  write (path: string, bytes: Buffer): void {
    const { inode, node } = this.#file(path)
    this.#open(path, (descriptor) => {
      for (let start = 0, end = 0; start < bytes.length; start = end) {
        end = Math.min(start + PAGE_BYTES, bytes.length)
        if (fs.writeSync(descriptor, bytes, start, end - start, start) !== end - start) throw new Error(`a short write to ${path}`)
        const written = bytes.subarray(0, end)
        const after = node.bytes.length > end ? Buffer.concat([written, node.bytes.subarray(end)]) : written
        this.#step(`write ${path} ${end} bytes`, withNode(this.state, inode, { ...node, bytes: after }))
      }
    })
  }

  truncate (path: string, length: number): void {
    const { inode, node } = this.#file(path)
    this.#open(path, (descriptor) => { fs.ftruncateSync(descriptor, length) })
    this.#step(`truncate ${path} ${length}`, withNode(this.state, inode, { ...node, bytes: Buffer.from(node.bytes.subarray(0, length)) }))
  }

  /** `to` may be a file or a link, which is replaced. */
  rename (from: string, to: string): void {
    const moved = this.#at(from)
    fs.renameSync(this.#real(from), this.#real(to))
    // The kernel leaves two names of one inode alone.
    if (this.#inodeAt(to) === moved.inode) return
    this.#step(`rename ${from} ${to}`, withEntry(withEntry(this.state, from, undefined), to, moved.inode))
  }

  unlink (path: string): void {
    fs.unlinkSync(this.#real(path))
    this.#step(`unlink ${path}`, withEntry(this.state, path, undefined))
  }

  removeFolder (path: string): void {
    fs.rmdirSync(this.#real(path))
    this.#step(`rmdir ${path}`, withEntry(this.state, path, undefined))
  }

  /** @param target relative, or absolute with `/` being the real folder */
  symlink (target: string, path: string): void {
    fs.symlinkSync(target.startsWith('/') ? this.#real(target) : target, this.#real(path))
    this.#put(`symlink ${target} ${path}`, path, { kind: 'link', target })
  }

  hardLink (existing: string, path: string): void {
    const { inode } = this.#at(existing)
    fs.linkSync(this.#real(existing), this.#real(path))
    this.#step(`link ${existing} ${path}`, withEntry(this.state, path, inode))
  }

  chmod (path: string, mode: number): void {
    const { inode, node } = this.#at(path)
    if (node.kind === 'link') throw new Error(`${path} is a link`)
    fs.chmodSync(this.#real(path), mode)
    this.#step(`chmod ${mode.toString(8)} ${path}`, withNode(this.state, inode, { ...node, mode }))
  }

  /** Removes all there is at a path that no request can reach: one step, however many calls it takes. */
  discard (path: string): void {
    for (const [place, node] of this.#walk(path)) if (node.kind === 'folder') fs.chmodSync(this.#real(place), 0o755)
    fs.rmSync(this.#real(path), { recursive: true })
    this.#step(`rm -r ${path}`, withoutGarbage(withEntry(this.state, path, undefined)))
  }

  #real (path: string): string {
    return this.folder + path
  }

  /** Opens by number of a file that permissions may close to its owner. */
  #open (path: string, use: (descriptor: number) => void): void {
    const descriptor = fs.openSync(this.#real(path), 'r+')
    try {
      use(descriptor)
    } finally {
      fs.closeSync(descriptor)
    }
  }

  * #walk (path: string): Generator<readonly [path: string, node: Node]> {
    const node = nodeAt(this.state, path)
    if (node === undefined) return
    yield [path, node]
    if (node.kind !== 'folder') return
    for (const name of node.entries.keys()) yield * this.#walk(`${path}/${name}`)
  }

  #at (path: string): { readonly inode: number, readonly node: Node } {
    const at = lookup(this.state, path, { follow: false })
    if (!at.found) throw new Error(`the model has no ${path}`)
    return at
  }

  #file (path: string): { readonly inode: number, readonly node: FileNode } {
    const { inode, node } = this.#at(path)
    if (node.kind !== 'file') throw new Error(`${path} is no file`)
    return { inode, node }
  }

  #inodeAt (path: string): number | undefined {
    const at = lookup(this.state, path, { follow: false })
    return at.found ? at.inode : undefined
  }

  #put (what: string, path: string, node: Node): void {
    const inode = this.#nextInode++
    this.#step(what, withEntry(withNode(this.state, inode, node), path, inode))
  }

  #step (what: string, disk: DiskState): void {
    this.history.add(what, disk)
  }
}
