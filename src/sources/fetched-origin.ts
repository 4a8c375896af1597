import { hash } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { mkdir, readdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LimitFunction } from 'p-limit'
import { baseName } from '../core/shared/paths.ts'
import type { CoreLog } from '../core/shared/log.ts'
import { findSkills } from '../layout/find-skills.ts'
import type { Environment } from '../operator/setting.ts'
import type { Fetched, SourceKind } from './address/source-kind.ts'
import type { Source } from './kinds.ts'
import { FolderLock } from './publish/folder-lock.ts'
import { findPackaged } from './publish/packages.ts'
import { brokenParts, planOf, reportOf } from './publish/plan.ts'
import { Publisher } from './publish/publisher.ts'
import { checkEntries, SourceTree } from './publish/source-tree.ts'
import { readSecretFile } from './secrets.ts'
import { SourceError } from './source-error.ts'
import type { Origin, SourceRoot } from './source-sync.ts'

/** Shortest time between two checks that webhooks ask for, in milliseconds. */
const SPACING_MS = 5_000

/** Interval at which the states of another process are read, in milliseconds. */
const FOLLOW_MS = 2_000

const DEFAULT_TIMEOUT_MS = 120_000

/** A state that is about to be published. */
export interface Candidate {
  readonly source: string
  readonly revision: string
  /** Folders of the new or changed skills, by name. Each skill has a folder of its own. */
  readonly folders: ReadonlyMap<string, string>
}

/** Checks a state before it is published; refuses it with a SourceError `verification_failed`. */
export type Approve = (candidate: Candidate) => Promise<void>

export interface FetchedOptions {
  readonly source: Source
  readonly kind: Pick<SourceKind<Source>, 'intervalMs' | 'load'>
  readonly folder: string
  readonly env: Environment
  readonly log: CoreLog
  readonly inTurn: LimitFunction
  readonly approve: Approve
}

/**
 * Fetches a source, and publishes its states in a folder. Processes with the same source share the folder: its owner
 * fetches, and the others serve what is published.
 */
export class FetchedOrigin implements Origin {
  readonly spacingMs = SPACING_MS
  readonly root: SourceRoot
  readonly #options: FetchedOptions
  readonly #publisher: Publisher
  readonly #lock: FolderLock
  readonly #timeoutMs: number
  /** The process that fetches; undefined if it is this one. */
  #owner: string | undefined

  constructor (options: FetchedOptions) {
    const { source: { name, prefix = '', timeoutMs = DEFAULT_TIMEOUT_MS }, folder, log } = options
    this.#options = options
    this.#timeoutMs = timeoutMs
    this.#publisher = new Publisher(folder)
    this.#lock = new FolderLock(folder, () => {
      const sentence = 'another process took over this source while this process was suspended; serving its states'
      log.warn({ source: name }, sentence)
    })
    this.root = { path: folder, name, listed: this.#publisher, prefix }
  }

  get intervalMs (): number {
    const { source, kind } = this.#options
    return this.#owner === undefined ? source.intervalMs ?? kind.intervalMs : FOLLOW_MS
  }

  get report (): Origin['report'] {
    const { kind, optional } = this.#options.source
    const { isInherited, state } = this.#publisher
    return {
      kind, ...optional === true && { optional }, ...isInherited && { state: 'stale' as const }, ...state?.status
    }
  }

  async open (): Promise<void> {
    const { source: { name, webhookSecretFile: file }, log } = this.#options
    const publisher = this.#publisher
    await publisher.open()
    if (publisher.isDamaged) {
      log.warn({ source: name }, 'state in the state folder is damaged or of another version; fetching it again')
    }
    if (publisher.state === undefined) await this.#inherit()
    if (publisher.state !== undefined) {
      const { revision, changed_at: changedAt } = publisher.state.status
      log.info({ source: name, revision, changedAt }, 'serving the last state of this source until it is fetched')
    }
    // The operator needs this warning, since the sender does not learn why a webhook is refused.
    if (file !== undefined) {
      const problem = 'cannot read the secret of the webhook; hooks are refused until the file has it on one line'
      await readSecretFile(file).catch(() => { log.warn({ source: name, file }, problem) })
    }
  }

  async check (closing: AbortSignal): Promise<void> {
    if (await this.#isOwner(closing)) await this.#options.inTurn(() => this.#fetch(closing))
  }

  /** Releases the folder, so that another process can fetch. The published state stays. */
  async close (): Promise<void> {
    this.#lock.release()
  }

  /** Takes the newest state that the source at this place of the configuration file had under another address. */
  async #inherit (): Promise<void> {
    const { folder } = this.#options
    const place = this.#place
    const prefix = basename(folder).replace(/[^-]*$/, '')
    let newest = ''
    for (const name of place === undefined ? [] : await readdir(dirname(folder))) {
      if (!name.startsWith(prefix) || name === basename(folder)) continue
      const other = new Publisher(join(dirname(folder), name))
      await other.open().catch(() => {})
      const { status: { changed_at: changedAt } = { changed_at: '' }, place: otherPlace } = other.state ?? {}
      if (otherPlace !== place || changedAt <= newest) continue
      newest = changedAt
      this.#publisher.inherit(other)
    }
  }

  /** Identifies the source by its place in a configuration file. */
  get #place (): string | undefined {
    const { configFile, name } = this.#options.source
    return configFile === undefined ? undefined : hash('sha256', JSON.stringify([configFile, name]))
  }

  /** Tries to become the owner of the folder. If another process is, waits until that one has published a state. */
  async #isOwner (closing: AbortSignal): Promise<boolean> {
    const { source: { name }, log } = this.#options
    const wasOurs = await this.#lock.isOurs()
    const until = performance.now() + this.#timeoutMs
    for (;;) {
      const owner = await this.#lock.acquire()
      if (owner !== undefined && this.#owner === undefined) {
        log.info({ source: name, owner }, 'another process fetches this source; serving what it publishes')
      } else if (owner === undefined && this.#owner !== undefined) {
        log.info({ source: name }, 'this process fetches this source from now on; the one before has ended')
      }
      this.#owner = owner
      const hasState = await this.#publisher.refresh()
      if (owner === undefined) {
        if (!wasOurs) await this.#publisher.clean()
        return true
      }
      if (hasState) return false
      if (performance.now() > until) {
        const sentence = 'the process that fetches this source has not published a state yet'
        throw new SourceError('timeout', sentence, { details: owner })
      }
      await sleep(FOLLOW_MS / 4, undefined, { signal: closing })
    }
  }

  async #fetch (closing: AbortSignal): Promise<void> {
    const { source, kind, folder, env, log } = this.#options
    const publisher = this.#publisher
    const isWhole = await publisher.restore()
    if (!isWhole) {
      log.warn({ source: source.name }, 'skills of this source are missing in the state folder; fetching them again')
    }
    const timeoutMs = this.#timeoutMs
    const timeout = AbortSignal.timeout(timeoutMs)
    const signal = AbortSignal.any([timeout, closing])
    // Every request of a fetch adds a listener, and many run at the same time.
    setMaxListeners(0, signal)
    const known = isWhole && !publisher.isInherited ? publisher.state?.memory : undefined
    const cache = join(folder, 'cache')
    try {
      await mkdir(cache, { recursive: true, mode: 0o700 })
      const fetcher = await kind.load()
      await publisher.withTmp(async (tmp) => {
        const fetched = await fetcher.fetch(source, { known, tmp, cache, env, signal, timeoutMs })
        if (fetched !== undefined) await this.#publish(fetched, tmp, closing)
      })
    } catch (error) {
      if (!timeout.aborted || closing.aborted) throw error
      throw new SourceError('timeout', 'the source was not fetched in time', { cause: error })
    }
  }

  async #publish (fetched: Fetched, tmp: string, closing: AbortSignal): Promise<void> {
    const { log, approve, source: { name, layout, include, exclude, prefix = '' } } = this.#options
    const { revision, memory, path, files } = fetched
    const where = revision.length > 80 ? `${revision.slice(0, 80)}…` : revision
    checkEntries(files.entries, where)
    const tree = new SourceTree(files, path)
    if (path !== '' && (await tree.entries('')).length === 0) {
      throw new SourceError('path_not_found', `${where} has no folder ${JSON.stringify(path)}`)
    }
    const options = { layout, name: path === '' ? name : baseName(path), include, exclude, prefix, where }
    const found = await findSkills(tree, options)
    const packaged = await findPackaged(tree, found, options, tmp, closing)
    const unpacked = await planOf(tree, found.skills, options)
    const skills = [...unpacked, ...packaged.skills]
    const entries = unpacked.flatMap((skill) => skill.files.map(({ entry }) => entry))
    const broken = await brokenParts(files, new Set([...tree.unresolved, ...entries]))
    const leftOut = [...fetched.leftOut ?? [], ...found.leftOut, ...packaged.leftOut, ...broken]
    const publisher = this.#publisher
    await publisher.add(unpacked, files.read, closing)
    await publisher.add(packaged.skills, packaged.read, closing)
    const changed = publisher.changedAmong(skills)
    const before = publisher.state?.status
    const isSame = before?.revision === revision
    const changedAt = isSame ? before.changed_at : new Date().toISOString()
    const place = this.#place
    const status = { revision, changed_at: changedAt, ...reportOf(found, leftOut) }
    await fetched.confirm?.()
    await approve({ source: name, revision: where, folders: changed })
    closing.throwIfAborted()
    if (!await this.#lock.isOurs()) return
    await publisher.list(skills, { status, memory, ...place !== undefined && { place } })
    if (isSame) return
    const details = { skills: skills.length, changed: changed.size, layout: found.layout, leftOut: leftOut.length }
    const since = before && { before: before.revision }
    log.info({ source: name, revision, ...details, ...since }, 'new revision of this source is published')
  }
}
