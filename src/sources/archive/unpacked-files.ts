import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import {
  ArchiveNames, commonFolder, nameKey, refusedEntry, withoutMacFiles
} from '../../core/archive/archive-names.ts'
import { checkUnpackedBytes, tooLargeFile } from '../../core/archive/zip-reader.ts'
import { MAX_FILE_BYTES, MAX_LINK_BYTES } from '../../core/shared/limits.ts'
import { withoutEndSlashes } from '../../core/shared/text.ts'
import type { SourceEntry } from '../publish/source-tree.ts'

/** How a layer of an image says that a file or a folder of a lower one is gone. */
export const WHITE_OUT = /(^|\/)\.wh\.(?:\.wh\.\.opq$)?/

/**
 * Files that come out of archives, one by one, into a folder of ours. Each is stored under a number: no name of an
 * archive is ever a path on this machine before the whole was checked.
 */
export class UnpackedFiles {
  readonly #folder: string
  readonly #signal: AbortSignal
  readonly #scope: string
  readonly #names = new ArchiveNames()
  /** By names that are equal where a file system does not distinguish upper and lower case. */
  readonly #entries = new Map<string, SourceEntry>()
  /** Entries of earlier layers, which a later one may replace. */
  #lower: ReadonlySet<SourceEntry> = new Set()
  #count = 0
  #packedBytes = 0
  #bytes = 0

  private constructor (folder: string, signal: AbortSignal, scope: string) {
    this.#folder = folder
    this.#signal = signal
    this.#scope = scope === '' ? '' : `${scope}/`
  }

  /**
   * @param tmp its folder `files` is made, and removed by the owner of `tmp`
   * @param scope only entries below this folder count
   */
  static async create (tmp: string, signal: AbortSignal, scope = ''): Promise<UnpackedFiles> {
    const folder = join(tmp, 'files')
    await mkdir(folder, { mode: 0o700 })
    return new UnpackedFiles(folder, signal, scope)
  }

  /** Adds to the packed size, which bounds the size of what is unpacked. */
  addPackedBytes (bytes: number): void {
    this.#packedBytes += bytes
  }

  /** What follows lies upon what is there, as in images for containers: a file may replace one of the same path. */
  beginLayer (): void {
    this.#lower = new Set(this.#entries.values())
  }

  /** Whether an entry counts. A white-out of an image counts too when it removes the scope with a folder above. */
  isInScope (name: string): boolean {
    const path = name.replace(/^(?:\.?\/)+/, '')
    const removed = path.replace(WHITE_OUT, '$1')
    return path.startsWith(this.#scope) || (removed !== path && this.#scope.startsWith(withoutEndSlashes(removed)))
  }

  async addFile (name: string, content: Readable): Promise<void> {
    const path = this.#claim(name)
    const stored = join(this.#folder, String(this.#count++))
    const hash = createHash('sha256')
    let size = 0
    const meter = new Transform({
      transform: (chunk: Buffer, _, done) => {
        size += chunk.length
        this.#bytes += chunk.length
        hash.update(chunk)
        try {
          if (size > MAX_FILE_BYTES) throw tooLargeFile(name)
          checkUnpackedBytes(this.#bytes, this.#packedBytes)
          done(null, chunk)
        } catch (error) {
          done(error as Error)
        }
      }
    })
    const to = createWriteStream(stored, { flags: 'wx', mode: 0o600 })
    await pipeline(content, meter, to, { signal: this.#signal })
    this.#entries.set(nameKey(path), { path, kind: 'file', id: hash.digest('hex'), size, stored })
  }

  /** Folders are not part of the state, but their names are checked and counted. */
  addFolder (name: string): void {
    const trimmed = withoutEndSlashes(name)
    if (trimmed !== '.') this.#names.check(trimmed)
  }

  /** Another name of a file that came before. */
  addHardLink (name: string, target: string): void {
    const path = this.#claim(name)
    const file = this.#entries.get(nameKey(this.#names.check(target)))
    if (file === undefined) throw refusedEntry(name, 'is a hard link to a file that is not in front of it')
    this.#entries.set(nameKey(path), { ...file, path })
  }

  addLink (name: string, target: string): void {
    const path = this.#claim(name)
    const size = Buffer.byteLength(target)
    if (size > MAX_LINK_BYTES) throw refusedEntry(name, `is a link of more than ${MAX_LINK_BYTES} bytes`)
    this.#names.checkLink(path, target)
    this.#entries.set(nameKey(path), { path, kind: 'link', id: '', size, target })
  }

  /**
   * What was unpacked. One top folder that holds everything is left out of the paths.
   * @param path the folder that is wanted: one that names the top folder, without another of its name in it, keeps it
   */
  files (strip: boolean, path = ''): SourceEntry[] {
    const own = withoutMacFiles([...this.#entries.values()])
    const common = strip ? commonFolder(own) : ''
    const hasTwice = own.some((entry) => `${entry.path}/`.startsWith(common + common))
    const prefix = `${path}/`.startsWith(common) && !hasTwice ? '' : common
    return own.map((entry) => ({ ...entry, path: entry.path.slice(prefix.length) }))
  }

  #claim (name: string): string {
    const path = this.#names.check(name)
    const there = this.#entries.get(nameKey(path))
    const mayReplace = there === undefined || (there.path === path && this.#lower.has(there))
    if (!mayReplace) throw refusedEntry(name, 'is there twice')
    return path
  }
}
