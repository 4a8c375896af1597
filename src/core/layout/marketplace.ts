import { posix } from 'node:path'
import { isJsonObject, type JsonObject } from '../ground/json.ts'
import { nearest } from '../ground/nearest.ts'
import type { LayoutTree, LeftOut } from './layout.ts'
import { baseName, hasMainFile, join } from './walk-tree.ts'

const MARKETPLACE_FILE = '.claude-plugin/marketplace.json'
const PLUGIN_FILE = '.claude-plugin/plugin.json'

const MAX_MANIFEST_BYTES = 1_048_576
const MAX_PLUGINS = 2_000
/** Of a path in a manifest: no file system holds longer ones in a tree that is published. */
const MAX_PATH_LENGTH = 1_024
/** Of a bad path, for a report. */
const MAX_SHOWN = 120

/** The keys that are read. Other keys are for other programs, except those that look like a misspelt one of these. */
const MARKETPLACE_KEYS = ['metadata', 'plugins']
const PLUGIN_KEYS = ['skills', 'source', 'strict']

/** Folders of skills that manifests of plugins name, in their order; undefined without a manifest. */
export async function pluginSkills (tree: LayoutTree, leftOut: LeftOut[]): Promise<string[] | undefined> {
  const marketplace = await readManifest(tree, MARKETPLACE_FILE, MARKETPLACE_KEYS, leftOut)
  if (marketplace === undefined) {
    const plugin = await readManifest(tree, PLUGIN_FILE, PLUGIN_KEYS, leftOut)
    return plugin === undefined ? undefined : await skillsOfPlugin(tree, '', [plugin], leftOut)
  }
  const { metadata, plugins } = marketplace
  const pluginRoot = isJsonObject(metadata) && typeof metadata['pluginRoot'] === 'string' ? metadata['pluginRoot'] : '.'
  const found: string[] = []
  const entries = Array.isArray(plugins) ? plugins.filter(isJsonObject) : []
  if (entries.length > MAX_PLUGINS) leftOut.push({ path: MARKETPLACE_FILE, reason: 'bound_reached' })
  for (const [index, entry] of entries.slice(0, MAX_PLUGINS).entries()) {
    const { source, name } = entry
    leftOut.push(...misspelt(entry, PLUGIN_KEYS, `${MARKETPLACE_FILE}#plugins/${index}/`))
    if (typeof source !== 'string') {
      leftOut.push({ path: typeof name === 'string' ? name : MARKETPLACE_FILE, reason: 'remote_plugin' })
      continue
    }
    const folder = inside('', source.startsWith('./') ? source : join(pluginRoot, source))
    if (folder === undefined) {
      leftOut.push({ path: shown(source), reason: 'bad_manifest' })
      continue
    }
    const own = entry['strict'] === false ? undefined : await readManifest(tree, join(folder, PLUGIN_FILE), PLUGIN_KEYS, leftOut)
    found.push(...await skillsOfPlugin(tree, folder, own === undefined ? [entry] : [entry, own], leftOut))
  }
  return found
}

/** `skills/*` with a main file, the folders that its manifests name, and the plugin itself if it has a main file and no `skills/`. */
async function skillsOfPlugin (tree: LayoutTree, plugin: string, manifests: readonly JsonObject[], leftOut: LeftOut[]): Promise<string[]> {
  const own = join(plugin, 'skills')
  const found = await skillsBelow(tree, own)
  for (const { skills } of manifests) {
    for (const path of [skills].flat()) {
      if (typeof path !== 'string') continue
      const folder = inside(plugin, path)
      if (folder === undefined) leftOut.push({ path: shown(path), reason: 'bad_manifest' })
      else if (await hasMainFile(tree, folder)) found.push(folder)
      else {
        // It may name a folder of skills instead of a skill.
        const below = await skillsBelow(tree, folder)
        if (below.length === 0) leftOut.push({ path: folder, reason: 'not_found' })
        found.push(...below)
      }
    }
  }
  if ((await tree.entries(own)).length === 0 && await hasMainFile(tree, plugin)) found.push(plugin)
  return [...new Set(found)]
}

/** The skills right below a folder. */
async function skillsBelow (tree: LayoutTree, folder: string): Promise<string[]> {
  const found: string[] = []
  for (const { name, kind } of await tree.entries(folder)) {
    const path = join(folder, name)
    if (kind === 'folder' && await hasMainFile(tree, path)) found.push(path)
  }
  return found
}

function shown (path: string): string {
  return path.length > MAX_SHOWN ? `${path.slice(0, MAX_SHOWN)}…` : path
}

/** A path of a manifest below a folder; undefined for one that leads out of it. */
function inside (folder: string, path: string): string | undefined {
  if (path.length > MAX_PATH_LENGTH || path.startsWith('/') || path.includes('\\') || path.includes('\0')) return undefined
  const relative = posix.normalize(path).replace(/\/$/, '')
  if (relative === '..' || relative.startsWith('../')) return undefined
  return relative === '.' || relative === '' ? folder : join(folder, relative)
}

async function readManifest (tree: LayoutTree, path: string, keys: readonly string[], leftOut: LeftOut[]): Promise<JsonObject | undefined> {
  const bytes = await tree.read(path, MAX_MANIFEST_BYTES)
  if (bytes === undefined) {
    const isTooLarge = (await tree.entries(posix.dirname(path))).some(({ kind, name }) => kind === 'file' && name === baseName(path))
    if (isTooLarge) leftOut.push({ path, reason: 'bad_manifest' })
    return undefined
  }
  try {
    const value: unknown = JSON.parse(bytes.toString())
    if (isJsonObject(value)) {
      leftOut.push(...misspelt(value, keys, `${path}#`))
      return value
    }
  } catch {
    // Reported like a manifest of another shape.
  }
  leftOut.push({ path, reason: 'bad_manifest' })
  return undefined
}

/** A typo would leave out skills in silence. */
function misspelt (manifest: JsonObject, keys: readonly string[], place: string): LeftOut[] {
  return Object.keys(manifest).filter((key) => !keys.includes(key) && nearest(key, keys) !== undefined).map((key) => ({ path: place + key, reason: 'unknown_key' }))
}
