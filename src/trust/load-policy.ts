import { basename } from 'node:path'
import type { OpenedRoots } from '../config/roots.ts'
import type { Config } from '../config/settings.ts'
import type { CoreLog } from '../core/shared/log.ts'
import type { OpenPolicy } from './open-policy.ts'

/**
 * The policy of a service, which its sources ask from then on. Without a lock and a trust file it is undefined, and none of its modules is
 * loaded.
 * @throws ConfigError when a file cannot be used now
 */
export async function loadPolicy ({ lockFile, trustFile }: Pick<Config, 'lockFile' | 'trustFile'>, roots: OpenedRoots, log: CoreLog): Promise<OpenPolicy | undefined> {
  if (lockFile === undefined && trustFile === undefined) return undefined
  const { openPolicy } = await import('./open-policy.ts')
  const { projectRoots, personalRoot, sources } = roots
  const names = [...projectRoots, ...personalRoot === undefined ? [] : [personalRoot]].map((root) => typeof root === 'string' ? basename(root) : root.name ?? basename(root.path))
  const policy = await openPolicy({ lockFile, trustFile }, names, log, sources?.givenNames)
  sources?.guardBy((candidate) => policy.approve(candidate))
  return policy
}
