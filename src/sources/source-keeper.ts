import { hash } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { RootOptions } from '../core/roots/root.ts'
import { coalesce, type Queue } from '../core/shared/async.ts'
import type { CoreLog } from '../core/shared/log.ts'
import { findSkills } from '../core/layout/find-skills.ts'
import type { SourceStatus } from '../schemas/health.ts'
import type { Fetched, Fetcher, FetchOptions } from './fetcher.ts'
import { KnownState } from './publish/known-state.ts'
import { expandPackages } from './publish/packages.ts'
import { type PublishedState, Publisher } from './publish/publisher.ts'
import { isReport, summaryOf } from './publish/report.ts'
import { Schedule } from './schedule.ts'
import { readSecretFile } from './secrets.ts'
import { asSourceError } from './as-source-error.ts'
import { SourceError } from './source-error.ts'
import type { Keeper } from './keeper.ts'
import { githubState, type GithubState } from './git/github.ts'
import { DEFAULT_TIMEOUT_MS } from './address/source-kind.ts'
import type { Source } from './kinds.ts'
import { checkEntries, type SourceChange, SourceTree } from './publish/source-tree.ts'
import type { StateLock } from './publish/state-folder.ts'

/** A state that is about to be published: folders of its skills by name. */
export interface Candidate {
  readonly source: string
  readonly revision: string
  /** The folder that holds all of them. */
  readonly skillsFolder: string
  /** Real paths of the skills that are new or others, by name. */
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
  readonly log: CoreLog
  /** Lets few sources fetch at a time. */
  readonly inTurn: Queue
  readonly approval: Approval
  readonly lock: Pick<StateLock, 'confirm'>
}

/** Failures of one kind in a row are logged once. */
interface Failure {
  readonly error: SourceError
  readonly since: Date
}

/** Keeps the published folder of one source near what the source holds. A check that fails changes nothing but the status. */
export class SourceKeeper implements Keeper {
  readonly #options: SourceOptions
  readonly #publisher: Publisher
  readonly #schedule: Schedule
  readonly #closing = new AbortController()
  /** Checks now; a call during a check gets one that begins afterwards. */
  readonly sync = coalesce(() => this.#sync())
  #published: PublishedState | undefined
  /** Of what is published; undefined after a start, and after a state that could not be published. */
  #known: KnownState | undefined
  #failure: Failure | undefined
  #checkedAt: Date | undefined
  #nextAt: Date | undefined
  /** Whether a hook has come since the last check began. */
  #isHinted = false
  #timer: NodeJS.Timeout | undefined

  constructor (options: SourceOptions) {
    this.#options = options
    this.#publisher = new Publisher(options.folder, () => options.lock.confirm())
    const { source, fetcher } = options
    this.#schedule = new Schedule({ intervalMs: source.intervalMs ?? fetcher.intervalMs })
  }

  get #source (): Source {
    return this.#options.source
  }

  get hook (): Keeper['hook'] {
    const { webhookSecretFile } = this.#source
    return webhookSecretFile === undefined ? undefined : { secretFile: webhookSecretFile, hint: () => { this.hint() } }
  }

  /** What is served. */
  get root (): RootOptions & { readonly name: string } {
    const { name, prefix = '' } = this.#source
    return { path: this.#options.folder, name, listed: this.#publisher, prefix }
  }

  /** Takes up what was published before, without the network; the first check follows. */
  async open (): Promise<void> {
    this.#published = await this.#publisher.open(settingsOf(this.#source))
    if (this.#published !== undefined) this.#options.log.info({ source: this.#source.name, revision: this.#published.revision, changedAt: this.#published.changedAt }, 'serving what the source had when it was last fetched')
  }

  start (): void {
    this.#wakeIn(0)
    void this.#checkHook()
  }

  /** A hook says that there may be something new. */
  hint (): void {
    this.#isHinted = true
    this.#wakeIn(this.#schedule.pauseBeforeHook(performance.now()))
  }

  /** A sender is not told why its hook is refused, so the operator is. */
  async #checkHook (): Promise<void> {
    const { name, webhookSecretFile } = this.#source
    if (webhookSecretFile === undefined) return
    try {
      await readSecretFile(webhookSecretFile)
    } catch {
      this.#options.log.warn({ source: name, file: webhookSecretFile }, 'the secret of a webhook cannot be read: its hooks are refused until the file holds it in one line')
    }
  }

  async close (): Promise<void> {
    this.#closing.abort()
    clearTimeout(this.#timer)
    // Waits for a check that is running: the one after it does nothing.
    await this.sync()
    await this.#publisher.close()
  }

  get status (): SourceStatus {
    const { name, kind, optional } = this.#source
    const published = this.#published
    const failure = this.#failure
    return {
      name,
      kind,
      state: published === undefined ? failure === undefined ? 'waiting' : 'failed' : failure === undefined ? 'ok' : 'stale',
      ...optional === true && { optional },
      ...published !== undefined && { revision: published.revision, changed_at: published.changedAt },
      skills: this.#publisher.skills,
      ...this.#checkedAt !== undefined && { checked_at: this.#checkedAt.toISOString() },
      ...this.#nextAt !== undefined && { next_at: this.#nextAt.toISOString() },
      ...failure !== undefined && { failing_since: failure.since.toISOString(), error: { code: failure.error.code, message: failure.error.message } },
      ...isReport(published?.report) && published.report
    }
  }

  get github (): GithubState | undefined {
    return githubState(this.#source, this.#published?.revision)
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
    const { fetcher, inTurn } = this.#options
    const check = (): Promise<void> => inTurn(() => this.#check())
    let pause: number
    try {
      // Waiting for those that share a folder takes neither a place among the fetches nor the time of one.
      await (fetcher.inTurn?.(check) ?? check())
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
    const { source, fetcher, lock } = this.#options
    const isAsked = this.#isHinted
    this.#isHinted = false
    await lock.confirm()
    if (!await this.#publisher.restore()) this.#forget()
    this.#schedule.started(performance.now())
    const settings = settingsOf(source)
    const known = this.#published?.settings === settings ? this.#published.memory : undefined
    const timeout = AbortSignal.timeout(source.timeoutMs ?? DEFAULT_TIMEOUT_MS)
    const tmp = await mkdtemp(join(this.#publisher.tmp, 'fetch-'))
    try {
      const signal = AbortSignal.any([timeout, this.#closing.signal])
      // Every request of a fetch listens to it, and many run at a time.
      setMaxListeners(0, signal)
      const options = { known, isAsked, tmp, signal }
      const fetched = await fetcher.fetch({ ...options, isListed: known !== undefined && this.#known !== undefined })
      if (fetched === undefined) return
      const { changes } = fetched
      if (changes !== undefined && await this.#publishChanges(fetched, changes, settings)) return
      const all = changes === undefined ? fetched : await fetcher.fetch(options)
      if (all !== undefined) await this.#publishAll(all, settings, options)
    } catch (error) {
      if (timeout.aborted && !this.#closing.signal.aborted) throw new SourceError('timeout', 'the source did not deliver in time', { cause: error })
      throw error
    } finally {
      await rm(tmp, { recursive: true, force: true })
    }
  }

  /** What is published is not what the source had any more, and is fetched again. */
  #forget (): void {
    this.#known = undefined
    if (this.#published !== undefined) this.#published = { ...this.#published, memory: {} }
    this.#options.log.warn({ source: this.#source.name }, 'skills are missing in the state folder: they are fetched again')
  }

  async #publishAll (fetched: Fetched, settings: string, { tmp, signal }: Pick<FetchOptions, 'tmp' | 'signal'>): Promise<void> {
    const { name, layout, include, exclude } = this.#source
    const { path, leftOut = [] } = fetched
    const where = shortOf(fetched)
    this.#known = undefined
    await checkEntries(fetched.files.entries, where)
    const { files, leftOut: packages } = layout === 'auto' || layout === 'tree' ? await expandPackages(fetched.files, tmp, signal) : { files: fetched.files, leftOut: [] }
    if (files !== fetched.files) await checkEntries(files.entries, where)
    const tree = await SourceTree.of(files, path)
    if (path !== '' && !tree.isFolder('')) throw new SourceError('path_not_found', `${where} has no folder ${JSON.stringify(path)}`)
    const found = await findSkills(tree, { layout, name: path === '' ? name : path.split('/').at(-1) ?? name, include, exclude })
    const state = new KnownState(tree, { ...found, leftOut: [...leftOut, ...packages, ...found.leftOut] })
    await state.findBrokenParts()
    await this.#publish(fetched, settings, state)
    // The unpacked files are removed after this fetch.
    if (files === fetched.files) this.#known = state
  }

  /** Publishes what is different from the published state. False: that takes all files. */
  async #publishChanges (fetched: Fetched, changes: readonly SourceChange[], settings: string): Promise<boolean> {
    const known = this.#known
    this.#known = undefined
    const only = await known?.apply(fetched.files, changes, shortOf(fetched))
    if (known === undefined || only === undefined) return false
    await this.#publish(fetched, settings, known, only)
    this.#known = known
    return true
  }

  /** @param only names of the skills that may be others */
  async #publish (fetched: Fetched, settings: string, { tree, found }: KnownState, only?: ReadonlySet<string>): Promise<void> {
    const { log, approval: { approve } } = this.#options
    const { name, prefix = '' } = this.#source
    const { revision, memory, confirm } = fetched
    const where = shortOf(fetched)
    const before = this.#published
    const isSame = before?.revision === revision && before.settings === settings
    const state = { revision, settings, memory, changedAt: isSame ? before.changedAt : new Date().toISOString(), report: summaryOf(found) }
    const { added, changed, removed } = await this.#publisher.publish(tree, found.skills, {
      only,
      state,
      prefix,
      where,
      confirm,
      signal: this.#closing.signal,
      approve: approve && ((folders, skillsFolder) => approve({ source: name, revision: where, skillsFolder, folders }))
    })
    this.#published = state
    if (isSame) return
    log.info({ source: name, revision, ...before !== undefined && { before: before.revision }, added, changed, removed, layout: found.layout, leftOut: found.leftOut.length }, 'a source is published in a new revision')
  }

  #succeeded (): void {
    if (this.#failure === undefined) return
    this.#options.log.info({ source: this.#source.name, failingSince: this.#failure.since }, 'the source delivers again')
    this.#failure = undefined
  }

  #failed (error: SourceError): void {
    const isSame = this.#failure?.error.code === error.code && this.#failure.error.message === error.message
    this.#failure = { error, since: this.#failure?.since ?? new Date() }
    if (isSame) return
    const { name } = this.#source
    this.#options.log.warn({
      source: name, code: error.code, ...error.details !== undefined && { details: error.details }, ...error.code === 'internal' && { err: error.cause }
    }, `the source fails: ${error.message}; ${this.#published === undefined ? 'nothing was published yet' : 'what was published before is served'}`)
  }
}

/** What decides which part of a state is published: another value publishes the same state anew. */
function settingsOf ({ name, layout, include, exclude, prefix }: Source): string {
  return hash('sha256', JSON.stringify([1, name, layout, include, exclude, prefix])).slice(0, 16)
}

function shortOf ({ revision }: Fetched): string {
  return revision.length > 80 ? `${revision.slice(0, 80)}…` : revision
}
