import { braceExpand, Minimatch } from 'minimatch'
import { yieldIfNeeded } from '../shared/async.ts'
import { isSafeName } from '../shared/skill-name.ts'
import { isValidName } from '../format/fields.ts'
import { parseSkillBytes } from '../format/main-file.ts'
import { MAX_MAIN_FILE_BYTES } from '../shared/limits.ts'
import type { FoundSkill, FoundSkills, Layout, LayoutOptions, LayoutTree, LeftOut } from './layout.ts'
import { pluginSkills } from './marketplace.ts'
import { hasMainFile, join, mainFileOf, type TreeSearch, walkTree } from './walk-tree.ts'
import { baseName } from '../shared/paths.ts'

/** Skills of one tree, and packages of one monorepo. */
const MAX_SKILLS = 20_000
const MAX_PACKAGES = 1_000

/** A place, and the paths of the folders of skills there. */
type Places = Array<readonly [place: string, paths: readonly string[]]>

interface Found {
  readonly layout: FoundSkills['layout']
  readonly places: Places
}

/** The skills of a tree in a layout. Of two with one name the first counts: by place, depth, path. */
export async function findSkills (tree: LayoutTree, options: LayoutOptions): Promise<FoundSkills> {
  const leftOut: LeftOut[] = []
  const isExcluded = options.exclude && createMatcher(options.exclude)
  const search: TreeSearch = { tree, leftOut, folders: 0, packages: new Set(), withMainFile: new Map(), isExcluded }
  const { layout, places } = await findPlaces(search, options.layout)
  const names = new Names(options, leftOut)
  const counts = new Map<string, number>()
  for (const [place, paths] of places) {
    for (const path of paths) {
      const name = path === '' ? await nameOfTop(tree, options.name) : baseName(path)
      if (names.add(name, path, await tree.realPath(path))) counts.set(place, (counts.get(place) ?? 0) + 1)
      await yieldIfNeeded()
    }
  }
  return { layout, places: counts, skills: names.skills, leftOut, packages: [...search.packages] }
}

async function findPlaces (search: TreeSearch, layout: Layout): Promise<Found> {
  switch (layout) {
    case 'flat':
      return { layout, places: [['', await childrenOf(search.tree)]] }
    case 'single':
      return { layout, places: [['', ['']]] }
    case 'tree':
      return { layout, places: [['', await walkTree(search, '')]] }
    case 'marketplace':
      return { layout, places: [['', await pluginSkills(search) ?? []]] }
    case 'auto':
      return await findOut(search)
  }
}

/** All the usual places together, as clients that install from repositories list them; without any, the whole tree. */
async function findOut (search: TreeSearch): Promise<Found> {
  const { tree } = search
  const plugins = await pluginSkills(search)
  const hasSkillsFolder = (await tree.entries('skills')).length > 0
  const isSkill = await hasMainFile(search, '')
  if (isSkill && !hasSkillsFolder && plugins === undefined) return { layout: 'single', places: [['', ['']]] }
  const places: Places = [['skills', await walkTree(search, 'skills')]]
  if (plugins !== undefined) places.push(['.claude-plugin', plugins])
  for (const folder of await agentFolders(search)) places.push([folder, await walkTree(search, folder)])
  places.push(['', [...isSkill ? [''] : [], ...await walkTree(search, '', 1)].filter((path) => path !== 'skills')])
  if (places.every(([, paths]) => paths.length === 0)) return await findPlaces(search, 'tree')
  return { layout: plugins === undefined ? 'tree' : 'marketplace', places }
}

/**
 * Where agents keep skills: `.X/skills` and `.X/skill`, at the top and in the packages of a monorepo. Skills elsewhere
 * in such a folder are left out, and the folder is named.
 */
async function agentFolders (search: TreeSearch): Promise<string[]> {
  const { tree, leftOut } = search
  const packages = (await tree.entries('packages')).filter(({ kind }) => kind === 'folder').slice(0, MAX_PACKAGES)
  const found: string[] = []
  for (const parent of ['', ...packages.map(({ name }) => `packages/${name}`)]) {
    for (const { kind, name } of await tree.entries(parent)) {
      if (kind !== 'folder' || !name.startsWith('.')) continue
      const folder = join(parent, name)
      found.push(join(folder, 'skills'), join(folder, 'skill'))
      if (await hasSkillsOfItsOwn(search, folder)) leftOut.push({ path: folder, reason: 'excluded' })
    }
  }
  return found
}

async function hasSkillsOfItsOwn (search: TreeSearch, folder: string): Promise<boolean> {
  if (await hasMainFile(search, folder)) return true
  for (const { kind, name } of await search.tree.entries(folder)) {
    if (kind === 'folder' && await hasMainFile(search, join(folder, name))) return true
  }
  return false
}

async function childrenOf (tree: LayoutTree): Promise<string[]> {
  const entries = await tree.entries('')
  return entries.filter(({ kind, name }) => kind === 'folder' && !name.startsWith('.')).map(({ name }) => name)
}

/** A skill that is a whole tree has no folder of its own to be named by. */
async function nameOfTop (tree: LayoutTree, fallback: string): Promise<string> {
  const file = mainFileOf(await tree.entries(''))
  const bytes = file === undefined ? undefined : await tree.read(file, MAX_MAIN_FILE_BYTES)
  const name = bytes === undefined ? fallback : parseSkillBytes(bytes, fallback).summary.name
  return isValidName(name) ? name : fallback
}

/**
 * Whether a path fits one of the globs. Names come from sources: the library makes no regular expressions, which one
 * name could keep busy for minutes.
 */
export function createMatcher (globs: readonly string[]): (path: string) => boolean {
  const options = (glob: string) => ({ dot: true, nocomment: true, nonegate: glob.startsWith('!(') })
  const matchers = globs.map((glob) => new Minimatch(glob.replace(/^\.\//, ''), options(glob)))
  // As a folder, so that `x/` and `x/**` name `x` too.
  return (path) => matchers.some((matcher) => matcher.match(`${path}/`))
}

/** Whether there are more globs than `limit`, each alternative in braces counted: twenty `{a,b}` are a million. */
export function areMoreThan (limit: number, globs: readonly string[]): boolean {
  let count = 0
  return globs.some((glob) => (count += braceExpand(glob, { braceExpandMax: limit + 1 }).length) > limit)
}

/** The names that are taken. */
class Names {
  readonly #taken = new Map<string, { readonly path: string, readonly realPath: string }>()
  readonly #isIncluded: (path: string) => boolean
  readonly #leftOut: LeftOut[]
  readonly skills: FoundSkill[] = []

  constructor ({ include }: LayoutOptions, leftOut: LeftOut[]) {
    this.#isIncluded = include === undefined ? () => true : createMatcher(include)
    this.#leftOut = leftOut
  }

  /** Whether the folder is a skill of its own. */
  add (name: string, path: string, realPath: string): boolean {
    const taken = this.#taken.get(name)
    // The same folder by way of another place, or of a link.
    if (taken?.realPath === realPath) return false
    if (!this.#isIncluded(path)) this.#leftOut.push({ path, reason: 'excluded' })
    else if (!isSafeName(name)) this.#leftOut.push({ path, reason: 'unsafe_name' })
    else if (taken !== undefined) this.#leftOut.push({ path, reason: 'shadowed', by: taken.path })
    else if (this.skills.length === MAX_SKILLS) this.#leftOut.push({ path, reason: 'bound_reached' })
    else {
      this.#taken.set(name, { path, realPath })
      this.skills.push({ name, path })
      return true
    }
    return false
  }
}
