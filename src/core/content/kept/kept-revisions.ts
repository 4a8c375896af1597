import type { PathFilter } from '../../disk/hidden.ts'
import { isMainFile } from '../../format/main-files.ts'
import type { IndexedSkill } from '../../catalog/catalog.ts'
import type { SkillFolder } from '../../roots/scan-root.ts'
import { createSlicer } from '../../shared/async.ts'
import type { Manifest } from '../../shared/skill.ts'
import { CollectedContents } from './collected-contents.ts'
import type { Contents, RevisionMemory } from './revision-memory.ts'

/** A revision that was handed out, with the bytes of all its files. */
export interface KeptRevision {
  readonly folder: SkillFolder
  readonly manifest: Manifest
  readonly crc32s: Uint32Array
  readonly contents: Contents
  /** Names of the main files in it, in any casing. */
  readonly mainFiles: readonly string[]
}

/** Rules that a revision has yet to be compared with. With more it is dropped, so that edits without a reader take no memory. */
const MAX_NEW_RULES = 32

const NO_REVISIONS: ReadonlyMap<string, number> = new Map()

interface Held extends KeptRevision {
  /** What came to be hidden since it was the present one, by id: it is compared when somebody asks, as that may take long. */
  readonly newRules: Map<string, PathFilter>
  /** What hides some of it only as long as an ignore file of the skill cannot be used. */
  blocking: PathFilter | undefined
  /** Ids of what hides nothing of it. */
  readonly harmless: Set<string | undefined>
}

/**
 * Revisions of a root's skills that callers know, and what can be read of them after the skill has moved on. A caller that has begun with
 * one version finishes with it. `ManifestStore` fills it, and `SkillFiles` reads in it what a request with a revision asks for.
 */
export class KeptRevisions {
  readonly #memory: RevisionMemory
  /** By key. */
  readonly #held = new Map<string, Held>()
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

  /**
   * A place for the bytes of a skill that is about to be read; undefined when they would not be kept.
   * @param before the last known manifest
   * @param bytes of its files, equal ones counted each
   */
  collect ({ name }: SkillFolder, before: Manifest | undefined, bytes: bigint): CollectedContents | undefined {
    if (this.#memory.keepMs === 0 || (before !== undefined && bytes > this.#memory.maxBytes && !this.#memory.fits(before))) return undefined
    const known = before && this.get(name, before.revision)?.contents
    return new CollectedContents(known ?? new Map(), this.#memory.maxBytes)
  }

  /** A revision is handed out: it is the present one, and stays as long as that. */
  keep ({ folder, filter }: Pick<IndexedSkill, 'folder' | 'filter'>, { manifest, crc32s }: Pick<KeptRevision, 'manifest' | 'crc32s'>, collected: CollectedContents | undefined): void {
    const { name } = folder
    const { revision } = manifest
    this.expire(name, revision)
    const complete = collected?.complete(manifest)
    if (complete === undefined) return
    const key = this.#keyOf(name, revision)
    const contents = this.#memory.add(key, manifest, complete, () => { this.#forget(name, revision) })
    if (contents === undefined) return
    const mainFiles = manifest.files.map(({ path }) => path).filter((path) => isMainFile(path))
    this.#held.set(key, { folder, manifest, crc32s, contents, mainFiles, newRules: new Map(), blocking: undefined, harmless: new Set([filter?.id]) })
    this.#noteHandOut(name, revision)
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
      if (revision === present) this.#memory.stay(this.#keyOf(name, revision))
      else this.#memory.expire(this.#keyOf(name, revision))
    }
  }

  /** The skill has this revision again: it stays as long as that. Nobody is told of it, so others keep their place before it. */
  stay ({ skill_name: name, revision }: Manifest): void {
    this.#memory.stay(this.#keyOf(name, revision))
  }

  /**
   * A revision is handed out again: the skill still has it, or has come back to it.
   * @param mayMakeRoom whether others may make room for it
   * @returns false when it is not kept, and would fit: it is to be read again
   */
  renew (manifest: Manifest, mayMakeRoom = true): boolean {
    const { skill_name: name, revision } = manifest
    const kept = this.#held.get(this.#keyOf(name, revision))
    if (kept === undefined) return this.#memory.keepMs === 0 || !(mayMakeRoom ? this.#memory.fits(manifest) : this.#memory.hasRoomFor(manifest))
    kept.newRules.clear()
    kept.blocking = undefined
    this.#memory.renew(this.#keyOf(name, revision))
    this.#noteHandOut(name, revision)
    return true
  }

  /**
   * From now on this is hidden in a skill. Revisions with some of it are not given out again, whatever becomes of the skill and its rules.
   * While an ignore file cannot be used, those with more than main files wait until the skill is there with rules that can.
   * @param isWhole whether these are all rules of the present skill, and not those of its root alone
   */
  hide (name: string, filterOf: () => PathFilter | undefined, isWhole = false): void {
    const revisions = this.#byName.get(name)
    if (revisions === undefined) return
    const filter = filterOf()
    const certain = filter?.certain ?? filter
    for (const revision of [...revisions.keys()]) {
      const key = this.#keyOf(name, revision)
      const kept = this.#held.get(key)
      if (kept === undefined) continue
      if (filter?.certain !== undefined) kept.blocking = filter
      else if (isWhole) kept.blocking = undefined
      if (certain === undefined || kept.harmless.has(certain.id)) continue
      kept.newRules.set(certain.id, certain)
      if (kept.newRules.size > MAX_NEW_RULES) this.#memory.delete(key)
    }
  }

  /** The same as `get`, for a caller: undefined, and dropped, once something of it was hidden. */
  async find (name: string, revision: string): Promise<KeptRevision | undefined> {
    const key = this.#keyOf(name, revision)
    const kept = this.#held.get(key)
    if (kept === undefined) return undefined
    for (const [id, filter] of kept.newRules) {
      if (await hidesSome(filter, kept)) {
        // Handed out again meanwhile, it is the present one, which hides nothing of itself.
        if (this.#held.get(key) === kept && kept.newRules.has(id)) this.#memory.delete(key)
        return undefined
      }
      kept.harmless.add(id)
      kept.newRules.delete(id)
    }
    return kept.blocking !== undefined && await hidesSome(kept.blocking, kept) ? undefined : kept
  }

  get (name: string, revision: string): KeptRevision | undefined {
    return this.#held.get(this.#keyOf(name, revision))
  }

  /**
   * Revisions of a skill that can be read, each with a number: among all roots, the highest was handed out last.
   * @param hiddenSince when another root began to hide the skill, in milliseconds of `performance.now()`: for that view, it has changed then
   */
  revisionsOf (name: string, hiddenSince = Infinity): ReadonlyMap<string, number> {
    const isOver = performance.now() - hiddenSince > this.#memory.keepMs
    return (isOver ? undefined : this.#byName.get(name)) ?? NO_REVISIONS
  }

  /** Names of the skills that have, or had, this revision. Asks each skill with revisions in memory. */
  namesOf (revision: string): readonly string[] {
    return [...this.#byName].flatMap(([name, revisions]) => revisions.has(revision) ? [name] : [])
  }

  clear (): void {
    for (const [name, revisions] of [...this.#byName]) for (const revision of [...revisions.keys()]) this.#memory.delete(this.#keyOf(name, revision))
  }

  #noteHandOut (name: string, revision: string): void {
    const revisions = this.#byName.get(name) ?? new Map<string, number>()
    this.#byName.set(name, revisions.set(revision, this.#memory.takeNumber()))
  }

  #forget (name: string, revision: string): void {
    this.#held.delete(this.#keyOf(name, revision))
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
