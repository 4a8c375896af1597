import { isAbsolute, join } from 'node:path'
import type { CoreLog } from '../core/shared/log.ts'
import { isAddress } from '../sources/address/address.ts'
import { checkSources, parseAddress, type RootSpec } from '../sources/kinds.ts'
import { checkStateFolder, StateFolder } from '../sources/publish/state-folder.ts'
import { type PreparedSources, Sources, withNames } from '../sources/sources.ts'
import { checkNotServed } from '../operator/files.ts'
import { homeOf } from '../operator/home.ts'
import { ConfigError, type Environment } from '../operator/setting.ts'
import type { Config } from './settings.ts'

export interface OpenedRoots {
  /** Folder for all files that the service writes itself. */
  readonly state: StateFolder
  readonly sources: Sources
  /**
   * Reads the configuration file again, and opens its folders and sources. They replace the present ones on commit.
   * @throws ConfigError
   */
  prepare (): Promise<PreparedSources>
}

/**
 * Opens the configured folders and sources. Skills that a source published earlier are available immediately; nothing
 * is fetched yet.
 * @throws ConfigError, also when a file or folder of the service would itself be served
 */
export async function openRoots (
  config: Config, { log, env }: { readonly log: CoreLog, readonly env: Environment }
): Promise<OpenedRoots> {
  const state = new StateFolder(config.stateDir ?? defaultStateDir(env))
  const sources = new Sources({ ...config, state, env, log, polling: config.watchPolling })
  const prepare: OpenedRoots['prepare'] = async () => {
    const { specs, served } = await readRoots(config)
    await state.keepApart(served)
    return await sources.prepare(specs)
  }
  const prepared = await prepare()
  prepared.commit()
  await prepared.retire()
  return { state, sources, prepare }
}

/**
 * Checks the configured folders and sources without opening or writing anything. Returns them with their names.
 * @throws ConfigError
 */
export async function checkRoots (config: Config, env: Environment): Promise<ReturnType<typeof withNames>> {
  const { specs, served } = await readRoots(config)
  const isFetched = specs.some(({ kind }) => kind !== 'folder')
  if (isFetched) await checkStateFolder(config.stateDir ?? defaultStateDir(env), served)
  await checkSources(specs, env)
  return withNames(specs)
}

/**
 * Reads which folders and sources the settings name.
 * @throws ConfigError, also for an audit log or access file that would be served, and for no log where one is required
 */
async function readRoots (config: Config) {
  const { skillsDirs, personalDir, configFile, layout, linkTargets, accessFile, auditLog, auditRequired } = config
  const specs = skillsDirs.map((text) => toSpec(text, layout))
  if (configFile !== undefined) specs.push(...await (await import('./config-file.ts')).readConfigFile(configFile))
  if (specs.length === 0) throw new ConfigError('the configuration file lists no sources: add one, or name a folder')
  if (personalDir !== undefined) specs.push({ ...toSpec(personalDir, layout), type: 'personal' })
  const served = [...specs.flatMap((spec) => spec.kind === 'folder' ? spec.path : []), ...linkTargets]
  if (auditLog === undefined && auditRequired) {
    throw new ConfigError('AUDIT_REQUIRED needs AUDIT_LOG: a file, or stdout')
  }
  for (const [setting, path] of [['AUDIT_LOG', auditLog], ['ACCESS_FILE or --access', accessFile]] as const) {
    if (path !== undefined && path !== 'stdout') await checkNotServed(path, setting, served)
  }
  return { specs, served }
}

function toSpec (text: string, layout: Config['layout']): RootSpec {
  const spec: RootSpec = isAddress(text) ? parseAddress(text) : { kind: 'folder', path: text }
  return layout === undefined ? spec : { ...spec, layout }
}

/** Undefined for a user without a home folder. The XDG specification says to ignore a relative XDG_CACHE_HOME. */
function defaultStateDir (env: Environment): string | undefined {
  const cache = env['XDG_CACHE_HOME'] ?? ''
  const home = homeOf(env)
  const parent = isAbsolute(cache) ? cache : home && join(home, '.cache')
  return parent && join(parent, 'skillserve')
}
