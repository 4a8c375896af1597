import type { Dirent } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { LRUCache } from 'lru-cache'
import { indexSkill } from '../core/read-skill.ts'
import { isMainFile } from '../core/format/main-files.ts'
import { scanRoot, type SkillFolder } from '../core/roots/list-root.ts'
import { describeSkipped } from '../core/roots/skipped.ts'
import { KeptRevisions } from '../core/content/kept/kept-revisions.ts'
import { RevisionMemory } from '../core/content/kept/revision-memory.ts'
import { ManifestStore, type SkillPlace } from '../core/content/manifest.ts'
import type { FileList } from '../core/shared/skill.ts'
import type { Disk } from '../core/read/disk.ts'
import { errorCode } from '../core/shared/system-errors.ts'
import { createLocalDiskFor } from '../core/disk/network/local-disk.ts'
import { PollPhase } from '../core/disk/poll-phase.ts'
import { asRefused, RefusedError } from '../core/read/refused.ts'
import type { FileContent } from '../core/read/file-content.ts'
import { FileStore } from '../core/read/file-cache.ts'
import { MAX_MAIN_FILE_BYTES } from '../core/shared/limits.ts'
import { compareCodePoints, quote, withoutEndSlashes } from '../core/shared/text.ts'
import { TOO_LARGE } from '../core/listing/entry.ts'
import { type FindingSource, subjectOf } from '../verdicts/entry.ts'
import type { Subject } from '../verdicts/subject.ts'
import { listFiles } from './listed-files.ts'

/** Why a path cannot be judged. The message is one line. */
export class PathError extends Error {
  override readonly name = 'PathError'
}

/** A skill on the disk, as `validate` reads it. */
export interface SkillOnDisk {
  readonly subject: Subject
  /** Undefined when its files cannot be read, or no revisions are wanted. */
  readonly revision: string | undefined
}

/** How folders of skills are listed. */
export interface ListOptions {
  /** Where relative paths begin. */
  readonly cwd: string
  /** Absolute paths of folders that links may lead into, besides the folder of skills itself. */
  readonly linkTargets?: readonly string[] | undefined
  /** Receives a sentence for each entry that could be a skill and is left out. */
  readonly onSkipped?: (sentence: string) => void
}

/** Folders below a folder without skills that are searched for some, to say where they are. */
const MAX_HINT_FOLDERS = 200

/**
 * The skills that a path means: all of a folder of skills, one skill, or the skill of a SKILL.md. Sorted by name.
 * @param path as the caller gave it
 * @throws {PathError} for a path that cannot be read and for a folder without skills
 */
export async function skillsAt (path: string, { cwd, linkTargets = [], onSkipped }: ListOptions): Promise<readonly SkillFolder[]> {
  const absolute = resolve(cwd, path)
  const disk = createLocalDiskFor([absolute, ...linkTargets])
  if (await isFileAt(disk, absolute, path)) {
    if (!isMainFile(basename(absolute))) throw new PathError(`${quote(path)} is no SKILL.md: give a folder of skills, a skill, or a SKILL.md`)
    return [await folderOf(disk, dirname(absolute))]
  }
  const scan = await scanRoot(disk, { name: basename(absolute), path: absolute, type: 'project', listed: undefined, linkTargets })
  if (scan.state !== 'ok') throw new PathError(`${quote(path)} ${scan.state === 'unreadable' ? 'may not' : 'cannot'} be read`)
  if (scan.isSkill) return [await folderOf(disk, absolute)]
  const folders = [...scan.folders.values()].sort((a, b) => compareCodePoints(a.name, b.name))
  const skipped = scan.skipped.flatMap((entry) => describeSkipped(entry))
  for (const folder of folders) {
    // A folder that may not be read is judged: its finding names the remedy.
    if (!await hasMainFile(disk, folder.realPath, isRefusal)) continue
    for (const sentence of skipped) onSkipped?.(sentence)
    return folders
  }
  if (await hasMainFile(disk, absolute)) return [await folderOf(disk, absolute)]
  throw new PathError(`${quote(path)} has no skills: ${skipped[0] ?? `no folder in it has a SKILL.md${await hint(disk, path, folders)}`}`)
}

/** @param path as the caller gave it */
async function isFileAt (disk: Disk, absolute: string, path: string): Promise<boolean> {
  try {
    const stats = await disk.stat(absolute)
    if (stats !== undefined) return stats.isFile()
  } catch (error) {
    if (errorCode(error) !== 'ENOTDIR') throw new PathError(`${quote(path)} ${isRefusal(error) ? 'may not' : 'cannot'} be read`)
  }
  throw new PathError(`${quote(path)} is not there`)
}

async function folderOf (disk: Disk, path: string): Promise<SkillFolder> {
  return { name: basename(path), type: 'project', path, realPath: await disk.realpath(path), linked: false }
}

/**
 * Whether an entry has the name of a main file. It may be a folder: its finding says so.
 * @param counts the errors of a folder that count as a main file; default: none
 */
async function hasMainFile (disk: Disk, folder: string, counts = (_error: unknown): boolean => false): Promise<boolean> {
  try {
    return (await disk.readdir(folder)).some(({ name }) => isMainFile(name))
  } catch (error) {
    return counts(error)
  }
}

/** Where the skills may be for somebody who named the folder above them. */
async function hint (disk: Disk, path: string, folders: readonly SkillFolder[]): Promise<string> {
  for (const folder of folders.slice(0, MAX_HINT_FOLDERS)) {
    for (const { name } of (await entriesOf(disk, folder.realPath)).slice(0, MAX_HINT_FOLDERS)) {
      if (await hasMainFile(disk, `${folder.realPath}/${name}`)) return `. There are skills in ${quote(`${withoutEndSlashes(path)}/${folder.name}`)}`
    }
  }
  return ''
}

async function entriesOf (disk: Disk, folder: string): Promise<readonly Dirent[]> {
  try {
    return await disk.readdir(folder)
  } catch {
    return []
  }
}

function isRefusal (error: unknown): boolean {
  return asRefused(error).refusal === 'permission_denied'
}

/** Folders whose listings are remembered: more than skills that are read at a time. */
const REMEMBERED_FOLDERS = 32

/** The local disk. The index and the list of files read the same folder: listing folders is half of the time of `validate`. */
function createListingDisk (folders: readonly string[]): Disk {
  const local = createLocalDiskFor(folders)
  const listings = new LRUCache<string, Awaited<ReturnType<Disk['readdir']>>>({ max: REMEMBERED_FOLDERS })
  return {
    ...local,
    async readdir (path) {
      const known = listings.get(path)
      if (known !== undefined) return known
      const entries = await local.readdir(path)
      listings.set(path, entries)
      return entries
    }
  }
}

/** Reads skills with the service's own readers: what it keeps in memory is bounded as there. */
export class SkillReader {
  readonly #disk: Disk
  readonly #store = new FileStore(new PollPhase())
  readonly #manifests = new ManifestStore({ store: this.#store, kept: new KeptRevisions(new RevisionMemory({ keepMs: 0 })) })
  readonly #sources: readonly FindingSource[]
  readonly #withRevisions: boolean

  /**
   * @param sources as `createJudge` takes them
   * @param withRevisions whether all files are hashed: only revisions need it
   * @param folders that hold the skills, by real path
   */
  constructor (sources: readonly FindingSource[], withRevisions: boolean, folders: readonly string[]) {
    this.#disk = createListingDisk(folders)
    this.#sources = sources
    this.#withRevisions = withRevisions
  }

  /** Undefined for a folder that went away meanwhile. */
  async read (folder: SkillFolder): Promise<SkillOnDisk | undefined> {
    const skill = await indexSkill(folder, { disk: this.#disk, store: this.#store, sequence: 0 })
    if (skill === undefined) return undefined
    const { manifest, revision, fileFindings } = await this.#files(skill)
    const mainFile = await this.#mainFile(folder, skill.mainFile?.name)
    const subject = await subjectOf({ skill, manifest, mainFile, fileFindings }, this.#sources)
    return { subject, revision }
  }

  async #files (skill: SkillPlace): Promise<{ manifest?: FileList, revision?: string, fileFindings: Subject['otherFindings'] }> {
    try {
      const listed = this.#withRevisions ? undefined : await listFiles(this.#disk, skill)
      if (listed !== undefined) return { manifest: listed, fileFindings: listed.findings }
      const { manifest, findings } = await this.#manifests.get(this.#disk, skill, this.#store.readCount, 'compared')
      return { manifest, revision: manifest.revision, fileFindings: findings }
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error
      const { refusal } = error
      return { fileFindings: refusal === 'too_many_files' || refusal === 'too_many_bytes' ? [TOO_LARGE[refusal]] : [] }
    }
  }

  async #mainFile (folder: SkillFolder, name: string | undefined): Promise<FileContent | undefined> {
    if (name === undefined) return undefined
    try {
      return (await this.#store.read({ disk: this.#disk, folder: folder.realPath, path: name }, MAX_MAIN_FILE_BYTES)).content
    } catch (error) {
      if (error instanceof RefusedError) return undefined
      throw error
    }
  }
}
