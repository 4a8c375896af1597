import { orderMainFiles } from '../format/main-files.ts'
import { parseRelativePath } from '../read/relative-path.ts'
import { fileError } from '../shared/errors.ts'

/** Where a caller's path leads in a skill, by its text alone. */
export function pathInside (name: string, mainFiles: readonly string[], filePath: string): string {
  const parsed = parseRelativePath(filePath)
  switch (parsed.kind) {
    case 'empty': throw fileError.invalidPath()
    case 'outside': throw fileError.traversal()
    case 'unusable': throw fileError.notFound(name, filePath)
    case 'inside': return withMainFileFallback(mainFiles, parsed.path)
  }
}

/** At the top of a skill, the two usual spellings mean the main file that is there. */
function withMainFileFallback (mainFiles: readonly string[], path: string): string {
  if ((path !== 'SKILL.md' && path !== 'SKILL.MD') || mainFiles.includes(path)) return path
  return orderMainFiles(mainFiles, path)[0] ?? path
}
