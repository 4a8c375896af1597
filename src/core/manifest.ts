import type { Dirent } from 'node:fs'
import { LRUCache } from 'lru-cache'
import { createSlicer } from './async.ts'
import type { IndexedSkill } from './catalogue.ts'
import type { ContentStore } from './content-store.ts'
import { withoutInvalidUtf8 } from './discover.ts'
import type { Disk } from './disk.ts'
import { sha256 } from './file-content.ts'
import { MAX_CACHED_MANIFEST_ENTRIES } from './limits.ts'
import { mediaType } from './media-type.ts'
import { isHiddenFile, isHiddenPath } from './relative-path.ts'
import { isSameState, isSettled, signatureOf } from './signature.ts'
import { asRefused, openInside, RefusedError } from './skill-reader.ts'
import type { Signature } from './skill.ts'
import { compareCodePoints } from './text.ts'

export interface ManifestFile {
  /** Relative to the skill's folder, `/` between segments. */
  readonly path: string
  readonly size_bytes: number
  readonly media_type: string
  /** `sha256:<hex>` of the bytes. */
  readonly digest: string
}

/** All files of a skill in one state (K43). */
export interface Manifest {
  readonly skill_name: string
  /** `sha256:<hex>` over paths and digests: the same content has the same revision everywhere. */
  readonly revision: string
  readonly files: readonly ManifestFile[]
}

/** What was looked at to make a manifest, undefined where nothing was; it holds while all of it is as it was. */
type Seen = ReadonlyMap<string, Signature | undefined>

interface CachedManifest {
  readonly manifest: Manifest
  readonly seen: Seen
}

const MAX_ATTEMPTS = 4

/** Makes manifests, and keeps them with the signatures of everything that they were made from (K51). */
export class ManifestStore {
  readonly #contents: ContentStore
  readonly #cache = new LRUCache<string, CachedManifest>({
    maxSize: MAX_CACHED_MANIFEST_ENTRIES,
    sizeCalculation: ({ seen }) => seen.size + 1
  })

  constructor (contents: ContentStore) {
    this.#contents = contents
  }

  /** @throws {RefusedError} `not_found` when the folder went away, `io_error` when it never holds still */
  async get (disk: Disk, skill: IndexedSkill): Promise<Manifest> {
    const { name, realPath } = skill.folder
    // Two skills may be one folder (a link beside it): each manifest has its own name in it.
    const key = `${realPath}\n${name}`
    const cached = this.#cache.get(key)
    if (cached !== undefined && await isUnchanged(disk, cached.seen)) return cached.manifest
    for (let attempt = 1; ; attempt++) {
      const seenAt = Date.now()
      const seen = new Map<string, Signature | undefined>()
      try {
        const files = await this.#walk(disk, realPath, seen)
        // Nothing moved between the first look and the last: all of it is one state (K53).
        if (!await isUnchanged(disk, seen)) throw new RefusedError('io_error', new Error('the skill changed while it was listed'))
        const manifest = { skill_name: name, revision: revisionOf(files), files }
        if ([...seen.values()].every((signature) => signature === undefined || isSettled(signature, seenAt))) this.#cache.set(key, { manifest, seen })
        return manifest
      } catch (error) {
        if (attempt === MAX_ATTEMPTS || !(error instanceof RefusedError) || error.refusal !== 'io_error') throw error
      }
    }
  }

  async #walk (disk: Disk, base: string, seen: Map<string, Signature | undefined>): Promise<readonly ManifestFile[]> {
    const breathe = createSlicer()
    const files: ManifestFile[] = []
    const folders = ['']
    for (let prefix = folders.pop(); prefix !== undefined; prefix = folders.pop()) {
      for (const entry of await listFolder(disk, base, prefix, seen)) {
        const path = prefix + entry.name
        if (isHiddenPath([entry.name])) continue
        if (entry.isDirectory()) folders.push(`${path}/`)
        else if (!isHiddenFile(entry.name)) {
          const file = await this.#describe(disk, base, path, entry, seen)
          if (file !== undefined) files.push(file)
        }
        await breathe()
      }
    }
    return files.sort((a, b) => compareCodePoints(a.path, b.path))
  }

  /** Undefined for what is not served: links that leave, links to folders, FIFOs, devices, what may not be read. */
  async #describe (
    disk: Disk, base: string, path: string, entry: Dirent, seen: Map<string, Signature | undefined>
  ): Promise<ManifestFile | undefined> {
    if (!entry.isFile() && !entry.isSymbolicLink()) return undefined
    const place = `${base}/${path}`
    const type = mediaType(path)
    try {
      const stats = entry.isFile() ? await disk.lstat(place) : undefined
      const known = stats?.isFile() ? this.#contents.knownDigest(signatureOf(stats)) : undefined
      if (stats !== undefined && known !== undefined) {
        seen.set(place, signatureOf(stats))
        return { path, size_bytes: Number(stats.size), media_type: type, digest: known }
      }
      const file = await openInside(disk, base, path)
      try {
        const digest = await this.#contents.digest(file)
        seen.set(place, signatureOf(file.stats))
        return { path, size_bytes: Number(file.stats.size), media_type: type, digest }
      } finally {
        await file.close()
      }
    } catch (error) {
      const refused = asRefused(error)
      if (refused.refusal === 'io_error') throw refused
      // A regular file has nothing else that is wrong with it: it, or a folder above, was exchanged since it was listed.
      if (entry.isFile() && refused.refusal !== 'permission_denied') throw new RefusedError('io_error', refused)
      // It may be served one day without a change to its folder: a permission given, a link's target made.
      seen.set(place, await signatureAt(disk, place))
      return undefined
    }
  }
}

async function listFolder (disk: Disk, base: string, prefix: string, seen: Map<string, Signature | undefined>): Promise<readonly Dirent[]> {
  const place = prefix === '' ? base : `${base}/${prefix.slice(0, -1)}`
  let signature: Signature | undefined
  try {
    const stats = await disk.stat(place)
    signature = stats && signatureOf(stats)
    if (signature === undefined) throw new RefusedError('not_found')
    return await withoutInvalidUtf8(disk, place, await disk.readdir(place))
  } catch (error) {
    const refused = asRefused(error)
    // A folder inside that is not there or may not be read has no files; the skill's own folder has to be there.
    if (prefix === '' || refused.refusal === 'io_error') throw refused
    // It was there a moment ago, and may be back by the time that everything is seen again.
    if (signature !== undefined && refused.refusal === 'not_found') throw new RefusedError('io_error', refused)
    return []
  } finally {
    seen.set(place, signature)
  }
}

/** Everything that was seen, seen again: links followed, so that a target's change counts. */
async function isUnchanged (disk: Disk, seen: Seen): Promise<boolean> {
  const breathe = createSlicer()
  for (const [place, before] of seen) {
    const now = await signatureAt(disk, place)
    if (now === undefined || before === undefined ? now !== before : !isSameState(now, before)) return false
    await breathe()
  }
  return true
}

/** Undefined for what is not there or may not be seen. */
async function signatureAt (disk: Disk, place: string): Promise<Signature | undefined> {
  try {
    const stats = await disk.stat(place)
    return stats && signatureOf(stats)
  } catch {
    return undefined
  }
}

/** NUL ends each entry: it is the one character that no path holds, so two lists never look alike. */
function revisionOf (files: readonly ManifestFile[]): string {
  return sha256(files.map(({ path, digest }) => `${digest} ${path}\0`).join(''))
}
