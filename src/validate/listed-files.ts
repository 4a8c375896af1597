import { accessSync, constants } from 'node:fs'
import { leftOutFindings } from '../core/content/file-findings.ts'
import type { ListedFile, SkillPlace } from '../core/content/manifest.ts'
import type { Disk } from '../core/disk/disk.ts'
import { pathBelow } from '../core/disk/observed.ts'
import { RefusedError } from '../core/disk/refused.ts'
import { walkSkill } from '../core/disk/walk.ts'
import { compareCodePoints } from '../core/ground/text.ts'
import type { Finding } from '../core/ground/skill.ts'

export interface ListedFiles {
  readonly files: readonly ListedFile[]
  readonly findings: readonly Finding[]
}

/**
 * Paths and sizes of the files that a manifest would have, read from the folders alone. No rule needs the bytes of files
 * beside the main file: with them 10,000 skills of 10 files take three times as long.
 * @returns undefined for a skill with links: what they lead to shows only when it is opened
 * @throws {RefusedError} as for a manifest
 */
export async function listFiles (disk: Disk, skill: SkillPlace): Promise<ListedFiles | undefined> {
  const walk = await walkSkill(disk, skill.folder.realPath, skill)
  if (walk.excess !== undefined) throw new RefusedError(walk.excess)
  if (walk.files.some(({ entry }) => entry.isSymbolicLink())) return undefined
  const files: ListedFile[] = []
  for (const { path } of walk.files) {
    const state = walk.observed.get(path)
    if (state === undefined) continue
    if (mayRead(pathBelow(walk.base, path))) files.push({ path, size_bytes: Number(state.size) })
    else walk.leftOut.add('unreadable', path)
  }
  return { files: files.sort((a, b) => compareCodePoints(a.path, b.path)), findings: leftOutFindings(walk.leftOut) }
}

function mayRead (path: string): boolean {
  try {
    accessSync(path, constants.R_OK)
    return true
  } catch {
    return false
  }
}
