import type { Layout } from '../../core/layout/layout.ts'
import type { Address } from './parts.ts'

/** Where credentials are. Files are read at each fetch, so that new ones count without a restart. */
export interface SourceAuth {
  readonly username?: string
  /** A password, or a token. */
  readonly secretFile?: string
  readonly secretVariable?: string
  /** For git over SSH. */
  readonly keyFile?: string
  readonly knownHostsFile?: string
}

/** What all kinds of sources have. Times in milliseconds. */
export interface SourceCommon {
  /** What settings and reports call it; unique. */
  readonly name: string
  readonly layout: Layout
  /** Globs of paths of skills, and of folders. */
  readonly include?: readonly string[]
  readonly exclude?: readonly string[]
  /** In front of the name of each skill. */
  readonly prefix?: string
  /** Time between two checks. Default: by the kind. */
  readonly intervalMs?: number
  /** Of one fetch. Default: DEFAULT_TIMEOUT_MS. */
  readonly timeoutMs?: number
  /** Whether the service is ready without it. */
  readonly optional?: boolean
  readonly auth?: SourceAuth
  /** A file with the secret that senders of `POST /hooks/git` have. */
  readonly webhookSecretFile?: string
}

/** A folder of the operator's own. */
export interface FolderRoot extends Partial<Pick<SourceCommon, 'name' | 'layout' | 'include' | 'exclude' | 'prefix'>> {
  readonly kind: 'folder'
  /** Absolute. */
  readonly path: string
}

/** A folder in which skills have to be found. */
export interface LayoutFolder extends FolderRoot {
  readonly name: string
  readonly layout: Layout
}

/** What every source that is fetched has. */
export interface FetchedSource extends SourceCommon {
  /** The key of the configuration file that holds its address. */
  readonly kind: string
}

/** A key of the configuration file that only some kinds have. Its value is a text. */
export interface KindSetting {
  readonly description: string
  readonly pattern?: string
  /** What a value must be, for the message about one that is not. Default: a text. */
  readonly title?: string
}

/**
 * A kind of source: what its addresses look like, and what may be set. How its states are fetched is the work of its
 * `Fetcher`.
 */
export interface SourceKind<Spec extends FetchedSource> {
  readonly kind: Spec['kind']
  /** How its addresses begin, with the colon at the end: `s3:`. Several kinds may share a protocol. */
  readonly protocols: readonly string[]
  /** Its addresses in messages, behind each other. */
  readonly forms: readonly string[]
  /** What the key of the kind holds in the configuration file. */
  readonly description: string
  readonly settings: Readonly<Record<string, KindSetting>>
  /** Whether senders of `POST /hooks/git` may ask for a check. */
  readonly takesHooks?: boolean
  /**
   * The source at an address with one of the protocols; undefined for an address of another kind.
   * @throws AddressError for what cannot be used
   */
  parse (address: Address): Spec | undefined
  /**
   * The source of an entry of the configuration file.
   * @param address what the key of the kind holds
   * @param settings by the keys of `settings`; undefined where none is given
   * @throws AddressError for what cannot be used
   */
  configure (address: string, settings: Readonly<Record<string, string | undefined>>): Spec
  /** Whatever decides what the source holds, as JSON can say it. */
  identity (source: Spec): unknown
}

export const DEFAULT_TIMEOUT_MS = 120_000
