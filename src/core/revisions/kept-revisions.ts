import { LRUCache } from 'lru-cache'
import type { IndexedSkill } from '../read-skill.ts'
import { KEPT_REVISION_BYTES, KEPT_REVISION_MS } from '../shared/limits.ts'
import type { Snapshot } from './snapshot.ts'

/** A revision of a skill with all its bytes. */
export interface KeptRevision extends Snapshot {
  readonly skill: IndexedSkill
  /** By path. */
  readonly contents: ReadonlyMap<string, Buffer>
}

export interface KeepOptions {
  /** How long a revision stays after its last use, in milliseconds; 0 keeps none. Default KEPT_REVISION_MS. */
  readonly keepMs?: number
  /** Bytes of all that are kept. Default KEPT_REVISION_BYTES. */
  readonly maxBytes?: number
}

/** Of an entry and of each file in it, besides the bytes. */
const WEIGHT_PER_FILE = 512

/** Revisions that were handed out, for callers that have begun with one while the skill moves on. */
export class KeptRevisions {
  readonly #cache: LRUCache<string, KeptRevision> | undefined
  readonly #maxBytes: number

  constructor ({ keepMs = KEPT_REVISION_MS, maxBytes = KEPT_REVISION_BYTES }: KeepOptions = {}) {
    this.#maxBytes = maxBytes
    if (keepMs === 0 || maxBytes === 0) return
    this.#cache = new LRUCache({ maxSize: maxBytes, ttl: keepMs, updateAgeOnGet: true, sizeCalculation: weightOf })
  }

  /**
   * Whether a revision with these files should be read to be kept.
   * @param ifRoom only if nothing else has to go for it
   */
  wants (root: number, { manifest }: Snapshot, ifRoom: boolean): boolean {
    if (this.#cache === undefined) return false
    if (this.#cache.get(keyOf(root, manifest.skill_name, manifest.revision)) !== undefined) return false
    const weight = manifest.files.reduce((sum, { size_bytes: size }) => sum + size + WEIGHT_PER_FILE, WEIGHT_PER_FILE)
    return weight <= (ifRoom ? this.#maxBytes - this.#cache.calculatedSize : this.#maxBytes)
  }

  keep (root: number, kept: KeptRevision): void {
    this.#cache?.set(keyOf(root, kept.skill.name, kept.manifest.revision), kept)
  }

  /** @param root the position of the skill's root */
  get (root: number, name: string, revision: string): KeptRevision | undefined {
    return this.#cache?.get(keyOf(root, name, revision))
  }

  /** Revisions of a skill, the one used last first. */
  revisionsOf (root: number, name: string): readonly string[] {
    return this.#entries((kept, at) => at === root && kept.skill.name === name).map(({ manifest }) => manifest.revision)
  }

  /** All that have this revision, with the positions of their roots. */
  of (revision: string): ReadonlyArray<{ readonly root: number, readonly name: string }> {
    const found: Array<{ root: number, name: string }> = []
    this.#entries(({ manifest, skill }, root) => {
      if (manifest.revision === revision) found.push({ root, name: skill.name })
      return false
    })
    return found
  }

  /** What is hidden now must not be read in an older revision, of whichever root it came. */
  drop (name: string): void {
    this.#entries((kept, root) => {
      if (kept.skill.name === name) this.#cache?.delete(keyOf(root, name, kept.manifest.revision))
      return false
    })
  }

  /** As `drop`, of all names that are kept of a root: skills that are gone from it too. */
  dropRoot (root: number): void {
    for (const { skill } of this.#entries((_kept, at) => at === root)) this.drop(skill.name)
  }

  #entries (accepts: (kept: KeptRevision, root: number) => boolean): KeptRevision[] {
    const found: KeptRevision[] = []
    for (const [key, kept] of [...this.#cache?.entries() ?? []]) if (accepts(kept, Number.parseInt(key))) found.push(kept)
    return found
  }
}

function keyOf (root: number, name: string, revision: string): string {
  return `${root}\0${name}\0${revision}`
}

function weightOf ({ contents }: KeptRevision): number {
  let weight = WEIGHT_PER_FILE
  for (const bytes of contents.values()) weight += bytes.length + WEIGHT_PER_FILE
  return weight
}
