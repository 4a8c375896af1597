import { readdirSync } from 'node:fs'
import { listedMainFile } from '../core/format/main-files.ts'
import { printable } from '../core/shared/text.ts'
import { whyUnwritable } from '../config/files/files.ts'
import { diffOf, fixFile } from './fix.ts'
import { type ListOptions, PathError } from './skills.ts'
import { foldersOf, shownPath } from './validate.ts'

/** What was done, as lines that steer no terminal. */
interface AllFixes {
  /** The changes of each file. */
  readonly diffs: readonly string[]
  /** A sentence on each file whose frontmatter was left as it is. */
  readonly left: readonly string[]
}

/**
 * Mends the main files of all skills of all paths.
 * @throws {PathError} for a path that cannot be read, and a file that cannot be written
 */
export async function fixAll (paths: readonly string[], list: ListOptions, isDryRun: boolean): Promise<AllFixes> {
  const diffs: string[] = []
  const left: string[] = []
  for (const { name, realPath, path } of await foldersOf(paths, list)) {
    const main = mainFileIn(realPath)
    if (main === undefined) continue
    const shown = `${shownPath(list.cwd, path)}/${main}`
    try {
      const fixed = fixFile(`${realPath}/${main}`, name, isDryRun)
      if (fixed === undefined) continue
      if (fixed.after !== fixed.before) diffs.push(diffOf(shown, fixed).split('\n').map(printable).join('\n'))
      if (fixed.left !== undefined) left.push(printable(`${shown}: the frontmatter is left as it is: ${fixed.left}`))
    } catch (error) {
      throw new PathError(`${JSON.stringify(shown)} cannot be written (${whyUnwritable(error)})`)
    }
  }
  return { diffs, left }
}

/** None of a folder that may not be read: the report says so. */
function mainFileIn (folder: string): string | undefined {
  try {
    return listedMainFile(readdirSync(folder, { withFileTypes: true }))
  } catch {
    return undefined
  }
}
