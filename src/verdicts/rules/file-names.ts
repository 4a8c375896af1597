import { isMainFile } from '../../core/format/main-files.ts'
import { foldersAbove } from '../../core/shared/paths.ts'
import type { Finding, ListedFile } from '../../core/shared/skill.ts'
import { findingOnFiles } from '../findings.ts'

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

/** The second of each two, and the third. Folders collide as files do; main files have a finding of their own. */
function collisions (paths: readonly string[]): readonly string[] {
  const originals = new Map<string, string>()
  const colliding = new Set<string>()
  for (const path of paths.flatMap((path) => [...foldersAbove(path), path])) {
    const key = path.normalize('NFC').toLowerCase()
    const original = originals.get(key) ?? path
    originals.set(key, original)
    if (original !== path && !isMainFile(path)) colliding.add(path)
  }
  return [...colliding]
}
