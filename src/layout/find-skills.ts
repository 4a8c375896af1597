import { Minimatch } from 'minimatch'
import { yieldIfNeeded } from '../core/shared/async.ts'
import { isSafeName } from '../core/shared/skill-name.ts'
import { isValidName } from '../core/format/fields.ts'
import { parseSkillBytes } from '../core/format/main-file.ts'
import { MAX_MAIN_FILE_BYTES } from '../core/shared/limits.ts'
import type { FoundSkill, FoundSkills, Layout, LayoutOptions, LayoutTree } from './layout.ts'
import { pluginSkills } from './marketplace.ts'
import { mainFileOf, TreeSearch, walkTree } from './walk-tree.ts'
import { baseName } from '../core/shared/paths.ts'

/** Most skills in one tree. */
const MAX_SKILLS = 20_000

/** Paths of the skill folders, in order of precedence. */
type FoundPaths = Pick<FoundSkills, 'layout'> & { readonly paths: readonly string[] }

/** Finds the skills of a tree in a layout. Of two with one name the first counts, by place, depth and path. */
export async function findSkills (tree: LayoutTree, options: LayoutOptions): Promise<FoundSkills> {
  const search = new TreeSearch(tree, options.exclude && createMatcher(options.exclude))
  const { layout, paths } = await findPaths(search, options.layout)
  const { leftOut, packages } = search
  const isIncluded = options.include === undefined ? () => true : createMatcher(options.include)
  const taken = new Map<string, FoundSkill>()
  for (const path of paths) {
    await yieldIfNeeded()
    const name = path === '' ? await nameOfTop(tree, options.name) : baseName(path)
    const realPath = await tree.realPath(path)
    const by = taken.get(name)
    // Two places, or a link, lead to the same folder.
    if (by?.realPath === realPath) continue
    if (!isIncluded(path)) leftOut.push({ path, reason: 'excluded' })
    else if (!isSafeName(name)) leftOut.push({ path, reason: 'unsafe_name' })
    else if (by !== undefined) leftOut.push({ path, reason: 'shadowed', by: by.path })
    else if (taken.size === MAX_SKILLS) leftOut.push({ path, reason: 'bound_reached' })
    else taken.set(name, { name, path, realPath })
  }
  return { layout, skills: [...taken.values()], leftOut, packages: [...packages] }
}

async function findPaths (search: TreeSearch, layout: Layout): Promise<FoundPaths> {
  switch (layout) {
    case 'flat': return { layout, paths: await childrenOf(search.tree) }
    case 'single': return { layout, paths: [''] }
    case 'tree': return { layout, paths: await walkTree(search, '') }
    case 'marketplace': return { layout, paths: await pluginSkills(search) ?? [] }
    case 'auto': return await findAutoLayout(search)
  }
}

/** Searches all the usual places, as clients that install from repositories do; if they are empty, the whole tree. */
async function findAutoLayout (search: TreeSearch): Promise<FoundPaths> {
  const plugins = await pluginSkills(search)
  const hasSkillsFolder = (await search.tree.entries('skills')).length > 0
  const isSkill = await search.hasMainFile('')
  if (isSkill && !hasSkillsFolder && plugins === undefined) return await findPaths(search, 'single')
  const places = [await walkTree(search, 'skills'), plugins ?? []]
  for (const folder of await agentFolders(search)) places.push(await walkTree(search, folder))
  places.push(isSkill ? [''] : [], (await walkTree(search, '', 1)).filter((path) => path !== 'skills'))
  const paths = places.flat()
  if (paths.length === 0) return await findPaths(search, 'tree')
  return { layout: plugins === undefined ? 'tree' : 'marketplace', paths }
}

/** Returns where agents keep skills: `.X/skills` and `.X/skill`. Reports folders of agents with skills elsewhere. */
async function agentFolders (search: TreeSearch): Promise<string[]> {
  const found: string[] = []
  for (const { kind, name } of await search.tree.entries('')) {
    if (kind !== 'folder' || !name.startsWith('.')) continue
    found.push(`${name}/skills`, `${name}/skill`)
    if (await hasSkillsOfItsOwn(search, name)) search.leftOut.push({ path: name, reason: 'excluded' })
  }
  return found
}

async function hasSkillsOfItsOwn (search: TreeSearch, folder: string): Promise<boolean> {
  if (await search.hasMainFile(folder)) return true
  for (const { kind, name } of await search.tree.entries(folder)) {
    if (kind === 'folder' && await search.hasMainFile(`${folder}/${name}`)) return true
  }
  return false
}

async function childrenOf (tree: LayoutTree): Promise<string[]> {
  const entries = await tree.entries('')
  return entries.filter(({ kind, name }) => kind === 'folder' && !name.startsWith('.')).map(({ name }) => name)
}

/** Names a skill that is a whole tree by its frontmatter, since it has no folder. */
async function nameOfTop (tree: LayoutTree, fallback: string): Promise<string> {
  const file = mainFileOf(await tree.entries(''))
  const bytes = file === undefined ? undefined : await tree.read(file, MAX_MAIN_FILE_BYTES)
  const name = bytes === undefined ? fallback : parseSkillBytes(bytes, fallback).summary.name
  return isValidName(name) ? name : fallback
}

/**
 * Returns a function that matches paths against globs. Paths come from sources, so the library must not build regular
 * expressions, which one path could keep busy for minutes.
 */
export function createMatcher (globs: readonly string[]): (path: string) => boolean {
  const options = (glob: string) => ({ dot: true, nocomment: true, nonegate: glob.startsWith('!(') })
  const matchers = globs.map((glob) => new Minimatch(glob.replace(/^\.\//, ''), options(glob)))
  // With a slash at the end, `x/` and `x/**` also match `x`.
  return (path) => matchers.some((matcher) => matcher.match(`${path}/`))
}
