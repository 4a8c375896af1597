import { LRUCache } from 'lru-cache'
import type { FileCache } from '../read/file-cache.ts'
import type { FileContent } from '../read/file-content.ts'
import type { IndexedSkill } from '../read-skill.ts'
import type { Root } from '../roots/root.ts'
import { createCoalescer, yieldIfNeeded } from '../shared/async.ts'
import type { ManifestFile } from '../shared/skill.ts'
import type { Snapshot } from './snapshot.ts'

export interface KeepOptions {
  /** Time for which a revision is kept after its last use, in milliseconds; 0 keeps none. Default: 600,000. */
  readonly keepMs?: number
  /** Size of all kept revisions in bytes. Default: 64 MiB. */
  readonly maxBytes?: number
}

/** A revision of a skill that an answer has named. */
interface HandedOut extends Snapshot {
  readonly skill: IndexedSkill
}

/** A named revision with the contents of its files, by path. */
export interface KeptRevision extends HandedOut {
  readonly contents: ReadonlyMap<string, FileContent>
}

/** Memory for each file of a manifest, in bytes. */
const WEIGHT_PER_FILE = 512

/**
 * Revisions that were handed out, for callers that finish with the one they have begun with: manifests, whose bytes
 * are in the file cache. Callers decide whether one may be served.
 */
export class KeptRevisions {
  readonly #files: FileCache
  readonly #maxBytes: number
  readonly #revisions: LRUCache<string, HandedOut>
  readonly #share = createCoalescer<void>()

  /** @param maxBytes size of all kept revisions in bytes; 0 keeps none */
  constructor (files: FileCache, keepMs: number, maxBytes: number) {
    this.#files = files
    this.#maxBytes = maxBytes
    this.#revisions = new LRUCache({
      maxSize: Math.max(maxBytes, 1),
      ttl: keepMs,
      updateAgeOnGet: true,
      sizeCalculation: ({ manifest: { files } }) => (files.length + 1) * WEIGHT_PER_FILE
    })
  }

  /**
   * Keeps a revision that an answer names, if there is room. One that only a list names evicts no other.
   * @param read returns the content of a file, which must have the digest of the manifest
   */
  async keep (
    skill: IndexedSkill, snapshot: Snapshot, isListed: boolean, read: (file: ManifestFile) => Promise<FileContent>
  ): Promise<void> {
    const { root, name } = skill
    const { revision, files } = snapshot.manifest
    const key = keyOf(root, name, revision)
    await this.#share(key, async () => {
      if (this.get(root, name, revision) !== undefined) return
      const { kept } = this.#files
      const absent = new Map(files.filter(({ digest }) => !kept.has(digest)).map((file) => [file.digest, file]))
      let size = (files.length + 1) * WEIGHT_PER_FILE
      for (const file of absent.values()) size += file.size_bytes
      if (size + (isListed ? kept.calculatedSize : 0) > this.#maxBytes) return
      for (const file of absent.values()) {
        await yieldIfNeeded()
        kept.set(file.digest, await read(file))
      }
      this.#revisions.set(key, { ...snapshot, skill })
    })
  }

  get (root: Root, name: string, revision: string): KeptRevision | undefined {
    const kept = this.#revisions.get(keyOf(root, name, revision))
    const contents = new Map<string, FileContent>()
    for (const { path, digest } of kept?.manifest.files ?? []) {
      const content = this.#files.kept.get(digest)
      if (content === undefined) return undefined
      contents.set(path, content)
    }
    return kept && { ...kept, contents }
  }

  /** All of them, the one used last first. Contents of some may be gone. */
  get all (): readonly HandedOut[] {
    return [...this.#revisions.values()]
  }
}

function keyOf ({ id }: Root, name: string, revision: string): string {
  return `${id}\0${name}\0${revision}`
}
