import { FollowedFile } from '../config/followed-file.ts'
import type { Config } from '../config/settings.ts'
import type { TrustPolicy } from '../core/content/trust/trust-policy.ts'
import type { CoreLog } from '../core/ground/log.ts'
import { parseLock } from './lock-file.ts'
import { OriginPolicy } from './origin-policy.ts'

/** A policy that follows its files until it is closed. */
export interface OpenPolicy extends TrustPolicy {
  close (): void
}

/**
 * The policy of a service's settings. Its files are read again when they change; one that is broken keeps the last good one.
 * @throws ConfigError when a file cannot be used now
 */
export async function openPolicy ({ lockFile }: Pick<Config, 'lockFile'>, log: CoreLog): Promise<OpenPolicy> {
  const lock = lockFile === undefined ? undefined : await FollowedFile.open(lockFile, (text) => parseLock(lockFile, text))
  if (lock !== undefined) report(lock, 'the lock', log)
  const policy = new OriginPolicy({ lock })
  return Object.assign(policy, {
    close () {
      lock?.close()
    }
  })
}

function report<Value> (file: FollowedFile<Value>, name: string, log: CoreLog): void {
  file.changed.subscribe(() => { log.info({}, `${name} was read again: it is in force`) })
  file.failed.subscribe((error) => {
    if (error !== undefined) log.warn({ problem: error.message }, `${name} cannot be used; the last good one stays in force`)
  })
}
