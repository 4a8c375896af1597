import { basename, isAbsolute, join } from 'node:path'
import type { RootOptions } from '../core/roots/root.ts'
import type { CoreLog } from '../core/shared/log.ts'
import { isAddress, parseAddress } from '../sources/address/address.ts'
import type { FolderRoot, LayoutFolder } from '../sources/address/source-kind.ts'
import type { RootSpec, Source } from '../sources/kinds.ts'
import { StateFolder } from '../sources/publish/state-folder.ts'
import { Sources } from '../sources/sources.ts'
import { readConfigFile } from './config-file.ts'
import { checkNotServed } from './files/files.ts'
import { homeOf } from './files/home.ts'
import { ConfigError, type Environment } from './setting.ts'
import type { Config } from './settings.ts'

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
  const { skillsDirs, personalDir, configFile, layout, watchPolling: polling = false, linkTargets = [] } = config
  const project = skillsDirs.map((text) => toSpec(text, layout))
  if (configFile !== undefined) project.push(...await readConfigFile(configFile))
  if (project.length === 0) throw new ConfigError('there is no source of skills: the configuration file names none')
  const all = personalDir === undefined ? project : [...project, toSpec(personalDir, layout)]
  const served = [...all.flatMap((spec) => spec.kind === 'folder' ? spec.path : []), ...linkTargets]
  const state = new StateFolder(config.stateDir ?? defaultStateDir(env), async (path) => {
    await checkNotServed(path, 'STATE_DIR or --state-dir', served)
  })
  const plain = all.filter(isPlainFolder)
  const kept = all.flatMap((spec) => isPlainFolder(spec) ? [] : withName(spec))
  const sources = kept.length === 0
    ? undefined
    : await Sources.open({
      sources: kept, otherNames: plain.map(nameOf), state, env, log, polling, linkTargets
    })
  const published = [...sources?.roots ?? []]
  const roots = all.map((spec): RootOptions => {
    if (!isPlainFolder(spec)) return published.shift() ?? { path: '' }
    return { path: spec.path, ...spec.name !== undefined && { name: spec.name } }
  })
  const [personalRoot] = roots.splice(project.length)
  return { projectRoots: roots, ...personalRoot !== undefined && { personalRoot }, state, sources }
}

/** @throws ConfigError for an audit log or access file that would be served, and for no log where one is required */
export async function checkPlaces (
  { accessFile, auditLog, auditRequired, linkTargets = [] }: Config,
  { projectRoots, personalRoot }: Pick<OpenedRoots, 'projectRoots' | 'personalRoot'>
): Promise<void> {
  if (auditLog === undefined && auditRequired) {
    throw new ConfigError('AUDIT_REQUIRED needs AUDIT_LOG: a file, or stdout')
  }
  const served = [...[...projectRoots, personalRoot ?? []].flat().map(({ path }) => path), ...linkTargets]
  for (const [setting, path] of [['AUDIT_LOG', auditLog], ['ACCESS_FILE or --access', accessFile]] as const) {
    if (path !== undefined && path !== 'stdout') await checkNotServed(path, setting, served)
  }
}

/** Whether the direct children of a folder are the skills, so that nothing has to be searched or fetched. */
function isPlainFolder (spec: RootSpec): spec is FolderRoot {
  return spec.kind === 'folder' && (spec.layout ?? 'flat') === 'flat'
}

function withName (spec: RootSpec): Source | LayoutFolder {
  return spec.kind === 'folder' ? { layout: 'flat', ...spec, name: nameOf(spec) } : spec
}

function nameOf (spec: RootSpec): string {
  return spec.kind === 'folder' ? spec.name ?? basename(spec.path) : spec.name
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
