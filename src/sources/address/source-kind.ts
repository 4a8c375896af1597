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
  /** Of one fetch. Default: two minutes. */
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

export interface GitSource extends SourceCommon {
  readonly kind: 'git'
  /** `https:`, `ssh:`, `file:`, or `http:` of this machine; without credentials. */
  readonly url: string
  /** Branch, tag, `refs/…` or full commit id. Undefined: the default branch. */
  readonly ref: string | undefined
  /** A folder; '' is the top. */
  readonly path: string
}

export interface ArchiveSource extends SourceCommon {
  readonly kind: 'archive'
  readonly url: string
  /** `sha256:<hex>` of the archive's bytes: other bytes are never published. */
  readonly digest: string | undefined
  readonly path: string
}

export interface S3Source extends SourceCommon {
  readonly kind: 's3'
  readonly bucket: string
  /** What its keys begin with: '' or a path with a slash at its end. */
  readonly prefixPath: string
  /** Default: Amazon's of the region. */
  readonly endpoint: string | undefined
  readonly region: string | undefined
  /** Key below the prefix, written last by the upload: nothing is read before it changes. */
  readonly marker: string | undefined
}

export interface OciSource extends SourceCommon {
  readonly kind: 'oci'
  /** Host and port. */
  readonly registry: string
  readonly repository: string
  /** A tag, or `sha256:<hex>`. */
  readonly reference: string
  readonly path: string
}

export interface SiteSource extends SourceCommon {
  readonly kind: 'site'
  /** Without a slash at the end: `/.well-known/…` follows. */
  readonly url: string
}

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
  /** After so many milliseconds the signal ends the fetch. */
  readonly timeoutMs: number
  /** An empty folder for what is fetched, on the file system of the state folder; its owner removes it. */
  readonly tmp: string
  /** A folder of this source alone that stays between fetches. */
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
  /** The folder in it that is the source; '' for all of it. */
  readonly path: string
  /** The parts of it that no file system can hold. */
  readonly leftOut?: readonly LeftOut[]
  /**
   * Called when its files are read, and before any of it is published.
   * @throws SourceError for a source that has another state by now
   */
  readonly confirm?: () => Promise<void>
}

/** What fetches the sources of a kind. Loaded when one is configured. */
export interface Fetcher<Spec> {
  /**
   * Checks what has to be there before anything is fetched.
   * @throws AddressError with what to install or to set
   */
  check? (source: Spec, env: Environment): Promise<void>
  /** Returns undefined while the source has what is published. Of what can never change, the host is not asked. */
  fetch (source: Spec, options: FetchOptions): Promise<Fetched | undefined>
}

/** A kind of source: what its addresses look like, and what may be set. */
export interface SourceKind<Spec extends SourceCommon & { readonly kind: string }> {
  /** The key of the configuration file that has its address. */
  readonly kind: Spec['kind']
  /** How its addresses begin, with the colon at the end: `s3:`. Several kinds may share a protocol. */
  readonly protocols: readonly string[]
  /** Which addresses with one of these protocols are of this kind. Default: all of them. */
  isAddress? (url: URL): boolean
  /** What the key of the kind has as its value in the configuration file. */
  readonly description: string
  readonly settings: Readonly<Record<string, KindSetting>>
  /** Parses the settings that stand behind `#` in an address. Default: nothing may stand there. */
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
  load (): Promise<Fetcher<Spec>>
}
