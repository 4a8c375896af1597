import type { Dirent } from 'node:fs'
import { LRUCache } from 'lru-cache'
import type { SkillFolder } from '../catalog/scan-root.ts'
import { sha256 } from '../digest.ts'
import type { Disk } from '../disk/disk.ts'
import { areTrustworthy, fingerprintOf, holds, latestChange, type Observed, PackedObserved, pathBelow, signatureAt, statOf } from '../disk/observed.ts'
import { asRefused, changed, RefusedError } from '../disk/refused.ts'
import { isSameState, isTrustworthy, signatureOf } from '../disk/signature.ts'
import { entriesOf, foldersInside, observeAll, startWalk, type Walk } from '../disk/walk.ts'
import { FileContent } from '../files/file-content.ts'
import type { FilePlace, FileStore } from '../files/file-store.ts'
import type { Checksums, OpenFile } from '../files/open-file.ts'
import { openInside } from '../files/open-inside.ts'
import { MANIFEST_CACHE_BYTES, MAX_BUFFERED_FILE_BYTES } from '../limits.ts'
import type { Signature } from '../skill.ts'
import { compareCodePoints } from '../text.ts'
import type { CollectedContents, KeptRevisions } from './kept-revisions.ts'
import { mediaType } from './media-type.ts'

export interface ManifestFile {
  /** Relative to the skill's folder, `/` between segments. */
  readonly path: string
  readonly size_bytes: number
  readonly media_type: string
  /** `sha256:<hex>` of the bytes. */
  readonly digest: string
}

/** All files of a skill in one state. */
export interface Manifest {
  readonly skill_name: string
  /** `sha256:<hex>` over paths and digests: the same content has the same revision everywhere. */
  readonly revision: string
  readonly files: readonly ManifestFile[]
}

/** A manifest, and what it was made from. */
export interface Snapshot {
  readonly manifest: Manifest
  /** Of each file of the manifest, in its order. */
  readonly crc32s: Uint32Array
  readonly observed: Observed
}

/** A skill as the change feed compares it. */
export interface Inspected {
  /** That of its manifest; undefined when its folder may not be read. */
  readonly revision: string | undefined
  /** Stands for all states that the revision was made from; undefined while one of them is too young to be trusted. */
  readonly fingerprint: string | undefined
  /** Latest `ctime` of them, in milliseconds. */
  readonly changedAt: number
}

export interface Inspection {
  readonly state: Inspected
  /** Real paths of the folders below the skill's own, hidden ones left out. */
  readonly inside: readonly string[]
}

interface CachedSnapshot extends Snapshot {
  readonly observed: PackedObserved
  /** Wall clock when the reading began, in milliseconds. */
  readonly readAt: number
  /** False while a state is too young to be trusted: then the snapshot only spares unchanged files from being read again. */
  readonly isTrustworthy: boolean
}

/** Files whose bytes are known while they are in that state. */
type KnownFiles = ReadonlyMap<string, { readonly state: Signature, readonly checksums: Checksums }>

interface ListedFile {
  readonly file: ManifestFile
  readonly crc32: number
}

/** A file of a skill as it was read. */
interface Described {
  readonly state: Signature
  readonly checksums: Checksums
  readonly content: FileContent | undefined
}

/** Measured: a file with its digest and state, and the constant part of each skill. Paths come on top. */
const WEIGHT_PER_ENTRY = 256
const WEIGHT_PER_SNAPSHOT = 1_024

const UNREADABLE: Inspection = { state: { revision: undefined, fingerprint: 'unreadable', changedAt: 0 }, inside: [] }

/**
 * Makes manifests, and keeps them with the states of everything that they were made from. Consumers: every answer with a
 * revision. Without it each of them hashes all files of the skill (measured: 10 ms for ten files, 2 s for 3 GB).
 */
export class ManifestStore {
  readonly #store: FileStore
  readonly #kept: KeptRevisions
  readonly #cache = new LRUCache<string, CachedSnapshot>({ maxSize: MANIFEST_CACHE_BYTES, sizeCalculation: weightOf })
  /** Snapshots that are being made, by the same keys. Never rejected. */
  readonly #making = new Map<string, Promise<unknown>>()
  readonly #closing = new AbortController()

  constructor ({ store, kept }: { readonly store: FileStore, readonly kept: KeptRevisions }) {
    this.#store = store
    this.#kept = kept
  }

  /** Ends what is being read: it fails with `io_error`. */
  close (): void {
    this.#closing.abort(new RefusedError('io_error', new Error('the service is closing')))
  }

  /**
   * The manifest of a skill as its files are now.
   * @param since `readCount` of the store when the question was asked
   * @throws {RefusedError} `not_found` when the folder went away, `changed` when a file changed meanwhile
   */
  async get (disk: Disk, folder: SkillFolder, since: number): Promise<Snapshot> {
    const key = keyOf(folder)
    for (;;) {
      const cached = this.#cache.get(key)
      if (cached?.isTrustworthy === true && await holds(statOf(disk), folder.realPath, cached.observed)) {
        this.#kept.renew(folder.name, cached.manifest.revision)
        return cached
      }
      const making = this.#making.get(key)
      if (making === undefined) return await this.#makeAlone(key, this.#make(disk, folder, cached, since))
      // It began before this call and may be out of date; but it leaves little to be hashed.
      await making
    }
  }

  /**
   * What the change feed compares. Kept in no cache: an inspection of all skills would leave no room for those that are
   * asked for.
   * @param known the inspection before: its state comes back as it is when nothing was touched since, and no file is read
   * @throws {RefusedError} as `get`, but for a folder that may not be read
   */
  async inspect (disk: Disk, folder: SkillFolder, known?: Inspected): Promise<Inspection> {
    const { realPath } = folder
    try {
      if (known?.fingerprint !== undefined) {
        const walk = await observeAll(disk, realPath, this.#closing.signal)
        if (fingerprintOf(walk.observed) === known.fingerprint) return { state: known, inside: foldersInside(walk) }
      }
      const cached = this.#cache.peek(keyOf(folder))
      const { files, walk, isTrustworthy } = await this.#read(disk, realPath, { known: cached && knownFiles(cached) })
      const state = { revision: revisionOf(files), fingerprint: isTrustworthy ? fingerprintOf(walk.observed) : undefined, changedAt: latestChange(walk.observed) }
      return { state, inside: foldersInside(walk) }
    } catch (error) {
      if (error instanceof RefusedError && error.refusal === 'permission_denied') return UNREADABLE
      throw error
    }
  }

  async #makeAlone (key: string, snapshot: Promise<Snapshot>): Promise<Snapshot> {
    this.#making.set(key, snapshot.catch(() => {}))
    try {
      return await snapshot
    } finally {
      this.#making.delete(key)
    }
  }

  async #make (disk: Disk, folder: SkillFolder, cached: CachedSnapshot | undefined, since: number): Promise<Snapshot> {
    const contents = this.#kept.collect(folder, cached?.manifest)
    const { files, walk, readAt, isTrustworthy } = await this.#read(disk, folder.realPath, { known: cached && knownFiles(cached), contents, since })
    const snapshot = {
      manifest: { skill_name: folder.name, revision: revisionOf(files), files: files.map(({ file }) => file) },
      crc32s: Uint32Array.from(files, ({ crc32 }) => crc32),
      observed: new PackedObserved(walk.observed),
      readAt,
      isTrustworthy
    }
    this.#cache.set(keyOf(folder), snapshot)
    this.#kept.keep(folder, snapshot, contents)
    return snapshot
  }

  /** All files of a skill, in one state. */
  async #read (disk: Disk, base: string, { known, contents, since }: ReadOptions): Promise<{
    readonly files: readonly ListedFile[], readonly walk: Walk, readonly readAt: number, readonly isTrustworthy: boolean
  }> {
    const readAt = Date.now()
    const walk = startWalk(base, this.#closing.signal)
    const files: ListedFile[] = []
    for await (const { path, entry } of entriesOf(disk, walk)) {
      const described = await this.#describe(disk, walk, { path, entry, known: known?.get(path), contents, since })
      if (described === undefined) continue
      const { state, checksums: { digest, crc32 }, content } = described
      walk.observed.set(path, state)
      if (content !== undefined) contents?.add(content)
      files.push({ file: { path, size_bytes: Number(state.size), media_type: mediaType(path), digest }, crc32 })
    }
    // Nothing moved between the first state and the last: all of them are one state of the skill.
    if (!await holds(statOf(disk), base, walk.observed)) throw changed('the skill changed while it was listed')
    files.sort((a, b) => compareCodePoints(a.file.path, b.file.path))
    return { files, walk, readAt, isTrustworthy: areTrustworthy(walk.observed, readAt) }
  }

  /** Undefined for what is not served: links that leave, links to folders, FIFOs, devices, what may not be read. */
  async #describe (disk: Disk, { base, observed, signal }: Walk, { path, entry, known, contents, since }: DescribeOptions): Promise<Described | undefined> {
    try {
      if (known !== undefined && entry.isFile() && contents?.lacks(known.checksums.digest) !== true) {
        const stats = await disk.lstat(pathBelow(base, path))
        const state = stats?.isFile() ? signatureOf(stats) : undefined
        if (state !== undefined && isSameState(state, known.state)) return { state, checksums: known.checksums, content: undefined }
      }
      return await this.#readFile({ disk, folder: base, path }, contents, since)
    } catch (error) {
      signal?.throwIfAborted()
      const refused = asRefused(error)
      if (refused.refusal === 'io_error' || refused.refusal === 'changed') throw refused
      // A regular file has nothing else that is wrong with it: it, or a folder above, was replaced since it was listed.
      if (entry.isFile() && refused.refusal !== 'permission_denied') throw changed('a file was replaced while its skill was listed')
      // It may be served one day without a change to its folder: a permission given, a link's target made.
      observed.set(path, await signatureAt(disk, pathBelow(base, path)))
      return undefined
    }
  }

  /** Small files through the store, so that an answer that needs their bytes next finds them in memory; large ones in pieces. */
  async #readFile (place: FilePlace, contents: CollectedContents | undefined, since: number | undefined): Promise<Described> {
    const { signal } = this.#closing
    const { disk, folder, path } = place
    const stats = await disk.stat(pathBelow(folder, path))
    if (stats !== undefined && stats.size <= MAX_BUFFERED_FILE_BYTES) {
      const { content, signature } = await this.#store.read(place, MAX_BUFFERED_FILE_BYTES, since)
      signal.throwIfAborted()
      return { state: signature, checksums: content, content }
    }
    const file = await openInside(disk, folder, path)
    try {
      return await this.#hash(file, signal, contents)
    } finally {
      await file.close()
    }
  }

  async #hash (file: OpenFile, signal: AbortSignal, contents: CollectedContents | undefined): Promise<Described> {
    const state = signatureOf(file.stats)
    if (contents?.hasRoomFor(state.size) !== true) return { state, checksums: await this.#store.checksums(file, { signal }), content: undefined }
    const pieces: Buffer[] = []
    const checksums = await this.#store.checksums(file, { signal, onBytes: (bytes) => { pieces.push(Buffer.from(bytes)) } })
    return { state, checksums, content: new FileContent(Buffer.concat(pieces), checksums.digest) }
  }
}

interface ReadOptions {
  readonly known: KnownFiles | undefined
  readonly contents?: CollectedContents | undefined
  readonly since?: number | undefined
}

interface DescribeOptions {
  readonly path: string
  readonly entry: Dirent
  readonly known: ReturnType<KnownFiles['get']>
  readonly contents: CollectedContents | undefined
  readonly since: number | undefined
}

/** Two skills may be one folder (a link beside it): each manifest has its own name in it. */
function keyOf ({ name, realPath }: SkillFolder): string {
  return `${realPath}\n${name}`
}

function knownFiles ({ manifest: { files }, crc32s, observed, readAt }: CachedSnapshot): KnownFiles {
  const states = new Map(observed)
  const known = new Map<string, { readonly state: Signature, readonly checksums: Checksums }>()
  for (const [index, { path, digest }] of files.entries()) {
    const state = states.get(path)
    if (state !== undefined && isTrustworthy(state, readAt)) known.set(path, { state, checksums: { digest, crc32: crc32s[index] ?? 0 } })
  }
  return known
}

function weightOf ({ observed }: CachedSnapshot): number {
  let weight = WEIGHT_PER_SNAPSHOT
  for (const path of observed.paths) weight += WEIGHT_PER_ENTRY + 2 * path.length
  return weight
}

/** NUL ends each entry: it is the one character that no path holds, so two lists never look alike. */
function revisionOf (files: readonly ListedFile[]): string {
  return sha256(files.map(({ file: { path, digest } }) => `${digest} ${path}\0`).join(''))
}
