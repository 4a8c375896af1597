import { basename } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import pLimit from 'p-limit'
import type { RootOptions } from '../core/roots/root.ts'
import { type CoreLog, SILENT } from '../core/shared/log.ts'
import { distinctNames } from '../core/shared/text.ts'
import type { Prepared } from '../operator/prepared.ts'
import type { Environment } from '../operator/setting.ts'
import type { SourceStatus } from '../schemas/health.ts'
import { type Approve, FetchedOrigin } from './fetched-origin.ts'
import { FolderOrigin } from './folder/folder-origin.ts'
import { checkSources, identityOf, kindOf, type RootSpec } from './kinds.ts'
import { type StateFolder, unwritable } from './publish/state-folder.ts'
import { failureOf } from './source-error.ts'
import { SourceSync } from './source-sync.ts'

const MAX_FETCHES = 2

export interface SourcesOptions {
  /** Not used for folders without packages. */
  readonly state: StateFolder
  readonly env: Environment
  readonly log?: CoreLog
  /** For folders: compare at short intervals instead of watching. */
  readonly polling?: boolean
  /** For folders: absolute paths into which links may lead. */
  readonly linkTargets?: readonly string[] | undefined
}

type NamedRoot = RootOptions & { readonly name: string }

/** The next folders and sources. The new ones are open, but fetch nothing yet. */
export interface PreparedSources extends Prepared {
  readonly roots: readonly NamedRoot[]
  /** Closes what was opened for the next state, which is not committed then. */
  discard (): Promise<void>
  /**
   * Closes the replaced sources, which are no longer served, and starts the new ones if sources are started. Resolves
   * after their first fetch.
   */
  retire (): Promise<void>
}

interface Opened {
  /** As it was given: the root may have another name. */
  readonly spec: RootSpec
  readonly root: NamedRoot
  /** Updates the root. A plain folder needs none. */
  readonly sync?: SourceSync
}

/** The folders and sources of the service, by precedence. */
export class Sources {
  readonly #options: SourcesOptions
  readonly #inTurn = pLimit(MAX_FETCHES)
  #sources: readonly Opened[] = []
  #isStarted = false
  #approve: Approve = async () => {}

  constructor (options: SourcesOptions) {
    this.#options = options
  }

  /**
   * Opens these folders and sources, while the present ones are in use. Unchanged ones are kept. The last published
   * states are available immediately.
   * @throws AddressError for an error in the configuration
   */
  async prepare (specs: readonly RootSpec[]): Promise<PreparedSources> {
    const { state, env } = this.#options
    const before = this.#sources
    if (specs.some(({ kind }) => kind !== 'folder')) await state.prepare()
    await checkSources(specs, env)
    const after = withNames(specs).map(([spec, name]) =>
      before.find((each) => each.root.name === name && isDeepStrictEqual(each.spec, spec)) ?? this.#make(spec, name))
    const gone = before.filter((each) => !after.includes(each))
    const fresh = after.filter((each) => !before.includes(each))
    const discard = async (): Promise<void> => { await Promise.all(fresh.map(({ sync }) => sync?.close())) }
    try {
      for (const { sync } of fresh) await sync?.open()
    } catch (error) {
      await discard()
      throw error instanceof Error && 'syscall' in error ? unwritable(state.path, error) : error
    }
    return {
      roots: after.map(({ root }) => root),
      commit: () => { this.#sources = after },
      discard,
      retire: async () => {
        // Old sources are closed first: one with only a new interval uses the same folder.
        await Promise.all(gone.map(({ sync }) => sync?.close()))
        if (!this.#isStarted) return
        for (const { sync } of fresh) sync?.start()
        await Promise.all(fresh.map(({ sync }) => sync?.checkNow()))
      }
    }
  }

  #make (spec: RootSpec, name: string): Opened {
    const { state, env, log = SILENT, polling = false, linkTargets } = this.#options
    const type = spec.type ?? 'project'
    if (spec.kind === 'folder') {
      if (isPlainFolder(spec)) return { spec, root: { path: spec.path, name, type } }
      const origin = new FolderOrigin({ folder: { layout: 'flat', ...spec, name }, state, polling, linkTargets })
      const sync = new SourceSync(origin, log)
      origin.hint = () => { sync.checkSoon() }
      return { spec, root: { ...origin.root, type }, sync }
    }
    const source = { ...spec, name }
    const folder = state.folderOf('sources', name, identityOf(source))
    const approve: Approve = (candidate) => this.#approve(candidate)
    const origin = new FetchedOrigin({ source, kind: kindOf(spec), folder, env, log, inTurn: this.#inTurn, approve })
    return { spec, root: { ...origin.root, type }, sync: new SourceSync(origin, log) }
  }

  /** Roots by precedence. Unchanged roots stay the same objects. */
  get roots (): readonly NamedRoot[] {
    return this.#sources.map(({ root }) => root)
  }

  get status (): readonly SourceStatus[] {
    return this.#sources.flatMap(({ sync }) => sync?.status ?? [])
  }

  /** Sources that webhooks can check, with the files of their secrets. */
  get hooks () {
    return this.#sources.flatMap(({ spec, sync }) => {
      const secretFile = spec.kind === 'folder' ? undefined : spec.webhookSecretFile
      return secretFile === undefined ? [] : [{ secretFile, checkSoon: () => { sync?.checkSoon() } }]
    })
  }

  /** Returns the name that was given to a source: it has a number here when another one has the name. */
  givenNameOf (name: string): string | undefined {
    const found = this.#sources.find(({ root }) => root.name === name)
    return found && nameOf(found.spec)
  }

  start (): void {
    this.#isStarted = true
    for (const { sync } of this.#sources) sync?.start()
  }

  /** Sets the check that each state must pass before it is published. */
  guardBy (approve: Approve): void {
    this.#approve = approve
  }

  /** Checks all of them soon, as something may be new. */
  checkSoon (): void {
    for (const { sync } of this.#sources) sync?.checkSoon()
  }

  /**
   * Checks all sources once.
   * @param onChecked called with the status of each
   */
  async sync (onChecked?: (status: SourceStatus) => void): Promise<void> {
    await Promise.all(this.#sources.map(async ({ sync }) => {
      await sync?.checkNow()
      if (sync !== undefined) onChecked?.(sync.status)
    }))
  }

  /** Why the first source that is not optional has failed, in a sentence; undefined when none has. */
  get failure (): string | undefined {
    const failing = this.status.find(({ error, optional }) => error !== undefined && optional !== true)
    return failing?.error && failureOf(failing.name, failing.error)
  }

  /** The optional sources that have failed, in a sentence each. */
  get optionalFailures (): string[] {
    return this.status.flatMap(({ name, state, error, optional }) => {
      if (error === undefined || optional !== true) return []
      const result = state === 'failed' ? 'the command goes on without it' : 'its last state is used'
      return `${failureOf(name, error)}; it is optional, so ${result}`
    })
  }

  async close (): Promise<void> {
    await Promise.all(this.#sources.map(({ sync }) => sync?.close()))
  }
}

/** Gives the sources distinct names, since those made from addresses may be equal. */
export function withNames (specs: readonly RootSpec[]): ReadonlyArray<readonly [spec: RootSpec, name: string]> {
  const plain = specs.filter(isPlainFolder).map(nameOf)
  const others = [...distinctNames(specs.filter((spec) => !isPlainFolder(spec)).map(nameOf), plain)]
  return specs.map((spec) => [spec, isPlainFolder(spec) ? nameOf(spec) : others.shift() ?? ''])
}

function nameOf (spec: RootSpec): string {
  return spec.kind === 'folder' ? spec.name ?? basename(spec.path) : spec.name
}

/** Whether the skills are the direct children of a folder, so that nothing is searched or fetched. */
function isPlainFolder (spec: RootSpec): boolean {
  return spec.kind === 'folder' && (spec.layout ?? 'flat') === 'flat'
}
