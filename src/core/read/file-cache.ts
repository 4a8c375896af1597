import { LRUCache } from 'lru-cache'
import pLimit from 'p-limit'
import type { PathFilter } from './hidden.ts'
import {
  CONTENT_CACHE_BYTES, MAX_BUFFERED_FILE_BYTES, MAX_CACHED_DIGESTS, MAX_LARGE_READS, MAX_MAIN_FILE_BYTES,
  MAX_SKILL_BYTES
} from '../shared/limits.ts'
import type { Signature } from '../shared/skill.ts'
import type { Disk } from './disk.ts'
import { FileContent } from './file-content.ts'
import type { FileChecksums, OpenFile } from './open-file.ts'
import { openInside } from './open-inside.ts'
import { RefusedError } from './refused.ts'
import { isTrustworthy, signatureOf, stateId } from './signature.ts'

/** A file of a skill. */
export interface FilePlace {
  readonly disk: Disk
  /** Real path of the skill's folder. */
  readonly folder: string
  /** Relative and lexically inside, from `parseRelativePath` or a listing. */
  readonly path: string
  readonly filter: PathFilter | undefined
}

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

/** Bytes, their text, and what is rendered from them. */
const WEIGHT_PER_BYTE = 6
const WEIGHT_PER_ENTRY = 2_048

/**
 * Contents and checksums of files, kept by device, inode, size, `mtime` and `ctime`: a file in the same state has the
 * same bytes. Each read opens and checks the file anew; only its bytes come from memory.
 */
export class FileCache {
  readonly #contents = new LRUCache<string, FileContent>({
    maxSize: CONTENT_CACHE_BYTES,
    sizeCalculation: ({ bytes }) => bytes.length * WEIGHT_PER_BYTE + WEIGHT_PER_ENTRY
  })

  readonly #checksums = new LRUCache<string, FileChecksums>({ maxSize: MAX_CACHED_DIGESTS, sizeCalculation: () => 1 })
  /** Checksums of large files that are being computed, by the same keys. */
  readonly #hashing = new Map<string, Promise<FileChecksums>>()
  /** Files over MAX_BUFFERED_FILE_BYTES that are read whole at the same time. */
  readonly #enterLarge = pLimit(MAX_LARGE_READS)
  #hits = 0
  #misses = 0

  get usage (): CacheUsage {
    return { bytes: this.#contents.calculatedSize, hits: this.#hits, misses: this.#misses }
  }

  /** The content of a file that is known to be in this state. */
  contentOf (signature: Signature): FileContent | undefined {
    const content = this.#contents.get(stateId(signature))
    if (content !== undefined) this.#hits++
    return content
  }

  /**
   * Reads a file whole.
   * @param limit largest size in bytes
   * @param isKept whether it stays in memory; a reading of all files would leave no room for those that are asked for
   * @throws {RefusedError}
   */
  async read (place: FilePlace, limit: number, isKept = true): Promise<{ content: FileContent, signature: Signature }> {
    const file = await openInside(place.disk, place.folder, place.path, place.filter)
    try {
      const { size } = file.stats
      if (size > limit) throw new RefusedError('too_large', undefined, size)
      const take = () => this.#take(file, limit, isKept)
      return await (size > MAX_BUFFERED_FILE_BYTES ? this.#enterLarge(take) : take())
    } finally {
      await file.close()
    }
  }

  /** Opens a file of any size: a small one is read, a large one stays open. Over MAX_SKILL_BYTES it has no digest. */
  async open (place: FilePlace): Promise<ServableFile> {
    const file = await openInside(place.disk, place.folder, place.path, place.filter)
    let isOpen = false
    try {
      const { size } = file.stats
      if (size <= MAX_BUFFERED_FILE_BYTES) {
        return { kind: 'content', content: (await this.#take(file, MAX_MAIN_FILE_BYTES, true)).content }
      }
      const { digest, isUtf8 } = size > MAX_SKILL_BYTES
        ? { digest: undefined, isUtf8: false }
        : await this.#checksumsOf(file)
      isOpen = true
      return { kind: 'stream', file, digest, isUtf8 }
    } finally {
      if (!isOpen) await file.close()
    }
  }

  /**
   * Checksums of a file, which is read only if they are not known.
   * @param state `stateId` of the file as it was listed; undefined for a link, whose target must be checked
   */
  async checksumsAt (
    place: FilePlace, state: string | undefined
  ): Promise<FileChecksums & { readonly size: bigint, readonly wasRead: boolean }> {
    const known = state === undefined ? undefined : this.#checksums.get(state)
    if (known !== undefined) return { ...known, size: BigInt(state?.split(':')[2] ?? 0), wasRead: false }
    const file = await openInside(place.disk, place.folder, place.path, place.filter)
    try {
      if (file.stats.size > MAX_SKILL_BYTES) throw new RefusedError('too_large', undefined, file.stats.size)
      return { ...await this.#checksumsOf(file), size: file.stats.size, wasRead: true }
    } finally {
      await file.close()
    }
  }

  async #take (
    file: OpenFile, limit: number, isKept: boolean
  ): Promise<{ content: FileContent, signature: Signature }> {
    const opened = signatureOf(file.stats)
    const known = this.contentOf(opened)
    if (known !== undefined) return { content: known, signature: opened }
    const openedAt = Date.now()
    const { bytes, signature } = await file.readAll(limit)
    this.#misses++
    const content = new FileContent(bytes)
    if (isKept && bytes.length <= MAX_MAIN_FILE_BYTES && isTrustworthy(signature, openedAt)) {
      this.#contents.set(stateId(signature), content)
    }
    return { content, signature }
  }

  async #checksumsOf (file: OpenFile): Promise<FileChecksums> {
    const signature = signatureOf(file.stats)
    // What is written at this moment may have other bytes in the same state.
    if (!isTrustworthy(signature, Date.now())) return await file.checksums()
    const id = stateId(signature)
    const known = this.#checksums.get(id)
    if (known !== undefined) return known
    let hashing = this.#hashing.get(id)
    if (hashing === undefined) {
      hashing = file.checksums().finally(() => { this.#hashing.delete(id) })
      this.#hashing.set(id, hashing)
    }
    const checksums = await hashing
    this.#checksums.set(id, checksums)
    return checksums
  }
}
