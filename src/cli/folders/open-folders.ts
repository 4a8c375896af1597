import { loadConfig } from '../../config/load.ts'
import type { OpenedRoots } from '../../config/roots.ts'
import type { Sources } from '../../sources/sources.ts'
import { type Arguments, type CommandContext, CommandError } from '../command.ts'
import { showing } from '../progress.ts'
import { readConfig } from './read-config.ts'

/** Flags that say how sources are read. */
export const ROOT_FLAGS = ['layout', 'state-dir'] as const

/**
 * Fetches sources for a command that reads them once. One that is optional may fail, as for the service, and the command says so.
 * @throws CommandError for one that has to deliver and does not
 */
export async function fetchSources (sources: Sources | undefined, { progress, warn }: Pick<CommandContext, 'progress' | 'warn'>): Promise<void> {
  await sources?.sync(showing(progress, 'source'))
  if (sources?.failure !== undefined) throw new CommandError(sources.failure)
  for (const sentence of sources?.passedOver ?? []) warn(sentence)
}

/**
 * Opens folders and addresses for a command that reads them once: sources are fetched before `use` is called, and closed after it.
 * @throws CommandError for what cannot be read as a folder, and for a source that does not deliver
 */
export async function withRoots<T> (texts: readonly string[], { flags }: Pick<Arguments, 'flags'>, context: CommandContext, use: (roots: OpenedRoots) => Promise<T>): Promise<T> {
  const { env, cwd } = context
  const own = new Map([...ROOT_FLAGS, 'config', 'allow-links'].flatMap((name) => flags.has(name) ? [[name, flags.get(name) ?? []] as const] : []))
  const config = await readConfig(texts, { flags: own }, { env: { STATE_DIR: env['STATE_DIR'], LAYOUT: env['LAYOUT'], LINK_TARGETS: env['LINK_TARGETS'] }, cwd })
  const [{ openRoots }, { SILENT }] = await Promise.all([import('../../config/roots.ts'), import('../../core/shared/log.ts')])
  const roots = await openRoots(config, { log: SILENT, env })
  try {
    await fetchSources(roots.sources, context)
    const absent = new Set(roots.sources?.status.flatMap(({ name, state }) => state === 'failed' ? name : []))
    return await use({ ...roots, projectRoots: roots.projectRoots.filter(({ name }) => name === undefined || !absent.has(name)) })
  } finally {
    await roots.sources?.close()
  }
}

/** Absolute paths of the folders that links in folders of skills may lead into, by --allow-links or LINK_TARGETS. */
export function readLinkTargets ({ flags }: Pick<Arguments, 'flags'>, { env, cwd }: Pick<CommandContext, 'env' | 'cwd'>): readonly string[] | undefined {
  const own = new Map(flags.has('allow-links') ? [['allow-links', flags.get('allow-links') ?? []] as const] : [])
  return loadConfig({ positionals: [], flags: own, env: { LINK_TARGETS: env['LINK_TARGETS'] }, cwd }).linkTargets
}
