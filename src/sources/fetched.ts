import type { LeftOut } from '../layout/layout.ts'
import type { Environment } from '../config/setting.ts'
import type { SourceFiles } from './publish/source-tree.ts'

/** What a kind of source keeps with what was published, for the next fetch: validators, ids. */
type FetchMemory = Readonly<Record<string, string>>

export interface FetchOptions {
  /** Of the state that is published; undefined before the first, and when it is to be fetched again. */
  readonly known: FetchMemory | undefined
  readonly signal: AbortSignal
  /** An empty folder for what is fetched, on the file system of the state folder; its owner removes it. */
  readonly tmp: string
  /** A folder of this source alone that stays between fetches; it may be missing. */
  readonly cache: string
  readonly env: Environment
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
