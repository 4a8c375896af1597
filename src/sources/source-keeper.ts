import { hash } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { LimitFunction } from 'p-limit'
import { findSkills } from '../core/layout/find-skills.ts'
import type { RootOptions } from '../core/roots/root.ts'
import { coalesce } from '../core/shared/async.ts'
import { baseName } from '../core/shared/paths.ts'
import type { CoreLog } from '../core/shared/log.ts'
import type { SourceStatus } from '../schemas/health.ts'
import { DEFAULT_TIMEOUT_MS } from './address/source-kind.ts'
import { asSourceError } from './as-source-error.ts'
import type { Fetched, Fetcher } from './fetcher.ts'
import { githubState, type GithubState } from './git/github.ts'
import { Failure } from './failure.ts'
import type { Keeper } from './keeper.ts'
import type { Source } from './kinds.ts'
import { findPackaged } from './publish/packages.ts'
import { planOf } from './publish/plan.ts'
import { type PublishedState, Publisher } from './publish/publisher.ts'
import { brokenParts, isReport, summaryOf } from './publish/report.ts'
import { checkEntries, SourceTree } from './publish/source-tree.ts'
import type { StateFolder } from './publish/state-folder.ts'
import { Schedule } from './schedule.ts'
import { readSecretFile } from './secrets.ts'
import { SourceError } from './source-error.ts'

/** A state that is about to be published. */
export interface Candidate {
  readonly source: string
  readonly revision: string
  /** The folder that holds all of its skills. */
  readonly skillsFolder: string
  /** Real paths of the skills that are new or changed, by name. */
  readonly folders: ReadonlyMap<string, string>
}

/** Judges states before they are published. It is set after the sources were opened. */
export interface Approval {
  /** Refuses a state by throwing a SourceError: `verification_failed`. */
  approve?: (candidate: Candidate) => Promise<void>
}

export interface SourceOptions {
  readonly source: Source
  readonly fetcher: Fetcher
  /** The folder of this source's state. */
  readonly folder: string
  readonly state: Pick<StateFolder, 'confirm'>
  readonly log: CoreLog
  /** Lets few sources fetch at a time. */
  readonly inTurn: LimitFunction
  readonly approval: Approval
}

/**
 * Keeps the published folder of one source near what the source holds. A check that fails changes nothing but the
 * status.
 */
export class SourceKeeper implements Keeper {
  readonly #options: SourceOptions
  readonly #publisher: Publisher
  readonly #schedule: Schedule
  readonly #closing = new AbortController()
  readonly #failure = new Failure()
  /** Checks now; a call during a check gets one that begins afterwards. */
  readonly sync = coalesce(() => this.#sync())
  #published: PublishedState | undefined
  #checkedAt: Date | undefined
  #nextAt: Date | undefined
  /** Whether a hook has come since the last check began. */
  #isHinted = false
  #timer: NodeJS.Timeout | undefined

  constructor (options: SourceOptions) {
    this.#options = options
    this.#publisher = new Publisher(options.folder)
    const { source, fetcher } = options
    this.#schedule = new Schedule({ intervalMs: source.intervalMs ?? fetcher.intervalMs })
  }

  get hook (): Keeper['hook'] {
    const { webhookSecretFile } = this.#options.source
    return webhookSecretFile === undefined ? undefined : { secretFile: webhookSecretFile, hint: () => { this.hint() } }
  }

  get root (): RootOptions & { readonly name: string } {
    const { folder, source: { name, prefix = '' } } = this.#options
    return { path: folder, name, listed: this.#publisher, prefix }
  }

  /** Takes up what was published before, without the network. */
  async open (): Promise<void> {
    const { source, log } = this.#options
    this.#published = await this.#publisher.open(settingsOf(source))
    if (this.#published === undefined) return
    const { revision, changedAt } = this.#published
    log.info({ source: source.name, revision, changedAt }, 'serving what the source had when it was last fetched')
  }

  start (): void {
    this.#wakeIn(0)
    void this.#checkHook()
  }

  hint (): void {
    this.#isHinted = true
    this.#wakeIn(this.#schedule.pauseBeforeHook(performance.now()))
  }

  /** The sender does not learn why its hook is refused, so the log says it. */
  async #checkHook (): Promise<void> {
    const { log, source: { name, webhookSecretFile: file } } = this.#options
    if (file === undefined) return
    await readSecretFile(file).catch(() => {
      const problem = 'the secret of a webhook cannot be read: hooks are refused until the file holds it in one line'
      log.warn({ source: name, file }, problem)
    })
  }

  async close (): Promise<void> {
    this.#closing.abort()
    clearTimeout(this.#timer)
    // Waits for a check that is running: the one after it does nothing.
    await this.sync()
    await this.#publisher.close()
  }

  get status (): SourceStatus {
    const { name, kind, optional } = this.#options.source
    const published = this.#published
    return {
      name,
      kind,
      ...this.#failure.statusOf(published !== undefined),
      ...optional === true && { optional },
      ...published !== undefined && { revision: published.revision, changed_at: published.changedAt },
      skills: this.#publisher.skills,
      ...this.#checkedAt !== undefined && { checked_at: this.#checkedAt.toISOString() },
      ...this.#nextAt !== undefined && { next_at: this.#nextAt.toISOString() },
      ...isReport(published?.report) && published.report
    }
  }

  get github (): GithubState | undefined {
    return githubState(this.#options.source, this.#published?.revision)
  }

  #wakeIn (pause: number): void {
    if (this.#closing.signal.aborted) return
    clearTimeout(this.#timer)
    this.#nextAt = new Date(Date.now() + pause)
    this.#timer = setTimeout(() => { void this.sync() }, pause).unref()
  }

  async #sync (): Promise<void> {
    if (this.#closing.signal.aborted) return
    clearTimeout(this.#timer)
    let pause: number
    try {
      // Waiting for those that share a folder takes neither a place among the fetches nor the time of one.
      await this.#options.inTurn(() => this.#check())
      this.#checkedAt = new Date()
      this.#succeeded()
      pause = this.#schedule.pauseAfterSuccess()
    } catch (error) {
      if (this.#closing.signal.aborted) return
      const failure = asSourceError(error)
      this.#failed(failure)
      pause = this.#schedule.pauseAfterFailure(failure.retryAfterMs)
    }
    this.#wakeIn(this.#isHinted ? this.#schedule.pauseBeforeHook(performance.now()) : pause)
  }

  async #check (): Promise<void> {
    const { source, fetcher, state, log } = this.#options
    this.#isHinted = false
    await state.confirm()
    if (!await this.#publisher.restore()) {
      if (this.#published !== undefined) this.#published = { ...this.#published, memory: {} }
      log.warn({ source: source.name }, 'skills are missing in the state folder: they are fetched again')
    }
    this.#schedule.started(performance.now())
    const published = this.#published
    const known = published?.settings === settingsOf(source) ? published.memory : undefined
    const timeout = AbortSignal.timeout(source.timeoutMs ?? DEFAULT_TIMEOUT_MS)
    const signal = AbortSignal.any([timeout, this.#closing.signal])
    // Every request of a fetch listens to it, and many run at a time.
    setMaxListeners(0, signal)
    const tmp = await mkdtemp(join(this.#publisher.tmp, 'fetch-'))
    try {
      const fetched = await fetcher.fetch({ known, tmp, signal })
      if (fetched !== undefined) await this.#publish(fetched, tmp, signal)
    } catch (error) {
      if (!timeout.aborted || this.#closing.signal.aborted) throw error
      throw new SourceError('timeout', 'the source did not deliver in time', { cause: error })
    } finally {
      await rm(tmp, { recursive: true, force: true })
    }
  }

  async #publish (fetched: Fetched, tmp: string, signal: AbortSignal): Promise<void> {
    const { log, approval: { approve }, source } = this.#options
    const { name, layout, include, exclude, prefix = '' } = source
    const { revision, memory, path, files, confirm, leftOut = [] } = fetched
    const where = revision.length > 80 ? `${revision.slice(0, 80)}…` : revision
    checkEntries(files.entries, where)
    const tree = new SourceTree(files, path)
    const asked = JSON.stringify(path)
    if (path !== '' && !tree.isFolder('')) throw new SourceError('path_not_found', `${where} has no folder ${asked}`)
    const options = { layout, name: path === '' ? name : baseName(path), include, exclude }
    const found = await findSkills(tree, options)
    const packaged = await findPackaged(tree, found, options, tmp, signal)
    const skills = planOf(tree, found.skills, { prefix, where })
    const inPackages = planOf(packaged.tree, packaged.skills, { prefix, where })
    const published = skills.flatMap((skill) => skill.files.map(({ entry }) => entry))
    const broken = await brokenParts(files, new Set([...tree.unresolved, ...published]))
    const allLeftOut = [...leftOut, ...found.leftOut, ...packaged.leftOut, ...broken]
    const before = this.#published
    const settings = settingsOf(source)
    const isSame = before?.revision === revision && before.settings === settings
    const changedAt = isSame ? before.changedAt : new Date().toISOString()
    const report = summaryOf({ ...found, leftOut: allLeftOut }, packaged.skills.length)
    const state = { revision, settings, memory, changedAt, report }
    const write: typeof files.write = (wanted, signal) => files.write(wanted, signal)
    const change = await this.#publisher.publish([...skills, ...inPackages], write, {
      state,
      confirm,
      signal: this.#closing.signal,
      approve: approve && ((folders, skillsFolder) => approve({ source: name, revision: where, skillsFolder, folders }))
    })
    this.#published = state
    if (isSame) return
    const details = { layout: found.layout, leftOut: allLeftOut.length, ...before && { before: before.revision } }
    log.info({ source: name, revision, ...change, ...details }, 'a source is published in a new revision')
  }

  #succeeded (): void {
    const { log, source: { name } } = this.#options
    const { since } = this.#failure
    if (since !== undefined) log.info({ source: name, failingSince: since }, 'the source delivers again')
    this.#failure.clear()
  }

  #failed (error: SourceError): void {
    if (!this.#failure.set(error)) return
    const { code, message, details, cause } = error
    const { log, source: { name } } = this.#options
    const served = this.#published === undefined ? 'nothing was published yet' : 'what was published before is served'
    const fields = { source: name, code, ...details && { details }, ...code === 'internal' && { err: cause } }
    log.warn(fields, `the source fails: ${message}; ${served}`)
  }
}

/** What decides which part of a state is published: another value publishes the same state anew. */
function settingsOf ({ name, layout, include, exclude, prefix }: Source): string {
  return hash('sha256', JSON.stringify([1, name, layout, include, exclude, prefix])).slice(0, 16)
}
