import { LRUCache } from 'lru-cache'
import { createQueue } from '../shared/async.ts'
import type { IndexedSkill } from '../catalog/catalog.ts'
import { sha256 } from '../shared/digest.ts'
import type { Disk } from '../disk/disk.ts'
import { areTrustworthy, fingerprintOf, holds, latestChange, type Observed, PackedObserved, statOf } from '../disk/observed.ts'
import { pathBelow } from '../disk/paths.ts'
import { RefusedError } from '../disk/refused.ts'
import { isTrustworthy } from '../disk/signature.ts'
import { foldersInside, type Walk, walkSkill } from '../disk/walk.ts'
import type { SkillExcess } from '../shared/errors.ts'
import { type FileKind, isTextKind } from '../files/file-kind.ts'
import type { FileStore } from '../files/file-store.ts'
import { EXCESS_CACHE_BYTES, MANIFEST_CACHE_BYTES } from '../shared/limits.ts'
import { Signal } from '../shared/signal.ts'
import type { Finding, Manifest, ManifestFile } from '../shared/skill.ts'
import { contentFindings, leftOutFindings } from './file-findings.ts'
import type { KeptRevisions } from './kept/kept-revisions.ts'
import { mediaType } from './media-type.ts'
import { type KnownFile, planReading, type ReadingPlan, readSkill, type SkillFile } from './skill-reader.ts'

/** A manifest, and what it was made from. */
export interface Snapshot {
  readonly manifest: Manifest
  /** Of each file of the manifest, in its order. */
  readonly crc32s: Uint32Array
  /** By path, for the files that have a kind. */
  readonly kinds: ReadonlyMap<string, FileKind>
  /** About files that are not in it, and about the bytes of those that are. */
  readonly findings: readonly Finding[]
  readonly observed: Observed
  /** Paths of the folders below the skill's own. */
  readonly folders: readonly string[]
  /** Whether some of the files, or of what was left out, are symbolic links. */
  readonly hasLinks: boolean
}

/** A manifest that was made from the disk. */
export interface MadeManifest {
  /** Folder name. */
  readonly skill: string
  readonly files: number
  readonly milliseconds: number
}

/** A skill as the change feed compares it. */
export interface Inspected {
  /** That of its manifest; undefined when its folder may not be read, or is too large. */
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

/** Where a skill is, and what of it is served. */
export type SkillPlace = Pick<IndexedSkill, 'folder' | 'filter' | 'ignoreFile'>

/** A skill with much to be hashed: that goes on, and `ended` is resolved afterwards. */
export interface Unread {
  readonly ended: Promise<void>
}

/**
 * What becomes of a revision. One that is `named` in an answer is kept. One that is `listed` among many is kept while there is room:
 * all skills may not fit, and each list would read them again. One that is only `compared` with another takes no place from that.
 */
export type RevisionUse = 'named' | 'listed' | 'compared'

interface CachedSnapshot extends Snapshot {
  readonly observed: PackedObserved
  /** Wall clock when the reading began, in milliseconds. */
  readonly readAt: number
  /** False while a state is too young to be trusted: then the snapshot only spares unchanged files from being read again. */
  readonly isTrustworthy: boolean
}

/** A skill that is too large, and the states of all that shows it. */
interface CachedExcess {
  readonly excess: SkillExcess
  readonly observed: PackedObserved
}

/** A manifest in the making. */
interface Making {
  readonly snapshot: Promise<Snapshot>
  /** Whether a list of many skills does not wait for it. Never rejected. */
  readonly isHeavy: Promise<boolean>
  /** Never rejected. */
  readonly ended: Promise<void>
}

/** Measured: a file with its digest and state, and the constant part of each skill. Paths come on top. */
const WEIGHT_PER_ENTRY = 256
const WEIGHT_PER_SNAPSHOT = 1_024

const NO_FOLDERS: readonly string[] = []
const NO_KINDS: ReadonlyMap<string, FileKind> = new Map()

const UNREADABLE: Inspection = { state: { revision: undefined, fingerprint: 'unreadable', changedAt: 0 }, inside: [] }

/**
 * Makes manifests, and keeps them with the states of everything that they were made from. Used by every answer with a
 * revision. Without it each of them hashes all files of the skill (measured: 10 ms for ten files, 2 s for 3 GB).
 */
export class ManifestStore {
  readonly made = new Signal<MadeManifest>()
  readonly #store: FileStore
  readonly #kept: KeptRevisions
  readonly #cache = new LRUCache<string, CachedSnapshot>({ maxSize: MANIFEST_CACHE_BYTES, sizeCalculation: weightOf })
  /** By the same keys: to find out again takes a walk through all that a skill may have. */
  readonly #excesses = new LRUCache<string, CachedExcess>({ maxSize: EXCESS_CACHE_BYTES, sizeCalculation: weightOf })
  /** Snapshots that are being made, by the same keys. */
  readonly #making = new Map<string, Making>()
  /** Skills with much to be read are read one after the other: the others share the disk with one of them. */
  readonly #heavyQueue = createQueue()
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
   * @throws {RefusedError} `not_found` when the folder went away, `changed` when a file changed meanwhile, `too_many_files`,
   * `too_many_bytes`
   */
  async get (disk: Disk, skill: SkillPlace, since: number, use: RevisionUse): Promise<Snapshot> {
    for (;;) {
      const cached = await this.#cached(disk, skill, use)
      if (cached !== undefined) return cached
      const making = this.#making.get(keyOf(skill))
      if (making === undefined) return await this.#make(disk, skill, since, use).snapshot
      // It began before this call and may be out of date; but it leaves little to be hashed.
      await making.ended
    }
  }

  /** The same for a list of many skills: undefined while there is much to be hashed, which goes on in the background. */
  async getSoon (disk: Disk, skill: SkillPlace, since: number): Promise<Snapshot | undefined> {
    for (;;) {
      const cached = await this.#cached(disk, skill, 'listed')
      if (cached !== undefined) return cached
      const running = this.#making.get(keyOf(skill))
      const making = running ?? this.#make(disk, skill, since, 'listed')
      if (await making.isHeavy) return undefined
      if (running === undefined) return await making.snapshot
      await making.ended
    }
  }

  /**
   * What the change feed compares. Kept in no cache: an inspection of all skills would leave no room for those that are
   * asked for. Of these, no folder is listed.
   * @param known the inspection before: its state comes back as it is when nothing was touched since, and no file is read
   * @returns {Unread} while there is much to be hashed, which goes on in the background
   * @throws {RefusedError} as `get`, but for a folder that may not be read and for a skill that is too large
   */
  async inspect (disk: Disk, skill: SkillPlace, known?: Inspected): Promise<Inspection | Unread> {
    try {
      const cached = this.#cache.peek(keyOf(skill))
      if (cached?.isTrustworthy === true && await holds(statOf(disk), skill.folder.realPath, cached.observed)) {
        const state = stateOf(cached.observed, cached.manifest.revision, true)
        return { state: known !== undefined && known.fingerprint === state.fingerprint ? known : state, inside: cached.folders.map((path) => pathBelow(skill.folder.realPath, path)) }
      }
      const walk = await walkSkill(disk, skill.folder.realPath, skill, this.#closing.signal)
      const inside = foldersInside(walk)
      if (known?.fingerprint !== undefined && fingerprintOf(walk.observed) === known.fingerprint) return { state: known, inside }
      if (walk.excess !== undefined) return { state: stateOf(walk.observed, undefined, areTrustworthy(walk.observed, walk.startedAt)), inside }
      const plan = planReading(walk, { known: cached && knownFiles(cached), isKept: false })
      if (plan.isHeavy) return { ended: (this.#making.get(keyOf(skill)) ?? this.#make(disk, skill, this.#store.readCount, 'listed')).ended }
      const { files, isTrustworthy } = await readSkill(disk, this.#store, plan)
      return { state: stateOf(walk.observed, revisionOf(files), isTrustworthy), inside }
    } catch (error) {
      if (error instanceof RefusedError && (error.refusal === 'permission_denied' || error.refusal === 'too_many_bytes')) return UNREADABLE
      throw error
    }
  }

  async #cached (disk: Disk, skill: SkillPlace, use: RevisionUse): Promise<Snapshot | undefined> {
    const known = this.#excesses.get(keyOf(skill))
    if (known !== undefined && await holds(statOf(disk), skill.folder.realPath, known.observed)) throw new RefusedError(known.excess)
    const cached = this.#cache.get(keyOf(skill))
    if (cached?.isTrustworthy !== true || !await holds(statOf(disk), skill.folder.realPath, cached.observed)) return undefined
    if (use === 'compared') this.#kept.stay(cached.manifest)
    return use === 'compared' || this.#kept.renew(cached.manifest, use === 'named') ? cached : undefined
  }

  #make (disk: Disk, skill: SkillPlace, since: number, use: RevisionUse): Making {
    const key = keyOf(skill)
    const start = performance.now()
    const plan = this.#plan(disk, skill, use)
    const snapshot = plan.then((plan) => plan.isHeavy
      // What was found before the wait may be out of date.
      ? this.#heavyQueue(async () => await this.#finish(disk, skill, await this.#plan(disk, skill, use), since))
      : this.#finish(disk, skill, plan, since))
    const end = (): void => { this.#making.delete(key) }
    const ended = snapshot.then(({ manifest: { files } }) => {
      end()
      this.made.emit({ skill: skill.folder.name, files: files.length, milliseconds: performance.now() - start })
    }, end)
    const making = { snapshot, isHeavy: plan.then(({ isHeavy }) => isHeavy, () => false), ended }
    this.#making.set(key, making)
    return making
  }

  async #plan (disk: Disk, skill: SkillPlace, use: RevisionUse): Promise<ReadingPlan> {
    const walk = await walkSkill(disk, skill.folder.realPath, skill, this.#closing.signal)
    this.#noteExcess(skill, walk)
    const cached = this.#cache.peek(keyOf(skill))
    return planReading(walk, { known: cached && knownFiles(cached), contents: use === 'compared' ? undefined : this.#kept.collect(skill.folder, cached?.manifest, bytesOf(walk)) })
  }

  /** The folders alone show how many files there are. */
  #noteExcess (skill: SkillPlace, { excess, observed, folders, startedAt }: Walk): void {
    this.#excesses.delete(keyOf(skill))
    if (excess === undefined) return
    const paths = excess === 'too_many_files' ? folders.map((prefix) => prefix.slice(0, -1)).filter((path) => observed.has(path)) : [...observed.keys()]
    const states = new Map(paths.map((path) => [path, observed.get(path)] as const))
    if (areTrustworthy(states, startedAt)) this.#excesses.set(keyOf(skill), { excess, observed: new PackedObserved(states) })
  }

  async #finish (disk: Disk, skill: SkillPlace, plan: ReadingPlan, since: number): Promise<Snapshot> {
    const { files, walk, isTrustworthy } = await readSkill(disk, this.#store, plan, since)
    const kinds = kindsOf(files)
    const manifestFiles = files.map(toManifestFile)
    const snapshot = {
      manifest: { skill_name: skill.folder.name, revision: revisionOf(files), files: manifestFiles },
      crc32s: Uint32Array.from(files, ({ checksums }) => checksums.crc32),
      kinds,
      findings: [...leftOutFindings(walk.leftOut), ...contentFindings(manifestFiles, kinds)],
      observed: new PackedObserved(walk.observed),
      folders: walk.folders.length === 1 ? NO_FOLDERS : walk.folders.slice(1).map((prefix) => prefix.slice(0, -1)),
      hasLinks: walk.files.some(({ entry }) => entry.isSymbolicLink()),
      readAt: walk.startedAt,
      isTrustworthy
    }
    this.#cache.set(keyOf(skill), snapshot)
    this.#kept.keep(skill, snapshot, plan.contents)
    return snapshot
  }
}

/** Most files are text, which has no kind. */
function kindsOf (files: readonly SkillFile[]): ReadonlyMap<string, FileKind> {
  const kinds = files.flatMap(({ path, checksums: { kind } }) => kind === undefined ? [] : [[path, kind] as const])
  return kinds.length === 0 ? NO_KINDS : new Map(kinds)
}

function toManifestFile ({ path, state, checksums: { digest, kind } }: SkillFile): ManifestFile {
  return { path, size_bytes: Number(state.size), media_type: mediaType(path, isTextKind(kind)), digest }
}

function bytesOf ({ files, observed }: Walk): bigint {
  return files.reduce((sum, { path }) => sum + (observed.get(path)?.size ?? 0n), 0n)
}

function stateOf (observed: Observed, revision: string | undefined, isTrustworthy: boolean): Inspected {
  return { revision, fingerprint: isTrustworthy ? fingerprintOf(observed) : undefined, changedAt: latestChange(observed) }
}

/** Two skills may be one folder (a link beside it): each manifest has its own name in it. */
function keyOf ({ folder: { name, realPath }, filter }: SkillPlace): string {
  return filter === undefined ? `${realPath}\n${name}` : `${realPath}\n${name}\n${filter.id}`
}

/** Files whose bytes are known while they are in that state. */
function knownFiles ({ manifest: { files }, crc32s, kinds, observed, readAt }: CachedSnapshot): ReadonlyMap<string, KnownFile> {
  const states = new Map(observed)
  const known = new Map<string, KnownFile>()
  for (const [index, { path, digest }] of files.entries()) {
    const state = states.get(path)
    if (state !== undefined && isTrustworthy(state, readAt)) known.set(path, { state, checksums: { digest, crc32: crc32s[index] ?? 0, kind: kinds.get(path) } })
  }
  return known
}

function weightOf ({ observed }: { readonly observed: PackedObserved }): number {
  let weight = WEIGHT_PER_SNAPSHOT
  for (const path of observed.paths) weight += WEIGHT_PER_ENTRY + 2 * path.length
  return weight
}

/** NUL ends each entry: it is the one character that no path holds, so two lists never look alike. */
function revisionOf (files: readonly SkillFile[]): string {
  return sha256(files.map(({ path, checksums: { digest } }) => `${digest} ${path}\0`).join(''))
}
