import { mainFileAmong } from '../format/main-files.ts'
import { yieldIfNeeded } from '../shared/async.ts'
import type { LayoutTree, LeftOut, TreeEntry } from './layout.ts'
import { baseName } from '../shared/paths.ts'

/** Folders below the place where a search begins. */
const MAX_DEPTH = 8
/** Folders of one tree: 10,000 skills with some folders each. */
const MAX_FOLDERS = 100_000

/** Hold the code of others, or what was built, at any depth. */
const FOREIGN = new Set(['node_modules', 'dist', 'build', 'vendor', '__pycache__'])
/** Hold samples of skills, below the top. */
const SAMPLES = new Set(['test', 'tests', 'fixtures', 'examples', 'template', 'templates', 'evals'])
/** Hidden groups of skills in a folder of skills: those of openai/skills. */
const HIDDEN_GROUPS = new Set(['.curated', '.experimental', '.system'])

/** A file that may be a skill as an archive. */
export const PACKAGE = /\.(?:skill|zip)$/i

/** A search for skills in a tree: what it shares between places. */
export interface TreeSearch {
  readonly tree: LayoutTree
  readonly leftOut: LeftOut[]
  /** Whether the operator excludes a folder; undefined without such a setting. */
  readonly isExcluded: ((path: string) => boolean) | undefined
  folders: number
  /** Whether a folder has a main file, by its real path: many links may lead to a large folder. */
  readonly withMainFile: Map<string, boolean>
  /** Packages that lie in no skill, by path. */
  readonly packages: Set<string>
}

/**
 * Paths of all folders with a main file below a place, but not the place itself, in the order of depth and path. A
 * skill in the folder of another one counts too.
 */
export async function walkTree (search: TreeSearch, place: string, maxDepth = MAX_DEPTH): Promise<string[]> {
  const found: string[] = []
  let isCutOff = false
  let level: Array<readonly [folder: string, isInSkill: boolean, isLinkedSkill?: boolean]> = [[place, false]]
  for (let depth = 0; depth <= maxDepth && level.length > 0; depth++) {
    const next: typeof level = []
    for (const [folder, isBelowSkill, isLinkedSkill] of level) {
      if (isLinkedSkill === true) {
        found.push(folder)
        continue
      }
      if (++search.folders > MAX_FOLDERS) {
        search.leftOut.push({ path: folder, reason: 'bound_reached' })
        return found
      }
      const entries = await search.tree.entries(folder)
      const isSkill = depth > 0 && mainFileOf(entries) !== undefined
      const isInSkill = isBelowSkill || isSkill
      if (isSkill) found.push(folder)
      if (depth === maxDepth) {
        isCutOff ||= depth === MAX_DEPTH && !isInSkill && entries.some(isVisibleFolder)
        continue
      }
      for (const { name, kind, linked } of entries) {
        const path = join(folder, name)
        if (kind === 'file') {
          if (!isInSkill && PACKAGE.test(name)) search.packages.add(path)
          continue
        }
        if (isLeftOut(search, folder, name, path)) {
          search.leftOut.push({ path, reason: 'excluded' })
        } else if (linked) {
          // A link to a skill counts, one to a group would lead in circles.
          if (await hasMainFile(search, path)) next.push([path, isInSkill, true])
        } else if (!name.startsWith('.') || (HIDDEN_GROUPS.has(name) && baseName(folder) === 'skills')) {
          next.push([path, isInSkill])
        }
        await yieldIfNeeded()
      }
    }
    level = next
  }
  if (isCutOff) search.leftOut.push({ path: place, reason: 'bound_reached' })
  return found
}

function isVisibleFolder ({ kind, name, linked }: TreeEntry): boolean {
  return kind === 'folder' && !linked && !name.startsWith('.')
}

export async function hasMainFile ({ tree, withMainFile }: TreeSearch, folder: string): Promise<boolean> {
  const path = await tree.realPath(folder)
  const known = withMainFile.get(path)
  if (known !== undefined) return known
  const has = mainFileOf(await tree.entries(folder)) !== undefined
  withMainFile.set(path, has)
  return has
}

export function mainFileOf (entries: readonly TreeEntry[]): string | undefined {
  return mainFileAmong(entries.filter(({ kind }) => kind === 'file').map(({ name }) => name))
}

/** Folders of samples and of foreign code are not searched, unless they lie in a folder of skills: `skills/test`. */
function isLeftOut ({ isExcluded }: TreeSearch, folder: string, name: string, path: string): boolean {
  if (isExcluded !== undefined) return isExcluded(path)
  if (name === 'node_modules' || name === '__pycache__') return true
  if (baseName(folder) === 'skills') return false
  return FOREIGN.has(name) || (folder !== '' && SAMPLES.has(name))
}

export function join (folder: string, name: string): string {
  return folder === '' ? name : `${folder}/${name}`
}
