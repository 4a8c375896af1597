import { loadConfig } from '../../config/load.ts'
import type { OpenedRoots } from '../../config/roots.ts'
import { failureOf } from '../../sources/source-error.ts'
import { type Arguments, type CommandContext, CommandError } from '../command.ts'
import { showing } from '../progress.ts'
import { checkSkillsFolder } from './check-folder.ts'
import { withoutDefaultFolder } from './default-folder.ts'

/** Flags that say how sources are read. */
export const ROOT_FLAGS = ['layout', 'state-dir'] as const

/**
 * Opens folders and addresses for a command that reads them once: sources are fetched before `use` is called, and closed after it.
 * @throws CommandError for what cannot be read as a folder, and for a source that does not deliver
 */
export async function withRoots<T> (texts: readonly string[], { flags }: Pick<Arguments, 'flags'>, { env, cwd, progress }: CommandContext, use: (roots: OpenedRoots) => Promise<T>): Promise<T> {
  const own = new Map([...ROOT_FLAGS, 'config', 'allow-links'].flatMap((name) => flags.has(name) ? [[name, flags.get(name) ?? []] as const] : []))
  const config = withoutDefaultFolder(loadConfig({ positionals: texts, flags: own, env: { STATE_DIR: env['STATE_DIR'], LAYOUT: env['LAYOUT'], LINK_TARGETS: env['LINK_TARGETS'] }, cwd }), texts, {})
  for (const text of texts) await checkSkillsFolder(text, cwd, undefined, config.layout)
  const [{ openRoots }, { SILENT }] = await Promise.all([import('../../config/roots.ts'), import('../../core/ground/log.ts')])
  const roots = await openRoots(config, { log: SILENT, env })
  try {
    await roots.sources?.sync(showing(progress, 'source'))
    const failed = roots.sources?.status.find(({ error }) => error !== undefined)
    if (failed?.error !== undefined) throw new CommandError(failureOf(failed.name, failed.error))
    return await use(roots)
  } finally {
    await roots.sources?.close()
  }
}

/** Absolute paths of the folders that links in folders of skills may lead into, by --allow-links or LINK_TARGETS. */
export function readLinkTargets ({ flags }: Pick<Arguments, 'flags'>, { env, cwd }: Pick<CommandContext, 'env' | 'cwd'>): readonly string[] | undefined {
  const own = new Map(flags.has('allow-links') ? [['allow-links', flags.get('allow-links') ?? []] as const] : [])
  return loadConfig({ positionals: [], flags: own, env: { LINK_TARGETS: env['LINK_TARGETS'] }, cwd }).linkTargets
}
