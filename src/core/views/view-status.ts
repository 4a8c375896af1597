import type { SkillStatus } from '../skill-source.ts'
import type { WatcherState } from '../watch/watcher.ts'
import type { ViewMember } from './view-member.ts'

/** In this order, the first state that a root has is that of all. */
const WATCHER_STATES = ['degraded', 'starting', 'off', 'watching'] as const satisfies ReadonlyArray<WatcherState['status']>

/** What the roots of a view say of themselves, counts of what the view does not have left out. */
export function viewStatus (members: readonly ViewMember[]): Omit<SkillStatus, 'generation' | 'skills'> {
  const all = members.map((member) => ({ member, status: member.skills.status }))
  const watchers = all.map(({ status }) => status.watcher)
  const worst = WATCHER_STATES.map((state) => watchers.find(({ status }) => status === state)).find((watcher) => watcher !== undefined)
  return {
    ready: all.every(({ status }) => status.indexed) && (all.length === 0 || all.some(({ status }) => status.ready)),
    indexed: all.every(({ status }) => status.indexed),
    roots: all.flatMap(({ member, status }) => status.roots.map((root) =>
      // Skipped entries may belong to skills that the view must not have.
      member.isWhole ? root : { ...root, skills: member.skills.namesNow().filter((name) => member.allows(name)).length, skipped: 0 })),
    watcher: { status: 'off', mode: 'events', ...worst, errors: watchers.reduce((sum, { errors }) => sum + errors, 0) },
    partial: members.filter(({ isWhole }) => !isWhole).map(({ skills }) => skills.name),
    failures: [...new Set(all.flatMap(({ status }) => status.failures))],
    hanging: all.flatMap(({ member, status }) => status.hanging.filter((name) => member.allows(name)))
  }
}
