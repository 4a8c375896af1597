import { posix } from 'node:path'
import { yieldIfNeeded } from '../core/shared/async.ts'
import { isJsonObject, type JsonObject } from '../core/shared/json.ts'
import { baseName } from '../core/shared/paths.ts'
import type { TreeSearch } from './walk-tree.ts'

const MARKETPLACE_FILE = '.claude-plugin/marketplace.json'
const PLUGIN_FILE = '.claude-plugin/plugin.json'

const MAX_MANIFEST_BYTES = 1_048_576
const MAX_PLUGINS = 2_000
/** Longest path in a manifest; file systems allow no longer ones. */
const MAX_PATH_LENGTH = 1_024
/** Characters of a bad path in a report. */
const MAX_SHOWN = 120

/** Returns the skill folders that plugin manifests name, in their order; undefined without a manifest. */
export async function pluginSkills (search: TreeSearch): Promise<string[] | undefined> {
  const { leftOut } = search
  const marketplace = await readManifest(search, MARKETPLACE_FILE)
  const plugin = marketplace === undefined ? await readManifest(search, PLUGIN_FILE) : undefined
  const found = new Set<string>()
  if (plugin !== undefined) await addSkills(search, found, '', [plugin])
  if (marketplace === undefined) return plugin && [...found]
  const { metadata, plugins } = marketplace
  const pluginRoot = isJsonObject(metadata) && typeof metadata['pluginRoot'] === 'string' ? metadata['pluginRoot'] : '.'
  const entries = Array.isArray(plugins) ? plugins.filter(isJsonObject) : []
  if (entries.length > MAX_PLUGINS) leftOut.push({ path: MARKETPLACE_FILE, reason: 'bound_reached' })
  /** Plugin folders whose own manifest was read. */
  const read = new Set<string>()
  for (const entry of entries.slice(0, MAX_PLUGINS)) {
    const { source, name, strict } = entry
    if (typeof source !== 'string') {
      leftOut.push({ path: typeof name === 'string' ? name : MARKETPLACE_FILE, reason: 'remote_plugin' })
      continue
    }
    const folder = inside('', source.startsWith('./') ? source : posix.join(pluginRoot, source))
    if (folder === undefined) {
      leftOut.push({ path: shown(source), reason: 'bad_manifest' })
      continue
    }
    const isNew = strict !== false && !read.has(folder)
    if (isNew) read.add(folder)
    const own = isNew ? await readManifest(search, posix.join(folder, PLUGIN_FILE)) : undefined
    await addSkills(search, found, folder, own === undefined ? [entry] : [entry, own])
  }
  return [...found]
}

/** Adds `skills/*`, the folders that manifests name, and the plugin itself if it is a skill without `skills/`. */
async function addSkills (
  search: TreeSearch, found: Set<string>, plugin: string, manifests: readonly JsonObject[]
): Promise<void> {
  const { tree, leftOut } = search
  await addBelow(search, found, posix.join(plugin, 'skills'))
  for (const path of manifests.flatMap(({ skills }) => skills)) {
    if (typeof path !== 'string') continue
    // A manifest may name one large folder many times.
    if (!search.mayEnter(shown(path))) return
    await yieldIfNeeded()
    const folder = inside(plugin, path)
    if (folder === undefined) leftOut.push({ path: shown(path), reason: 'bad_manifest' })
    else if (await search.hasMainFile(folder)) found.add(folder)
    // It may name a folder of skills instead of a skill.
    else if (!await addBelow(search, found, folder)) leftOut.push({ path: folder, reason: 'not_found' })
  }
  const hasOwnSkills = (await tree.entries(posix.join(plugin, 'skills'))).length > 0
  if (!hasOwnSkills && await search.hasMainFile(plugin)) found.add(plugin)
}

/** Adds the skills right below a folder. Returns whether there are any. */
async function addBelow (search: TreeSearch, found: Set<string>, folder: string): Promise<boolean> {
  let hasSkills = false
  for (const { name, kind } of await search.tree.entries(folder)) {
    const path = posix.join(folder, name)
    if (kind !== 'folder') continue
    if (!search.mayEnter(path)) break
    await yieldIfNeeded()
    if (!await search.hasMainFile(path)) continue
    found.add(path)
    hasSkills = true
  }
  return hasSkills
}

function shown (path: string): string {
  return path.length > MAX_SHOWN ? `${path.slice(0, MAX_SHOWN)}…` : path
}

/** Resolves a path of a manifest; undefined if it leads out of the folder. */
function inside (folder: string, path: string): string | undefined {
  if (path.length > MAX_PATH_LENGTH || /^\/|[\\\0]/.test(path)) return undefined
  const relative = posix.normalize(path).replace(/\/$/, '')
  if (relative === '..' || relative.startsWith('../')) return undefined
  return relative === '.' || relative === '' ? folder : posix.join(folder, relative)
}

async function readManifest ({ tree, leftOut }: TreeSearch, path: string): Promise<JsonObject | undefined> {
  const entries = await tree.entries(posix.dirname(path))
  if (!entries.some(({ kind, name }) => kind === 'file' && name === baseName(path))) return undefined
  try {
    const value: unknown = JSON.parse(String(await tree.read(path, MAX_MANIFEST_BYTES)))
    if (isJsonObject(value)) return value
  } catch (error) {
    // Invalid JSON is reported like a manifest of the wrong shape.
    if (!(error instanceof SyntaxError)) throw error
  }
  leftOut.push({ path, reason: 'bad_manifest' })
  return undefined
}
