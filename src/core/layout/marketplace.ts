import { posix } from 'node:path'
import { yieldIfNeeded } from '../shared/async.ts'
import { isJsonObject, type JsonObject } from '../shared/json.ts'
import { nearest } from '../shared/nearest.ts'
import type { LayoutTree, LeftOut } from './layout.ts'
import { hasMainFile, join, type TreeSearch } from './walk-tree.ts'
import { baseName } from '../shared/paths.ts'

const MARKETPLACE_FILE = '.claude-plugin/marketplace.json'
const PLUGIN_FILE = '.claude-plugin/plugin.json'

const MAX_MANIFEST_BYTES = 1_048_576
const MAX_PLUGINS = 2_000
/** Paths of skills in all manifests: as many as there may be skills. */
const MAX_NAMED = 20_000
/** Of a path in a manifest: no file system holds longer ones in a tree that is published. */
const MAX_PATH_LENGTH = 1_024
/** Of a bad path, for a report. */
const MAX_SHOWN = 120

/** The keys that are read. Other keys are for other programs, except those that look like a misspelt one of these. */
const MARKETPLACE_KEYS = ['metadata', 'plugins']
const PLUGIN_KEYS = ['skills', 'source', 'strict']

/** Folders of skills that manifests of plugins name, in their order; undefined without a manifest. */
export async function pluginSkills (search: TreeSearch): Promise<string[] | undefined> {
  const { tree, leftOut } = search
  const found = new PluginSkills(search)
  const marketplace = await readManifest(tree, MARKETPLACE_FILE, MARKETPLACE_KEYS, leftOut)
  if (marketplace === undefined) {
    const plugin = await readManifest(tree, PLUGIN_FILE, PLUGIN_KEYS, leftOut)
    if (plugin === undefined) return undefined
    await found.add('', [plugin])
    return found.paths
  }
  const { metadata, plugins } = marketplace
  const pluginRoot = isJsonObject(metadata) && typeof metadata['pluginRoot'] === 'string' ? metadata['pluginRoot'] : '.'
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
    const own = entry['strict'] === false ? undefined : await found.manifestOf(folder)
    await found.add(folder, own === undefined ? [entry] : [entry, own])
  }
  return found.paths
}

/** The skills of all plugins. Manifests may name a folder any number of times, and by links: it is searched once. */
class PluginSkills {
  readonly #search: TreeSearch
  readonly #found = new Set<string>()
  /** What is right below a folder, by its path behind all links. */
  readonly #searched = new Map<string, { readonly entries: number, readonly skills: number }>()
  readonly #withManifest = new Set<string>()
  #named = 0

  constructor (search: TreeSearch) {
    this.#search = search
  }

  get paths (): string[] {
    return [...this.#found]
  }

  /** The manifest of a plugin's own; undefined when it was read before. */
  async manifestOf (plugin: string): Promise<JsonObject | undefined> {
    const { tree, leftOut } = this.#search
    const path = await tree.realPath(plugin)
    if (this.#withManifest.has(path)) return undefined
    this.#withManifest.add(path)
    return await readManifest(tree, join(plugin, PLUGIN_FILE), PLUGIN_KEYS, leftOut)
  }

  /** Adds `skills/*`, the folders that manifests name, and the plugin itself if it is a skill without `skills/`. */
  async add (plugin: string, manifests: readonly JsonObject[]): Promise<void> {
    const own = await this.#addBelow(join(plugin, 'skills'))
    for (const { skills } of manifests) {
      for (const path of [skills].flat()) {
        if (typeof path !== 'string') continue
        if (++this.#named > MAX_NAMED) {
          if (this.#named === MAX_NAMED + 1) this.#search.leftOut.push({ path: shown(path), reason: 'bound_reached' })
          return
        }
        await this.#addNamed(plugin, path)
        await yieldIfNeeded()
      }
    }
    if (own.entries === 0 && await hasMainFile(this.#search, plugin)) this.#found.add(plugin)
  }

  async #addNamed (plugin: string, path: string): Promise<void> {
    const folder = inside(plugin, path)
    const { leftOut } = this.#search
    if (folder === undefined) leftOut.push({ path: shown(path), reason: 'bad_manifest' })
    else if (await hasMainFile(this.#search, folder)) this.#found.add(folder)
    // It may name a folder of skills instead of a skill.
    else if ((await this.#addBelow(folder)).skills === 0) leftOut.push({ path: folder, reason: 'not_found' })
  }

  /** Adds the skills right below a folder. */
  async #addBelow (folder: string): Promise<{ readonly entries: number, readonly skills: number }> {
    const { tree } = this.#search
    const realPath = await tree.realPath(folder)
    const known = this.#searched.get(realPath)
    if (known !== undefined) return known
    const entries = await tree.entries(folder)
    let skills = 0
    for (const { name, kind } of entries) {
      const path = join(folder, name)
      if (kind !== 'folder' || !await hasMainFile(this.#search, path)) continue
      skills++
      this.#found.add(path)
      await yieldIfNeeded()
    }
    const below = { entries: entries.length, skills }
    this.#searched.set(realPath, below)
    return below
  }
}

function shown (path: string): string {
  return path.length > MAX_SHOWN ? `${path.slice(0, MAX_SHOWN)}…` : path
}

/** A path of a manifest below a folder; undefined for one that leads out of it. */
function inside (folder: string, path: string): string | undefined {
  if (path.length > MAX_PATH_LENGTH || /^\/|[\\\0]/.test(path)) return undefined
  const relative = posix.normalize(path).replace(/\/$/, '')
  if (relative === '..' || relative.startsWith('../')) return undefined
  return relative === '.' || relative === '' ? folder : join(folder, relative)
}

async function readManifest (
  tree: LayoutTree, path: string, keys: readonly string[], leftOut: LeftOut[]
): Promise<JsonObject | undefined> {
  const bytes = await tree.read(path, MAX_MANIFEST_BYTES)
  if (bytes === undefined) {
    const entries = await tree.entries(posix.dirname(path))
    const isTooLarge = entries.some(({ kind, name }) => kind === 'file' && name === baseName(path))
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
  const typos = Object.keys(manifest).filter((key) => !keys.includes(key) && nearest(key, keys) !== undefined)
  return typos.map((key) => ({ path: place + key, reason: 'unknown_key' }))
}
