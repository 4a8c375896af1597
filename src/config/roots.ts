import { basename, isAbsolute, join } from 'node:path'
import type { RootOptions } from '../core/roots/root.ts'
import type { CoreLog } from '../core/shared/log.ts'
import { isAddress, parseAddress } from '../sources/address/address.ts'
import { AddressError } from '../sources/source-error.ts'
import type { FolderRoot, LayoutFolder } from '../sources/address/source-kind.ts'
import type { RootSpec } from '../sources/kinds.ts'
import { homeOf } from './files/home.ts'
import { StateFolder } from '../sources/publish/state-folder.ts'
import { Sources } from '../sources/sources.ts'
import { ConfigError, type Environment } from './setting.ts'
import type { Config } from './settings.ts'
import { checkNotServed } from './written-places.ts'

/** The roots of a service, and what keeps some of them up to date. */
export interface OpenedRoots {
  readonly projectRoots: readonly RootOptions[]
  readonly personalRoot?: RootOptions
  /** For everything that the service writes by itself. */
  readonly state: StateFolder
  /** Undefined when all roots are plain folders. */
  readonly sources: Sources | undefined
}

type RootsConfig = Pick<Config, 'skillsDirs' | 'personalDir' | 'configFile' | 'stateDir' | 'layout'> &
  Partial<Pick<Config, 'watchPolling' | 'linkTargets'>>

/**
 * Opens the folders and sources that the settings name. What sources published before is there immediately; nothing is
 * fetched yet.
 * @throws ConfigError
 */
export async function openRoots (
  config: RootsConfig, { log, env }: { readonly log: CoreLog, readonly env: Environment }
): Promise<OpenedRoots> {
  const { skillsDirs, personalDir, configFile, layout, watchPolling: polling = false, linkTargets } = config
  const fromFile = configFile === undefined ? [] : await openConfigFile(configFile)
  const project = [...skillsDirs.map((text) => toSpec(text, layout)), ...fromFile]
  const personal = personalDir === undefined ? [] : [toSpec(personalDir, layout)]
  if (project.length === 0) throw new ConfigError('there is no source of skills: the configuration file names none')
  const all = [...project, ...personal]
  const kept = all.map((spec) => spec.kind === 'folder' ? withLayout(spec) : spec)
  const otherNames = all.flatMap((spec, index) =>
    spec.kind === 'folder' && kept[index] === undefined ? [spec.name ?? basename(spec.path)] : [])
  const stateDir = config.stateDir ?? defaultStateDir(env)
  const state = new StateFolder(stateDir, async (path) => {
    const folders = { project: project.map(folderOf), personal: personal.map(folderOf)[0] }
    await checkNotServed(path, 'STATE_DIR or --state-dir', config, folders)
  })
  const specs = kept.filter((spec) => spec !== undefined)
  const sources = specs.length === 0
    ? undefined
    : await Sources.open({ sources: specs, otherNames, stateDir: state, env, log, polling, linkTargets })
      .catch(asConfigError)
  const opened = [...sources?.roots ?? []]
  const roots = all.map((spec, index): RootOptions => {
    if (spec.kind !== 'folder' || kept[index] !== undefined) return opened.shift() ?? { path: '' }
    return { path: spec.path, ...spec.name !== undefined && { name: spec.name } }
  })
  const [personalRoot] = roots.splice(project.length)
  return { projectRoots: roots, ...personalRoot !== undefined && { personalRoot }, state, sources }
}

async function openConfigFile (path: string): Promise<readonly RootSpec[]> {
  const { readConfigFile } = await import('./config-file.ts')
  const { readSetting } = await import('./files/yaml-file.ts')
  return await readSetting('CONFIG_FILE or --config', readConfigFile(path))
}

/** Undefined for a folder whose direct children are the skills. */
function withLayout ({ layout = 'flat', name, ...folder }: FolderRoot): LayoutFolder | undefined {
  return layout === 'flat' ? undefined : { ...folder, layout, name: name ?? basename(folder.path) }
}

function asConfigError (error: unknown): never {
  throw error instanceof AddressError ? new ConfigError(error.message, { cause: error }) : error
}

function folderOf (spec: RootSpec): string | undefined {
  return spec.kind === 'folder' ? spec.path : undefined
}

function toSpec (text: string, layout: Config['layout']): RootSpec {
  const spec: RootSpec = isAddress(text) ? parseAddress(text) : { kind: 'folder', path: text }
  return layout === undefined ? spec : { ...spec, layout }
}

/** Undefined for a user without a home. A relative XDG_CACHE_HOME is to be ignored, as its specification says. */
function defaultStateDir (env: Environment): string | undefined {
  const cache = env['XDG_CACHE_HOME'] ?? ''
  const home = homeOf(env)
  const parent = isAbsolute(cache) ? cache : home && join(home, '.cache')
  return parent && join(parent, 'skillserve')
}
