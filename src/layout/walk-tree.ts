import { posix } from 'node:path'
import { mainFileAmong } from '../core/format/main-files.ts'
import { yieldIfNeeded } from '../core/shared/async.ts'
import { baseName } from '../core/shared/paths.ts'
import type { LayoutTree, LeftOut, TreeEntry } from './layout.ts'

/** Deepest level below the place where a search begins. */
const MAX_DEPTH = 8
/** Folders that are read in one tree: 10,000 skills with some folders each. */
const MAX_FOLDERS = 100_000

/** Folders with third-party or built code, skipped at any depth. */
const FOREIGN = new Set(['node_modules', 'dist', 'build', 'vendor', '__pycache__'])
/** Folders with sample skills, skipped below the top. */
const SAMPLES = new Set(['test', 'tests', 'fixtures', 'examples', 'template', 'templates', 'evals'])
/** Hidden folders that group skills in a folder `skills`, as in openai/skills. */
const HIDDEN_GROUPS = new Set(['.curated', '.experimental', '.system'])

/** File name of a packed skill. */
export const PACKAGE = /\.(?:skill|zip)$/i

/** What the searches of all places in a tree share. */
export class TreeSearch {
  readonly tree: LayoutTree
  /** Whether the operator excludes a folder; undefined without such a setting. */
  readonly isExcluded: ((path: string) => boolean) | undefined
  readonly leftOut: LeftOut[] = []
  /** Paths of packed skills that lie outside of skill folders. */
  readonly packages = new Set<string>()
  /** Whether a folder has a main file, by real path: many links may lead to one large folder. */
  readonly #withMainFile = new Map<string, boolean>()
  #folders = 0

  constructor (tree: LayoutTree, isExcluded: TreeSearch['isExcluded']) {
    this.tree = tree
    this.isExcluded = isExcluded
  }

  /** Whether one more folder may be read. The first one too many is reported. */
  mayEnter (folder: string): boolean {
    if (++this.#folders === MAX_FOLDERS + 1) this.leftOut.push({ path: folder, reason: 'bound_reached' })
    return this.#folders <= MAX_FOLDERS
  }

  async hasMainFile (folder: string): Promise<boolean> {
    const path = await this.tree.realPath(folder)
    const has = this.#withMainFile.get(path) ?? mainFileOf(await this.tree.entries(folder)) !== undefined
    this.#withMainFile.set(path, has)
    return has
  }
}

interface Pending {
  readonly folder: string
  readonly isInSkill: boolean
  /** Whether this is a link to a skill. Links to groups of skills are not followed, since they may form circles. */
  readonly isLinkedSkill: boolean
}

/**
 * Returns the paths of all skill folders below a place, without the place itself, by depth and path. Skills inside
 * other skills count too.
 */
export async function walkTree (search: TreeSearch, place: string, maxDepth = MAX_DEPTH): Promise<string[]> {
  const found: string[] = []
  let isCutOff = false
  let level: Pending[] = [{ folder: place, isInSkill: false, isLinkedSkill: false }]
  for (let depth = 0; level.length > 0; depth++) {
    const next: Pending[] = []
    for (const { folder, isLinkedSkill, ...pending } of level) {
      if (!isLinkedSkill && !search.mayEnter(folder)) return found
      const entries = isLinkedSkill ? [] : await search.tree.entries(folder)
      const isSkill = isLinkedSkill || (depth > 0 && mainFileOf(entries) !== undefined)
      const isInSkill = pending.isInSkill || isSkill
      if (isSkill) found.push(folder)
      if (depth === maxDepth) {
        isCutOff ||= depth === MAX_DEPTH && !isInSkill && entries.some(isVisibleFolder)
        continue
      }
      for (const { name, kind, linked } of entries) {
        const path = posix.join(folder, name)
        await yieldIfNeeded()
        if (kind === 'file') {
          if (!isInSkill && PACKAGE.test(name)) search.packages.add(path)
        } else if (isLeftOut(search, folder, name)) search.leftOut.push({ path, reason: 'excluded' })
        else if (linked) {
          if (await search.hasMainFile(path)) next.push({ folder: path, isInSkill, isLinkedSkill: true })
        } else if (!name.startsWith('.') || (HIDDEN_GROUPS.has(name) && baseName(folder) === 'skills')) {
          next.push({ folder: path, isInSkill, isLinkedSkill: false })
        }
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

/** Whether a folder is skipped: samples and third-party code, except directly in a folder `skills`: `skills/test`. */
function isLeftOut ({ isExcluded }: TreeSearch, folder: string, name: string): boolean {
  if (isExcluded !== undefined) return isExcluded(posix.join(folder, name))
  if (name === 'node_modules' || name === '__pycache__') return true
  if (baseName(folder) === 'skills') return false
  return FOREIGN.has(name) || (folder !== '' && SAMPLES.has(name))
}

export function mainFileOf (entries: readonly TreeEntry[]): string | undefined {
  return mainFileAmong(entries.filter(({ kind }) => kind === 'file').map(({ name }) => name))
}
