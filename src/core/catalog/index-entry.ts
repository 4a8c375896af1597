import { type Awaitable, whenReady } from '../ground/async.ts'
import type { Disk } from '../disk/disk.ts'
import { IGNORE_FILE } from '../disk/ignore-file.ts'
import type { PollPhase } from '../disk/poll-phase.ts'
import { isSameOrMissing, isSameState } from '../disk/signature.ts'
import { type Catalog, type IndexedSkill, isSameOnDisk, isSameToCallers } from './catalog.ts'

/**
 * Whether folder and main file of an index entry are on the disk as they were when it was read.
 * @param rootRulesHold whether the root's rules on files are as they were
 */
export function folderHolds (disk: Disk, phase: PollPhase, skill: IndexedSkill, rootRulesHold: () => Awaitable<boolean>): Awaitable<boolean> {
  const { folder, folderSignature } = skill
  return whenReady(phase.stat(disk, folder.path), (now) => {
    if (now === undefined || !isSameState(now, folderSignature)) return false
    if (skill.filter !== undefined) return filteredHolds(disk, phase, skill, rootRulesHold)
    return folder.linked ? linkHolds(disk, phase, skill) : mainFileHolds(disk, phase, skill)
  })
}

export function mainFileHolds (disk: Disk, phase: PollPhase, { metadata, mainFile }: IndexedSkill): Awaitable<boolean> {
  if (mainFile === undefined) return true
  return whenReady(phase.stat(disk, metadata.path), (now) => now !== undefined && isSameState(now, mainFile.signature))
}

/** What a catalog takes of the skills that were read, and what callers see of that, by name. */
export interface LoadedChange {
  readonly accepted: readonly IndexedSkill[]
  readonly added: readonly string[]
  readonly changed: readonly string[]
  /** How many are different on the disk. */
  readonly count: number
}

export function compareLoaded (before: Catalog, loaded: readonly IndexedSkill[]): LoadedChange {
  const added: string[] = []
  const changed: string[] = []
  let count = 0
  const accepted = loaded.filter((skill) => {
    const { name } = skill
    const known = before.get(name)
    if (before.folders.get(name) !== skill.folder || (known?.sequence ?? 0) >= skill.sequence) return false
    // A disk that fails, or a file that never holds, says nothing about the skill: what was known before stands.
    if (known !== undefined && (skill.refused?.refusal === 'io_error' || skill.refused?.refusal === 'changed')) return false
    if (known === undefined || !isSameOnDisk(known, skill)) count++
    if (known === undefined) added.push(name)
    else if (!isSameToCallers(known, skill)) changed.push(name)
    return true
  })
  return { accepted, added, changed, count }
}

/** Whether what a skill hides is as it was: an ignore file may be written without a change to its folder. */
export async function rulesHold (disk: Disk, phase: PollPhase, { folder, ignoreFile }: IndexedSkill, rootRulesHold: () => Awaitable<boolean>): Promise<boolean> {
  if (folder.rootRules !== undefined && !await rootRulesHold()) return false
  if (ignoreFile === undefined) return true
  return isSameOrMissing(await phase.stat(disk, `${folder.path}/${IGNORE_FILE}`), ignoreFile.signature)
}

async function filteredHolds (disk: Disk, phase: PollPhase, skill: IndexedSkill, rootRulesHold: () => Awaitable<boolean>): Promise<boolean> {
  if (!await rulesHold(disk, phase, skill, rootRulesHold)) return false
  return await (skill.folder.linked ? linkHolds(disk, phase, skill) : mainFileHolds(disk, phase, skill))
}

async function linkHolds (disk: Disk, phase: PollPhase, skill: IndexedSkill): Promise<boolean> {
  const { path, realPath } = skill.folder
  return await realpathOrNothing(disk, path) === realPath && await mainFileHolds(disk, phase, skill)
}

async function realpathOrNothing (disk: Disk, path: string): Promise<string | undefined> {
  try {
    return await disk.realpath(path)
  } catch {
    return undefined
  }
}
