import type { Catalog, IndexChange } from '../core/catalog.ts'
import type { IndexedSkill } from '../core/read-skill.ts'
import type { SkippedEntry } from '../core/roots/list-root.ts'
import { failureCodeOf, type Root, type RootState } from '../core/roots/root.ts'
import { allowingSetting, SKIPPED } from './skipped.ts'
import { type CoreLog, SILENT } from '../core/shared/log.ts'
import type { Finding } from '../core/shared/skill.ts'

/** Skipped entries of one listing that get a line each; the rest is counted. */
const MAX_SKIPPED_LINES = 20

/** Receives the entries of a root that could be skills and are skipped, when there are new ones. */
export type OnSkipped = (entries: readonly SkippedEntry[]) => void

/** Logs each transition of a root, each skipped entry, and each change of why a skill is invalid. */
export function logCatalog (
  catalog: Catalog, log: CoreLog = SILENT, onSkipped?: OnSkipped
): void {
  catalog.on('listed', (root, before) => {
    logSkipped(root, before)
    const { name, path, type, folders, failure } = root
    const { level, message } = describe(root)
    const wasListed = before.listing !== undefined || before.failure !== undefined
    if (wasListed && describe(before).message === message && failureCodeOf(before) === failureCodeOf(root)) return
    if (failure?.state === 'waiting') return log.info({ source: name, type }, message)
    log[level]({
      root: path,
      type,
      state: failure?.state ?? 'ok',
      skills: folders.size,
      ...wasListed && { before: before.failure?.state ?? 'ok' },
      ...failure?.state === 'failed' && { err: failure.cause }
    }, message)
  })
  catalog.on('changed', (changes) => { for (const change of changes) logValidity(change) })

  function logSkipped (root: Root, before: RootState): void {
    const entries = root.listing?.skipped ?? []
    const idOf = ({ name, reason, target = '' }: SkippedEntry): string => `${name}\0${reason}\0${target}`
    const known = new Set(before.listing?.skipped.map(idOf))
    const news = entries.filter((entry) => !known.has(idOf(entry)))
    if (news.length === 0) return
    onSkipped?.(entries)
    for (const { name, reason, target } of news.slice(0, MAX_SKIPPED_LINES)) {
      const setting = reason === 'outside' ? allowingSetting(target ?? '') : undefined
      const fields = { root: root.path, name, ...target !== undefined && { target } }
      const message = `an entry of a skills folder is skipped, since ${SKIPPED[reason]}`
      if (setting === undefined) log.warn(fields, message)
      else log.warn({ ...fields, setting }, `${message}; the setting allows it`)
    }
    if (news.length > MAX_SKIPPED_LINES) {
      log.warn({ root: root.path, entries: news.length - MAX_SKIPPED_LINES },
        'more entries of a skills folder are skipped; /readyz has their number')
    }
  }

  function logValidity ({ root, name, before, now }: IndexChange): void {
    if (now === undefined) return
    const fields = { skill: name, path: now.metadata.skillPath }
    const winner = catalog.roots.slice(0, catalog.roots.indexOf(root)).find(({ folders }) => folders.has(name))
    if (before === undefined && winner !== undefined) {
      log.warn({ ...fields, winner: winner.path }, 'skill is shadowed by one of the same name in an earlier root')
    }
    const problem = problemOf(now)
    const known = before && problemOf(before)
    if (problem?.code === known?.code) return
    if (problem === undefined) return log.info(fields, 'a skill is valid again')
    log.warn({ ...fields, code: problem.code, problem: problem.message },
      'a skill is invalid: its files are served, and the Skill tool, the prompt and discovery omit it')
  }
}

function problemOf ({ findings }: IndexedSkill): Finding | undefined {
  return findings.find(({ severity }) => severity === 'error')
}

function describe ({ failure, listing }: RootState): { level: 'info' | 'warn', message: string } {
  if (failure !== undefined) return { level: 'warn', message: FAILED[failure.state] }
  if (listing?.isSkill === true) {
    return { level: 'warn', message: 'a skills folder is itself a skill: give its parent folder' }
  }
  if ((listing?.folders.size ?? 0) > 0) return { level: 'info', message: 'serving a skills folder' }
  const why = (listing?.skipped.length ?? 0) > 0 ? 'its entries are skipped' : 'a skill is a folder in it'
  return { level: 'warn', message: `a skills folder has no skills: ${why}` }
}

const FAILED = {
  waiting: 'a source has not been fetched yet; its skills are served when it has',
  missing: 'a skills folder is missing, or is a file; it is served when it appears',
  unreadable: 'no permission to read a skills folder; it is served when the service has it',
  failed: 'cannot list a skills folder; still serving its last good index'
} as const satisfies Readonly<Record<NonNullable<Root['failure']>['state'], string>>
