import type { CacheUsage } from '../../core/read/file-cache.ts'
import type { RootRefresh } from '../../core/skill-manager.ts'
import type { SkillStatus } from '../../core/service.ts'
import type { Signal } from '../../core/shared/signal.ts'
import { distinctNames } from '../../core/shared/text.ts'
import { Counter, Histogram, type Metric, Reading } from './instruments.ts'

/** What is measured of the skills. */
export interface MeasuredSkills {
  readonly status: SkillStatus
  readonly contents: { readonly usage: CacheUsage }
  readonly refreshed: Signal<RootRefresh>
  /** Whether changes in the root at this position cause events, or it is polled. */
  isWatching (root: number): boolean
  /** The number of skills with an error, for each root. */
  invalidNow (): readonly number[]
}

/** Hexadecimal digits of a revision that a double holds exactly. */
const REVISION_DIGITS = 12

/**
 * Metrics of roots, catalog and index.
 * @param revision of the whole catalog; undefined while it is not known
 */
export function skillMetrics (skills: MeasuredSkills, revision: () => string | undefined): Readonly<Record<string, Metric>> {
  const refreshes = new Histogram({ help: 'Duration of comparisons of the index with the disk.', labels: ['root'] })
  const failedRefreshes = new Counter({ help: 'Comparisons that failed; what was there before is served.', labels: ['root'] })
  const startedAt = Date.now()
  const refreshedAt: number[] = []
  // One series cannot stand for two roots in folders of one name.
  const names = distinctNames(skills.status.roots.map(({ name }) => name))
  const nameOf = (root: number): string => names[root] ?? ''

  skills.refreshed.subscribe(({ milliseconds, isFailed, root }) => {
    refreshes.of(nameOf(root)).observe(milliseconds / 1000)
    if (isFailed) failedRefreshes.of(nameOf(root)).value++
    else refreshedAt[root] = Date.now()
  })

  const ofRoots = (help: string, valueOf: (root: SkillStatus['roots'][number], index: number) => number): Reading =>
    new Reading('gauge', { help, labels: ['root'] }, () => skills.status.roots.map((root, index) => [nameOf(index), valueOf(root, index)] as const))
  const ofCache = (type: 'gauge' | 'counter', help: string, value: keyof CacheUsage): Reading =>
    new Reading(type, { help, labels: ['cache'] }, () => [['contents', skills.contents.usage[value]]])

  return {
    skillserve_skills: ofRoots('Skills in a root.', ({ skills: count }) => count),
    skillserve_skills_invalid: new Reading('gauge', { help: 'Skills in a root that have an error.', labels: ['root'] }, () => skills.invalidNow().map((count, index) => [nameOf(index), count] as const)),
    skillserve_root_available: ofRoots('1 for a root that is there and can be read.', ({ state }) => state === 'ok' ? 1 : 0),
    skillserve_catalog_generation: new Reading('gauge', { help: 'Goes up with each change of the catalog.' }, () => skills.status.generation),
    skillserve_catalog_revision: new Reading('gauge', { help: 'The first 12 hexadecimal digits of the revision of the catalog, as a number: equal at replicas of equal content. None while it is not known.' }, () => numbersOf(revision())),
    skillserve_refresh_duration_seconds: refreshes,
    skillserve_refresh_failures_total: failedRefreshes,
    skillserve_last_refresh_timestamp_seconds: ofRoots('End of the last comparison with the disk that succeeded.', (_root, index) => (refreshedAt[index] ?? startedAt) / 1000),
    skillserve_watcher_healthy: ofRoots('1 while changes cause events, or the root is polled.', (_root, index) => skills.isWatching(index) ? 1 : 0),
    skillserve_cache_bytes: ofCache('gauge', 'Memory for contents of files, by weight.', 'bytes'),
    skillserve_cache_hits_total: ofCache('counter', 'Files that were found in memory.', 'hits'),
    skillserve_cache_misses_total: ofCache('counter', 'Files that were read.', 'misses')
  }
}

/** A number, since a label would add a series with each change: the first digits, which two catalogs hardly share. */
function numbersOf (revision: string | undefined): Array<readonly [number]> {
  return revision === undefined ? [] : [[Number.parseInt(revision.slice(0, REVISION_DIGITS), 16)]]
}
