import { LRUCache } from 'lru-cache'
import { createQueue, type Queue } from '../async.ts'
import type { IndexedSkill } from '../catalog/catalog.ts'
import type { Disk } from '../disk/disk.ts'
import { FileContent } from './file-content.ts'
import { CONTENT_CACHE_BYTES, MAX_BUFFERED_FILE_BYTES, MAX_CACHED_DIGESTS, MAX_MAIN_FILE_BYTES } from '../limits.ts'
import type { PhaseStats } from '../disk/poll-phase.ts'
import { isSameState, isSettled, signatureOf, stateId } from '../disk/signature.ts'
import { openInside, RefusedError, type Checksums, type OpenFile } from '../disk/open-inside.ts'
import type { Signature } from '../skill.ts'

/** A file as it can be sent: in memory, or open and to be streamed by the one who asked, who must close it. */
export type ServableFile =
  | { readonly kind: 'content', readonly content: FileContent }
  | { readonly kind: 'stream', readonly file: OpenFile, readonly digest: string, readonly revision?: string }

interface CachedContent {
  readonly content: FileContent
  readonly signature: Signature
  /** State of the skill folder and of each folder on the way: while they are the same, the path leads to the same file. */
  readonly folders: ReadonlyArray<Signature>
}

/** An open file, and what was seen on the way to it. */
interface Found extends Pick<CachedContent, 'folders'> {
  readonly seenAt: number
  readonly file: OpenFile
}

/** Bytes, their text, and what the doors hang on it: escaped once for JSON, once more inside a tool message. */
const WEIGHT_PER_BYTE = 6
const WEIGHT_PER_ENTRY = 2_048

/**
 * File contents in memory, bounded by weight. An entry is served only after its signatures, and those of the
 * folders that lead to it, were found unchanged on the disk.
 */
export class ContentStore {
  readonly #stats: PhaseStats
  readonly #contents: LRUCache<string, CachedContent>
  /** Of large files, by identity: the same inode in the same state has the same bytes. */
  readonly #checksums = new LRUCache<string, Checksums>({ max: MAX_CACHED_DIGESTS })
  /** The same while they are being worked out: whoever needs them meanwhile waits for the one who reads. */
  readonly #hashing = new Map<string, Promise<Checksums>>()

  /** Large files are read one after the other: many at a time would fill the memory, and be ready in one turn of the event loop. */
  readonly #queues = new WeakMap<Disk, Queue>()

  constructor (stats: PhaseStats, maxBytes = CONTENT_CACHE_BYTES) {
    this.#stats = stats
    this.#contents = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: ({ content }) => content.bytes.length * WEIGHT_PER_BYTE + WEIGHT_PER_ENTRY
    })
  }

  /**
   * A file of a skill, whole.
   * @param path relative, lexically inside (`parseRelativePath`)
   * @param limit largest size in bytes
   * @throws {RefusedError}
   */
  async read (disk: Disk, skill: IndexedSkill, path: string, limit: number): Promise<FileContent> {
    const cached = await this.#cached(disk, skill, path)
    if (cached === undefined) return await this.#load(disk, skill, path, limit)
    if (cached.bytes.length > limit) throw new RefusedError('too_large', undefined, BigInt(cached.bytes.length))
    return cached
  }

  /** A file of any size: small ones whole, large ones open, with the digest of what will be sent. */
  async open (disk: Disk, skill: IndexedSkill, path: string): Promise<ServableFile> {
    const cached = await this.#cached(disk, skill, path)
    if (cached !== undefined) return { kind: 'content', content: cached }
    const file = await openInside(disk, skill.folder.realPath, path)
    if (file.stats.size <= MAX_BUFFERED_FILE_BYTES) {
      await file.close()
      return { kind: 'content', content: await this.#load(disk, skill, path, MAX_MAIN_FILE_BYTES) }
    }
    try {
      return { kind: 'stream', file, digest: (await this.checksums(file)).digest }
    } catch (error) {
      await file.close()
      throw error
    }
  }

  /** The same content, known from now on to belong to this revision of its skill. */
  pin (skill: IndexedSkill, path: string, content: FileContent, revision: string | undefined): FileContent {
    const pinned = content.inRevision(revision)
    const entry = this.#contents.peek(key(skill, path))
    if (entry?.content === content) this.#contents.set(key(skill, path), { ...entry, content: pinned })
    return pinned
  }

  /** Of an open file. Those of a large one are kept: whoever streams it needs them each time. */
  async checksums (file: OpenFile, signal?: AbortSignal): Promise<Checksums> {
    const signature = signatureOf(file.stats)
    if (signature.size <= MAX_BUFFERED_FILE_BYTES) return await file.checksums(signal)
    const id = stateId(signature)
    const known = this.#checksums.get(id)
    if (known !== undefined) return known
    // One as young as this may be another when it is hashed for somebody else.
    if (!isSettled(signature, Date.now())) return await file.checksums(signal)
    return await (this.#hashing.get(id) ?? this.#hash(id, file, signal))
  }

  /** Whether a file in this state is large and its checksums are known. */
  hasChecksums (state: Signature): boolean {
    return state.size > MAX_BUFFERED_FILE_BYTES && this.#checksums.has(stateId(state))
  }

  #hash (id: string, file: OpenFile, signal: AbortSignal | undefined): Promise<Checksums> {
    const hashing = file.checksums(signal).then((checksums) => {
      this.#checksums.set(id, checksums)
      return checksums
    }).finally(() => { this.#hashing.delete(id) })
    this.#hashing.set(id, hashing)
    return hashing
  }

  async #cached (disk: Disk, skill: IndexedSkill, path: string): Promise<FileContent | undefined> {
    const entry = this.#contents.get(key(skill, path))
    if (entry === undefined) return undefined
    const [skillFolder, ...folders] = entry.folders
    if (skillFolder === undefined || !isSameState(skillFolder, skill.folderSignature)) return undefined
    const base = skill.folder.realPath
    let end = -1
    for (const folder of folders) {
      end = path.indexOf('/', end + 1)
      const now = await this.#stats.stat(disk, `${base}/${path.slice(0, end)}`)
      if (now === undefined || !isSameState(now, folder)) return undefined
    }
    const now = await this.#stats.stat(disk, `${base}/${path}`)
    return now !== undefined && isSameState(now, entry.signature) ? entry.content : undefined
  }

  async #load (disk: Disk, skill: IndexedSkill, path: string, limit: number): Promise<FileContent> {
    const found = await this.#find(disk, skill, path)
    if (found.file.stats.size <= MAX_BUFFERED_FILE_BYTES) return await this.#take(found, skill, path, limit)
    // Not kept open while it waits: a thousand others may wait with it.
    await found.file.close()
    return await this.#queueOf(disk)(async () => await this.#take(await this.#find(disk, skill, path), skill, path, limit))
  }

  async #find (disk: Disk, skill: IndexedSkill, path: string): Promise<Found> {
    const seenAt = Date.now()
    const folders = [skill.folderSignature]
    for (let end = path.indexOf('/'); end !== -1; end = path.indexOf('/', end + 1)) {
      const folder = await this.#stats.look(disk, `${skill.folder.realPath}/${path.slice(0, end)}`)
      if (folder === undefined) break
      folders.push(folder)
    }
    return { seenAt, folders, file: await openInside(disk, skill.folder.realPath, path) }
  }

  /** Reads what was found, closes it, and keeps what may be kept. */
  async #take ({ seenAt, folders, file }: Found, skill: IndexedSkill, path: string, limit: number): Promise<FileContent> {
    try {
      const { bytes, signature } = await file.readAll(limit)
      const content = new FileContent(bytes, file.stats.mtime)
      // Behind a link the path says nothing about the folders that lead to the file.
      const known = file.realPath === path && folders.length === path.split('/').length
      const cacheable = known && bytes.length <= MAX_MAIN_FILE_BYTES
      if (cacheable && [signature, ...folders].every((each) => isSettled(each, seenAt))) {
        this.#contents.set(key(skill, path), { content, signature, folders })
      }
      return content
    } finally {
      await file.close()
    }
  }

  #queueOf (disk: Disk): Queue {
    let queue = this.#queues.get(disk)
    if (queue === undefined) this.#queues.set(disk, queue = createQueue())
    return queue
  }
}

function key ({ folder }: IndexedSkill, path: string): string {
  return `${folder.realPath}\n${path}`
}
