import { userInfo } from 'node:os'
import type { Environment } from './setting.ts'

/** Returns the user's home folder; undefined for a user without one, as in many containers. */
export function homeOf (env: Environment): string | undefined {
  if (env['HOME']) return env['HOME']
  try {
    return userInfo().homedir || undefined
  } catch {
    return undefined
  }
}
