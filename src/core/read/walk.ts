import { createHash } from 'node:crypto'
import type { BigIntStats, Dirent } from 'node:fs'
import { yieldIfNeeded } from '../shared/async.ts'
import type { SkillLimit } from '../shared/errors.ts'
import { MAX_SKILL_BYTES, MAX_SKILL_ENTRIES } from '../shared/limits.ts'
import { pathFrom } from '../shared/paths.ts'
import { errorCode } from '../shared/system-errors.ts'
import { type Disk, readEntries, realpathOrNothing } from './disk.ts'
import { isHidden, type PathFilter } from './hidden.ts'
import { asRefused, changed, isInconclusive, RefusedError } from './refused.ts'
import { type FileStamp, isSettled, stampOf } from './file-stamp.ts'

/**
 * Why a file is not in the manifest. `unnameable`: the name is not UTF-8. `too_long`: the absolute path is too long for
 * the system. `special`: not a regular file. `unreadable`: access is denied. `folder_link`: a link to a folder.
 * `outside`: a link to no file of the skill, which may exist or not.
 */
export type LeftOutKind = 'unnameable' | 'too_long' | 'special' | 'unreadable' | 'folder_link' | 'outside'

export class LeftOutFiles extends Map<LeftOutKind, string[]> {
  add (kind: LeftOutKind, path: string): void {
    const paths = this.get(kind) ?? []
    paths.push(path)
    this.set(kind, paths)
  }
}

/** A file of a skill, or a link that may lead to one. */
export interface WalkedFile {
  readonly path: string
  /** Stamp of the file, following links; undefined if nothing is there or access is denied. */
  readonly stamp: FileStamp | undefined
  readonly size: number
  readonly isLink: boolean
}

/** Files of a skill, without hidden ones, from `readdir` and `stat` alone: no file is opened. */
export interface Walk {
  /** Folder by folder, each sorted by name. */
  readonly files: readonly WalkedFile[]
  readonly leftOut: LeftOutFiles
  /** Hash over the states of all folders and files. While it is equal, nothing in the skill has changed. */
  readonly fingerprint: string
  /** Whether every later edit is sure to change the fingerprint. */
  readonly isSettled: boolean
  /** Set for a skill with too many files or bytes, of which the rest was not walked. */
  readonly exceededLimit: SkillLimit | undefined
}

interface Pending {
  /** Path of the folder in the skill with a slash at its end; `''` for the skill itself. */
  readonly prefix: string
  readonly realPath: string
  /** Whether a link led here: no other one inside is followed. */
  readonly isLinked: boolean
}

/** Lists the files of the skill at a real path, with their stamps. @throws {RefusedError} also `changed` */
export async function walkSkill (disk: Disk, base: string, filter: PathFilter | undefined): Promise<Walk> {
  const startedAt = Date.now()
  const files: WalkedFile[] = []
  const leftOut = new LeftOutFiles()
  const hash = createHash('sha256')
  let areSettled = true
  let bytes = 0n
  let count = 0
  const pending: Pending[] = [{ prefix: '', realPath: base, isLinked: false }]
  const result = (exceededLimit?: SkillLimit): Walk => ({
    files, leftOut, fingerprint: hash.update(filter?.id ?? '').digest('hex'), isSettled: areSettled, exceededLimit
  })
  const addToFingerprint = (path: string, stamp: FileStamp | undefined): void => {
    hash.update(`${path}\0${stamp ?? ''}\0`)
    areSettled &&= isSettled(stamp, startedAt)
  }

  for (let folder = pending.shift(); folder !== undefined; folder = pending.shift()) {
    const { prefix, realPath, isLinked } = folder
    const { entries, stamp } = await listFolder(disk, folder, leftOut)
    addToFingerprint(prefix, stamp)
    for (const entry of entries) {
      const path = prefix + entry.name
      if (isHidden(path, entry.isDirectory(), filter)) continue
      if (++count > MAX_SKILL_ENTRIES) return result('too_many_files')
      if (entry.isDirectory()) {
        pending.push({ prefix: `${path}/`, realPath: `${realPath}/${entry.name}`, isLinked })
        continue
      }
      const found = await examine(disk, `${realPath}/${entry.name}`, entry)
      if (typeof found === 'string') {
        leftOut.add(found, path)
      } else if (found?.isDirectory() === true) {
        const target = await folderBehind(disk, base, path)
        if (target === 'outside') leftOut.add('outside', path)
        else if (target === undefined || isLinked) leftOut.add('folder_link', path)
        else pending.push({ prefix: `${path}/`, realPath: target, isLinked: true })
      } else {
        const stamp = found && stampOf(found)
        addToFingerprint(path, stamp)
        files.push({ path, stamp, size: Number(found?.size ?? 0), isLink: entry.isSymbolicLink() })
        if (entry.isFile()) bytes += found?.size ?? 0n
        if (bytes > MAX_SKILL_BYTES) return result('too_many_bytes')
      }
      await yieldIfNeeded()
    }
  }
  return result()
}

async function listFolder (disk: Disk, { prefix, realPath }: Pending, leftOut: LeftOutFiles) {
  try {
    const stats = await disk.stat(realPath)
    if (stats === undefined) throw new RefusedError('not_found')
    return { entries: await readEntries(disk, realPath), stamp: stampOf(stats) }
  } catch (error) {
    const refused = asRefused(error)
    // An unreadable folder in the skill has no files, but the skill's own folder must exist.
    if (prefix === '' || isInconclusive(refused)) throw refused
    leftOut.add(unreachable(refused) ?? throwChanged('a folder'), prefix.slice(0, -1))
    return { entries: [], stamp: undefined }
  }
}

/** Returns the `stat` of a file or link target, or why it is left out; undefined for a link to nothing accessible. */
async function examine (disk: Disk, path: string, entry: Dirent): Promise<BigIntStats | LeftOutKind | undefined> {
  if (!entry.isFile() && !entry.isSymbolicLink()) return 'special'
  try {
    const stats = await (entry.isFile() ? disk.lstat(path) : disk.stat(path))
    if (stats !== undefined || !entry.isFile()) return stats
  } catch (error) {
    if (isInconclusive(error)) throw asRefused(error)
    // For a link, the error may be about the path of its target.
    if (!entry.isFile()) return undefined
    const kind = unreachable(asRefused(error))
    if (kind !== undefined) return kind
  }
  // Node shows bytes that are not UTF-8 as U+FFFD, and nothing can be opened by such a name.
  return entry.name.includes('\uFFFD') ? 'unnameable' : throwChanged('a file')
}

function unreachable ({ refusal, cause }: RefusedError): LeftOutKind | undefined {
  if (errorCode(cause) === 'ENAMETOOLONG') return 'too_long'
  return refusal === 'permission_denied' ? 'unreadable' : undefined
}

function throwChanged (what: string): never {
  throw changed(`${what} disappeared while its skill was listed`)
}

/**
 * Returns the folder that a link leads to, if it is in the skill behind a name that begins with `..`, as in a mounted
 * ConfigMap (`references` → `..data/references`). Undefined for other links to folders, which are not followed.
 */
async function folderBehind (disk: Disk, base: string, path: string): Promise<string | undefined> {
  const target = await realpathOrNothing(disk, `${base}/${path}`)
  if (target === undefined) return undefined
  const below = pathFrom(base, target)
  if (below === undefined) return 'outside'
  return below.split('/').some((name) => name.startsWith('..')) ? target : undefined
}
