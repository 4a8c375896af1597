import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { MAX_UNPACKED_RATIO, UNPACKED_RATIO_FROM_BYTES } from '../../core/shared/limits.ts'
import { withoutEndSlashes } from '../../core/shared/text.ts'
import { MAX_FILE_BYTES, MAX_LINK_BYTES, MAX_PATH_BYTES, MAX_PUBLISHED_BYTES } from '../publish/limits.ts'
import { SourceError } from '../source-error.ts'
import { quotePath, type SourceEntry, type SourceFiles } from '../publish/source-tree.ts'
import { baseName, foldersAbove } from '../../core/shared/paths.ts'

const MAX_ENTRIES = 50_000

/**
 * Files that come out of archives, one by one, into a folder of ours. Each is stored under a number: no name of an archive is
 * ever a path on this machine before the whole was checked.
 */
export class UnpackedFiles {
  readonly #folder: string
  readonly #signal: AbortSignal
  /** By names that are equal where a file system tells no casing apart. */
  readonly #entries = new Map<string, SourceEntry>()
  readonly #stored = new Map<string, string>()
  #lower: ReadonlySet<SourceEntry> = new Set()
  #count = 0
  #packedBytes = 0
  #bytes = 0

  /** @param folder empty; its owner removes it */
  constructor (folder: string, signal: AbortSignal) {
    this.#folder = folder
    this.#signal = signal
  }

  /** Adds to the packed size, which bounds the size of what is unpacked. */
  addPackedBytes (bytes: number): void {
    this.#packedBytes += bytes
  }

  /** What follows lies upon what is there, as in OCI images: a file may replace a file or a folder, and a folder a file. */
  beginLayer (): void {
    this.#endLayer()
    this.#lower = new Set(this.#entries.values())
  }

  /** A file in the place of a folder takes away what the layers before it have in that folder. */
  #endLayer (): void {
    if (this.#lower.size === 0) return
    const own = new Set([...this.#entries.values()].filter((entry) => !this.#lower.has(entry)).map(({ path }) => path))
    for (const [key, entry] of this.#entries) if (this.#lower.has(entry) && foldersAbove(entry.path).some((folder) => own.has(folder))) this.#entries.delete(key)
  }

  async addFile (name: string, content: Readable): Promise<void> {
    const path = this.#claim(name)
    const stored = join(this.#folder, String(this.#count))
    const hash = createHash('sha256')
    let size = 0
    const meter = new Transform({
      transform: (chunk: Buffer, _, done) => {
        size += chunk.length
        this.#bytes += chunk.length
        hash.update(chunk)
        const problem = size > MAX_FILE_BYTES
          ? `${quotePath(name)} is larger than ${MAX_FILE_BYTES} bytes`
          : this.#bytes > MAX_PUBLISHED_BYTES || (this.#bytes > UNPACKED_RATIO_FROM_BYTES && this.#bytes > this.#packedBytes * MAX_UNPACKED_RATIO) ? 'it unpacks to too much' : undefined
        done(problem === undefined ? null : new SourceError('too_large', `the archive is refused: ${problem}`), chunk)
      }
    })
    await pipeline(content, meter, createWriteStream(stored, { flags: 'wx', mode: 0o600 }), { signal: this.#signal })
    const id = hash.digest('hex')
    this.#stored.set(id, stored)
    this.#entries.set(keyOf(path), { path, kind: 'file', id, size })
  }

  /** Folders are not part of the state, but their names are checked and counted. */
  addFolder (name: string): void {
    const trimmed = withoutEndSlashes(name)
    if (trimmed === '.') return
    const path = this.#check(trimmed)
    const there = this.#entries.get(keyOf(path))
    if (there?.path === path && this.#lower.has(there)) this.#entries.delete(keyOf(path))
  }

  addLink (name: string, target: string): void {
    const path = this.#claim(name)
    if (Buffer.byteLength(target) > MAX_LINK_BYTES) throw refused(name, `is a link of more than ${MAX_LINK_BYTES} bytes`)
    const segments = path.split('/').slice(0, -1)
    for (const segment of target.split('/')) {
      if (segment === '..' && segments.pop() === undefined) throw refused(name, 'leads out of the archive')
      else if (segment !== '' && segment !== '.' && segment !== '..') segments.push(segment)
    }
    if (target.startsWith('/') || target.includes('\\') || target.includes('\0') || target === '') throw refused(name, 'leads out of the archive')
    this.#entries.set(keyOf(path), { path, kind: 'link', id: '', size: Buffer.byteLength(target), target })
  }

  /**
   * What was unpacked. One top folder that holds everything is left out of the paths.
   * @param path the folder that is wanted: one that names the top folder, without another of its name in it, leaves it in
   */
  files (strip: boolean, path = ''): SourceFiles {
    this.#endLayer()
    const own = withoutMacFiles([...this.#entries.values()])
    const common = strip ? commonFolder(own) : ''
    const isNamed = `${path}/`.startsWith(common) && !own.some((entry) => `${entry.path}/`.startsWith(common + common))
    const prefix = isNamed ? '' : common
    const entries = own.map((entry) => ({ ...entry, path: entry.path.slice(prefix.length) }))
    return {
      entries,
      write: async (files, signal) => {
        for (const { entry, path } of files) {
          signal.throwIfAborted()
          await writeFile(path, await readFile(this.#pathOf(entry)), { flag: 'wx', mode: 0o644, flush: true })
        }
      },
      read: (entry) => readFile(this.#pathOf(entry))
    }
  }

  #pathOf ({ id }: SourceEntry): string {
    const path = this.#stored.get(id)
    if (path === undefined) throw new SourceError('internal', 'a file of the archive was not unpacked')
    return path
  }

  /** Bad names are refused, not repaired: the author's files are published unchanged, or not at all. */
  #claim (name: string): string {
    const path = this.#check(name)
    const there = this.#entries.get(keyOf(path))
    if (there !== undefined && !(there.path === path && this.#lower.has(there))) throw refused(name, 'is there twice')
    return path
  }

  #check (name: string): string {
    const path = name.replace(/^(?:\.\/)+/, '')
    if (++this.#count > MAX_ENTRIES) throw new SourceError('too_large', `the archive is refused: it has more than ${MAX_ENTRIES} files and folders`)
    // A few bytes unpack to a name of megabytes, and all names are kept until the end.
    if (Buffer.byteLength(path) > MAX_PATH_BYTES) throw refused(name, `is longer than ${MAX_PATH_BYTES} bytes`)
    if (path.startsWith('/') || /^[A-Za-z]:/.test(path) || path.includes('\\')) throw refused(name, 'is no relative path')
    if (!path.isWellFormed() || path.includes('�') || path.includes('\0')) throw refused(name, 'is no name of a file')
    if (path.split('/').some((segment) => segment === '' || segment === '.' || segment === '..')) throw refused(name, 'leads out of its folder')
    return path
  }
}

/** Makes the folder for what is unpacked. */
export async function createUnpackedFiles (tmp: string, signal: AbortSignal): Promise<UnpackedFiles> {
  const folder = join(tmp, 'files')
  await mkdir(folder, { mode: 0o700 })
  return new UnpackedFiles(folder, signal)
}

export function refused (name: string, problem: string): SourceError {
  return new SourceError('bad_archive', `the archive is refused: ${quotePath(name)} ${problem}`)
}

function keyOf (path: string): string {
  return path.normalize('NFC').toLowerCase()
}

/** Macs put the attributes of `X` into `._X` beside it, or into a folder of their own at the top. */
function withoutMacFiles (entries: readonly SourceEntry[]): SourceEntry[] {
  const paths = new Set(entries.flatMap(({ path }) => [path, ...foldersAbove(path)]))
  return entries.filter(({ path }) => {
    const name = baseName(path)
    return !path.startsWith('__MACOSX/') && !(name.startsWith('._') && paths.has(path.slice(0, -name.length) + name.slice(2)))
  })
}

function commonFolder (entries: readonly SourceEntry[]): string {
  const [first] = entries
  const end = first?.path.indexOf('/') ?? -1
  if (first === undefined || end === -1) return ''
  const prefix = first.path.slice(0, end + 1)
  return entries.every(({ path }) => path.startsWith(prefix)) ? prefix : ''
}
