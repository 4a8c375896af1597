import type { Catalog, SkillRef } from './catalog.ts'
import type { SkippedEntry } from './roots/list-root.ts'
import type { Root } from './roots/root.ts'
import { allowingSetting, SKIPPED } from './roots/skipped.ts'
import { type CoreLog, SILENT } from './shared/log.ts'

/** Entries that are left out get a line each, up to so many of one listing. */
const MAX_SKIPPED_LINES = 20

/** Logs each transition of a root, each entry that is left out, and each skill that becomes invalid or valid again. */
export function logCatalog (
  catalog: Catalog, log: CoreLog = SILENT, onSkipped?: (entries: readonly SkippedEntry[]) => void
): void {
  /** The last line of each root, and its state. */
  const reported = new Map<Root, { readonly line: string, readonly state: string }>()
  const skipped = new Map<Root, ReadonlySet<string>>()
  const invalid = new Set<string>()
  const shadowed = new Set<string>()
  catalog.on('listed', (root) => {
    logSkipped(root)
    const { name, path, type, folders, failure, failureCode = '' } = root
    const { level, message } = describeRoot(root)
    const state = failure?.state ?? 'ok'
    const line = `${message} ${failureCode}`
    const before = reported.get(root)
    if (before?.line === line) return
    reported.set(root, { line, state })
    if (state === 'waiting') return log.info({ source: name, type }, message)
    log[level]({
      root: path,
      type,
      state,
      skills: folders.size,
      ...before !== undefined && { before: before.state },
      ...state === 'failed' && { err: failure?.cause }
    }, message)
  })
  catalog.on('changed', (changed) => { for (const skill of changed) logValidity(skill) })

  function logSkipped (root: Root): void {
    const entries = root.listing?.skipped ?? []
    const idOf = ({ name, reason, target = '' }: SkippedEntry): string => `${name}\0${reason}\0${target}`
    const news = entries.filter((entry) => skipped.get(root)?.has(idOf(entry)) !== true)
    skipped.set(root, new Set(entries.map(idOf)))
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

  function logValidity ({ root, name }: SkillRef): void {
    const id = `${root.id}\0${name}`
    const skill = catalog.skillsIn(root).get(name)
    const wasInvalid = invalid.delete(id)
    const wasShadowed = shadowed.delete(id)
    if (skill === undefined) return
    const fields = { skill: name, path: skill.metadata.skillPath }
    const winner = catalog.roots.slice(0, catalog.roots.indexOf(root)).find(({ folders }) => folders.has(name))
    if (winner !== undefined) shadowed.add(id)
    if (winner !== undefined && !wasShadowed) {
      log.warn({ ...fields, winner: winner.path }, 'a skill has the name of one in an earlier folder, which wins')
    }
    if (!skill.valid) invalid.add(id)
    if (skill.valid && wasInvalid) log.info(fields, 'a skill is valid again')
    if (skill.valid || wasInvalid) return
    const problem = skill.findings.find(({ severity }) => severity === 'error')
    log.warn({ ...fields, code: problem?.code, problem: problem?.message },
      'a skill is invalid: its files are served, and the Skill tool, the prompt and discovery leave it out')
  }
}

function describeRoot ({ folders, failure, listing }: Root): { level: 'info' | 'warn', message: string } {
  if (failure !== undefined) return { level: 'warn', message: FAILED[failure.state] }
  if (listing?.isSkill === true) {
    return { level: 'warn', message: 'a skills folder is itself a skill: give the folder that holds it' }
  }
  if (folders.size > 0) return { level: 'info', message: 'serving a skills folder' }
  const why = (listing?.skipped.length ?? 0) > 0 ? 'what could be one is skipped' : 'each skill is a folder in it'
  return { level: 'warn', message: `a skills folder has no skills: ${why}` }
}

const FAILED = {
  waiting: 'a source has not been fetched yet; its skills are served when it has',
  missing: 'a skills folder is missing, or is a file; it is served when it appears',
  unreadable: 'a skills folder may not be read; it is served when the service gets permission',
  failed: 'a skills folder could not be listed; what was there before is served'
} as const satisfies Readonly<Record<NonNullable<Root['failure']>['state'], string>>
