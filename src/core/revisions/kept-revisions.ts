import { LRUCache } from 'lru-cache'
import type { FileContent } from '../read/file-content.ts'
import type { IndexedSkill } from '../read-skill.ts'
import type { Root } from '../roots/root.ts'
import type { Snapshot } from './snapshot.ts'

/** How long a revision stays readable after its last use, in milliseconds, and the bytes of all of them. */
const KEPT_REVISION_MS = 600_000
const KEPT_REVISION_BYTES = 64 * 1_048_576

/** A revision of a skill with all its bytes. */
export interface KeptRevision extends Snapshot {
  readonly skill: IndexedSkill
  /** By path. */
  readonly contents: ReadonlyMap<string, FileContent>
}

export interface KeepOptions {
  /** How long a revision stays after its last use, in milliseconds; 0 keeps none. Default KEPT_REVISION_MS. */
  readonly keepMs?: number
  /** Bytes of all that are kept. Default KEPT_REVISION_BYTES. */
  readonly maxBytes?: number
}

/** Whether a revision that an answer names is kept: always, only while there is room, or never. */
export type Keep = 'always' | 'if-room' | 'never'

/** Of an entry and of each file in it, besides the bytes. */
const WEIGHT_PER_FILE = 512

/** Revisions that were handed out, for callers that have begun with one while the skill moves on. */
export class KeptRevisions {
  readonly #cache: LRUCache<string, KeptRevision>
  readonly #maxBytes: number

  constructor ({ keepMs = KEPT_REVISION_MS, maxBytes = KEPT_REVISION_BYTES }: KeepOptions = {}) {
    this.#maxBytes = keepMs === 0 ? 0 : maxBytes
    this.#cache = new LRUCache<string, KeptRevision>({
      maxSize: Math.max(this.#maxBytes, 1), ttl: keepMs, updateAgeOnGet: true, sizeCalculation: weightOf
    })
  }

  /** Whether a revision with these files should be read to be kept. */
  wants (root: Root, snapshot: Snapshot, keep: Keep): boolean {
    const { skill_name: name, revision } = snapshot.manifest
    if (keep === 'never' || this.get(root, name, revision) !== undefined) return false
    const used = keep === 'if-room' ? this.#cache.calculatedSize : 0
    return used + weightOf(snapshot) <= this.#maxBytes
  }

  keep (kept: KeptRevision): void {
    this.#cache.set(keyOf(kept.skill.root, kept.skill.name, kept.manifest.revision), kept)
  }

  get (root: Root, name: string, revision: string): KeptRevision | undefined {
    return this.#cache.get(keyOf(root, name, revision))
  }

  /** All that are kept, the one used last first. */
  get all (): readonly KeptRevision[] {
    return [...this.#cache.values()]
  }

  drop (isDropped: (kept: KeptRevision) => boolean): void {
    for (const [key, kept] of [...this.#cache.entries()]) if (isDropped(kept)) this.#cache.delete(key)
  }
}

function keyOf ({ id }: Root, name: string, revision: string): string {
  return `${id}\0${name}\0${revision}`
}

function weightOf ({ manifest: { files } }: Snapshot): number {
  return files.reduce((sum, { size_bytes: size }) => sum + size + WEIGHT_PER_FILE, WEIGHT_PER_FILE)
}
