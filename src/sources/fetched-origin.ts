import { setMaxListeners } from 'node:events'
import { join } from 'node:path'
import type { LimitFunction } from 'p-limit'
import { findSkills } from '../layout/find-skills.ts'
import { baseName } from '../core/shared/paths.ts'
import type { CoreLog } from '../core/shared/log.ts'
import type { Environment } from '../operator/setting.ts'
import { DEFAULT_TIMEOUT_MS, type Fetched, type SourceKind } from './address/source-kind.ts'
import type { Source } from './kinds.ts'
import { findPackaged } from './publish/packages.ts'
import { brokenParts, planOf, reportOf } from './publish/plan.ts'
import { type PublishedState, Publisher } from './publish/publisher.ts'
import { checkEntries, SourceTree } from './publish/source-tree.ts'
import { readSecretFile } from './secrets.ts'
import { SourceError } from './source-error.ts'
import type { Origin, SourceRoot } from './source-sync.ts'

/** Two checks that hooks ask for are at least so many milliseconds apart. */
const SPACING_MS = 5_000

/** A state that is about to be published. */
export interface Candidate {
  readonly source: string
  readonly revision: string
  /** The folders of the skills that are new or changed, by name: each in a folder of its own. */
  readonly folders: ReadonlyMap<string, string>
}

/** Refuses a state by throwing a SourceError: `verification_failed`. */
export type Approve = (candidate: Candidate) => Promise<void>

export interface FetchedOptions {
  readonly source: Source
  readonly kind: Pick<SourceKind<Source>, 'intervalMs' | 'fetch'>
  readonly folder: string
  readonly env: Environment
  readonly log: CoreLog
  readonly inTurn: LimitFunction
  readonly approve: Approve
}

/** The states that a fetcher gets, published in a folder of their own. */
export class FetchedOrigin implements Origin {
  readonly spacingMs = SPACING_MS
  readonly intervalMs: number
  readonly root: SourceRoot
  readonly #options: FetchedOptions
  readonly #publisher: Publisher
  #published: PublishedState | undefined

  constructor (options: FetchedOptions) {
    const { source, kind, folder } = options
    this.#options = options
    this.#publisher = new Publisher(folder)
    this.intervalMs = source.intervalMs ?? kind.intervalMs
    this.root = { path: folder, name: source.name, listed: this.#publisher, prefix: source.prefix ?? '' }
  }

  get report (): Origin['report'] {
    const { kind, optional } = this.#options.source
    return { kind, ...optional === true && { optional }, ...this.#published?.status }
  }

  async open (): Promise<void> {
    const { source: { name, webhookSecretFile: file }, log } = this.#options
    this.#published = await this.#publisher.open()
    if (this.#published !== undefined) {
      const { revision, changed_at: changedAt } = this.#published.status
      log.info({ source: name, revision, changedAt }, 'serving what the source had when it was last fetched')
    }
    // The sender does not learn why its hook is refused.
    if (file !== undefined) {
      const problem = 'the secret of a webhook cannot be read: hooks are refused until the file holds it in one line'
      await readSecretFile(file).catch(() => { log.warn({ source: name, file }, problem) })
    }
  }

  async check (closing: AbortSignal): Promise<void> {
    await this.#options.inTurn(() => this.#check(closing))
  }

  async #check (closing: AbortSignal): Promise<void> {
    const { source, kind, folder, env, log } = this.#options
    const isWhole = await this.#publisher.restore()
    if (!isWhole) log.warn({ source: source.name }, 'skills are missing in the state folder: they are fetched again')
    const timeout = AbortSignal.timeout(source.timeoutMs ?? DEFAULT_TIMEOUT_MS)
    const signal = AbortSignal.any([timeout, closing])
    // Every request of a fetch listens to it, and many run at a time.
    setMaxListeners(0, signal)
    const known = isWhole ? this.#published?.memory : undefined
    try {
      await this.#publisher.withTmp(async (tmp) => {
        const fetched = await kind.fetch(source, { known, tmp, cache: join(folder, 'cache'), env, signal })
        if (fetched !== undefined) await this.#publish(fetched, tmp, closing)
      })
    } catch (error) {
      if (!timeout.aborted || closing.aborted) throw error
      throw new SourceError('timeout', 'the source did not deliver in time', { cause: error })
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
    const before = this.#published?.status
    const isSame = before?.revision === revision
    const changedAt = isSame ? before.changed_at : new Date().toISOString()
    const state = { status: { revision, changed_at: changedAt, ...reportOf(found, leftOut) }, memory }
    await fetched.confirm?.()
    await approve({ source: name, revision: where, folders: changed })
    closing.throwIfAborted()
    await publisher.list(skills, state)
    this.#published = state
    if (isSame) return
    const details = { skills: skills.length, changed: changed.size, layout: found.layout, leftOut: leftOut.length }
    const since = before && { before: before.revision }
    log.info({ source: name, revision, ...details, ...since }, 'a source is published in a new revision')
  }
}
