import { LRUCache } from 'lru-cache'
import type { FileContent } from '../read/file-content.ts'
import type { IndexedSkill } from '../read-skill.ts'
import type { Root } from '../roots/root.ts'
import { createSharer, yieldIfNeeded } from '../shared/async.ts'
import type { ManifestFile } from '../shared/skill.ts'
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

/** Which revisions give way for one that an answer names: those that were used longest ago, or none. */
export type Keep = 'always' | 'if-room' | 'never'

/** Of an entry and of each file in it, besides the bytes. */
const WEIGHT_PER_FILE = 512

/**
 * Revisions that were handed out, for callers that have begun with one while the skill moves on. Equal files of all of
 * them are in memory once. Whether one may be served is decided by those who ask.
 */
export class KeptRevisions {
  readonly #revisions: LRUCache<string, KeptRevision>
  readonly #maxBytes: number
  /** By digest, each with the number of files that have these bytes. */
  readonly #contents = new Map<string, { readonly content: FileContent, files: number }>()
  #bytes = 0
  readonly #share = createSharer<void>()

  constructor ({ keepMs = KEPT_REVISION_MS, maxBytes = KEPT_REVISION_BYTES }: KeepOptions = {}) {
    this.#maxBytes = keepMs === 0 ? 0 : maxBytes
    this.#revisions = new LRUCache({
      maxSize: Math.max(this.#maxBytes, 1),
      ttl: keepMs,
      updateAgeOnGet: true,
      sizeCalculation: ({ manifest: { files } }) => (files.length + 1) * WEIGHT_PER_FILE,
      dispose: ({ contents }) => { for (const content of contents.values()) this.#release(content) }
    })
  }

  /**
   * Keeps a revision that an answer names, as far as there is room.
   * @param read gives the content of a file with this very digest
   */
  async keep (
    skill: IndexedSkill, snapshot: Snapshot, keep: Keep, read: (file: ManifestFile) => Promise<FileContent>
  ): Promise<void> {
    if (!this.#wants(skill.root, snapshot, keep)) return
    const { manifest: { skill_name: name, revision, files } } = snapshot
    await this.#share(keyOf(skill.root, name, revision), async () => {
      const contents = new Map<string, FileContent>()
      for (const file of files) {
        await yieldIfNeeded()
        contents.set(file.path, this.contentWith(file.digest) ?? await read(file))
      }
      this.#add({ ...snapshot, skill, contents })
    })
  }

  /** Whether the bytes of a revision with these files should be read to be kept. */
  #wants (root: Root, { manifest: { skill_name: name, revision, files } }: Snapshot, keep: Keep): boolean {
    if (keep === 'never' || this.get(root, name, revision) !== undefined) return false
    const sizes = new Map(files.map(({ digest, size_bytes: size }) => [digest, size]))
    const isThere = ([digest]: readonly [string, number]): boolean => keep === 'if-room' && this.#contents.has(digest)
    const bytes = [...sizes].reduce((sum, entry) => isThere(entry) ? sum : sum + entry[1], 0)
    const used = keep === 'if-room' ? this.#used : 0
    return used + bytes + (files.length + 1) * WEIGHT_PER_FILE <= this.#maxBytes
  }

  #add (kept: KeptRevision): void {
    for (const content of kept.contents.values()) this.#hold(content)
    this.#revisions.set(keyOf(kept.skill.root, kept.skill.name, kept.manifest.revision), kept)
    while (this.#used > this.#maxBytes) this.#revisions.pop()
  }

  get (root: Root, name: string, revision: string): KeptRevision | undefined {
    return this.#revisions.get(keyOf(root, name, revision))
  }

  /** The content with this digest, if a revision has it. */
  contentWith (digest: string): FileContent | undefined {
    return this.#contents.get(digest)?.content
  }

  /** All that are kept, the one used last first. */
  get all (): readonly KeptRevision[] {
    return [...this.#revisions.values()]
  }

  get #used (): number {
    return this.#bytes + this.#revisions.calculatedSize
  }

  #hold (content: FileContent): void {
    const held = this.#contents.get(content.digest)
    this.#contents.set(content.digest, { content: held?.content ?? content, files: (held?.files ?? 0) + 1 })
    if (held === undefined) this.#bytes += content.bytes.length
  }

  #release ({ digest, bytes }: FileContent): void {
    const held = this.#contents.get(digest)
    if (held === undefined) return
    if (--held.files > 0) return
    this.#contents.delete(digest)
    this.#bytes -= bytes.length
  }
}

function keyOf ({ id }: Root, name: string, revision: string): string {
  return `${id}\0${name}\0${revision}`
}
