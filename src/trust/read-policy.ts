import { readSetting, readTextFile } from '../config/files/yaml-file.ts'
import { parseLock } from './lock-file.ts'
import { Policy } from './policy.ts'
import { LOCK_REMEDY, type TrustSettings } from './trust.ts'
import { parseTrust } from './trust-file.ts'

/**
 * The policy of files as they are now, which asks of every root what `require` asks.
 * @throws ConfigError when a file cannot be used
 */
export async function readPolicy ({ lockFile, trustFile }: TrustSettings): Promise<{
  readonly policy: Policy, readonly lockedNames: readonly string[]
}> {
  const lock = lockFile === undefined ? undefined : parseLock(lockFile, await readSetting('--locked', readTextFile(lockFile), LOCK_REMEDY))
  const trust = trustFile === undefined ? undefined : parseTrust(trustFile, await readSetting('--trust', readTextFile(trustFile)))
  return { policy: new Policy({ lock, trust }, { mode: 'require' }), lockedNames: [...lock?.keys() ?? []] }
}
