import { createQueue } from '../core/ground/async.ts'
import { type CoreLog, SILENT } from '../core/ground/log.ts'
import type { RootOptions } from '../core/catalog/roots.ts'
import type { SourceStatus } from '../schemas/health.ts'
import type { Fetcher } from './fetcher.ts'
import { type Candidate, SourceKeeper } from './source.ts'
import { AddressError } from './source-error.ts'
import type { Source } from './address/source-spec.ts'
import { folderOf, lockFolder } from './publish/state-folder.ts'

/** Fetches at the same time. */
const MAX_FETCHES = 2

export interface SourcesOptions {
  readonly sources: readonly Source[]
  /** Absolute. */
  readonly stateDir: string
  readonly log?: CoreLog
  readonly approve?: (candidate: Candidate) => Promise<void>
  readonly retryFactor?: number
}

/** The sources of a service, each kept in a folder of its own. */
export class Sources {
  readonly #keepers: readonly SourceKeeper[]
  readonly #unlock: () => Promise<void>

  constructor (keepers: readonly SourceKeeper[], unlock: () => Promise<void>) {
    this.#keepers = keepers
    this.#unlock = unlock
  }

  /** The roots in which they are published, in their order. */
  get roots (): ReadonlyArray<RootOptions & { readonly name: string }> {
    return this.#keepers.map(({ source, root }) => ({ path: root, name: source.name, listed: true }))
  }

  get status (): readonly SourceStatus[] {
    return this.#keepers.map(({ status }) => status)
  }

  /** Begins to check all of them, each at its own pace. */
  start (): void {
    for (const keeper of this.#keepers) keeper.start()
  }

  /** Checks all of them once. */
  async sync (): Promise<void> {
    await Promise.all(this.#keepers.map((keeper) => keeper.sync()))
  }

  /** Those that a hook can ask for, with the files of their secrets. */
  get hooks (): ReadonlyArray<{ readonly secretFile: string, readonly hint: () => void }> {
    return this.#keepers.flatMap((keeper) => {
      const { webhookSecretFile } = keeper.source
      return webhookSecretFile === undefined ? [] : [{ secretFile: webhookSecretFile, hint: () => { keeper.hint() } }]
    })
  }

  async close (): Promise<void> {
    await Promise.all(this.#keepers.map((keeper) => keeper.close()))
    await this.#unlock()
  }
}

/**
 * Opens the state folder, and takes up what was published before. Nothing is fetched yet.
 * @throws AddressError for what an operator has to change
 */
export async function createSources ({ sources, stateDir, log = SILENT, approve, retryFactor }: SourcesOptions): Promise<Sources> {
  const unlock = await lockFolder(stateDir)
  try {
    const queues = Array.from({ length: MAX_FETCHES }, () => createQueue())
    const folders = new Set<string>()
    const keepers: SourceKeeper[] = []
    for (const [index, source] of uniqueNames(sources).entries()) {
      const folder = folderOf(stateDir, source)
      if (folders.has(folder)) throw new AddressError(`the source ${source.name} is given twice`)
      folders.add(folder)
      const fetcher = await createFetcher(source, stateDir)
      await fetcher.check?.()
      const keeper = new SourceKeeper({ source, fetcher, folder, log, inTurn: queues[index % MAX_FETCHES] ?? createQueue(), approve, retryFactor })
      await keeper.open()
      keepers.push(keeper)
    }
    return new Sources(keepers, unlock)
  } catch (error) {
    await unlock()
    throw error
  }
}

async function createFetcher (source: Source, stateDir: string): Promise<Fetcher> {
  switch (source.kind) {
    case 'git': {
      const { createGitFetcher } = await import('./git/git-fetcher.ts')
      return createGitFetcher(source, stateDir)
    }
    case 'archive': {
      const { createArchiveFetcher } = await import('./archive/archive-fetcher.ts')
      return createArchiveFetcher(source)
    }
    case 's3': {
      const { createS3Fetcher } = await import('./s3/s3-fetcher.ts')
      return createS3Fetcher(source)
    }
    case 'oci': {
      const { createOciFetcher } = await import('./oci/oci-fetcher.ts')
      return createOciFetcher(source)
    }
  }
}

/** Names that came from addresses may be equal: the later ones get a number. */
function uniqueNames (sources: readonly Source[]): Source[] {
  const taken = new Set<string>()
  return sources.map((source) => {
    let { name } = source
    for (let number = 2; taken.has(name); number++) name = `${source.name}-${number}`
    taken.add(name)
    return { ...source, name }
  })
}
