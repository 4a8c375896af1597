import type { Dirent } from 'node:fs'
import { LRUCache } from 'lru-cache'
import type { IndexedSkill } from '../catalog/catalog.ts'
import type { ContentStore } from './file-store.ts'
import type { Disk } from '../disk/disk.ts'
import { sha256 } from '../digest.ts'
import { MANIFEST_CACHE_BYTES, MAX_AWAITED_BYTES, MAX_AWAITED_FILES, MAX_AWAITED_LOOKS, MAX_KNOWN_REVISIONS } from '../limits.ts'
import { mediaType } from './media-type.ts'
import { isAllSettled, isUnchanged, latestChange, PackedSeen, placeOf, printOf, type Seen, signatureAt } from '../disk/observed.ts'
import { isSameState, isSettled, signatureOf } from '../disk/signature.ts'
import { asRefused, type Checksums, openInside, RefusedError } from '../disk/open-inside.ts'
import { entriesOf, insideOf, lookThrough, startWalk, type Walk } from '../disk/walk.ts'
import type { Signature } from '../skill.ts'
import { compareCodePoints } from '../text.ts'

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

/** A skill as the change feed compares it. */
export interface SkillState {
  /** That of its manifest; undefined when its folder may not be read. */
  readonly revision: string | undefined
  /**
   * Stands for the signatures of everything that the revision was made from; undefined while one of them is too young to be
   * trusted.
   */
  readonly print: string | undefined
  /** Latest `ctime` among them, in milliseconds. */
  readonly changedAt: number
}

export interface Inspection {
  readonly state: SkillState
  /** Real paths of the folders below the skill's own, hidden ones left out. */
  readonly inside: readonly string[]
}

/** A manifest, and what it was made from. */
export interface Snapshot {
  readonly manifest: Manifest
  /** Of each file of the manifest, in its order. */
  readonly crc32s: Uint32Array
  readonly seen: Seen
}

interface CachedSnapshot extends Snapshot {
  readonly seen: PackedSeen
  /** Wall clock, milliseconds. */
  readonly seenAt: number
  /** False while a state is too young to be trusted: then it only spares the others from being read again. */
  readonly settled: boolean
}

/** Files whose bytes are known as long as they are in that state. */
type KnownFiles = ReadonlyMap<string, { readonly state: Signature, readonly checksums: Checksums }>

interface ReadFile {
  readonly file: ManifestFile
  readonly crc32: number
}

/** Measured: a file with its digest and state, and what there is once for each skill. Paths come on top. */
const WEIGHT_PER_ENTRY = 256
const WEIGHT_PER_SNAPSHOT = 1_024

const MAX_ATTEMPTS = 4

const UNREADABLE: Inspection = { state: { revision: undefined, print: 'unreadable', changedAt: 0 }, inside: [] }

/** Makes manifests, and keeps them with the signatures of everything that they were made from. */
export class ManifestStore {
  readonly #contents: ContentStore
  readonly #cache = new LRUCache<string, CachedSnapshot>({ maxSize: MANIFEST_CACHE_BYTES, sizeCalculation: weightOf })

  /** By the same keys: the last revision that was seen, until something is heard of the skill. */
  readonly #revisions = new LRUCache<string, string>({ max: MAX_KNOWN_REVISIONS })

  /** Snapshots that are being made, by the same keys. Never rejected. */
  readonly #making = new Map<string, Promise<unknown>>()
  readonly #closing = new AbortController()

  constructor (contents: ContentStore) {
    this.#contents = contents
  }

  /** Ends what is being read: it fails with `io_error`. */
  close (): void {
    this.#closing.abort(new RefusedError('io_error', new Error('the service is closing')))
  }

  /** The revision that the last manifest had, without a look at the disk; undefined when it is not known, or in doubt. */
  lastRevision (skill: IndexedSkill): string | undefined {
    return this.#revisions.get(keyOf(skill))
  }

  /** The last manifest, without a look at the disk; undefined when it is no longer kept, or in doubt. */
  last (skill: IndexedSkill): Manifest | undefined {
    const manifest = this.#cache.get(keyOf(skill))?.manifest
    return manifest?.revision === this.lastRevision(skill) ? manifest : undefined
  }

  /** Something may have changed in a skill, or in all of them. */
  doubt (skill?: IndexedSkill): void {
    if (skill === undefined) this.#revisions.clear()
    else this.#revisions.delete(keyOf(skill))
  }

  /** @throws {RefusedError} `not_found` when the folder went away, `io_error` when it never holds still */
  async get (disk: Disk, skill: IndexedSkill): Promise<Snapshot> {
    const key = keyOf(skill)
    for (;;) {
      const cached = this.#cache.get(key)
      if (cached?.settled === true && await isUnchanged(disk, skill.folder.realPath, cached.seen)) {
        this.#revisions.set(key, cached.manifest.revision)
        return cached
      }
      const making = this.#making.get(key)
      if (making === undefined) return await this.#makeAlone(key, this.#make(disk, skill, cached))
      // It was begun before this call, so it may be out of date. But then little is left to be hashed.
      await making
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

  async #make (disk: Disk, skill: IndexedSkill, cached: CachedSnapshot | undefined): Promise<Snapshot> {
    const { name, realPath } = skill.folder
    const { files, walk, seenAt, settled } = await this.#read(disk, realPath, cached && knownFiles(cached))
    const snapshot = {
      manifest: { skill_name: name, revision: revisionOf(files), files: files.map(({ file }) => file) },
      crc32s: Uint32Array.from(files, ({ crc32 }) => crc32),
      seen: new PackedSeen(walk.seen),
      seenAt,
      settled
    }
    this.#cache.set(keyOf(skill), snapshot)
    this.#revisions.set(keyOf(skill), snapshot.manifest.revision)
    return snapshot
  }

  /**
   * Whether `get` would have little to do: see MAX_AWAITED_FILES. Opens nothing.
   * @throws {RefusedError} as `get`
   */
  async isCheap (disk: Disk, skill: IndexedSkill): Promise<boolean> {
    const { realPath } = skill.folder
    const cached = this.#cache.peek(keyOf(skill))
    if (cached !== undefined && cached.seen.paths.length > MAX_AWAITED_LOOKS) return false
    const known = cached && knownFiles(cached)
    const walk = startWalk(realPath)
    let files = 0
    let bytes = 0n
    for await (const { path, entry } of entriesOf(disk, walk)) {
      const state = await signatureAt(disk, placeOf(realPath, path))
      walk.seen.set(path, state)
      const before = entry.isFile() ? known?.get(path)?.state : undefined
      if (state !== undefined && !(before && isSameState(state, before)) && !this.#contents.hasChecksums(state)) {
        files++
        bytes += state.size
      }
      if (walk.seen.size > MAX_AWAITED_LOOKS || files > MAX_AWAITED_FILES || bytes > MAX_AWAITED_BYTES) return false
    }
    return true
  }

  /**
   * The state of a skill, kept in no cache: whoever inspects all of them would leave no room for those that are asked for.
   * @param known what it was: comes back as it is when nothing was touched since, and then no file is read
   * @throws {RefusedError} as `get`, but for a folder that may not be read
   */
  async inspect (disk: Disk, skill: IndexedSkill, known?: SkillState): Promise<Inspection> {
    const { realPath } = skill.folder
    try {
      if (known?.print !== undefined) {
        const walk = await lookThrough(disk, realPath)
        if (printOf(walk.seen) === known.print) return { state: known, inside: insideOf(walk) }
      }
      const cached = this.#cache.peek(keyOf(skill))
      const { files, walk, settled } = await this.#read(disk, realPath, cached && knownFiles(cached))
      const state = { revision: revisionOf(files), print: settled ? printOf(walk.seen) : undefined, changedAt: latestChange(walk.seen) }
      return { state, inside: insideOf(walk) }
    } catch (error) {
      if (error instanceof RefusedError && error.refusal === 'permission_denied') return UNREADABLE
      throw error
    }
  }

  /**
   * Names the state of everything that a manifest of the skill is made from, for the price of a look at each file and
   * without memory of them: while two stamps are equal, so are the manifests that were made after them. Undefined while
   * something is too young to tell.
   * @throws {RefusedError} `not_found` when the folder went away
   */
  async stamp (disk: Disk, skill: IndexedSkill): Promise<string | undefined> {
    const { realPath } = skill.folder
    const cached = this.#cache.peek(keyOf(skill))
    if (cached?.settled === true && await isUnchanged(disk, realPath, cached.seen)) return cached.seen.print
    const seenAt = Date.now()
    const { seen } = await lookThrough(disk, realPath)
    return isAllSettled(seen, seenAt) ? printOf(seen) : undefined
  }

  /** All files of a skill, in one state. */
  async #read (
    disk: Disk, base: string, known?: KnownFiles
  ): Promise<{ readonly files: readonly ReadFile[], readonly walk: Walk, readonly seenAt: number, readonly settled: boolean }> {
    for (let attempt = 1; ; attempt++) {
      const seenAt = Date.now()
      const walk = startWalk(base, this.#closing.signal)
      try {
        const files: ReadFile[] = []
        for await (const { path, entry } of entriesOf(disk, walk)) {
          const file = await this.#describe(disk, walk, path, entry, known?.get(path))
          if (file !== undefined) files.push(file)
        }
        // Nothing moved between the first look and the last: all of it is one state.
        if (!await isUnchanged(disk, base, walk.seen)) throw new RefusedError('io_error', new Error('the skill changed while it was listed'))
        files.sort((a, b) => compareCodePoints(a.file.path, b.file.path))
        return { files, walk, seenAt, settled: isAllSettled(walk.seen, seenAt) }
      } catch (error) {
        if (attempt === MAX_ATTEMPTS || this.#closing.signal.aborted || !(error instanceof RefusedError) || error.refusal !== 'io_error') throw error
      }
    }
  }

  /** Undefined for what is not served: links that leave, links to folders, FIFOs, devices, what may not be read. */
  async #describe (
    disk: Disk, { base, seen, signal }: Walk, path: string, entry: Dirent, known: ReturnType<KnownFiles['get']>
  ): Promise<ReadFile | undefined> {
    const place = placeOf(base, path)
    const described = (state: Signature, { digest, crc32 }: Checksums): ReadFile => {
      seen.set(path, state)
      return { file: { path, size_bytes: Number(state.size), media_type: mediaType(path), digest }, crc32 }
    }
    try {
      if (known !== undefined && entry.isFile()) {
        const stats = await disk.lstat(place)
        const now = stats?.isFile() ? signatureOf(stats) : undefined
        if (now !== undefined && isSameState(now, known.state)) return described(now, known.checksums)
      }
      const file = await openInside(disk, base, path)
      try {
        return described(signatureOf(file.stats), await this.#contents.checksums(file, signal))
      } finally {
        await file.close()
      }
    } catch (error) {
      signal?.throwIfAborted()
      const refused = asRefused(error)
      if (refused.refusal === 'io_error') throw refused
      // A regular file has nothing else that is wrong with it: it, or a folder above, was exchanged since it was listed.
      if (entry.isFile() && refused.refusal !== 'permission_denied') throw new RefusedError('io_error', refused)
      // It may be served one day without a change to its folder: a permission given, a link's target made.
      seen.set(path, await signatureAt(disk, place))
      return undefined
    }
  }
}

/** Two skills may be one folder (a link beside it): each manifest has its own name in it. */
function keyOf ({ folder: { name, realPath } }: IndexedSkill): string {
  return `${realPath}\n${name}`
}

function knownFiles ({ manifest: { files }, crc32s, seen, seenAt }: CachedSnapshot): KnownFiles {
  const states = new Map(seen)
  const known = new Map<string, { readonly state: Signature, readonly checksums: Checksums }>()
  for (const [index, { path, digest }] of files.entries()) {
    const state = states.get(path)
    if (state !== undefined && isSettled(state, seenAt)) known.set(path, { state, checksums: { digest, crc32: crc32s[index] ?? 0 } })
  }
  return known
}

function weightOf ({ seen }: CachedSnapshot): number {
  let weight = WEIGHT_PER_SNAPSHOT
  for (const path of seen.paths) weight += WEIGHT_PER_ENTRY + 2 * path.length
  return weight
}

/** NUL ends each entry: it is the one character that no path holds, so two lists never look alike. */
function revisionOf (files: readonly ReadFile[]): string {
  return sha256(files.map(({ file: { path, digest } }) => `${digest} ${path}\0`).join(''))
}
