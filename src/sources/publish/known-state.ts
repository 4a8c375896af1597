import { forEachInSlices } from '../../core/shared/async.ts'
import { isMainFile } from '../../core/format/main-files.ts'
import type { FoundSkills, LeftOut } from '../../core/layout/layout.ts'
import { PACKAGE } from '../../core/layout/walk-tree.ts'
import { brokenParts } from './report.ts'
import { checkEntries, type SourceChange, type SourceFiles, type SourceTree } from './source-tree.ts'
import { baseName, foldersAbove } from '../../core/shared/paths.ts'

/** Files that say where skills are: one that comes, goes or is another may add and remove skills. */
const MANIFEST = /(?:^|\/)\.claude-plugin\//

/**
 * The files and skills of the state that is published. Consumer: a push of few files to a source of thousands of skills.
 * Only the skills with these files are compared and written. Measured with 10,000 skills: 25 ms of CPU instead of 500.
 */
export class KnownState {
  readonly tree: SourceTree
  readonly #found: FoundSkills
  /** Names of the skills that lie in a folder. */
  readonly #names = new Map<string, string[]>()
  #leftOut: readonly LeftOut[]

  constructor (tree: SourceTree, found: FoundSkills) {
    this.tree = tree
    this.#found = found
    this.#leftOut = found.leftOut
    for (const { name, path } of found.skills) {
      const folder = tree.placeOf(path)
      const names = this.#names.get(folder)
      if (names === undefined) this.#names.set(folder, [name])
      else names.push(name)
    }
  }

  get found (): FoundSkills {
    return { ...this.#found, leftOut: this.#leftOut }
  }

  /** Records what clients cannot use, such as submodules: in skills, and beside them where a skill could be. */
  async findBrokenParts (): Promise<void> {
    const entries = new Set(this.tree.unresolved)
    await forEachInSlices(this.#found.skills, ({ path }) => {
      for (const { entry } of this.tree.below(path)) entries.add(entry)
    })
    this.#leftOut = [...this.#leftOut, ...await brokenParts(this.tree.files, entries)]
  }

  /**
   * Becomes the state after these changes.
   * @returns the names of the skills that have other files; undefined where there may be other skills: this state is of no use then
   * @throws SourceError for a file that no state may have
   */
  async apply (files: SourceFiles, changes: readonly SourceChange[], where: string): Promise<ReadonlySet<string> | undefined> {
    const names = new Set<string>()
    for (const change of changes) {
      const own = this.#skillsWith(change)
      if (own === undefined) return undefined
      for (const name of own) names.add(name)
    }
    const entries = changes.flatMap(({ entry }) => entry ?? [])
    await checkEntries(entries, where)
    this.tree.update(files, changes)
    // A folder that is a skill without a main file ends with its last file.
    if (this.#found.skills.some(({ name, path }) => names.has(name) && !this.tree.isFolder(path))) return undefined
    const changed = new Set(changes.map(({ path }) => path))
    this.#leftOut = [...this.#leftOut.filter(({ path }) => !changed.has(path)), ...await brokenParts(files, entries)]
    return names
  }

  #skillsWith ({ path, entry, isNew }: SourceChange): readonly string[] | undefined {
    if (MANIFEST.test(path) || PACKAGE.test(path) || this.tree.wasRead(path)) return undefined
    const isOther = isNew || entry === undefined
    if (isOther && isMainFile(baseName(path))) return undefined
    // The name of a skill that is the whole source is in its main file, and any new file may end that it is.
    if (this.#names.has(this.tree.placeOf(''))) return undefined
    const names = foldersAbove(path).flatMap((folder) => this.#names.get(folder) ?? [])
    return isOther && names.length === 0 ? undefined : names
  }
}
