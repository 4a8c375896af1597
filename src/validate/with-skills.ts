import { readdir, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { isMainFile } from '../core/format/main-files.ts'
import type { RootOptions } from '../core/roots/root.ts'
import type { SkippedEntry } from '../core/roots/list-root.ts'
import { describeSkipped } from '../core/roots/skipped.ts'
import { SkillError } from '../core/shared/errors.ts'
import { errorCode } from '../core/shared/system-errors.ts'
import { quote, withoutEndSlashes } from '../core/shared/text.ts'
import { createSkillManager, type SkillManager, type SkillManagerOptions } from '../core/skill-manager.ts'

/** Why skills cannot be read. The message is one line. */
export class PathError extends Error {
  override readonly name = 'PathError'
}

/** Where a command reads skills: a folder of skills, one skill in it, or a root of a source. */
export interface Place {
  readonly root: RootOptions
  /** As the caller named it. */
  readonly path: string
  /** The only skill that is read, by its name in the root. */
  readonly only?: string
  /** Whether the folder is one that the service has fetched, and the caller does not know. */
  readonly isFetched?: boolean
}

/** The skills of a place, while a command reads them. */
export interface OpenedSkills {
  readonly place: Place
  readonly skills: SkillManager
  readonly names: readonly string[]
}

export interface ReadOptions {
  /** Absolute paths of folders outside that links in a folder of skills may lead into. */
  readonly linkTargets?: readonly string[] | undefined
  /** Called with the entries that could be skills and are left out. */
  readonly onSkipped?: SkillManagerOptions['onSkipped']
}

/** Folders without a main file that are searched for skills below, to say where they are. */
const MAX_SEARCHED_FOLDERS = 200

/**
 * The place that a path means: a folder of skills, a skill, or the skill of a SKILL.md.
 * @throws {PathError} for a path that is not there or cannot be read, and for another file
 */
export async function placeOf (path: string, cwd: string): Promise<Place> {
  const absolute = resolve(cwd, path)
  const stats = await stat(absolute).catch((error: unknown) => { throw unreadable(path, error) })
  if (stats.isDirectory()) {
    return await hasMainFile(absolute)
      ? skillAt(absolute, path)
      : { root: { path: absolute, name: basename(absolute) }, path }
  }
  if (isMainFile(basename(absolute))) return skillAt(dirname(absolute), path)
  throw new PathError(`${quote(path)} is not a SKILL.md: give a folder of skills, a skill, or a SKILL.md`)
}

function skillAt (folder: string, path: string): Place {
  return { root: { path: dirname(folder), name: basename(dirname(folder)) }, path, only: basename(folder) }
}

function unreadable (path: string, error: unknown): PathError {
  const code = errorCode(error) ?? ''
  if (code === 'ENOENT' || code === 'ENOTDIR') return new PathError(`${quote(path)} is not there`)
  return new PathError(`${quote(path)} ${code === 'EACCES' || code === 'EPERM' ? 'may not' : 'cannot'} be read`)
}

/**
 * Opens the skills of several places with the core of the service, and closes them when `use` has ended. Memory does
 * not grow with the sizes of skills.
 * @throws {PathError} before `use` is called, for a place that cannot be read and for one without skills
 */
export async function withSkills<T> (
  places: readonly Place[], options: ReadOptions, use: (opened: readonly OpenedSkills[]) => Promise<T>
): Promise<T> {
  const managers: SkillManager[] = []
  try {
    const opened: OpenedSkills[] = []
    for (const place of places) opened.push(await openPlace(place, options, managers))
    return await use(opened)
  } finally {
    for (const skills of managers) await skills.close()
  }
}

async function openPlace (
  place: Place, { linkTargets = [], onSkipped }: ReadOptions, managers: SkillManager[]
): Promise<OpenedSkills> {
  const { root, only, path } = place
  const left = new Map<string, string>()
  const skipped: SkippedEntry[] = []
  // A skill that was named by itself may be a link to anywhere.
  const target = only === undefined ? [] : await realpath(join(root.path, only)).catch(() => [])
  const skills = createSkillManager({
    projectRoots: [root],
    watcher: false,
    keep: { keepMs: 0 },
    linkTargets: [...linkTargets, target].flat(),
    onSkipped (entries) {
      for (const entry of entries) for (const sentence of describeSkipped(entry)) left.set(entry.name, sentence)
      skipped.push(...entries)
    }
  })
  managers.push(skills)
  await skills.start()
  const names = await skills.list().catch((error: unknown) => {
    if (error instanceof SkillError) {
      throw new PathError(`${quote(path)} ${error.kind === 'forbidden' ? 'may not' : 'cannot'} be read`)
    }
    throw error
  })
  if (only !== undefined) {
    if (names.includes(only)) return { place, skills, names: [only] }
    throw new PathError(`${quote(path)} is not a skill of its folder: ` +
      `${left.get(only) ?? 'no skill has such a name, or a .skillignore hides it'}`)
  }
  if (names.length === 0 || (root.listed === undefined && !await holdsSkill(root.path, names))) {
    const [[named, why] = ['', `no folder in it has a SKILL.md${await hint(root.path, path, names)}`]] = left
    onSkipped?.(skipped.filter(({ name }) => name !== named))
    throw new PathError(`${quote(path)} has no skills: ${why}`)
  }
  onSkipped?.(skipped)
  return { place, skills, names }
}

/** A folder that may not be read counts: its finding names the remedy. */
async function holdsSkill (folder: string, names: readonly string[]): Promise<boolean> {
  for (const name of names) if (await hasMainFile(join(folder, name), true)) return true
  return false
}

/** Where the skills may be for somebody who named the folder above them. */
async function hint (folder: string, path: string, names: readonly string[]): Promise<string> {
  for (const name of names.slice(0, MAX_SEARCHED_FOLDERS)) {
    const below = await readdir(join(folder, name)).catch(() => [])
    if (await holdsSkill(join(folder, name), below.slice(0, MAX_SEARCHED_FOLDERS))) {
      return `. There are skills in ${quote(`${withoutEndSlashes(path)}/${name}`)}`
    }
  }
  return ''
}

/**
 * Whether an entry has the name of a main file. It may be a folder: its finding says so.
 * @param ifRefused the answer for a folder that may not be read
 */
async function hasMainFile (folder: string, ifRefused = false): Promise<boolean> {
  try {
    return (await readdir(folder)).some(isMainFile)
  } catch (error) {
    return ifRefused && (errorCode(error) === 'EACCES' || errorCode(error) === 'EPERM')
  }
}
