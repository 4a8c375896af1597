import type { SkillStatus } from '../core/skill-source.ts'

const REASONS = {
  missing: 'is missing',
  unreadable: 'may not be read',
  failed: 'cannot be listed'
} as const

/**
 * Why a service is not ready, or not quite well, in words; undefined for one that is well. Folders have their position and
 * their type, because anybody may ask; the log has their paths.
 */
export function explainStatus ({ indexed, roots, watcher, hanging }: SkillStatus): string | undefined {
  const reasons = roots.flatMap(({ type, state }, index) => state === 'ok' ? [] : [`folder ${index + 1} (${type}) ${REASONS[state]}`])
  if (roots.every(({ state }) => state === 'missing' || state === 'unreadable')) reasons[0] = `No skills folder is there: ${reasons[0] ?? 'none is configured'}`
  else if (!indexed) reasons.unshift('The first index is not complete')
  if (watcher.status === 'degraded') reasons.push(`changes cause no events${watcher.lastError === undefined ? '' : ` (${watcher.lastError})`}; the folders are compared at intervals`)
  if (hanging.length > 0) reasons.push(`the disk of ${hanging.length === 1 ? '1 skill' : `${hanging.length} skills`} does not answer`)
  return reasons.length === 0 ? undefined : reasons.join('; ')
}
