import type { LeftOut } from '../layout/layout.ts'
import type { SourceFiles } from './publish/source-tree.ts'

/** What a fetcher keeps with what was published, for the next fetch: validators, ids. */
type FetchMemory = Readonly<Record<string, string>>

export interface FetchOptions {
  /** Of the state that is published; undefined before the first, and when it is to be fetched again. */
  readonly known: FetchMemory | undefined
  readonly signal: AbortSignal
  /** An empty folder for what is fetched, on the file system of the state folder; its owner removes it. */
  readonly tmp: string
}

/** One state of a source. */
export interface Fetched {
  /** For people: `main@sha1:…`, `sha256:…`. */
  readonly revision: string
  readonly memory: FetchMemory
  readonly files: SourceFiles
  /** The folder in it that is the source. */
  readonly path: string
  /** The parts of it that no file system can hold. */
  readonly leftOut?: readonly LeftOut[]
  /**
   * Called when its files are read, and before any of it is published.
   * @throws SourceError for a source that has another state by now
   */
  readonly confirm?: () => Promise<void>
}

/** How one kind of source gets its states. */
export interface Fetcher {
  /** Default time between two checks, in milliseconds. */
  readonly intervalMs: number
  /**
   * What has to be there before anything is fetched. Throws an AddressError with what to install or to set.
   * @returns the program that is used, with its version
   */
  check? (): Promise<string | undefined>
  /**
   * Undefined while the source has what is published. Of what can never change, the host is not asked.
   * @throws SourceError
   */
  fetch (options: FetchOptions): Promise<Fetched | undefined>
}
