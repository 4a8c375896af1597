import { LRUCache } from 'lru-cache'
import { contentFindings, leftOutFindings } from './file-findings.ts'
import { mediaType } from '../read/media-type.ts'
import { IGNORE_FILE } from '../read/ignore-file.ts'
import { type FileKind, isTextKind } from '../read/file-kind.ts'
import type { IndexedSkill } from '../read-skill.ts'
import type { Disk } from '../read/disk.ts'
import type { FileCache } from '../read/file-cache.ts'
import { asRefused, changed, isUnknown, RefusedError } from '../read/refused.ts'
import { type Walk, type WalkedFile, walkSkill } from '../read/walk.ts'
import { yieldIfNeeded } from '../shared/async.ts'
import { sha256 } from '../shared/digest.ts'
import { MAX_CACHED_SNAPSHOT_FILES } from '../shared/limits.ts'
import type { Finding, Manifest, ManifestFile } from '../shared/skill.ts'
import { compareCodePoints } from '../shared/text.ts'

/** All files of a skill in one state. */
export interface Snapshot {
  readonly manifest: Manifest
  /** Of each file of the manifest, in its order. */
  readonly crc32s: readonly number[]
  /** About files that are left out, and about the bytes of those that are not. */
  readonly findings: readonly Finding[]
  /** Whether one of the files, or of what was left out, is a symbolic link. */
  readonly hasLinks: boolean
}

interface CachedSnapshot extends Snapshot {
  readonly fingerprint: string
}

interface ReadFile {
  readonly file: ManifestFile
  readonly crc32: number
  readonly kind: FileKind | undefined
}

/** Makes manifests. The skill is walked at each question; files whose state is known are not read again. */
export class Snapshots {
  readonly #files: FileCache
  readonly #cache = new LRUCache<string, CachedSnapshot>({
    maxSize: MAX_CACHED_SNAPSHOT_FILES,
    sizeCalculation: ({ manifest }) => manifest.files.length + 1
  })

  constructor (files: FileCache) {
    this.#files = files
  }

  /**
   * @throws {RefusedError} `not_found` when the folder went away, `changed` when something changed meanwhile,
   * `too_many_files`, `too_many_bytes`, `permission_denied`, `io_error`, `no_answer`
   */
  async of (disk: Disk, skill: IndexedSkill): Promise<Snapshot> {
    const { folder, filter, ignoreFile } = skill
    const walk = await walkSkill(disk, folder.realPath, filter)
    if (walk.excess !== undefined) throw new RefusedError(walk.excess)
    if (ignoreFile === undefined && walk.files.some(({ path }) => path === IGNORE_FILE)) {
      throw changed('an ignore file came after the skill was read')
    }
    // Two skills may be one folder, by a link: each manifest has its own name in it.
    const key = `${folder.realPath}\0${folder.name}`
    const cached = this.#cache.get(key)
    if (cached?.fingerprint === walk.fingerprint && walk.isTrustworthy) return cached

    const { read, wasRead } = await this.#readAll(disk, skill, walk)
    const { leftOut } = walk
    if (wasRead) {
      const again = await walkSkill(disk, folder.realPath, filter)
      if (again.fingerprint !== walk.fingerprint) throw changed('the skill changed while its files were read')
    }
    read.sort((a, b) => compareCodePoints(a.file.path, b.file.path))
    const files = read.map(({ file }) => file)
    const kinds = new Map(read.flatMap(({ file, kind }) => kind === undefined ? [] : [[file.path, kind] as const]))
    const snapshot = {
      manifest: { skill_name: folder.name, revision: revisionOf(files), files },
      crc32s: read.map(({ crc32 }) => crc32),
      findings: [...leftOutFindings(leftOut), ...contentFindings(files, kinds)],
      hasLinks: walk.files.some(({ isLink }) => isLink),
      fingerprint: walk.fingerprint
    }
    if (walk.isTrustworthy) this.#cache.set(key, snapshot)
    return snapshot
  }

  async #readAll (
    disk: Disk, { folder, filter }: IndexedSkill, walk: Walk
  ): Promise<{ read: ReadFile[], wasRead: boolean }> {
    const read: ReadFile[] = []
    let wasRead = false
    for (const walked of walk.files) {
      await yieldIfNeeded()
      try {
        const { path, state, isLink } = walked
        const place = { disk, folder: folder.realPath, path, filter }
        const checksums = await this.#files.checksumsAt(place, isLink ? undefined : state)
        wasRead ||= checksums.wasRead
        const file = {
          path,
          size_bytes: Number(checksums.size),
          media_type: mediaType(path, isTextKind(checksums.kind)),
          digest: checksums.digest
        }
        read.push({ file, crc32: checksums.crc32, kind: checksums.kind })
      } catch (error) {
        leaveOut(walk, walked, asRefused(error))
      }
    }
    return { read, wasRead }
  }
}

/** @throws {RefusedError} for a file that was there when it was listed, and says nothing about it now */
function leaveOut ({ leftOut }: Walk, { path, isLink }: WalkedFile, refused: RefusedError): void {
  const { refusal } = refused
  if (isUnknown(refused) || refusal === 'changed') throw refused
  if (refusal === 'permission_denied') leftOut.add('unreadable', path)
  // A regular file has nothing else that is wrong with it: it, or a folder above, was replaced since it was listed.
  else if (!isLink || refusal === 'too_large') throw changed('a file was replaced, or grew, while its skill was listed')
  else if (refusal === 'not_regular') leftOut.add('special', path)
  else if (refusal === 'is_directory') leftOut.add('folder_link', path)
  else leftOut.add('outside', path)
}

/** NUL ends each entry: no path holds it, so two different lists never give the same text. */
function revisionOf (files: readonly ManifestFile[]): string {
  return sha256(files.map(({ path, digest }) => `${digest} ${path}\0`).join(''))
}
