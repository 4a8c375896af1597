import { LRUCache } from 'lru-cache'
import pLimit from 'p-limit'
import { MAX_MAIN_FILE_BYTES, MAX_SKILL_BYTES } from '../shared/limits.ts'
import type { FileStamp } from '../shared/skill.ts'
import { FileContent } from './file-content.ts'
import type { FileChecksums, OpenFile } from './open-file.ts'
import { type FilePlace, openInside } from './open-inside.ts'
import { isSettled, stateId } from './file-stamp.ts'

/** A file as it can be sent: in memory, or open and to be streamed and closed by the caller. */
export type ServableFile =
  | { readonly kind: 'content', readonly content: FileContent }
  | { readonly kind: 'stream', readonly file: OpenFile, readonly digest: string | undefined, readonly isUtf8: boolean }

/** How much of a cache is in use, and how often it was of use. */
export interface CacheUsage {
  readonly bytes: number
  readonly hits: number
  readonly misses: number
}

/** Files up to this size, in bytes, are read whole and may stay in memory; larger ones are streamed. */
export const MAX_BUFFERED_FILE_BYTES = 262_144

/** Larger files that are read whole at the same time. */
const MAX_LARGE_READS = 4

/** Weight of all contents together, in bytes: the file, its text, and what is rendered from them. */
const CACHE_BYTES = 32 * 1_048_576
const WEIGHT_PER_BYTE = 6
const WEIGHT_PER_ENTRY = 2_048

/** Files whose checksums are kept: about 300 bytes each. */
const MAX_CHECKSUMS = 150_000

/**
 * Contents and checksums of files, kept by device, inode, size, `mtime` and `ctime`: a file in the same state has the
 * same bytes. Each read opens and checks the file anew; only its bytes come from memory.
 */
export class FileCache {
  readonly #contents = new LRUCache<string, FileContent>({
    maxSize: CACHE_BYTES,
    sizeCalculation: ({ bytes }) => bytes.length * WEIGHT_PER_BYTE + WEIGHT_PER_ENTRY
  })

  readonly #checksums = new LRUCache<string, FileChecksums>({ maxSize: MAX_CHECKSUMS, sizeCalculation: () => 1 })
  readonly #enterLarge = pLimit(MAX_LARGE_READS)
  #hits = 0
  #misses = 0

  get usage (): CacheUsage {
    return { bytes: this.#contents.calculatedSize, hits: this.#hits, misses: this.#misses }
  }

  /** The content of a file that is known to be in this state. */
  contentOf (stamp: FileStamp): FileContent | undefined {
    const content = this.#contents.get(stateId(stamp))
    if (content !== undefined) this.#hits++
    return content
  }

  /** Reads a file whole. It stays in memory if it `isKept`: a reading of all files would leave no room for others. */
  async read (place: FilePlace, limit: number, isKept = true): Promise<{ content: FileContent, stamp: FileStamp }> {
    const file = await openInside(place, limit)
    try {
      const take = () => this.#take(file, isKept)
      const content = await (file.size > MAX_BUFFERED_FILE_BYTES ? this.#enterLarge(take) : take())
      return { content, stamp: file.stamp }
    } finally {
      await file.close()
    }
  }

  /** Opens a file of any size: a small one is read, a large one stays open. Over MAX_SKILL_BYTES it has no digest. */
  async open (place: FilePlace): Promise<ServableFile> {
    const file = await openInside(place)
    let isOpen = false
    try {
      if (file.size <= MAX_BUFFERED_FILE_BYTES) return { kind: 'content', content: await this.#take(file, true) }
      const { digest, isUtf8 } = file.size > MAX_SKILL_BYTES
        ? { digest: undefined, isUtf8: false }
        : await this.#checksumsOf(file)
      isOpen = true
      return { kind: 'stream', file, digest, isUtf8 }
    } finally {
      if (!isOpen) await file.close()
    }
  }

  /** Checksums of a file, read unless known. `state` is undefined for a link, whose target must be checked. */
  async checksumsAt (place: FilePlace, state: string | undefined): Promise<FileChecksums> {
    const known = state === undefined ? undefined : this.#checksums.get(state)
    if (known !== undefined) return known
    const file = await openInside(place, MAX_SKILL_BYTES)
    try {
      return await this.#checksumsOf(file)
    } finally {
      await file.close()
    }
  }

  async #take (file: OpenFile, isKept: boolean): Promise<FileContent> {
    const known = this.contentOf(file.stamp)
    if (known !== undefined) return known
    const openedAt = Date.now()
    const content = new FileContent(await file.readAll())
    this.#misses++
    if (isKept && file.size <= MAX_MAIN_FILE_BYTES && isSettled(file.stamp, openedAt)) {
      this.#contents.set(stateId(file.stamp), content)
    }
    return content
  }

  async #checksumsOf (file: OpenFile): Promise<FileChecksums> {
    const id = stateId(file.stamp)
    const openedAt = Date.now()
    const checksums = this.#checksums.get(id) ?? await file.checksums()
    if (isSettled(file.stamp, openedAt)) this.#checksums.set(id, checksums)
    return checksums
  }
}
