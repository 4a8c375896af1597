import { join } from 'node:path'
import pLimit from 'p-limit'
import type { RootOptions } from '../core/roots/root.ts'
import { type CoreLog, SILENT } from '../core/shared/log.ts'
import { distinctNames } from '../core/shared/text.ts'
import type { Environment } from '../config/setting.ts'
import type { SourceStatus } from '../schemas/health.ts'
import type { LayoutFolder } from './address/source-kind.ts'
import { FolderKeeper } from './folder/folder-keeper.ts'
import type { GithubState } from './git/github.ts'
import type { Keeper, SourceHook } from './keeper.ts'
import { identityOf, kindOf, type Source } from './kinds.ts'
import { StateFolder, unwritable } from './publish/state-folder.ts'
import { AddressError, failureOf } from './source-error.ts'
import { type Approval, type Candidate, SourceKeeper } from './source-keeper.ts'

/** Fetches at the same time. */
const MAX_FETCHES = 2

export interface SourcesOptions {
  readonly sources: ReadonlyArray<Source | LayoutFolder>
  /** Absolute, or a folder that others use as well. Folders without packages need none. */
  readonly stateDir: string | StateFolder
  /** Of the roots that are not sources. */
  readonly otherNames?: readonly string[]
  /** For credentials, and for git. */
  readonly env: Environment
  readonly log?: CoreLog
  /** For folders: compare at short intervals instead of watching. */
  readonly polling?: boolean
  /** For folders: where links in them may lead, as absolute paths. */
  readonly linkTargets?: readonly string[] | undefined
}

interface SourcesParts {
  readonly keepers: readonly Keeper[]
  readonly givenNames: ReadonlyMap<string, string>
  readonly approval: Approval
  readonly release: () => Promise<void>
}

/** The sources of a service, each kept in a folder of its own. */
export class Sources {
  readonly #parts: SourcesParts

  constructor (parts: SourcesParts) {
    this.#parts = parts
  }

  /** The names that operators gave, by the numbered ones that took their place. */
  get givenNames (): ReadonlyMap<string, string> {
    return this.#parts.givenNames
  }

  /** The roots in which they are published, in their order. */
  get roots (): ReadonlyArray<RootOptions & { readonly name: string }> {
    return this.#parts.keepers.map(({ root }) => root)
  }

  get status (): readonly SourceStatus[] {
    return this.#parts.keepers.map(({ status }) => status)
  }

  get hooks (): readonly SourceHook[] {
    return this.#parts.keepers.flatMap(({ hook }) => hook ?? [])
  }

  /** What the source of this name published, when it came from there. */
  githubOf (name: string): GithubState | undefined {
    return this.#parts.keepers.find(({ root }) => root.name === name)?.github
  }

  /** Begins to check all of them, each at its own pace. */
  start (): void {
    for (const keeper of this.#parts.keepers) keeper.start()
  }

  /** Has each state judged before it is published, from now on. */
  guardBy (approve: (candidate: Candidate) => Promise<void>): void {
    this.#parts.approval.approve = approve
  }

  /** Something may be new: checks all of them soon. */
  hint (): void {
    for (const keeper of this.#parts.keepers) keeper.hint()
  }

  /**
   * Checks all of them once.
   * @param onProgress receives how many were checked, and of how many
   * @param onChecked receives the status of each that was checked
   */
  async sync (
    onProgress?: (done: number, total: number) => void, onChecked?: (status: SourceStatus) => void
  ): Promise<void> {
    const { keepers } = this.#parts
    let done = 0
    onProgress?.(done, keepers.length)
    await Promise.all(keepers.map(async (keeper) => {
      await keeper.sync()
      onProgress?.(++done, keepers.length)
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
    await Promise.all(this.#parts.keepers.map((keeper) => keeper.close()))
    await this.#parts.release()
  }
}

/**
 * Opens the state folder, and takes up what was published before. Nothing is fetched yet.
 * @throws AddressError for what an operator has to change
 */
export async function createSources (options: SourcesOptions): Promise<Sources> {
  const { sources, stateDir, otherNames, env, log = SILENT, polling, linkTargets } = options
  const state = stateDir instanceof StateFolder ? stateDir : new StateFolder(stateDir)
  const areFetched = sources.some(({ kind }) => kind !== 'folder')
  const release = areFetched ? await state.acquire() : async () => {}
  const keepers: Keeper[] = []
  const approval: Approval = {}
  try {
    const inTurn = pLimit(MAX_FETCHES)
    const folders = new Set<string>()
    const programs = new Set<string>()
    // Those that came from addresses may be equal.
    const names = distinctNames(sources.map(({ name }) => name), otherNames)
    const givenNames = new Map<string, string>()
    for (const [index, given] of sources.entries()) {
      const source = { ...given, name: names[index] ?? given.name }
      if (source.name !== given.name) givenNames.set(source.name, given.name)
      if (source.kind === 'folder') {
        keepers.push(new FolderKeeper({ folder: source, state, log, polling, linkTargets }))
        continue
      }
      const kind = kindOf(source)
      const folder = state.folderOf('sources', source.name, identityOf(source))
      if (folders.has(folder)) throw new AddressError(`the source ${source.name} is given twice`)
      folders.add(folder)
      const fetcher = kind.createFetcher(source, join(folder, 'cache'), env)
      const program = await fetcher.check?.()
      if (program !== undefined) programs.add(program)
      keepers.push(new SourceKeeper({ source, fetcher, folder, state, log, inTurn, approval }))
    }
    for (const program of programs) log.info({ program }, 'sources are fetched by a program of this machine')
    for (const keeper of keepers) await keeper.open()
    if (areFetched) await state.removeUnused(log)
    return new Sources({ keepers, givenNames, approval, release })
  } catch (error) {
    for (const keeper of keepers) await keeper.close()
    await release()
    throw areFetched && error instanceof Error && 'syscall' in error ? unwritable(state.path, error) : error
  }
}
