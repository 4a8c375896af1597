import type { Environment } from '../config/setting.ts'
import { DiskGuard } from '../core/disk/network/guard.ts'
import { createQueue } from '../core/shared/async.ts'
import { type CoreLog, SILENT } from '../core/shared/log.ts'
import { distinctNames } from '../core/shared/text.ts'
import type { RootOptions } from '../core/roots/root.ts'
import type { SourceStatus } from '../schemas/health.ts'
import type { GithubState } from './git/github.ts'
import type { Keeper, SourceHook } from './keeper.ts'
import { type Approval, type Candidate, SourceKeeper } from './source-keeper.ts'
import type { LayoutFolder } from './address/source-kind.ts'
import { AddressError, failureOf } from './source-error.ts'
import { kindOf, type Source } from './kinds.ts'
import { folderOf, lockFolder, NO_LOCK, removeUnused, type StateLock, unwritable } from './publish/state-folder.ts'

/** Fetches at the same time. */
const MAX_FETCHES = 2

export interface SourcesOptions {
  readonly sources: ReadonlyArray<Source | LayoutFolder>
  /** Absolute. Folders need none. */
  readonly stateDir: string
  /** Of the roots that are no sources. */
  readonly otherNames?: readonly string[]
  /** For credentials, and for git. */
  readonly env: Environment
  readonly log?: CoreLog
  /** For folders: compare at short intervals instead of watching. */
  readonly polling?: boolean
  /** For folders: where links in them may lead, as absolute paths. */
  readonly linkTargets?: readonly string[] | undefined
  /** For folders on disks that may hang. Default: one of its own. */
  readonly guard?: DiskGuard
}

/** The sources of a service, each kept in a folder of its own. */
export class Sources {
  readonly #keepers: readonly Keeper[]
  readonly #approval: Approval
  readonly #lock: StateLock
  /** The names that operators gave, by the numbered ones that took their place. */
  readonly givenNames: ReadonlyMap<string, string>

  constructor (keepers: readonly Keeper[], givenNames: ReadonlyMap<string, string>, approval: Approval, lock: StateLock) {
    this.#keepers = keepers
    this.givenNames = givenNames
    this.#approval = approval
    this.#lock = lock
  }

  /** The roots in which they are published, in their order. */
  get roots (): ReadonlyArray<RootOptions & { readonly name: string }> {
    return this.#keepers.map(({ root }) => root)
  }

  get status (): readonly SourceStatus[] {
    return this.#keepers.map(({ status }) => status)
  }

  /** What the source of this name published, when it came from there. */
  githubOf (name: string): GithubState | undefined {
    return this.#keepers.find(({ root }) => root.name === name)?.github
  }

  /** Begins to check all of them, each at its own pace. */
  start (): void {
    for (const keeper of this.#keepers) keeper.start()
  }

  /** Has each state judged before it is published, from now on. */
  guardBy (approve: (candidate: Candidate) => Promise<void>): void {
    this.#approval.approve = approve
  }

  /** Something may be new: checks all of them soon. */
  hint (): void {
    for (const keeper of this.#keepers) keeper.hint()
  }

  /**
   * Checks all of them once.
   * @param onProgress receives how many were checked, and of how many
   * @param onChecked receives the status of each that was checked
   */
  async sync (onProgress?: (done: number, total: number) => void, onChecked?: (status: SourceStatus) => void): Promise<void> {
    let done = 0
    onProgress?.(done, this.#keepers.length)
    await Promise.all(this.#keepers.map(async (keeper) => {
      await keeper.sync()
      onProgress?.(++done, this.#keepers.length)
      onChecked?.(keeper.status)
    }))
  }

  /** Why the first source that has to deliver has not, in a sentence; undefined when all of them have. */
  get failure (): string | undefined {
    return this.status.flatMap(({ name, error, optional }) => error === undefined || optional === true ? [] : failureOf(name, error))[0]
  }

  /** Those that have not delivered and need not, in a sentence each. */
  get passedOver (): string[] {
    return this.status.flatMap(({ name, state, error, optional }) =>
      error === undefined || optional !== true ? [] : `${failureOf(name, error)}; it is optional, so ${state === 'failed' ? 'the command goes on without it' : 'its last state counts'}`)
  }

  get hooks (): readonly SourceHook[] {
    return this.#keepers.flatMap(({ hook }) => hook ?? [])
  }

  async close (): Promise<void> {
    await Promise.all(this.#keepers.map((keeper) => keeper.close()))
    await this.#lock.release()
  }
}

/**
 * Opens the state folder, and takes up what was published before. Nothing is fetched yet.
 * @throws AddressError for what an operator has to change
 */
export async function createSources ({ sources, stateDir, otherNames, env, log = SILENT, polling, linkTargets, guard = new DiskGuard() }: SourcesOptions): Promise<Sources> {
  const lock = sources.every(({ kind }) => kind === 'folder') ? NO_LOCK : await lockFolder(stateDir)
  const keepers: Keeper[] = []
  const approval: Approval = {}
  try {
    const inTurn = createQueue(MAX_FETCHES)
    const folders = new Set<string>()
    const programs = new Set<string>()
    // Those that came from addresses may be equal.
    const names = distinctNames(sources.map(({ name }) => name), otherNames)
    const givenNames = new Map<string, string>()
    for (const [index, given] of sources.entries()) {
      const source = { ...given, name: names[index] ?? given.name }
      if (source.name !== given.name) givenNames.set(source.name, given.name)
      if (source.kind === 'folder') {
        const { FolderKeeper } = await import('./folder/folder-keeper.ts')
        keepers.push(new FolderKeeper({ folder: source, log, polling, linkTargets, guard }))
        continue
      }
      const kind = kindOf(source)
      const folder = folderOf(stateDir, source.name, kind.identity(source))
      if (folders.has(folder)) throw new AddressError(`the source ${source.name} is given twice`)
      folders.add(folder)
      const fetcher = await kind.createFetcher(source, stateDir, env)
      const program = await fetcher.check?.()
      if (program !== undefined) programs.add(program)
      keepers.push(new SourceKeeper({ source, fetcher, folder, log, inTurn, approval, lock }))
    }
    for (const program of programs) log.info({ program }, 'sources are fetched by a program of this machine')
    for (const keeper of keepers) await keeper.open()
    if (folders.size > 0) await removeUnused(stateDir, log)
    return new Sources(keepers, givenNames, approval, lock)
  } catch (error) {
    for (const keeper of keepers) await keeper.close()
    await lock.release()
    throw lock !== NO_LOCK && error instanceof Error && 'syscall' in error ? unwritable(stateDir, error) : error
  }
}
