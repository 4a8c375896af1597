import { LRUCache } from 'lru-cache'
import { createCoalescer } from '../shared/async.ts'
import { MAX_SKILL_BYTES } from '../shared/limits.ts'
import { startsAsUtf8 } from './decode.ts'
import { checksumsOf, type FileChecksums, FileContent } from './file-content.ts'
import { fileKind, type FileKind } from './file-kind.ts'
import type { FileStamp } from './file-stamp.ts'
import type { OpenFile } from './open-file.ts'
import { type FilePlace, openInside } from './open-inside.ts'
import { changed } from './refused.ts'

/** A file in memory, or an open one, which the caller streams and closes. */
export type ServableFile = { readonly kind: 'content', readonly content: FileContent } | StreamedFile

/** Larger files are streamed, in bytes. */
export const MAX_BUFFERED_FILE_BYTES = 262_144

/** A streamed file up to this size, in bytes, is read for its digest first. */
export const MAX_HASHED_FIRST_BYTES = 8 * 1_048_576

/** Room for contents, without those of kept revisions; for a single one; and the overhead of each. In bytes. */
const CACHE_BYTES = 8 * 1_048_576
const MAX_ENTRY_BYTES = CACHE_BYTES / 4
const WEIGHT_PER_ENTRY = 2_048

/** About 300 bytes of memory each. */
const MAX_CHECKSUMS = 150_000

/**
 * Keeps checksums of files by their stamp, and contents by their digest. Each read opens and checks the file; only its
 * bytes come from memory. Reads of one file at the same time share one.
 */
export class FileCache {
  readonly #contents = new LRUCache<string, FileContent>({
    maxSize: CACHE_BYTES,
    maxEntrySize: MAX_ENTRY_BYTES,
    sizeCalculation: weightOf
  })

  /** Contents of kept revisions, which no other read displaces. */
  readonly kept: LRUCache<string, FileContent>
  readonly #checksums = new LRUCache<string, FileChecksums>({ maxSize: MAX_CHECKSUMS, sizeCalculation: () => 1 })
  /** Stamps of files that are hashed while they are streamed. */
  readonly #streamed = new Set<string>()
  readonly #shareContent = createCoalescer<FileContent>()
  readonly #shareChecksums = createCoalescer<FileChecksums>()
  readonly #closing = new AbortController()
  #hits = 0
  #misses = 0

  /** @param keptBytes size of the contents of kept revisions, in bytes */
  constructor (keptBytes: number) {
    this.kept = new LRUCache({ maxSize: Math.max(keptBytes, 1), sizeCalculation: weightOf })
  }

  /** Bytes of all contents, and how often one was found. */
  get usage (): { readonly bytes: number, readonly hits: number, readonly misses: number } {
    return { bytes: this.#contents.calculatedSize + this.kept.calculatedSize, hits: this.#hits, misses: this.#misses }
  }

  contentOf (stamp: FileStamp): FileContent | undefined {
    const checksums = this.#checksums.get(stamp)
    const content = checksums && this.#contentWith(checksums.digest)
    if (content !== undefined) this.#hits++
    return content
  }

  /** Reads a whole file. The index passes `isKept` false, since all its main files would fill the cache. */
  async read (place: FilePlace, limit: number, isKept = true): Promise<{ content: FileContent, stamp: FileStamp }> {
    const file = await openInside(place, limit)
    try {
      return { content: await this.#readContent(file, isKept), stamp: file.stamp }
    } finally {
      await file.close()
    }
  }

  /** Opens a file of any size. Reads a small one, and returns a large one open. */
  async open (place: FilePlace): Promise<ServableFile> {
    const file = await openInside(place)
    let isOpen = false
    try {
      if (file.size <= MAX_BUFFERED_FILE_BYTES) {
        return { kind: 'content', content: await this.#readContent(file) }
      }
      const known = file.size <= MAX_HASHED_FIRST_BYTES ? await this.checksumsOf(file) : this.#cachedChecksums(file)
      const kinds = known ?? kindsOf(await file.readHead())
      await file.openForReading()
      isOpen = true
      return new StreamedFile(file, this, kinds, known?.digest)
    } finally {
      if (!isOpen) await file.close()
    }
  }

  hasChecksums (stamp: FileStamp | undefined): boolean {
    return stamp !== undefined && this.#checksums.has(stamp)
  }

  /** Reads a file for its checksums, unless they are known. @param stamp undefined for a link, in any state */
  async checksumsAt (place: FilePlace, stamp: FileStamp | undefined): Promise<FileChecksums> {
    const known = stamp === undefined ? undefined : this.#checksums.get(stamp)
    if (known !== undefined) return known
    const file = await openInside(place, MAX_SKILL_BYTES)
    try {
      if (stamp !== undefined && file.stamp !== stamp) throw changed('a file changed since it was listed')
      return await this.checksumsOf(file)
    } finally {
      await file.close()
    }
  }

  async checksumsOf (file: OpenFile): Promise<FileChecksums> {
    return this.#cachedChecksums(file) ?? await this.#shareChecksums(file.stamp, async () =>
      this.#cachedChecksums(file) ?? this.#cacheChecksums(file, await file.checksums(this.#closing.signal)))
  }

  /** Streams the bytes from `start` to `end`, both included. Caches the digest if they are the whole file. */
  async * chunks (file: OpenFile, digest: string | undefined, start: number, end: number): AsyncGenerator<Buffer> {
    const isWhole = start === 0 && BigInt(end) === file.size - 1n
    if (digest !== undefined || !isWhole || file.size > MAX_SKILL_BYTES || this.#streamed.has(file.stamp)) {
      return yield * file.chunks(start, end, digest)
    }
    this.#streamed.add(file.stamp)
    try {
      yield * file.chunks(start, end, undefined, (checksums) => { this.#cacheChecksums(file, checksums) })
    } finally {
      this.#streamed.delete(file.stamp)
    }
  }

  #cachedChecksums ({ stamp }: OpenFile): FileChecksums | undefined {
    return this.#checksums.get(stamp)
  }

  #cacheChecksums ({ stamp, isSettled }: OpenFile, checksums: FileChecksums): FileChecksums {
    if (isSettled) this.#checksums.set(stamp, checksums)
    return checksums
  }

  /** Ends reads of files for their checksums. */
  close (): void {
    this.#closing.abort()
  }

  async #readContent (file: OpenFile, isKept = true): Promise<FileContent> {
    return this.contentOf(file.stamp) ?? await this.#shareContent(file.stamp, async () => {
      const known = this.contentOf(file.stamp)
      if (known !== undefined) return known
      const bytes = await file.readAll()
      const checksums = this.#cacheChecksums(file, this.#cachedChecksums(file) ?? checksumsOf(bytes))
      const content = this.#contentWith(checksums.digest) ?? new FileContent(bytes, checksums)
      this.#misses++
      if (isKept) this.#contents.set(content.digest, content)
      return content
    })
  }

  #contentWith (digest: string): FileContent | undefined {
    return this.#contents.get(digest) ?? this.kept.get(digest)
  }
}

type Kinds = Pick<FileChecksums, 'isUtf8' | 'kind'>

/** Judges a file by its first bytes. */
function kindsOf (head: Buffer): Kinds {
  return { isUtf8: startsAsUtf8(head), kind: fileKind(head) }
}

function weightOf ({ bytes }: FileContent): number {
  return bytes.length + WEIGHT_PER_ENTRY
}

class StreamedFile {
  readonly kind = 'stream'
  readonly size: number
  /** Whether it is UTF-8, judged by the first bytes until all have been read. */
  readonly isUtf8: boolean
  /** By the first bytes. */
  readonly fileKind: FileKind | undefined
  readonly #file: OpenFile
  readonly #cache: FileCache
  #digest: string | undefined

  constructor (file: OpenFile, cache: FileCache, { isUtf8, kind }: Kinds, digest: string | undefined) {
    this.size = Number(file.size)
    this.isUtf8 = isUtf8
    this.fileKind = kind
    this.#file = file
    this.#cache = cache
    this.#digest = digest
  }

  /** `sha256:<hex>` of all bytes; undefined if not yet known. */
  get digest (): string | undefined {
    return this.#digest
  }

  /** Reads the file for it, unless it is known; undefined for more than MAX_SKILL_BYTES. */
  async readDigest (): Promise<string | undefined> {
    if (this.size <= MAX_SKILL_BYTES) this.#digest ??= (await this.#cache.checksumsOf(this.#file)).digest
    return this.#digest
  }

  chunks (start: number, end: number): AsyncGenerator<Buffer> {
    return this.#cache.chunks(this.#file, this.#digest, start, end)
  }

  close (): Promise<void> {
    return this.#file.close()
  }
}
