import { LRUCache } from 'lru-cache'
import type { PathFilter } from '../disk/hidden.ts'
import { isMainFile } from '../format/main-files.ts'
import type { IndexedSkill } from '../catalog/catalog.ts'
import type { SkillFolder } from '../roots/scan-root.ts'
import type { FileContent } from '../files/file-content.ts'
import { createSlicer } from '../ground/async.ts'
import { KEPT_REVISION_BYTES, KEPT_REVISION_MS } from '../ground/limits.ts'
import type { Manifest } from '../ground/skill.ts'

export interface KeptRevisionsOptions {
  /** How long a revision stays readable after the skill has moved on, in milliseconds; 0 keeps none. */
  readonly keepMs: number
  /** Bytes of all kept files together. */
  readonly maxBytes: number
}

/** A revision that was handed out, with the bytes of all its files. */
export interface KeptRevision {
  readonly folder: SkillFolder
  readonly manifest: Manifest
  readonly crc32s: Uint32Array
  /** By digest. */
  readonly contents: ReadonlyMap<string, FileContent>
  /** Names of the main files in it, in any casing. */
  readonly mainFiles: readonly string[]
}

/** Counted beside the bytes, so that thousands of small revisions are bounded too. */
const WEIGHT_PER_FILE = 256
const WEIGHT_PER_REVISION = 1_024

/** Rules that a revision has yet to be compared with. With more it is dropped, so that edits without a reader take no memory. */
const MAX_DOUBTS = 32

const NO_REVISIONS: ReadonlyMap<string, number> = new Map()

/** Bytes of the files of one skill, gathered while its manifest is made. */
export class CollectedContents {
  readonly contents = new Map<string, FileContent>()
  readonly #before: ReadonlyMap<string, FileContent>
  readonly #maxBytes: number
  #bytes = 0

  /** @param before contents that are kept already, by digest */
  constructor (before: ReadonlyMap<string, FileContent>, maxBytes: number) {
    this.#before = before
    this.#maxBytes = maxBytes
  }

  add (content: FileContent): void {
    if (this.contents.has(content.digest) || !this.hasRoomFor(BigInt(content.bytes.length))) return
    this.contents.set(content.digest, content)
    this.#bytes += content.bytes.length
  }

  hasRoomFor (bytes: bigint): boolean {
    return BigInt(this.#bytes) + bytes <= this.#maxBytes
  }

  lacks (digest: string): boolean {
    return this.#get(digest) === undefined
  }

  /** The bytes of every file of a manifest; undefined when some are missing. */
  complete ({ files }: Manifest): ReadonlyMap<string, FileContent> | undefined {
    const all = new Map<string, FileContent>()
    for (const { digest } of files) {
      const content = this.#get(digest)
      if (content === undefined) return undefined
      all.set(digest, content)
    }
    return all
  }

  #get (digest: string): FileContent | undefined {
    return this.contents.get(digest) ?? this.#before.get(digest)
  }
}

interface Held extends KeptRevision {
  readonly owner: KeptRevisions
  /** What came to be hidden since it was the present one, by id: it is compared when somebody asks, as that may take long. */
  readonly doubts: Map<string, PathFilter>
  /** Ids of what hides nothing of it. */
  readonly harmless: Set<string | undefined>
}

/** The bytes of kept revisions of all roots. Bounded by KEPT_REVISION_BYTES, unless an operator says otherwise; the oldest go first. */
export class RevisionMemory {
  readonly keepMs: number
  readonly maxBytes: number
  readonly held: LRUCache<string, Held>
  #numbers = 0

  constructor ({ keepMs = KEPT_REVISION_MS, maxBytes = KEPT_REVISION_BYTES }: Partial<KeptRevisionsOptions> = {}) {
    this.keepMs = maxBytes > 0 ? keepMs : 0
    this.maxBytes = maxBytes
    this.held = new LRUCache<string, Held>({
      maxSize: Math.max(1, maxBytes),
      sizeCalculation: weightOf,
      ttlAutopurge: true,
      // Ending a timer later than needed is cheaper than one timer for each of many expiries.
      ttlResolution: 100,
      disposeAfter: ({ owner, folder, manifest }, _key, reason) => { if (reason !== 'set') owner.forget(folder.name, manifest.revision) }
    })
  }

  /** A number that is higher than all before. */
  takeNumber (): number {
    return this.#numbers++
  }
}

/**
 * Revisions of a root's skills that callers know, and what can be read of them after the skill has moved on. A caller that has begun with
 * one version finishes with it. `ManifestStore` fills it, and `SkillFiles` reads in it what a request with a revision asks for.
 */
export class KeptRevisions {
  readonly #memory: RevisionMemory
  /** Makes the keys of equal names in two roots differ. */
  readonly #number: number
  /** By name of the skill its revisions, each with the number that it was kept under last. */
  readonly #byName = new Map<string, Map<string, number>>()
  /** When each skill that is there came, in milliseconds of `performance.now()`. */
  readonly #arrivals = new Map<string, number>()

  constructor (memory: RevisionMemory) {
    this.#memory = memory
    this.#number = memory.takeNumber()
  }

  /** A place for the bytes of a skill that is about to be read; undefined when they would not be kept. */
  collect ({ name }: SkillFolder, before: Manifest | undefined): CollectedContents | undefined {
    if (this.#memory.keepMs === 0) return undefined
    const bytes = before?.files.reduce((sum, file) => sum + file.size_bytes, 0) ?? 0
    if (bytes > this.#memory.maxBytes) return undefined
    const known = before && this.#memory.held.peek(this.#keyOf(name, before.revision))?.contents
    return new CollectedContents(known ?? new Map(), this.#memory.maxBytes)
  }

  /** A revision is handed out: it is the present one, and stays as long as that. */
  keep ({ folder, filter }: Pick<IndexedSkill, 'folder' | 'filter'>, { manifest, crc32s }: Pick<KeptRevision, 'manifest' | 'crc32s'>, collected: CollectedContents | undefined): void {
    const { name } = folder
    const { revision } = manifest
    this.expire(name, revision)
    const contents = collected?.complete(manifest)
    if (contents === undefined) return
    const mainFiles = manifest.files.map(({ path }) => path).filter((path) => isMainFile(path))
    this.#memory.held.set(this.#keyOf(name, revision), { owner: this, folder, manifest, crc32s, contents, mainFiles, doubts: new Map(), harmless: new Set([filter?.id]) }, { ttl: 0 })
    if (!this.#memory.held.has(this.#keyOf(name, revision))) return
    const revisions = this.#byName.get(name) ?? new Map<string, number>()
    this.#byName.set(name, revisions.set(revision, this.#memory.takeNumber()))
  }

  /** A skill has come: where this root is before others, it hides theirs from now on. */
  arrive (name: string): void {
    this.#arrivals.set(name, performance.now())
  }

  /** Undefined while there is no such skill. */
  arrivalOf (name: string): number | undefined {
    return this.#arrivals.get(name)
  }

  /** The skill is gone. */
  leave (name: string): void {
    this.#arrivals.delete(name)
    this.expire(name)
  }

  /** The skill has changed: from now on the time of its revisions runs, except for the present one where that is known. */
  expire (name: string, present?: string): void {
    for (const revision of this.#byName.get(name)?.keys() ?? []) {
      const key = this.#keyOf(name, revision)
      if (revision === present || this.#memory.held.getRemainingTTL(key) !== Number.POSITIVE_INFINITY) continue
      const kept = this.#memory.held.peek(key)
      if (kept !== undefined) this.#memory.held.set(key, kept, { ttl: this.#memory.keepMs })
    }
  }

  /**
   * A revision is handed out again: the skill still has it, or has come back to it.
   * @returns false when it made room for others, and would fit: it is to be read again
   */
  renew (manifest: Manifest): boolean {
    const key = this.#keyOf(manifest.skill_name, manifest.revision)
    const kept = this.#memory.held.get(key)
    if (kept === undefined) return this.#memory.keepMs === 0 || weightOf({ manifest }) > this.#memory.maxBytes
    kept.doubts.clear()
    if (this.#memory.held.getRemainingTTL(key) !== Number.POSITIVE_INFINITY) this.#memory.held.set(key, kept, { ttl: 0 })
    return true
  }

  /** From now on this is hidden in a skill: revisions with some of it are not given out again, whatever becomes of the skill and its rules. */
  hide (name: string, filterOf: () => PathFilter | undefined): void {
    const revisions = this.#byName.get(name)
    const filter = revisions && filterOf()
    if (revisions === undefined || filter === undefined) return
    for (const revision of [...revisions.keys()]) {
      const key = this.#keyOf(name, revision)
      const kept = this.#memory.held.peek(key)
      if (kept === undefined || kept.harmless.has(filter.id)) continue
      kept.doubts.set(filter.id, filter)
      if (kept.doubts.size > MAX_DOUBTS) this.#memory.held.delete(key)
    }
  }

  /** The same as `get`, for a caller: undefined, and dropped, once something of it was hidden. */
  async find (name: string, revision: string): Promise<KeptRevision | undefined> {
    const key = this.#keyOf(name, revision)
    const kept = this.#memory.held.peek(key)
    if (kept === undefined) return undefined
    for (const [id, filter] of kept.doubts) {
      if (await hidesSome(filter, kept)) {
        this.#memory.held.delete(key)
        return undefined
      }
      kept.harmless.add(id)
      kept.doubts.delete(id)
    }
    return kept
  }

  get (name: string, revision: string): KeptRevision | undefined {
    return this.#memory.held.peek(this.#keyOf(name, revision))
  }

  /**
   * Revisions of a skill that can be read, each with a number: among all roots, the highest was handed out last.
   * @param hiddenSince when another root began to hide the skill, in milliseconds of `performance.now()`: for that view, it has changed then
   */
  revisionsOf (name: string, hiddenSince = Infinity): ReadonlyMap<string, number> {
    const isOver = performance.now() - hiddenSince > this.#memory.keepMs
    return (isOver ? undefined : this.#byName.get(name)) ?? NO_REVISIONS
  }

  /** Names of the skills that have, or had, this revision. Looks at each skill with revisions in memory. */
  namesOf (revision: string): readonly string[] {
    return [...this.#byName].flatMap(([name, revisions]) => revisions.has(revision) ? [name] : [])
  }

  clear (): void {
    for (const [name, revisions] of [...this.#byName]) for (const revision of [...revisions.keys()]) this.#memory.held.delete(this.#keyOf(name, revision))
  }

  /** A revision is out of the memory. */
  forget (name: string, revision: string): void {
    const revisions = this.#byName.get(name)
    revisions?.delete(revision)
    if (revisions?.size === 0) this.#byName.delete(name)
  }

  /** No name of a skill holds a line end. */
  #keyOf (name: string, revision: string): string {
    return `${this.#number}\n${name}\n${revision}`
  }
}

/** Whether a file of a revision is hidden by these rules. */
export async function hidesSome (filter: PathFilter, { manifest: { files } }: Pick<KeptRevision, 'manifest'>): Promise<boolean> {
  const yieldIfNeeded = createSlicer()
  for (const { path } of files) {
    if (filter.hides(path, false)) return true
    await yieldIfNeeded()
  }
  return false
}

function weightOf ({ manifest: { files } }: Pick<KeptRevision, 'manifest'>): number {
  return files.reduce((sum, { size_bytes: size, path }) => sum + size + path.length + WEIGHT_PER_FILE, WEIGHT_PER_REVISION)
}
