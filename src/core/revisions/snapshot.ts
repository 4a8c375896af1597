import { LRUCache } from 'lru-cache'
import pLimit from 'p-limit'
import type { FileCache } from '../read/file-cache.ts'
import type { FileChecksums } from '../read/file-content.ts'
import { isTextKind } from '../read/file-kind.ts'
import { IGNORE_FILE } from '../read/ignore-file.ts'
import { mediaType } from '../read/media-type.ts'
import { asRefused, changed, isInconclusive, RefusedError } from '../read/refused.ts'
import { type Walk, type WalkedFile, walkSkill } from '../read/walk.ts'
import type { IndexedSkill } from '../read-skill.ts'
import { createCoalescer, yieldIfNeeded } from '../shared/async.ts'
import { sha256 } from '../shared/digest.ts'
import type { Finding, Manifest, ManifestFile } from '../shared/skill.ts'
import { compareCodePoints } from '../shared/text.ts'
import { contentFindings, leftOutFindings } from './file-findings.ts'

/** Bytes of one skill that a list waits for. Larger skills are read in the background, so many at a time. */
const MAX_LISTED_BYTES = 8 * 1_048_576
const MAX_IN_BACKGROUND = 2

/** Files of all cached manifests together. */
const MAX_CACHED_SNAPSHOT_FILES = 50_000

/** All files of a skill in one state. */
export interface Snapshot {
  readonly manifest: Manifest
  /** Checksums of the files, by path. */
  readonly checksums: ReadonlyMap<string, FileChecksums>
  /** Findings about files that are not in the manifest, and about contents of those that are. */
  readonly findings: readonly Finding[]
}

/** Makes manifests. Each call walks the skill, and reads files in unknown states. Equal calls share a result. */
export class Snapshots {
  readonly #files: FileCache
  readonly #cache = new LRUCache<string, Snapshot & { readonly fingerprint: string }>({
    maxSize: MAX_CACHED_SNAPSHOT_FILES,
    sizeCalculation: ({ manifest }) => manifest.files.length + 1
  })

  readonly #share = createCoalescer<Snapshot>()
  readonly #limitBackground = pLimit(MAX_IN_BACKGROUND)
  readonly #background = new Set<string>()

  constructor (files: FileCache) {
    this.#files = files
  }

  /**
   * @param known a walk of the skill that was made after the skill was read
   * @throws {RefusedError}
   */
  async of (skill: IndexedSkill, known?: Walk): Promise<Snapshot> {
    return await (known === undefined ? this.#share(idOf(skill), () => this.#read(skill)) : this.#read(skill, known))
  }

  /** The same for lists: undefined for a skill that is still read in the background. */
  async ofListed (skill: IndexedSkill): Promise<Snapshot | undefined> {
    const { root: { disk }, folder: { realPath }, filter } = skill
    const walk = await walkSkill(disk, realPath, filter)
    const cached = this.#cached(skill, walk)
    if (cached !== undefined) return cached
    const bytes = walk.files.reduce((sum, { stamp, size }) => this.#files.hasChecksums(stamp) ? sum : sum + size, 0)
    if (bytes <= MAX_LISTED_BYTES || walk.exceededLimit !== undefined) return await this.of(skill)
    const id = idOf(skill)
    if (this.#background.has(id)) return undefined
    this.#background.add(id)
    // A failure will be reported by the next request.
    void this.#limitBackground(() => this.of(skill)).catch(() => {}).finally(() => { this.#background.delete(id) })
    return undefined
  }

  /** Ends reads in the background. */
  close (): void {
    this.#limitBackground.clearQueue()
    this.#background.clear()
    this.#files.close()
  }

  async #read (skill: IndexedSkill, known?: Walk): Promise<Snapshot> {
    const { root: { disk }, folder: { name, realPath }, filter, ignoreFile } = skill
    const walk = known ?? await walkSkill(disk, realPath, filter)
    if (walk.exceededLimit !== undefined) throw new RefusedError(walk.exceededLimit)
    if (ignoreFile === undefined && walk.files.some(({ path }) => path === IGNORE_FILE)) {
      throw changed('an ignore file was added after the skill was read')
    }
    const cached = this.#cached(skill, walk)
    if (cached !== undefined) return cached

    const files: ManifestFile[] = []
    const checksums = new Map<string, FileChecksums>()
    for (const walked of walk.files) {
      await yieldIfNeeded()
      const { path, stamp, isLink } = walked
      const place = { disk, folder: realPath, path, filter }
      const sums = await this.#files.checksumsAt(place, isLink ? undefined : stamp)
        .catch((error) => leaveOut(walk, walked, error))
      if (sums === undefined) continue
      files.push({
        path,
        size_bytes: sums.size,
        media_type: mediaType(path, isTextKind(sums.kind)),
        digest: sums.digest
      })
      checksums.set(path, sums)
    }
    // A settled walk is of one moment, and files are read in the states that it has found.
    const isOneState = (known?.isSettled === true && !walk.files.some(({ isLink }) => isLink)) ||
      (await walkSkill(disk, realPath, filter)).fingerprint === walk.fingerprint
    if (!isOneState) throw changed('the skill changed while its files were read')
    files.sort((a, b) => compareCodePoints(a.path, b.path))
    const snapshot = {
      manifest: { skill_name: name, revision: revisionOf(files), files },
      checksums,
      findings: [...leftOutFindings(walk.leftOut), ...contentFindings(files, (path) => checksums.get(path)?.kind)],
      fingerprint: walk.fingerprint
    }
    if (walk.isSettled) this.#cache.set(keyOf(skill), snapshot)
    return snapshot
  }

  #cached (skill: IndexedSkill, { fingerprint, isSettled }: Walk): Snapshot | undefined {
    const cached = this.#cache.get(keyOf(skill))
    return isSettled && cached?.fingerprint === fingerprint ? cached : undefined
  }
}

/** By a link two skills may be one folder, and each manifest has a name in it. */
function keyOf ({ folder: { name, realPath } }: IndexedSkill): string {
  return `${realPath}\0${name}`
}

/** Returns a key of all that the manifest of a skill depends on. */
function idOf (skill: IndexedSkill): string {
  return [keyOf(skill), skill.root.id, skill.filter?.id, skill.ignoreFile === undefined].join('\0')
}

/** @throws {RefusedError} for a file that has changed since it was listed, or that the disk fails to read */
function leaveOut ({ leftOut }: Walk, { path, isLink }: WalkedFile, error: unknown): undefined {
  const refused = asRefused(error)
  const { refusal } = refused
  if (isInconclusive(refused) || refusal === 'changed') throw refused
  if (refusal === 'permission_denied') leftOut.add('unreadable', path)
  // A regular file has nothing else that is wrong with it: it, or a folder above, was replaced since it was listed.
  else if (!isLink || refusal === 'too_large') throw changed('a file was replaced, or grew, while its skill was listed')
  else if (refusal === 'not_regular') leftOut.add('special', path)
  else if (refusal === 'is_directory') leftOut.add('folder_link', path)
  else leftOut.add('outside', path)
}

/** Computes the revision of a list of files. NUL ends each entry and is in no path: no two lists give the same text. */
export function revisionOf (files: readonly ManifestFile[]): string {
  return sha256(files.map(({ path, digest }) => `${digest} ${path}\0`).join(''))
}
