import { homedir } from 'node:os'
import { basename, join } from 'node:path'
import type { RootOptions } from '../core/roots/root.ts'
import { DiskGuard } from '../core/disk/network/guard.ts'
import type { CoreLog } from '../core/shared/log.ts'
import { isAddress, parseAddress } from '../sources/address/address.ts'
import { AddressError } from '../sources/source-error.ts'
import type { FolderRoot, LayoutFolder } from '../sources/address/source-kind.ts'
import type { RootSpec, Source } from '../sources/kinds.ts'
import type { Sources } from '../sources/sources.ts'
import { ConfigError, type Environment } from './setting.ts'
import type { Config } from './settings.ts'
import { checkNotServed } from './written-places.ts'

/** The roots of a service, and what keeps some of them up to date. */
export interface OpenedRoots {
  readonly projectRoots: readonly RootOptions[]
  readonly personalRoot?: RootOptions
  /** The calls to disks that hang, of sources and of the skills in them: all use the threads of one process. */
  readonly guard: DiskGuard
  /** Undefined when all roots are plain folders. */
  readonly sources: Sources | undefined
}

/**
 * Opens the folders and sources that the settings name. What sources published before is there at once; nothing is fetched yet.
 * @throws ConfigError
 */
export async function openRoots (config: Pick<Config, 'skillsDirs' | 'personalDir' | 'configFile' | 'stateDir' | 'layout'> & Partial<Pick<Config, 'watchPolling' | 'linkTargets'>>, options: { readonly log: CoreLog, readonly env: Environment }): Promise<OpenedRoots> {
  const fromFile = config.configFile === undefined ? [] : await openConfigFile(config.configFile)
  const project = [...config.skillsDirs.map((text) => toSpec(text, config.layout)), ...fromFile]
  const personal = config.personalDir === undefined ? [] : [toSpec(config.personalDir, config.layout)]
  if (project.length === 0) throw new ConfigError('there is no source of skills: the configuration file names none')
  const all = [...project, ...personal]
  const kept = all.map((spec) => spec.kind === 'folder' ? withLayout(spec) : spec)
  const otherNames = all.flatMap((spec, index) => spec.kind === 'folder' && kept[index] === undefined ? [spec.name ?? basename(spec.path)] : [])
  const writesState = all.some(({ kind }) => kind !== 'folder')
  if (writesState) await checkNotServed(config.stateDir ?? defaultStateDir(options.env), 'STATE_DIR or --state-dir', config, { project: project.map(folderOf), personal: personal.map(folderOf)[0] })
  const guard = new DiskGuard()
  const sources = await openSources(kept.filter((spec) => spec !== undefined), otherNames, config, { ...options, guard })
  const opened = [...sources?.roots ?? []]
  const roots = all.map((spec, index): RootOptions => {
    if (spec.kind !== 'folder' || kept[index] !== undefined) return opened.shift() ?? { path: '' }
    return { path: spec.path, ...spec.name !== undefined && { name: spec.name } }
  })
  const [personalRoot] = roots.splice(project.length)
  return { projectRoots: roots, ...personalRoot !== undefined && { personalRoot }, guard, sources }
}

async function openConfigFile (path: string): Promise<readonly RootSpec[]> {
  const [{ readConfigFile }, { readSetting }] = await Promise.all([import('./config-file.ts'), import('./files/yaml-file.ts')])
  return await readSetting('CONFIG_FILE or --config', readConfigFile(path))
}

/** Undefined for a folder whose direct children are the skills. */
function withLayout ({ layout = 'flat', name, ...folder }: FolderRoot): LayoutFolder | undefined {
  return layout === 'flat' ? undefined : { ...folder, layout, name: name ?? basename(folder.path) }
}

/** No module is loaded for plain folders. */
async function openSources (
  specs: ReadonlyArray<Source | LayoutFolder>, otherNames: readonly string[], { stateDir, watchPolling: polling = false, linkTargets }: Partial<Pick<Config, 'stateDir' | 'watchPolling' | 'linkTargets'>>,
  { log, env, guard }: { readonly log: CoreLog, readonly env: Environment, readonly guard: DiskGuard }
): Promise<Sources | undefined> {
  if (specs.length === 0) return undefined
  const { createSources } = await import('../sources/sources.ts')
  try {
    return await createSources({ sources: specs, otherNames, stateDir: stateDir ?? defaultStateDir(env), env, log, polling, linkTargets, guard })
  } catch (error) {
    throw error instanceof AddressError ? new ConfigError(error.message, { cause: error }) : error
  }
}

function folderOf (spec: RootSpec): string | undefined {
  return spec.kind === 'folder' ? spec.path : undefined
}

function toSpec (text: string, layout: Config['layout']): RootSpec {
  const spec: RootSpec = isAddress(text) ? parseAddress(text) : { kind: 'folder', path: text }
  return layout === undefined ? spec : { ...spec, layout }
}

function defaultStateDir (env: Environment): string {
  return join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'skillserve')
}
