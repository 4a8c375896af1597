import { createSlicer } from '../shared/async.ts'
import type { Disk } from '../disk/disk.ts'
import { IGNORE_FILE } from '../disk/ignore-file.ts'
import type { PollPhase } from '../disk/poll-phase.ts'
import { isSameOrMissing, isSameState } from '../disk/signature.ts'
import { isSameMeaning, linkContainers, resolveLink } from './linked-folder.ts'
import type { GoodScan, SkippedEntry } from './scan-root.ts'

/** A file that comes or goes changes the root itself. */
export async function holdsIgnoreFile (phase: PollPhase, disk: Disk, { realPath, ignoreFile }: GoodScan): Promise<boolean> {
  return ignoreFile === undefined || isSameOrMissing(await phase.stat(disk, `${realPath}/${IGNORE_FILE}`), ignoreFile.signature)
}

/** Whether all links of a root have the meaning that they had at its scan. */
export async function holdLinks (disk: Disk, path: string, linkTargets: readonly string[], { realPath, links }: GoodScan): Promise<boolean> {
  const containers = await linkContainers(disk, realPath, linkTargets)
  const yieldIfNeeded = createSlicer()
  for (const [name, known] of links) {
    if (!isSameMeaning(await resolveLink(disk, containers, `${path}/${name}`, known), known)) return false
    await yieldIfNeeded()
  }
  return true
}

export function areSameNames (a: ReadonlyMap<string, unknown> = new Map(), b: ReadonlyMap<string, unknown> = new Map()): boolean {
  return a.size === b.size && [...a.keys()].every((name) => b.has(name))
}

export function areSameSkips (a: readonly SkippedEntry[], b: readonly SkippedEntry[]): boolean {
  return a.length === b.length && a.every(({ name, reason, target }, index) => name === b[index]?.name && reason === b[index].reason && target === b[index].target)
}

/** Whether one of two scans found no skills, or a skill in the place of a root. */
export function isOtherKind (a: GoodScan, b: GoodScan): boolean {
  return a.isSkill !== b.isSkill || (a.folders.size === 0) !== (b.folders.size === 0)
}

export function isSameScan (a: GoodScan | undefined, b: GoodScan | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && a.folders === b.folders && isSameState(a.signature, b.signature))
}
