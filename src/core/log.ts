import type { Catalog, SkillRef } from './catalog.ts'
import type { SkippedEntry } from './roots/list-root.ts'
import type { Root } from './roots/root.ts'
import { allowingSetting } from './roots/skipped.ts'
import type { CoreLog } from './shared/log.ts'

/** Entries that are left out get a line each, up to so many of one listing. */
const MAX_SKIPPED_LINES = 20

/** Logs each transition of a root, each entry that is left out, and each skill that becomes invalid or valid again. */
export function logCatalog (
  catalog: Catalog, log: CoreLog, onSkipped?: (entries: readonly SkippedEntry[]) => void
): void {
  const states = new Map<Root, string>()
  const skipped = new Map<Root, ReadonlySet<string>>()
  const invalid = new Set<string>()
  catalog.on('listed', (root) => {
    logSkipped(root)
    const state = stateOf(root)
    if (states.get(root) === state) return
    const before = states.get(root)?.split(' ', 1)[0]
    states.set(root, state)
    logRoot(log, root, before, (root.listing?.skipped.length ?? 0) > 0)
  })
  catalog.on('changed', (changed) => { for (const skill of changed) logValidity(skill) })

  function logSkipped (root: Root): void {
    const entries = root.listing?.skipped ?? []
    const before = skipped.get(root)
    const ids = new Set(entries.map(({ name, reason, target = '' }) => `${name}\0${reason}\0${target}`))
    skipped.set(root, ids)
    const news = entries.filter(
      ({ name, reason, target = '' }) => before?.has(`${name}\0${reason}\0${target}`) !== true
    )
    if (news.length === 0) return
    onSkipped?.(entries)
    for (const { name, reason, target } of news.slice(0, MAX_SKIPPED_LINES)) {
      const setting = reason === 'outside' ? allowingSetting(target ?? '') : undefined
      log.warn(
        { root: root.path, name, ...target !== undefined && { target }, ...setting !== undefined && { setting } },
        `${SKIPPED[reason]}${setting === undefined ? '' : '; the setting allows it'}`
      )
    }
    if (news.length > MAX_SKIPPED_LINES) {
      log.warn({ root: root.path, entries: news.length - MAX_SKIPPED_LINES },
        'more entries of a skills folder are skipped; /readyz has their number')
    }
  }

  function logValidity ({ root, name }: SkillRef): void {
    const id = `${root}\0${name}`
    const skill = catalog.skillsIn(root).get(name)
    if (skill === undefined || skill.valid) {
      if (invalid.delete(id) && skill !== undefined) {
        log.info({ skill: name, path: skill.metadata.skillPath }, 'a skill is valid again')
      }
      return
    }
    if (invalid.has(id)) return
    invalid.add(id)
    const problem = skill.findings.find(({ severity }) => severity === 'error')
    log.warn({ skill: name, path: skill.metadata.skillPath, code: problem?.code, problem: problem?.message },
      'a skill is invalid: its files are served, and the Skill tool, the prompt and discovery leave it out')
  }
}

/** Its kind, and whether it has skills. */
function stateOf ({ failure, failureCode, folders }: Root): string {
  return `${failure?.state ?? 'ok'} ${failureCode} ${folders.size > 0}`
}

function logRoot (log: CoreLog, root: Root, before: string | undefined, hasSkipped: boolean): void {
  const { name, path, type, folders, failure } = root
  const fields = {
    root: path, type, state: failure?.state ?? 'ok', skills: folders.size, ...before !== undefined && { before }
  }
  switch (failure?.state) {
    case 'waiting':
      return log.info({ source: name, type }, 'a source has not been fetched yet; its skills are served when it has')
    case 'missing':
      return log.warn(fields, 'a skills folder is missing, or is a file; it is served when it appears')
    case 'unreadable':
      return log.warn(fields, 'a skills folder may not be read; it is served when the service gets permission')
    case 'failed':
      return log.warn({ err: failure.cause, ...fields },
        'a skills folder could not be listed; what was there before is served')
    case undefined:
      if (folders.size === 0) {
        log.warn(fields,
          hasSkipped
            ? 'a skills folder has no skills: what could be one is skipped'
            : 'a skills folder has no skills: each skill is a folder in it')
      } else log.info(fields, 'serving a skills folder')
  }
}

const SKIPPED = {
  outside: 'a link in a skills folder is skipped, since it leads out of it',
  nothing: 'a link in a skills folder is skipped, since it leads to no folder that may be a skill',
  unknown: 'a link in a skills folder is skipped, since the disk that it leads to does not answer, or fails',
  ignored: 'a folder of a skills folder is skipped, since the .skillignore of that folder names it',
  unsafe_name: "an entry of a skills folder is skipped: the name of a skill has no '\\', '..', control characters, " +
    'or bytes that are not UTF-8'
} as const satisfies Readonly<Record<SkippedEntry['reason'], string>>
