import type { Environment } from '../../operator/setting.ts'
import type { SkillType } from '../../core/shared/skill.ts'
import type { Layout, LeftOut } from '../../layout/layout.ts'
import type { SourceFiles } from '../publish/source-tree.ts'

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
  /** Default: of a project. */
  readonly type?: SkillType
  readonly layout: Layout
  /** Globs of paths of skills, and of folders. */
  readonly include?: readonly string[]
  readonly exclude?: readonly string[]
  /** In front of the name of each skill. */
  readonly prefix?: string
  /** Time between two checks. Default: the kind's. */
  readonly intervalMs?: number
  /** Of one fetch. Default: DEFAULT_TIMEOUT_MS. */
  readonly timeoutMs?: number
  /** Whether the service is ready without it. */
  readonly optional?: boolean
  readonly auth?: SourceAuth
  /** A file with the secret that senders of `POST /hooks/git` have. */
  readonly webhookSecretFile?: string
  /** Absolute path of the configuration file that names the source. */
  readonly configFile?: string
}

/** A folder of the operator's own. */
export interface FolderRoot
  extends Partial<Pick<SourceCommon, 'name' | 'type' | 'layout' | 'include' | 'exclude' | 'prefix'>> {
  readonly kind: 'folder'
  /** Absolute. */
  readonly path: string
}

/** A folder in which skills have to be found. */
export type LayoutFolder = FolderRoot & Required<Pick<FolderRoot, 'name' | 'layout'>>

/** A key of the configuration file that only some kinds have. Its value is a text. */
export interface KindSetting {
  readonly description: string
  readonly pattern?: string
  /** What a value must be, for the message about one that is not. Default: a text. */
  readonly title?: string
}

/** The values of such keys. */
type KindSettings = Readonly<Record<string, string | undefined>>

export interface FetchOptions {
  /** The memory of the state that is published; undefined before the first, and when it is to be fetched again. */
  readonly known: Fetched['memory'] | undefined
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
  /** What is kept for the next fetch: validators, ids. */
  readonly memory: Readonly<Record<string, string>>
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

/** A kind of source: what its addresses look like, what may be set, and how its states are fetched. */
export interface SourceKind<Spec extends SourceCommon & { readonly kind: string }> {
  /** The key of the configuration file that holds its address. */
  readonly kind: Spec['kind']
  /** How its addresses begin, with the colon at the end: `s3:`. Several kinds may share a protocol. */
  readonly protocols: readonly string[]
  /** Which addresses with one of these protocols are of this kind. Default: all of them. */
  isAddress? (url: URL): boolean
  /** What the key of the kind holds in the configuration file. */
  readonly description: string
  readonly settings: Readonly<Record<string, KindSetting>>
  /** The settings that stand behind `#` in an address. Default: nothing may stand there. */
  parseFragment? (fragment: string): KindSettings
  /** Default time between two checks, in milliseconds. */
  readonly intervalMs: number
  /** Whether senders of `POST /hooks/git` may ask for a check. */
  readonly takesHooks?: boolean
  /**
   * @param address without a fragment
   * @throws AddressError for what cannot be used
   */
  create (address: string, settings: KindSettings): Spec
  /**
   * What has to be there before anything is fetched.
   * @throws AddressError with what to install or to set
   */
  check? (source: Spec, env: Environment): Promise<void>
  /** Undefined while the source has what is published. Of what can never change, the host is not asked. */
  fetch (source: Spec, options: FetchOptions): Promise<Fetched | undefined>
}

export const DEFAULT_TIMEOUT_MS = 120_000
