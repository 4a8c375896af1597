import { basename } from 'node:path'
import type { Config } from '../config/settings.ts'
import type { CoreLog } from '../core/ground/log.ts'
import type { OpenPolicy } from './open-policy.ts'

/**
 * The policy of a service; undefined without a lock and a trust file, of which then no module is loaded.
 * @throws ConfigError when a file cannot be used now
 */
export async function loadPolicy (config: Pick<Config, 'lockFile' | 'trustFile' | 'skillsDirs' | 'personalDir'>, log: CoreLog): Promise<OpenPolicy | undefined> {
  const { lockFile, trustFile, skillsDirs, personalDir } = config
  if (lockFile === undefined && trustFile === undefined) return undefined
  const { openPolicy } = await import('./open-policy.ts')
  return await openPolicy(config, [...skillsDirs, ...personalDir === undefined ? [] : [personalDir]].map((path) => basename(path)), log)
}
