import { ROOT_PROBLEMS } from '../core/roots/root.ts'
import type { SkillStatus } from '../core/service.ts'
import { watcherRemedy } from '../core/watch/watcher.ts'
import type { SourceStatus } from '../schemas/health.ts'
import type { Shutdown } from './shutdown.ts'

/** How the audit log is: while it is required and does not work, nothing is read. */
export type AuditState = 'working' | 'failing' | 'refusing'

const AUDIT_PROBLEMS = {
  failing: 'the audit log cannot be written; its lines wait, and are lost when they are too many',
  refusing: 'the audit log cannot be written, and AUDIT_REQUIRED refuses reads until it can'
} as const

/** What readiness depends on besides the index. */
export interface ReadinessParts {
  /** What is wrong with the files of operators, for callers who are known. */
  readonly remarks: () => readonly string[]
  /** The sources other than folders; undefined without any. */
  readonly sources?: (() => readonly SourceStatus[]) | undefined
  /** How many skills of these roots a lock or a trust file refuses; undefined where none can be. */
  readonly refusedIn?: ((roots: readonly string[]) => number | undefined) | undefined
  readonly auditState: () => AuditState
  readonly shutdown: Pick<Shutdown, 'isStopping'>
}

/** How the service is for a caller. */
export interface Readiness {
  readonly isReady: boolean
  /** What is wrong, in words. */
  readonly reasons: readonly string[]
  /** All reasons; undefined when nothing is wrong. */
  readonly detail: string | undefined
  /** Of the sources, what the caller may see. */
  readonly sources: readonly SourceStatus[] | undefined
  /** How many skills of the roots that the caller may see whole are refused. */
  readonly quarantined: number | undefined
}

/** @param status of what the caller may see */
export function judgeReadiness (
  status: SkillStatus, { remarks, sources, refusedIn, auditState, shutdown }: ReadinessParts
): Readiness {
  const all = sources?.()
  const visible = visibleSources(all, status)
  const whole = status.roots.map(({ name }) => name).filter((name) => status.partial?.includes(name) !== true)
  const audit = auditState()
  const isReady = status.ready && audit !== 'refusing' && !shutdown.isStopping && all?.some(isAwaited) !== true
  const reasons = shutdown.isStopping
    ? ['The service is stopping']
    : [...explainStatus(status, visible), ...audit === 'working' ? [] : [AUDIT_PROBLEMS[audit]], ...remarks()]
  return {
    isReady, reasons, detail: reasons.join('; ') || undefined, sources: visible, quarantined: refusedIn?.(whole)
  }
}

/**
 * Why a service is not ready, or not quite well, in words; none for one that is well. Folders have the names of the
 * other members, because anybody may ask; the log has their paths.
 */
function explainStatus (
  { ready, indexed, roots, watcher }: SkillStatus, sources: readonly SourceStatus[] = []
): string[] {
  const unfetched = sources.filter(({ state }) => state === 'waiting' || state === 'failed')
  const awaited = new Set(unfetched.map(({ name }) => name))
  const reasons = roots.flatMap(({ name, type, state }) => state === 'ok' || awaited.has(name)
    ? []
    : [`the folder ${name} (${type}) ${ROOT_PROBLEMS[state]}`])
  // A caller who sees no folder is in a service that is ready.
  const isMissing = roots.every(({ state }) => state !== 'ok' && state !== 'failed')
  if (!ready && awaited.size < Math.max(roots.length, 1) && isMissing) {
    reasons[0] = `No skills folder is there: ${reasons[0] ?? 'none is configured'}`
  } else if (!indexed) reasons.unshift('The first index is not complete')
  if (watcher.status === 'degraded') {
    const cause = [watcher.lastError ?? [], watcherRemedy(watcher.lastError) ?? []].flat().join(': ')
    reasons.push(`changes cause no events${cause && ` (${cause})`}; the folders are compared at intervals`)
  }
  return [...reasons, ...sources.flatMap(explainSource)]
}

/** Of the sources, as of the roots, what the caller may see. */
function visibleSources (
  sources: readonly SourceStatus[] | undefined, { roots, partial = [] }: SkillStatus
): readonly SourceStatus[] | undefined {
  return sources?.flatMap((source) => {
    const root = roots.find(({ name }) => name === source.name)
    if (root === undefined) return []
    return partial.includes(root.name) ? partOf(source, root.skills) : source
  })
}

/** Revision, layout and the words of an error tell of all skills of a source. */
function partOf (source: SourceStatus, skills: number): SourceStatus {
  const { name, kind, state, optional, checked_at: checkedAt, next_at: nextAt, failing_since: since, error } = source
  return {
    name,
    kind,
    state,
    skills,
    ...optional !== undefined && { optional },
    ...checkedAt !== undefined && { checked_at: checkedAt },
    ...nextAt !== undefined && { next_at: nextAt },
    ...since !== undefined && { failing_since: since },
    ...error !== undefined && { error: { code: error.code, message: 'the log says why' } }
  }
}

/** Whether the service waits for a source before it is ready. */
function isAwaited ({ kind, state, optional }: SourceStatus): boolean {
  return optional !== true && kind !== 'folder' && (state === 'waiting' || state === 'failed')
}

function explainSource ({ name, kind, state, error, failing_since: since }: SourceStatus): string[] {
  if (kind !== 'folder' && state === 'waiting') return [`the source ${name} is not fetched yet`]
  if (error === undefined) return []
  if (kind === 'folder') {
    return [`the folder ${name} cannot be searched for skills since ${since ?? 'now'}: ${error.message}`]
  }
  const failure = state === 'failed' ? 'is not fetched yet and fails' : 'is not up to date, it fails'
  return [`the source ${name} ${failure} since ${since ?? 'now'}: ${error.message}`]
}
