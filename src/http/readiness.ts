import { failureCodeOf, ROOT_PROBLEMS } from '../core/roots/root.ts'
import type { View } from '../core/view.ts'
import type { Quarantined, SourceStatus } from '../schemas/health.ts'
import type { Shutdown } from './shutdown.ts'

/** The state of the audit log: `refusing` if it is required and cannot be written, so that nothing is read. */
export type AuditState = 'working' | 'failing' | 'refusing'

const AUDIT_PROBLEMS = {
  working: [],
  failing: ['the audit log cannot be written; up to 8 MiB of lines wait in memory, further ones are lost'],
  refusing: ['the audit log cannot be written, and AUDIT_REQUIRED refuses reads until it can']
} as const

/** Parts of the service, other than the index, that readiness depends on. */
export interface ReadinessParts {
  /** Problems of the operator's files; they are shown to authenticated callers only. */
  readonly configProblems: () => readonly string[]
  /** Status of the sources other than plain folders. */
  readonly sources: () => readonly SourceStatus[]
  /** Returns the skills in these roots that a lock or a trust file refuses; undefined without either. */
  readonly quarantinedIn?: ((roots: readonly string[]) => Quarantined | undefined) | undefined
  readonly auditState: () => AuditState
  readonly shutdown: Pick<Shutdown, 'isStopping'>
}

export type SkillStatus = Readonly<ReturnType<typeof statusOf>>

/** How the skills that a caller may see are, as of the last comparison with the disk. */
export function statusOf (skills: View) {
  const { scope, generation, roots, unavailable, parts: { refresher } } = skills
  const isReadable = roots.length === 0 || roots.some(({ isIndexed, listing }) => isIndexed && listing !== undefined)
  const grants = roots.map((root) => [root, skills.grantOf(root.name)] as const)
  return {
    /** True if at least one root can be read and its first index is complete. */
    ready: isReadable && unavailable === undefined,
    /** Whether the first index of every root is complete. */
    indexed: roots.every(({ isIndexed }) => isIndexed),
    generation,
    skills: skills.indexedNames().length,
    roots: grants.map(([root, grant]) => typeof grant !== 'function'
      ? root.status
      // Skipped entries may belong to skills that the caller must not see, so their number is hidden.
      : { ...root.status, skills: [...root.folders.keys()].filter(grant).length, skipped: 0 }),
    watcher: refresher.state,
    /** Codes of the errors that kept the last refresh from reading the disk; the last good index is served. */
    failures: [...new Set(roots.flatMap((root) => failureCodeOf(root) ?? []))],
    /** Names of the roots in which the caller sees only some skills; absent without an access file. */
    ...scope !== '' && { partial: grants.filter(([, grant]) => grant !== 'all').map(([{ name }]) => name) }
  }
}

/** How the service is for a caller. @param status of what the caller may see */
export function readinessOf (
  status: SkillStatus, { configProblems, sources, quarantinedIn, auditState, shutdown: { isStopping } }: ReadinessParts
) {
  const { roots, partial = [], ready } = status
  const all = sources()
  const visible = all.flatMap((source) => visiblePart(source, status))
  return {
    isReady: ready && auditState() !== 'refusing' && !isStopping &&
      all.every((source) => source.optional === true || source.kind === 'folder' || !isUnfetched(source)),
    /** Problems, as sentences. */
    reasons: isStopping
      ? ['The service is stopping']
      : [...explain(status, visible), ...AUDIT_PROBLEMS[auditState()], ...configProblems()],
    /** Status of the sources, limited to what the caller may see. */
    sources: visible.length === 0 ? undefined : visible,
    /** Refused skills in the roots that the caller sees completely. */
    quarantined: quarantinedIn?.(roots.map(({ name }) => name).filter((name) => !partial.includes(name)))
  }
}

/** Explains problems as sentences. They name folders, but have no paths, since everybody may ask; the log has them. */
function explain ({ indexed, roots, watcher }: SkillStatus, sources: readonly SourceStatus[]): string[] {
  const awaited = sources.filter(isUnfetched).map(({ name }) => name)
  const cause = watcher.lastError === undefined ? '' : ` (${watcher.lastError})`
  return [
    indexed ? [] : 'The first index is not complete',
    roots.flatMap(({ name, type, state }) =>
      state === 'ok' || awaited.includes(name) ? [] : `folder "${name}" (${type}) ${ROOT_PROBLEMS[state]}`),
    watcher.status === 'degraded' ? `file watching failed${cause}; folders are compared at intervals` : [],
    sources.flatMap(explainSource)
  ].flat()
}

/** Returns what the caller may see of a source: revision, layout and error say something about all its skills. */
function visiblePart (source: SourceStatus, { roots, partial = [] }: SkillStatus): SourceStatus | [] {
  const root = roots.find(({ name }) => name === source.name)
  if (root === undefined) return []
  if (!partial.includes(root.name)) return source
  const { revision, changed_at: changed, layout, left_out: leftOut, error, ...shown } = source
  return { ...shown, skills: root.skills, ...error && { error: { code: error.code, message: 'the log says why' } } }
}

function isUnfetched ({ state }: SourceStatus): boolean {
  return state === 'waiting' || state === 'failed'
}

function explainSource (source: SourceStatus): string | [] {
  const { name, kind, error, failing_since: since = 'now' } = source
  const failure = error === undefined ? '' : `, failing since ${since}: ${error.message}`
  if (kind !== 'folder' && isUnfetched(source)) return `source "${name}" has not been fetched yet${failure}`
  if (error === undefined) return []
  const state = kind === 'folder' ? 'cannot be searched for skills' : 'is not up to date'
  return `${kind === 'folder' ? 'folder' : 'source'} "${name}" ${state}${failure}`
}
