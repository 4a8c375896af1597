import pLimit from 'p-limit'
import { type CoreLog, SILENT } from '../core/shared/log.ts'
import { distinctNames } from '../core/shared/text.ts'
import type { Environment } from '../config/setting.ts'
import type { SourceStatus } from '../schemas/health.ts'
import type { LayoutFolder } from './address/source-kind.ts'
import { type Approve, FetchedOrigin } from './fetched-origin.ts'
import { FolderOrigin } from './folder/folder-origin.ts'
import { type GithubState, githubState } from './git/github.ts'
import { Keeper, type SourceRoot } from './keeper.ts'
import { identityOf, kindOf, type Source } from './kinds.ts'
import { type StateFolder, unwritable } from './publish/state-folder.ts'
import { failureOf } from './source-error.ts'

const MAX_FETCHES = 2

export interface SourcesOptions {
  readonly sources: ReadonlyArray<Source | LayoutFolder>
  /** Folders without packages need none. */
  readonly state: StateFolder
  /** Of the roots that are not sources. */
  readonly otherNames?: readonly string[]
  readonly env: Environment
  readonly log?: CoreLog
  /** For folders: compare at short intervals instead of watching. */
  readonly polling?: boolean
  /** For folders: where links in them may lead, as absolute paths. */
  readonly linkTargets?: readonly string[] | undefined
}

/** What a webhook may ask for, and the file of the secret that its sender has. */
export interface SourceHook {
  readonly secretFile: string
  /** Checks soon: something may be new. */
  hint (): void
}

/** The sources of a service, each with a keeper of its own. */
export class Sources {
  /** The names that operators gave, by the numbered ones that took their place. */
  readonly givenNames = new Map<string, string>()
  readonly #sources: Array<{ readonly source: Source | LayoutFolder, readonly keeper: Keeper }> = []
  #approve: Approve = async () => {}
  #release = async (): Promise<void> => {}

  /**
   * Opens the state folder, and takes up what was published before. Nothing is fetched yet.
   * @throws AddressError for what an operator has to change
   */
  static async open (options: SourcesOptions): Promise<Sources> {
    const { sources, state } = options
    const areFetched = sources.some(({ kind }) => kind !== 'folder')
    const opened = new Sources()
    try {
      if (areFetched) opened.#release = await state.acquire()
      await opened.#open(options)
      return opened
    } catch (error) {
      await opened.close()
      throw areFetched && error instanceof Error && 'syscall' in error ? unwritable(state.path, error) : error
    }
  }

  async #open (
    { sources, state, otherNames, env, log = SILENT, polling = false, linkTargets }: SourcesOptions
  ): Promise<void> {
    const inTurn = pLimit(MAX_FETCHES)
    const approve: Approve = (candidate) => this.#approve(candidate)
    // Those that came from addresses may be equal.
    const names = distinctNames(sources.map(({ name }) => name), otherNames)
    for (const [index, given] of sources.entries()) {
      const source = { ...given, name: names[index] ?? given.name }
      if (source.name !== given.name) this.givenNames.set(source.name, given.name)
      if (source.kind === 'folder') {
        const keeper = new Keeper(new FolderOrigin({ folder: source, state, log, polling, linkTargets }), log)
        this.#sources.push({ source, keeper })
        await keeper.sync()
        continue
      }
      const kind = kindOf(source)
      const folder = state.folderOf('sources', source.name, identityOf(source))
      await kind.check?.(source, env)
      const origin = new FetchedOrigin({ source, kind, folder, env, log, inTurn, approve })
      this.#sources.push({ source, keeper: new Keeper(origin, log) })
      await origin.open()
    }
  }

  /** The roots in which they are published, in their order. */
  get roots (): readonly SourceRoot[] {
    return this.#sources.map(({ keeper }) => keeper.root)
  }

  get status (): readonly SourceStatus[] {
    return this.#sources.map(({ keeper }) => keeper.status)
  }

  get hooks (): readonly SourceHook[] {
    return this.#sources.flatMap(({ source, keeper }) => {
      const secretFile = source.kind === 'folder' ? undefined : source.webhookSecretFile
      return secretFile === undefined ? [] : [{ secretFile, hint: () => { keeper.hint() } }]
    })
  }

  /** What the source of this name published, when it came from GitHub. */
  githubOf (name: string): GithubState | undefined {
    const found = this.#sources.find(({ source }) => source.name === name)
    if (found === undefined || found.source.kind === 'folder') return undefined
    return githubState(found.source, found.keeper.status.revision)
  }

  start (): void {
    for (const { keeper } of this.#sources) keeper.start()
  }

  /** Has each state checked before it is published, from now on. */
  guardBy (approve: Approve): void {
    this.#approve = approve
  }

  /** Something may be new: checks all of them soon. */
  hint (): void {
    for (const { keeper } of this.#sources) keeper.hint()
  }

  /**
   * Checks all of them once.
   * @param onChecked receives the status of each that was checked
   */
  async sync (onChecked?: (status: SourceStatus) => void): Promise<void> {
    await Promise.all(this.#sources.map(async ({ keeper }) => {
      await keeper.sync()
      onChecked?.(keeper.status)
    }))
  }

  /** Why the first source that has to deliver has not, in a sentence; undefined when all of them have. */
  get failure (): string | undefined {
    const failing = this.status.find(({ error, optional }) => error !== undefined && optional !== true)
    return failing?.error && failureOf(failing.name, failing.error)
  }

  /** Those that have not delivered and need not, in a sentence each. */
  get passedOver (): string[] {
    return this.status.flatMap(({ name, state, error, optional }) => {
      if (error === undefined || optional !== true) return []
      const result = state === 'failed' ? 'the command goes on without it' : 'its last state counts'
      return `${failureOf(name, error)}; it is optional, so ${result}`
    })
  }

  async close (): Promise<void> {
    await Promise.all(this.#sources.map(({ keeper }) => keeper.close()))
    await this.#release()
  }
}
