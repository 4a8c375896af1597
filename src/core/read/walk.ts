import { createHash } from 'node:crypto'
import type { Dirent } from 'node:fs'
import { isHidden, type PathFilter } from './hidden.ts'
import { pathBelow, pathFrom } from '../shared/paths.ts'
import { yieldIfNeeded } from '../shared/async.ts'
import type { SkillExcess } from '../shared/errors.ts'
import { MAX_SKILL_BYTES, MAX_SKILL_ENTRIES } from '../shared/limits.ts'
import { errorCode } from '../shared/system-errors.ts'
import { type Disk, realpathOrNothing } from './disk.ts'
import { asRefused, changed, isUnknown, RefusedError } from './refused.ts'
import { isTrustworthy, signatureOf, stateId } from './signature.ts'

/**
 * Why a file of a skill is not in its manifest. Its name is not UTF-8, its absolute path is too long for the system,
 * it is no regular file, or it may not be read. A link may lead to a folder, or to no file of the skill. `outside`
 * does not say whether there is something.
 */
export type LeftOutKind = 'unnameable' | 'too_long' | 'special' | 'unreadable' | 'folder_link' | 'outside'

/** Names that are kept of each kind. */
const MAX_NAMES = 3

/** What was left out of a manifest. */
export class LeftOutFiles {
  readonly #kinds = new Map<LeftOutKind, { readonly names: string[], count: number }>()

  add (kind: LeftOutKind, path: string): void {
    let known = this.#kinds.get(kind)
    if (known === undefined) this.#kinds.set(kind, known = { names: [], count: 0 })
    known.count++
    if (known.names.length < MAX_NAMES) known.names.push(path)
  }

  /** The first files of each kind, and how many there are. */
  [Symbol.iterator] (): IterableIterator<[LeftOutKind, { readonly names: readonly string[], readonly count: number }]> {
    return this.#kinds.entries()
  }
}

/** A file of a skill, or a link that may lead to one. */
export interface WalkedFile {
  readonly path: string
  /** In bytes; of a link that of its target, 0 where there is none. */
  readonly size: bigint
  /** `stateId` of what would be read; undefined for nothing, or what may not be asked about. */
  readonly state: string | undefined
  readonly isLink: boolean
}

/** What is in a skill by its folders alone: no file was opened. Hidden files are in none of it. */
export interface Walk {
  /** Sorted as the folders list them. */
  readonly files: readonly WalkedFile[]
  readonly leftOut: LeftOutFiles
  /** Stands for the states of all folders and files: while it is the same, so is everything in the skill. */
  readonly fingerprint: string
  /** Whether every later edit is sure to change the fingerprint. */
  readonly isTrustworthy: boolean
  /** Set for a skill with too many files or bytes, of which the rest was not walked. */
  readonly excess: SkillExcess | undefined
}

/** A folder whose entries are still to be listed. */
interface Pending {
  /** `''` for the skill itself, else with a slash at the end. */
  readonly prefix: string
  /** Where it really is, below the skill's folder. */
  readonly realPath: string
  /** Whether a link led here: another one inside is not followed. */
  readonly isLinked: boolean
}

/**
 * Lists a skill, and the states of all that is in it.
 * @param base real path of the skill's folder
 * @throws {RefusedError} `not_found` when the folder went away, `changed`, `io_error`, `no_answer`
 */
export async function walkSkill (disk: Disk, base: string, filter: PathFilter | undefined): Promise<Walk> {
  const startedAt = Date.now()
  const files: WalkedFile[] = []
  const leftOut = new LeftOutFiles()
  const hash = createHash('sha256')
  let isOld = true
  let bytes = 0n
  let count = 0
  const pending: Pending[] = [{ prefix: '', realPath: base, isLinked: false }]
  const result = (excess?: SkillExcess): Walk => ({
    files, leftOut, fingerprint: hash.update(filter?.id ?? '').digest('hex'), isTrustworthy: isOld, excess
  })

  for (let folder = pending.shift(); folder !== undefined; folder = pending.shift()) {
    const { prefix, realPath, isLinked } = folder
    const entries = await listFolder(disk, folder, leftOut)
    hash.update(`${prefix}\0${entries.state}\0`)
    isOld &&= entries.signature === undefined || isTrustworthy(entries.signature, startedAt)
    for (const entry of entries.list) {
      const path = prefix + entry.name
      if (isHidden(path, entry.isDirectory(), filter)) continue
      if (++count > MAX_SKILL_ENTRIES) return result('too_many_files')
      if (entry.isDirectory()) {
        pending.push({ prefix: `${path}/`, realPath: `${realPath}/${entry.name}`, isLinked })
        continue
      }
      if (!entry.isFile() && !entry.isSymbolicLink()) {
        leftOut.add('special', path)
        continue
      }
      const stats = await statOf(disk, `${realPath}/${entry.name}`, entry)
      if (stats === 'too_long' || stats === 'unreadable') {
        leftOut.add(stats, path)
        continue
      }
      if (stats === undefined && entry.isFile()) {
        // Node shows bytes that are not UTF-8 as U+FFFD, and nothing can be opened by such a name.
        if (entry.name.includes('\uFFFD')) leftOut.add('unnameable', path)
        else throw changed('a file went away while its skill was listed')
        continue
      }
      if (stats?.isDirectory() === true) {
        const target = await realpathOrNothing(disk, pathBelow(base, path))
        const below = target === undefined ? undefined : pathFrom(base, target)
        if (target !== undefined && below === undefined) leftOut.add('outside', path)
        else if (target === undefined || isLinked || !isBehindDots(below)) leftOut.add('folder_link', path)
        else pending.push({ prefix: `${path}/`, realPath: target, isLinked: true })
        continue
      }
      const signature = stats && signatureOf(stats)
      const state = signature && stateId(signature)
      hash.update(`${path}\0${state ?? ''}\0`)
      isOld &&= signature === undefined || isTrustworthy(signature, startedAt)
      files.push({ path, size: signature?.size ?? 0n, state, isLink: entry.isSymbolicLink() })
      if (entry.isFile()) bytes += signature?.size ?? 0n
      if (bytes > MAX_SKILL_BYTES) return result('too_many_bytes')
      await yieldIfNeeded()
    }
  }
  return result()
}

async function listFolder (disk: Disk, { prefix, realPath }: Pending, leftOut: LeftOutFiles) {
  const path = prefix.slice(0, -1)
  try {
    const stats = await disk.stat(realPath)
    if (stats === undefined) throw new RefusedError('not_found')
    const signature = signatureOf(stats)
    return { list: await disk.readdir(realPath), signature, state: stateId(signature) }
  } catch (error) {
    const refused = asRefused(error)
    // The skill's own folder has to be there. One inside that may not be read has no files.
    if (prefix === '' || isUnknown(refused)) throw refused
    if (errorCode(refused.cause) === 'ENAMETOOLONG') leftOut.add('too_long', path)
    else if (refused.refusal === 'permission_denied') leftOut.add('unreadable', path)
    else throw changed('a folder went away while its skill was listed')
    return { list: [], signature: undefined, state: refused.refusal }
  }
}

async function statOf (disk: Disk, path: string, entry: Dirent) {
  try {
    return await (entry.isFile() ? disk.lstat(path) : disk.stat(path))
  } catch (error) {
    if (isUnknown(error)) throw asRefused(error)
    // Of a link, it may be the text of its target.
    if (!entry.isFile()) return undefined
    if (errorCode(error) === 'ENAMETOOLONG') return 'too_long'
    // The folder may be listed, and nothing in it looked at.
    return asRefused(error).refusal === 'permission_denied' ? 'unreadable' : undefined
  }
}

/**
 * Whether a folder lies behind a name that begins with `..`, as in a mounted ConfigMap (`references` →
 * `..data/references`).
 */
function isBehindDots (below: string | undefined): boolean {
  return below?.split('/').some((name) => name.startsWith('..')) === true
}
