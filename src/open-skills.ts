import { openRoots } from './config/roots.ts'
import { logCatalog, type OnSkipped } from './operator/catalog-log.ts'
import type { Environment } from './operator/setting.ts'
import type { Config } from './config/settings.ts'
import { type CoreLog, SILENT } from './core/shared/log.ts'
import { createSkillManager } from './core/skill-manager.ts'
import type { Shutdown } from './http/shutdown.ts'

interface OpenOptions {
  readonly env: Environment
  readonly log?: CoreLog
  readonly onSkipped?: OnSkipped
  /** Whether changes on the disk are noticed. Default true. */
  readonly watcher?: boolean
  /** Closes everything that is opened here. */
  readonly shutdown: Shutdown
}

/**
 * Opens the folders and sources in the settings, the lock and trust file that guard them, and the catalog of their
 * skills, and starts none of them.
 * @throws ConfigError
 */
export async function openSkills (config: Config, { env, log = SILENT, shutdown, onSkipped, ...options }: OpenOptions) {
  const roots = await openRoots(config, { log, env })
  shutdown.add(() => roots.sources.close())
  const isGuarded = config.lockFile !== undefined || config.trustFile !== undefined
  const trust = isGuarded ? await (await import('./trust/trust.ts')).openTrust(config, roots, log) : undefined
  shutdown.add(() => trust?.close())
  const projectRoots = trust?.guard(roots.sources.roots) ?? roots.sources.roots
  const skills = createSkillManager({
    ...config,
    ...options,
    projectRoots,
    polling: config.watchPolling,
    keep: { keepMs: config.keepRevisionSeconds * 1_000, maxBytes: config.keepRevisionBytes },
    log
  })
  logCatalog(skills.parts.catalog, log, onSkipped)
  shutdown.add(() => skills.close())
  return { roots, trust, skills }
}
