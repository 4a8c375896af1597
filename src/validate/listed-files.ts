import { constants } from 'node:fs'
import { contentFindings, leftOutFindings } from '../core/revisions/file-findings.ts'
import type { SkillPlace } from '../core/content/manifest.ts'
import { closeQuietly, type Disk } from '../core/read/disk.ts'
import { pathBelow } from '../core/shared/paths.ts'
import { RefusedError } from '../core/read/refused.ts'
import { walkSkill } from '../core/read/walk.ts'
import { fileKind, type FileKind, HEAD_BYTES } from '../core/read/file-kind.ts'
import { compareCodePoints } from '../core/shared/text.ts'
import type { Finding, ListedFile } from '../core/shared/skill.ts'

interface ListedFiles {
  readonly files: readonly ListedFile[]
  readonly findings: readonly Finding[]
}

/** A FIFO that takes the place of a file must not block. */
const READ_ONLY = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY | constants.O_NOFOLLOW

/**
 * Paths, sizes and first bytes of the files that a manifest would have. No rule needs the other bytes of files beside the main
 * file: with them 10,000 skills of 10 files take three times as long.
 * @returns undefined for a skill with links: what they lead to shows only when it is opened
 * @throws {RefusedError} as for a manifest
 */
export async function listFiles (disk: Disk, skill: SkillPlace): Promise<ListedFiles | undefined> {
  const walk = await walkSkill(disk, skill.folder.realPath, skill)
  if (walk.excess !== undefined) throw new RefusedError(walk.excess)
  if (walk.files.some(({ entry }) => entry.isSymbolicLink())) return undefined
  const files: ListedFile[] = []
  const kinds = new Map<string, FileKind>()
  for (const { path } of walk.files) {
    const state = walk.observed.get(path)
    if (state === undefined) continue
    const head = await readKind(disk, pathBelow(walk.base, path))
    if (head === undefined) {
      walk.leftOut.add('unreadable', path)
      continue
    }
    if (head.kind !== undefined) kinds.set(path, head.kind)
    files.push({ path, size_bytes: Number(state.size) })
  }
  files.sort((a, b) => compareCodePoints(a.path, b.path))
  return { files, findings: [...leftOutFindings(walk.leftOut), ...contentFindings(files, kinds)] }
}

/** Undefined for a file that may not be read. */
async function readKind (disk: Disk, path: string): Promise<{ readonly kind: FileKind | undefined } | undefined> {
  try {
    const descriptor = await disk.open(path, READ_ONLY)
    try {
      // One for all files would hold the bytes of another one by the time that they are looked at.
      const head = Buffer.allocUnsafe(HEAD_BYTES)
      return { kind: fileKind(head.subarray(0, await disk.read(descriptor, head, 0, HEAD_BYTES, 0))) }
    } finally {
      await closeQuietly(() => disk.close(descriptor))
    }
  } catch {
    return undefined
  }
}
