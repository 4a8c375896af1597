import type { Dirent } from 'node:fs'
import { createSlicer } from '../shared/async.ts'
import type { SkillExcess } from '../shared/errors.ts'
import { MAX_SKILL_BYTES, MAX_SKILL_ENTRIES } from '../shared/limits.ts'
import type { Signature } from '../shared/skill.ts'
import type { Disk } from './disk.ts'
import { errorCode } from '../shared/system-errors.ts'
import { entriesIn } from './folder-entries.ts'
import { LeftOutFiles } from './left-out-files.ts'
import { isHiddenFile, isHiddenPath, type PathFilter } from './hidden.ts'
import { IGNORE_FILE } from './ignore-file.ts'
import { signatureAt } from './observed.ts'
import { pathBelow } from './paths.ts'
import { asRefused, changed, isUnknown, RefusedError } from './refused.ts'
import { isSameOrMissing, signatureOf } from './signature.ts'

/** A file, or a link, of a skill. */
export interface WalkedFile {
  readonly path: string
  readonly entry: Dirent
}

/** What hides files of a skill. */
interface Hiding {
  readonly filter?: PathFilter | undefined
  readonly ignoreFile?: { readonly signature: Signature | undefined } | undefined
}

/** What a walk through a skill found. Hidden files are in none of it. */
export interface Walk {
  readonly base: string
  /** Wall clock when it began, in milliseconds. */
  readonly startedAt: number
  /** The states of all folders and files, those of links followed. */
  readonly observed: Map<string, Signature | undefined>
  /** Prefixes of the folders, '' first. */
  readonly folders: string[]
  readonly files: WalkedFile[]
  readonly leftOut: LeftOutFiles
  readonly filter: PathFilter | undefined
  readonly signal: AbortSignal | undefined
  /** Why the walk was ended: of a skill with too many files or bytes the rest is not known. */
  excess: SkillExcess | undefined
}

/**
 * Lists a skill and observes the states of all that is in it, in slices. Opens no file.
 * @param hidden what else than hidden names is not part of the skill, and the ignore file that says so, if there is one
 * @param signal ends it, with an error
 * @throws {RefusedError} `not_found` when the folder went away, `changed` when one in it did, `io_error`
 */
export async function walkSkill (disk: Disk, base: string, { filter, ignoreFile }: Hiding = {}, signal?: AbortSignal): Promise<Walk> {
  const walk: Walk = { base, startedAt: Date.now(), observed: new Map(), folders: [''], files: [], leftOut: new LeftOutFiles(), filter, signal, excess: undefined }
  const yieldIfNeeded = createSlicer()
  // What hides files is of the same state as the files.
  if (ignoreFile !== undefined) {
    const now = await signatureAt(disk, pathBelow(base, IGNORE_FILE))
    if (!isSameOrMissing(now, ignoreFile.signature)) throw changed('the ignore file changed after the index was read')
    walk.observed.set(IGNORE_FILE, now)
  }
  let bytes = 0n
  let count = 0
  for (const prefix of walk.folders) {
    for await (const { entries, unnameable } of listFolder(disk, walk, prefix)) {
      count += unnameable.length
      for (const name of unnameable) walk.leftOut.add('unnameable', prefix + name)
      for (const entry of entries) {
        if (ignoreFile === undefined && prefix === '' && entry.name === IGNORE_FILE) throw changed('an ignore file came after the index was read')
        if (++count > MAX_SKILL_ENTRIES) walk.excess = 'too_many_files'
        else bytes += await observe(disk, walk, prefix + entry.name, entry)
        if (bytes > MAX_SKILL_BYTES) walk.excess = 'too_many_bytes'
        if (walk.excess !== undefined) return walk
        await yieldIfNeeded()
        signal?.throwIfAborted()
      }
    }
  }
  return walk
}

/** Real paths of the folders below the skill's own. */
export function foldersInside ({ base, folders }: Walk): readonly string[] {
  return folders.slice(1).map((prefix) => pathBelow(base, prefix.slice(0, -1)))
}

/** @returns the size of a file in bytes; 0 for a link, whose target may be anywhere */
async function observe (disk: Disk, { base, observed, folders, files, leftOut, filter }: Walk, path: string, entry: Dirent): Promise<bigint> {
  if (isHiddenPath([entry.name]) || filter?.hides(path, entry.isDirectory()) === true) return 0n
  if (entry.isDirectory()) {
    folders.push(`${path}/`)
    return 0n
  }
  if (isHiddenFile(entry.name)) return 0n
  if (!entry.isFile() && !entry.isSymbolicLink()) {
    leftOut.add('special', path)
    return 0n
  }
  const state = await stateOf(disk, pathBelow(base, path), entry)
  if (state === 'too_long') {
    leftOut.add('too_long', path)
    return 0n
  }
  files.push({ path, entry })
  observeState(observed, path, state)
  return entry.isFile() ? state?.size ?? 0n : 0n
}

/** The ignore file stays in the state that its rules are of: a later state would be that of other rules. */
export function observeState (observed: Walk['observed'], path: string, state: Signature | undefined): void {
  if (path !== IGNORE_FILE || !observed.has(path)) observed.set(path, state)
}

/** A link in the place of a listed file has another state than the file. Undefined for what is not there or may not be read. */
async function stateOf (disk: Disk, path: string, entry: Dirent): Promise<Signature | 'too_long' | undefined> {
  try {
    const stats = await (entry.isFile() ? disk.lstat(path) : disk.stat(path))
    return stats && signatureOf(stats)
  } catch (error) {
    // A disk that fails does not say that the file is gone.
    if (isUnknown(error)) throw asRefused(error)
    // Of a link, it may be the text of a target.
    return entry.isFile() && isTooLong(error) ? 'too_long' : undefined
  }
}

/** Relative calls, such as those of tar, make files that no absolute path reaches. */
function isTooLong (error: unknown): boolean {
  return errorCode(error) === 'ENAMETOOLONG'
}

async function * listFolder (disk: Disk, { base, observed, leftOut }: Walk, prefix: string): ReturnType<typeof entriesIn> {
  const path = prefix.slice(0, -1)
  const folder = pathBelow(base, path)
  let signature: Signature | undefined
  try {
    const stats = await disk.stat(folder)
    signature = stats && signatureOf(stats)
    observed.set(path, signature)
    if (signature === undefined) throw new RefusedError('not_found')
    yield * entriesIn(disk, folder, signature.size)
  } catch (error) {
    observed.set(path, signature)
    const refused = asRefused(error)
    // A folder inside that is not there or may not be read has no files; the skill's own folder has to be there.
    if (prefix === '' || refused.refusal === 'io_error') throw refused
    if (isTooLong(refused.cause)) return leftOut.add('too_long', path)
    // It was there a moment ago, and may be back when everything is compared again.
    if (signature !== undefined && refused.refusal === 'not_found') throw changed('a folder went away while it was listed')
    if (refused.refusal === 'permission_denied') leftOut.add('unreadable', path)
  }
}
