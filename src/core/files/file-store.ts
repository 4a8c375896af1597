import { LRUCache } from 'lru-cache'
import { createQueues, createTurnstile, type Queue } from '../shared/async.ts'
import type { Disk } from '../disk/disk.ts'
import type { PathFilter } from '../disk/hidden.ts'
import { pathBelow } from '../disk/paths.ts'
import type { PollPhase } from '../disk/poll-phase.ts'
import { changed, RefusedError } from '../disk/refused.ts'
import { isSameOrMissing, isTrustworthy, signatureOf, stateId } from '../disk/signature.ts'
import { overloadError } from '../shared/errors.ts'
import { atMost, fitHeap } from '../shared/heap.ts'
import { BLOCK_CACHE_BYTES, CONTENT_CACHE_BYTES, MAX_BUFFERED_FILE_BYTES, MAX_CACHED_DIGESTS, MAX_LARGE_READS, MAX_MAIN_FILE_BYTES, MAX_SKILL_BYTES } from '../shared/limits.ts'
import type { Signature } from '../shared/skill.ts'
import { CheckedFile, digestBlocks } from './checked-file.ts'
import { FileContent } from './file-content.ts'
import type { ChecksumOptions, FileChecksums, OpenFile } from './open-file.ts'
import { openInside } from './open-inside.ts'

/** A file as it can be sent: in memory, or open and to be streamed by the one who asked, who must close it. */
export type ServableFile =
  | { readonly kind: 'content', readonly content: FileContent }
  | { readonly kind: 'stream', readonly file: OpenFile, readonly digest: string | undefined, readonly isUtf8: boolean }

/**
 * Whether there is room for the answer with a large file. False after a while: then the file is not read.
 * @param since when the file was asked for, in milliseconds of `performance.now()`
 */
export type RoomForFile = (bytes: number, since: number) => Promise<boolean>

/** How much of a memory is in use, and how often it was of use. */
export interface CacheUsage {
  readonly bytes: number
  readonly hits: number
  readonly misses: number
}

/** A file of a skill. */
export interface FilePlace {
  readonly disk: Disk
  /** Real path of the skill's folder. */
  readonly folder: string
  /** Relative and lexically inside, from `parseRelativePath` or a directory listing. */
  readonly path: string
  /** What else than hidden names the skill does not serve. */
  readonly filter?: PathFilter | undefined
}

/** A file that was read whole: its bytes, and the state in which they were read. */
export interface ReadFile {
  readonly content: FileContent
  readonly signature: Signature
}

interface StoredFile extends ReadFile {
  /** Of the file, the skill's folder, and each folder on the way, by whole path: while all are the same, the path leads to the same bytes. */
  readonly observed: ReadonlyArray<readonly [path: string, state: Signature]>
  /** Whether the next edit is sure to change one of those states, and the path passes no link. */
  readonly isReusable: boolean
  /** The filter that the file has passed. */
  readonly filter: PathFilter | undefined
  /** The store's `readCount` when the reading began. */
  readonly begunAt: number
}

/** Bytes, their text, and what the doors keep with it: escaped once for JSON, once more inside a tool message. */
const WEIGHT_PER_BYTE = 6
const WEIGHT_PER_ENTRY = 2_048

/** What an answer with a large file takes while it is made: its bytes, its text, the JSON, and what is sent. */
const ANSWER_BYTES_PER_BYTE = 4

/**
 * Bytes and digests of files, read once for each state; index, manifests and answers all read through it. Contents in
 * memory are bounded by weight. A content is given out while its states hold on the disk, or when its reading began after the
 * question was asked. An answer made of index entry, manifest and bytes therefore reads a file once instead of three times.
 */
export class FileStore {
  readonly #phase: PollPhase
  readonly #hasRoom: RoomForFile
  readonly #contents: LRUCache<string, StoredFile>
  /** Of large files, by identity: the same inode in the same state has the same bytes. */
  readonly #checksums = new LRUCache<string, FileChecksums>(atMost(MAX_CACHED_DIGESTS))
  /** Digests of the blocks of large files, by digest. */
  readonly #blocks = new LRUCache<string, Buffer>({ maxSize: BLOCK_CACHE_BYTES, sizeCalculation: ({ length }) => length + 1 })
  /** Checksums that are being computed: whoever needs them meanwhile waits. */
  readonly #hashing = new Map<string, Promise<FileChecksums>>()
  /** Large files are read one after the other: many at a time would fill the memory. Main files do not wait for larger ones. */
  readonly #queueOf = createQueues<Disk>()
  readonly #largeQueueOf = createQueues<Disk>()
  /** One piece of one large file in each turn of the event loop, in the order of their asking: none holds up another. */
  readonly #pause = createTurnstile()
  #readCount = 0
  #reuseCount = 0
  #missCount = 0
  /** Answers with large files that are under way. */
  #largeReads = 0
  readonly #maxLargeReads = fitHeap(MAX_LARGE_READS)

  constructor (phase: PollPhase, maxBytes = CONTENT_CACHE_BYTES, hasRoom: RoomForFile = async () => true) {
    this.#phase = phase
    this.#hasRoom = hasRoom
    this.#contents = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: ({ content }) => content.bytes.length * WEIGHT_PER_BYTE + WEIGHT_PER_ENTRY
    })
  }

  /** Increases with each file that is read. A caller notes it at the start of its question, and passes it as `since`. */
  get readCount (): number {
    return this.#readCount
  }

  /** The memory for contents: bytes by weight, and how often a file was found there or read. */
  get usage (): CacheUsage {
    return { bytes: this.#contents.calculatedSize, hits: this.#reuseCount, misses: this.#missCount }
  }

  /**
   * A file, whole.
   * @param limit largest size in bytes
   * @param since `readCount` when the question was asked: a reading that began after that answers it
   * @param isKept whether it stays in memory; a reading of all files would leave no room for those that are asked for
   * @throws {RefusedError}
   * @throws {SkillError} `overloaded` when there is no room for the answer
   */
  async read (place: FilePlace, limit: number, since = Number.POSITIVE_INFINITY, isKept = true): Promise<ReadFile> {
    const known = await this.#known(place, since)
    if (known === undefined) return await this.#readNow(place, limit, isKept)
    if (known.content.bytes.length > limit) throw new RefusedError('too_large', undefined, BigInt(known.content.bytes.length))
    return known
  }

  /** A file of at most MAX_MAIN_FILE_BYTES that is in memory, if the disk says at once that it holds; else undefined. */
  contentAtOnce (place: FilePlace): FileContent | undefined {
    const { disk, filter } = place
    const stored = this.#contents.get(keyOf(place))
    if (stored?.isReusable !== true || stored.filter !== filter) return undefined
    if (!stored.observed.every(([path, state]) => isSameOrMissing(this.#phase.statAtOnce(disk, path), state))) return undefined
    this.#reuseCount++
    return stored.content
  }

  /** A file of any size: small ones whole, large ones open, up to MAX_SKILL_BYTES with the digest of what will be sent. */
  async open (place: FilePlace, since?: number): Promise<ServableFile> {
    const known = await this.#known(place, since)
    return known === undefined ? await this.#openNow(place) : { kind: 'content', content: known.content }
  }

  /** The same file, whose blocks are compared with those of its digest before they are given out. It is read once for each digest. */
  async withCheckedBlocks ({ file, digest, isUtf8 }: Extract<ServableFile, { kind: 'stream' }>): Promise<ServableFile> {
    try {
      if (digest === undefined) throw new RefusedError('too_many_bytes')
      let blocks = this.#blocks.get(digest)
      if (blocks === undefined) {
        const hashed = await digestBlocks(file, this.#pause)
        if (hashed.digest !== digest) throw changed('the file changed before its blocks were hashed')
        this.#blocks.set(digest, blocks = hashed.blocks)
      }
      return { kind: 'stream', digest, isUtf8, file: new CheckedFile(file, blocks) }
    } catch (error) {
      await file.close()
      throw error
    }
  }

  async #openNow (place: FilePlace): Promise<ServableFile> {
    const opening = await this.#open(place)
    const { file } = opening
    if (file.stats.size <= MAX_BUFFERED_FILE_BYTES) return { kind: 'content', content: (await this.#take(place, opening, MAX_MAIN_FILE_BYTES)).content }
    try {
      const { digest, isUtf8 } = file.stats.size > MAX_SKILL_BYTES ? { digest: undefined, isUtf8: false } : await this.#checksumsOf(file)
      return { kind: 'stream', file, digest, isUtf8 }
    } catch (error) {
      await file.close()
      throw error
    }
  }

  async #checksumsOf (file: OpenFile): Promise<FileChecksums> {
    return await this.checksums(file).catch(async (error: unknown) => {
      if (!(error instanceof RefusedError) || error.refusal !== 'changed') throw error
      return await file.checksums({ pause: this.#pause, mayGrow: true })
    })
  }

  /** Checksums of an open file; those of a large one are kept, since whoever streams it needs them each time. */
  async checksums (file: OpenFile, wanted: ChecksumOptions = {}): Promise<FileChecksums> {
    const options = { ...wanted, pause: this.#pause }
    const signature = signatureOf(file.stats)
    if (signature.size <= MAX_BUFFERED_FILE_BYTES || options.onBytes !== undefined) return await file.checksums(options)
    const id = stateId(signature)
    const known = this.#checksums.get(id)
    if (known !== undefined) return known
    // A file as young as this may have other bytes when it is hashed for somebody else.
    if (!isTrustworthy(signature, Date.now())) return await file.checksums(options)
    return await (this.#hashing.get(id) ?? this.#hash(id, file, options))
  }

  #hash (id: string, file: OpenFile, options: ChecksumOptions): Promise<FileChecksums> {
    const hashing = file.checksums(options).then((checksums) => {
      this.#checksums.set(id, checksums)
      return checksums
    }).finally(() => { this.#hashing.delete(id) })
    this.#hashing.set(id, hashing)
    return hashing
  }

  async #known (place: FilePlace, since = Number.POSITIVE_INFINITY): Promise<StoredFile | undefined> {
    const { disk, filter } = place
    const stored = this.#contents.get(keyOf(place))
    if (stored === undefined || stored.filter !== filter) return undefined
    if (stored.begunAt > since) return stored
    if (!stored.isReusable) return undefined
    for (const [path, state] of stored.observed) if (!isSameOrMissing(await this.#phase.stat(disk, path), state)) return undefined
    this.#reuseCount++
    return stored
  }

  async #readNow (place: FilePlace, limit: number, isKept: boolean): Promise<ReadFile> {
    const opening = await this.#open(place)
    const { size } = opening.file.stats
    if (size <= MAX_BUFFERED_FILE_BYTES) return await this.#take(place, opening, limit, isKept)
    // Closed while it waits: a thousand others may wait with it.
    await opening.file.close()
    if (size > limit) throw new RefusedError('too_large', undefined, size)
    const read = async () => await this.#take(place, await this.#open(place), limit, isKept)
    if (size <= MAX_MAIN_FILE_BYTES) return await this.#queueOf(place.disk)(read)
    const enter = this.#largeQueueOf(place.disk)
    // What is read for a check is no answer.
    return await (isKept ? this.#readForAnswer(Number(size), enter, read) : enter(read))
  }

  /** Refuses what would wait behind many others, or find no room for its answer. */
  async #readForAnswer (size: number, enter: Queue, read: () => Promise<ReadFile>): Promise<ReadFile> {
    if (this.#largeReads >= this.#maxLargeReads) throw overloadError.full()
    const since = performance.now()
    this.#largeReads++
    try {
      return await enter(async () => {
        if (!await this.#hasRoom(ANSWER_BYTES_PER_BYTE * size, since)) throw overloadError.full()
        return await read()
      })
    } finally {
      this.#largeReads--
    }
  }

  async #open ({ disk, folder, path, filter }: FilePlace): Promise<Opening> {
    const [openedAt, begunAt] = [Date.now(), ++this.#readCount]
    const folders: Array<readonly [string, Signature]> = []
    for (let end = -1; ;) {
      const below = pathBelow(folder, end === -1 ? '' : path.slice(0, end))
      const state = await this.#phase.statNow(disk, below)
      if (state === undefined) break
      folders.push([below, state])
      end = path.indexOf('/', end + 1)
      if (end === -1) break
    }
    return { openedAt, begunAt, folders, file: await openInside(disk, folder, path, filter) }
  }

  /** Reads an opened file, closes it, and keeps what may be kept. */
  async #take (place: FilePlace, { openedAt, begunAt, folders, file }: Opening, limit: number, isKept = true): Promise<ReadFile> {
    try {
      const { bytes, signature } = await file.readAll(limit)
      this.#missCount++
      // The file first: it changes more often than what leads to it.
      const observed = [[pathBelow(place.folder, place.path), signature] as const, ...folders]
      // Behind a link the path says nothing about the folders that lead to the file.
      const isDirect = file.realPath === place.path && folders.length === place.path.split('/').length
      const read = { content: new FileContent(bytes), signature }
      if (isKept && bytes.length <= MAX_MAIN_FILE_BYTES) {
        this.#contents.set(keyOf(place), {
          ...read,
          observed,
          isReusable: isDirect && observed.every(([, state]) => isTrustworthy(state, openedAt)),
          filter: place.filter,
          begunAt
        })
      }
      return read
    } finally {
      await file.close()
    }
  }
}

/** An open file, the folders that led to it, and when its reading began: by the wall clock in milliseconds, and by `readCount`. */
interface Opening {
  readonly openedAt: number
  readonly begunAt: number
  readonly folders: ReadonlyArray<readonly [path: string, state: Signature]>
  readonly file: OpenFile
}

function keyOf ({ folder, path }: FilePlace): string {
  return `${folder}\0${path}`
}
