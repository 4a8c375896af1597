import { type Disk, realpathOrNothing } from '../disk/disk.ts'
import { IGNORE_FILE } from '../disk/ignore-file.ts'
import type { PollPhase } from '../disk/poll-phase.ts'
import { isSameOrMissing, isSameState } from '../disk/signature.ts'
import type { Signature } from '../shared/skill.ts'
import { orderMainFiles } from '../format/main-files.ts'
import { type Catalog, type IndexedSkill, isSameOnDisk, isSameToCallers } from './catalog.ts'

/** Whether a comparison of the folder with the disk can say that an index entry holds. */
export function mayHold (catalog: Catalog, skill: IndexedSkill): boolean {
  if (!skill.isTrustworthy || skill.refused !== undefined || !catalog.isInPlace(skill)) return false
  // A main file that was passed over may be of use now: a link's target made.
  return skill.mainFile?.name === orderMainFiles(skill.mainFiles, 'SKILL.md')[0]
}

/**
 * Whether folder and main file of an index entry are on the disk as they were when it was read.
 * @param rootRulesHold whether the root's rules on files are as they were
 */
export async function folderHolds (disk: Disk, phase: PollPhase, skill: IndexedSkill, rootRulesHold: () => Promise<boolean>): Promise<boolean> {
  const { folder, folderSignature } = skill
  if (!isAt(await phase.stat(disk, folder.path), folderSignature)) return false
  if (skill.filter !== undefined && !await rulesHold(disk, phase, skill, rootRulesHold)) return false
  if (folder.linked && await realpathOrNothing(disk, folder.path) !== folder.realPath) return false
  return await mainFileHolds(disk, phase, skill)
}

/** The same, if the disk says so at once. False where more than folder and main file counts. */
export function folderHoldsAtOnce (disk: Disk, phase: PollPhase, { folder, folderSignature, filter, metadata, mainFile }: IndexedSkill): boolean {
  return filter === undefined && !folder.linked && isAt(phase.statAtOnce(disk, folder.path), folderSignature) &&
    (mainFile === undefined || isAt(phase.statAtOnce(disk, metadata.path), mainFile.signature))
}

export async function mainFileHolds (disk: Disk, phase: PollPhase, { metadata, mainFile }: IndexedSkill): Promise<boolean> {
  return mainFile === undefined || isAt(await phase.stat(disk, metadata.path), mainFile.signature)
}

function isAt (now: Signature | undefined, before: Signature): boolean {
  return now !== undefined && isSameState(now, before)
}

/** What a catalog takes of the skills that were read, and what callers see of that, by name. */
interface LoadedChange {
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
export async function rulesHold (disk: Disk, phase: PollPhase, { folder, ignoreFile }: IndexedSkill, rootRulesHold: () => Promise<boolean>): Promise<boolean> {
  if (folder.rootRules !== undefined && !await rootRulesHold()) return false
  if (ignoreFile === undefined) return true
  return isSameOrMissing(await phase.stat(disk, `${folder.path}/${IGNORE_FILE}`), ignoreFile.signature)
}
