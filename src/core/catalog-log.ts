import { isAbsolute } from 'node:path'
import type { CatalogChange, IndexedSkill } from './catalog/catalog.ts'
import type { RootReport } from './roots/root-reports.ts'
import type { RootFolder, SkippedEntry } from './roots/scan-root.ts'
import { allowingSetting } from './roots/skipped.ts'
import type { DiskAreaChange } from './disk/network/guard.ts'
import type { CoreLog } from './shared/log.ts'
import type { Signal } from './shared/signal.ts'

/** Lines about single skills within LINES_MS, in milliseconds; one more line has the number of the rest. */
const MAX_SKILL_LINES = 20
const LINES_MS = 1_000

const NONE = { invalid: 0, valid: 0 }

interface CatalogLogOptions {
  readonly log: CoreLog
  readonly root: Pick<RootFolder, 'path' | 'type'> & {
    readonly states: Signal<RootReport>
    readonly failed: Signal<unknown>
    readonly skipped: Signal<readonly SkippedEntry[]>
  }
  readonly catalog: {
    readonly changed: Signal<CatalogChange>
    readonly last: { get (name: string): Pick<IndexedSkill, 'valid' | 'findings' | 'metadata'> | undefined }
  }
  readonly disks: Signal<DiskAreaChange>
}

/** Logs what happens to a root and its skills: one line at the start, and one for each transition. */
export class CatalogLog {
  readonly #log: CoreLog
  readonly #catalog: CatalogLogOptions['catalog']
  readonly #invalid = new Set<string>()
  readonly #path: string
  /** Skipped entries that have been logged. */
  #skipped: ReadonlySet<string> = new Set()
  #lines = 0
  #unlogged = { ...NONE }
  #timer: NodeJS.Timeout | undefined
  #isStarted = false
  #first: RootReport | undefined

  constructor ({ log, root, catalog, disks }: CatalogLogOptions) {
    const { path, type } = root
    this.#log = log
    this.#path = path
    this.#catalog = catalog
    root.states.subscribe((report) => {
      if (this.#isStarted) this.#logRoot(report)
      else this.#first = report
    })
    root.failed.subscribe((cause) => {
      log.warn({ err: cause, root: path, type, state: 'failed' }, 'a skills folder could not be listed; what was there before is served')
    })
    root.skipped.subscribe((entries) => { this.#logSkipped(entries) })
    catalog.changed.subscribe((change) => { this.#onChange(change) })
    disks.subscribe(({ name, isAnswering }) => {
      const fields = { root: path, ...isAbsolute(name) ? { folder: name } : { skill: name } }
      if (isAnswering) log.info(fields, 'a disk answers again')
      else log.warn(fields, 'a disk does not answer; what was there before is served')
    })
  }

  /** Logs the state of the root, which is known by now: several roots are listed at the same time, and logged in their order. */
  start (): void {
    if (this.#isStarted) return
    this.#isStarted = true
    if (this.#first !== undefined) this.#logRoot(this.#first)
  }

  /** Logs what a last line would still say. */
  close (): void {
    clearTimeout(this.#timer)
    this.#endLines()
  }

  #logRoot ({ name, type, before, state, skills, isSkill }: RootReport): void {
    const log = this.#log
    const fields = { root: this.#path, type, state, skills, ...before !== undefined && { before } }
    switch (state) {
      case 'waiting':
        // A source that fails has a line of its own, which says why.
        return log.info({ source: name, type }, 'a source has not been fetched yet; its skills are served when it has')
      case 'missing':
        return log.warn(fields, 'a skills folder is missing, or is a file; it is served when it appears')
      case 'unreadable':
        return log.warn(fields, 'a skills folder may not be read; it is served when the service gets permission')
      case 'failed':
        // The cause is logged by the listener of `failed`.
        return
      case 'ok':
        if (isSkill) log.warn(fields, 'a skills folder is itself a skill, with its own SKILL.md: name the folder that holds it')
        else if (skills === 0) log.warn(fields, this.#skipped.size > 0 ? 'a skills folder has no skills: what could be one is skipped' : 'a skills folder has no skills: each skill is a folder in it')
        else log.info(fields, 'serving a skills folder')
    }
  }

  /** A line for each entry that is newly left out. */
  #logSkipped (entries: readonly SkippedEntry[]): void {
    const before = this.#skipped
    this.#skipped = new Set(entries.map(skipId))
    const news = entries.filter((entry) => !before.has(skipId(entry)))
    for (const { name, reason, target } of news.slice(0, MAX_SKILL_LINES)) {
      const setting = reason === 'outside' ? allowingSetting(target) : undefined
      const fields = { root: this.#path, name, ...target !== undefined && { target }, ...setting !== undefined && { setting } }
      this.#log.warn(fields, `${SKIPPED[reason]}${setting === undefined ? '' : '; the setting allows that'}`)
    }
    const rest = news.slice(MAX_SKILL_LINES)
    if (rest.length === 0) return
    const settings = new Set(rest.flatMap(({ reason, target }) => (reason === 'outside' ? allowingSetting(target) : undefined) ?? []))
    this.#log.warn({ root: this.#path, entries: rest.length, settings: [...settings].slice(0, MAX_SKILL_LINES) }, 'more entries of a skills folder are skipped; /readyz has their number')
  }

  #onChange ({ added, changed, removed }: CatalogChange): void {
    for (const name of removed) this.#invalid.delete(name)
    for (const name of added) this.#compare(name)
    for (const name of changed) this.#compare(name)
  }

  #compare (name: string): void {
    const skill = this.#catalog.last.get(name)
    if (skill === undefined || skill.valid === !this.#invalid.has(name)) return
    if (skill.valid) this.#invalid.delete(name)
    else this.#invalid.add(name)
    if (!this.#takeLine(skill.valid ? 'valid' : 'invalid')) return
    const { skillPath: path } = skill.metadata
    if (skill.valid) {
      this.#log.info({ skill: name, path }, 'a skill is valid again')
      return
    }
    const problem = skill.findings.find(({ severity }) => severity === 'error')
    this.#log.warn({ skill: name, path, code: problem?.code, problem: problem?.message }, 'a skill is not valid: it is served as files, and models are not offered it')
  }

  /** Whether there is a line for one more skill. Otherwise it is counted. */
  #takeLine (kind: keyof typeof NONE): boolean {
    this.#timer ??= setTimeout(() => { this.#endLines() }, LINES_MS).unref()
    if (this.#lines++ < MAX_SKILL_LINES) return true
    this.#unlogged[kind]++
    return false
  }

  #endLines (): void {
    const { invalid, valid } = this.#unlogged
    this.#lines = 0
    this.#unlogged = { ...NONE }
    this.#timer = undefined
    if (invalid + valid > 0) this.#log.warn({ invalid, valid }, 'more skills became invalid, or valid again; GET /catalog has their findings')
  }
}

const SKIPPED = {
  outside: 'a link in a skills folder is skipped, since it leads out of it',
  nothing: 'a link in a skills folder is skipped, since it leads to no folder that may be a skill',
  unknown: 'a link in a skills folder is skipped, since the disk that it leads to does not answer, or fails; it is followed when the disk answers',
  ignored: 'a folder of a skills folder is skipped, since the .skillignore beside it names it',
  unsafe_name: "an entry of a skills folder is skipped: no skill's name has '\\', '..', control characters, or bytes that are not UTF-8"
} as const satisfies Readonly<Record<SkippedEntry['reason'], string>>

function skipId ({ name, reason, target = '' }: SkippedEntry): string {
  return `${name}\0${reason}\0${target}`
}
