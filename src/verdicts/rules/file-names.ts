import { findingOnFiles } from '../../core/format/findings.ts'
import { isMainFile } from '../../core/format/main-files.ts'
import type { Finding, ListedFile } from '../../core/shared/skill.ts'
import { folderOf } from '../../core/shared/paths.ts'

/** Names that Windows keeps for devices, characters that it refuses, and ends that it drops. */
const NOT_ON_WINDOWS =
  /(?:^|\/)(?:(?:con|prn|aux|nul|com[1-9]|lpt[1-9])(?:\.[^/]*)?(?=\/|$)|[^/]*[<>:"\\|?*][^/]*|[^/]*[. ](?=\/|$))/i

/** What is to be said of the names of a skill's files, whatever is in them. */
export function scanNames (files: readonly ListedFile[]): readonly Finding[] {
  const paths = files.map(({ path }) => path)
  return [
    ...findingOnFiles('file_names_collide', collisions(paths), 'names differ only in case or in how their characters ' +
      'are composed: some disks keep one of them', 'Rename one of each two'),
    ...findingOnFiles(
      'file_name_not_portable', paths.filter((path) => NOT_ON_WINDOWS.test(path)),
      'files have names that Windows cannot write',
      'Rename them without reserved words and characters, and without a space or dot at the end'
    )
  ]
}

/** The second of each two, and the third. Folders collide as files do. */
function collisions (paths: readonly string[]): readonly string[] {
  const originals = new Map<string, string>()
  const known = new Set<string>()
  const colliding: string[] = []
  for (const path of paths) {
    for (const part of newParts(path, known)) {
      const key = part.normalize('NFC').toLowerCase()
      const other = originals.get(key)
      if (other === undefined) originals.set(key, part)
      else if (other !== part) colliding.push(part)
    }
    if (colliding.length > MAX_COLLISIONS) break
  }
  // Main files have a finding of their own.
  return colliding.filter((path) => !isMainFile(path))
}

/** A path and its folders, the outermost first, without those that are known already, which are then known too. */
function newParts (path: string, known: Set<string>): readonly string[] {
  const parts: string[] = []
  for (let part = path; part !== '' && !known.has(part); part = folderOf(part)) {
    known.add(part)
    parts.push(part)
  }
  return parts.reverse()
}

const MAX_COLLISIONS = 100
