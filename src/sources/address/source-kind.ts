import type { Environment } from '../../operator/setting.ts'
import type { SkillType } from '../../core/shared/skill.ts'
import type { Layout, LeftOut } from '../../layout/layout.ts'
import type { SourceFiles } from '../publish/source-tree.ts'

/** Places of credentials. Files are read at each fetch, so that new credentials need no restart. */
export interface SourceAuth {
  readonly username?: string
  /** A password, or a token. */
  readonly secretFile?: string
  readonly secretVariable?: string
  /** Files for git over SSH. */
  readonly keyFile?: string
  readonly knownHostsFile?: string
}

/** Settings of all kinds of sources. */
export interface SourceCommon {
  /** Unique name in settings and reports. */
  readonly name: string
  /** Default: of a project. */
  readonly type?: SkillType
  readonly layout: Layout
  /** Globs of paths of skills to serve, and of folders to skip. */
  readonly include?: readonly string[]
  readonly exclude?: readonly string[]
  /** Prefix for the name of each skill. */
  readonly prefix?: string
  /** Time between two checks in milliseconds. Default: that of the kind. */
  readonly intervalMs?: number
  /** Of one fetch. Default: two minutes. */
  readonly timeoutMs?: number
  /** Whether the service is ready before the source has been fetched. */
  readonly optional?: boolean
  readonly auth?: SourceAuth
  /** Path of a file with the secret of the senders of `POST /hooks/git`. */
  readonly webhookSecretFile?: string
  /** Absolute path of the configuration file that names the source. */
  readonly configFile?: string
}

/** A folder that the operator provides. */
export interface FolderRoot
  extends Partial<Pick<SourceCommon, 'name' | 'type' | 'layout' | 'include' | 'exclude' | 'prefix'>> {
  readonly kind: 'folder'
  /** Absolute. */
  readonly path: string
}

export interface GitSource extends SourceCommon {
  readonly kind: 'git'
  /** Address of protocol `https:`, `ssh:`, `file:`, or `http:` on this machine; without credentials. */
  readonly url: string
  /** Branch, tag, `refs/…` or full commit id. Undefined: the default branch. */
  readonly ref: string | undefined
  /** Folder in the repository; '' is the top. */
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
  /** Beginning of the keys: '' or a path with a slash at its end. */
  readonly prefixPath: string
  /** Address of the service. Default: Amazon's for the region. */
  readonly endpoint: string | undefined
  readonly region: string | undefined
  /** Key below the prefix that an upload writes last; nothing is read until its object changes. */
  readonly marker: string | undefined
}

export interface OciSource extends SourceCommon {
  readonly kind: 'oci'
  /** Host, and port if it has one. */
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

/** A key of the configuration file, with a string as value, that only some kinds have. */
export interface KindSetting {
  readonly description: string
  readonly pattern?: string
  /** Completes "must be …" in errors about the value. Default: a text. */
  readonly title?: string
}

type KindSettings = Readonly<Record<string, string | undefined>>

export interface FetchOptions {
  /** `memory` of the published state; undefined before the first, or if everything is to be fetched again. */
  readonly known: Fetched['memory'] | undefined
  readonly signal: AbortSignal
  /** After so many milliseconds the signal ends the fetch. */
  readonly timeoutMs: number
  /** Empty folder for the fetched files, on the file system of the state folder; the caller removes it. */
  readonly tmp: string
  /** A folder of this source alone that stays between fetches. */
  readonly cache: string
  readonly env: Environment
}

/** One state of a source. */
export interface Fetched {
  /** Revision for people: `main@sha1:…`, `sha256:…`. */
  readonly revision: string
  /** Data for the next fetch: validators, ids. */
  readonly memory: Readonly<Record<string, string>>
  readonly files: SourceFiles
  /** The folder in it that is the source; '' for all of it. */
  readonly path: string
  /** Skipped parts, such as names that no file system can store. */
  readonly leftOut?: readonly LeftOut[]
  /**
   * Called after the files were read and before they are published.
   * @throws SourceError if the source has changed meanwhile
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
  /** Protocols of its addresses, with the colon: `s3:`. Several kinds may share one. */
  readonly protocols: readonly string[]
  /** Whether an address with one of these protocols is of this kind. Default: always. */
  isAddress? (url: URL): boolean
  /** What the key of the kind has as its value in the configuration file. */
  readonly description: string
  readonly settings: Readonly<Record<string, KindSetting>>
  /** Parses the settings that stand behind `#` in an address. Default: nothing may stand there. */
  parseFragment? (fragment: string): KindSettings
  /** Default time between two checks, in milliseconds. */
  readonly intervalMs: number
  /** Whether `POST /hooks/git` may trigger a check. */
  readonly takesHooks?: boolean
  /**
   * @param address without a fragment
   * @throws AddressError if it cannot be used
   */
  create (address: string, settings: KindSettings): Spec
  load (): Promise<Fetcher<Spec>>
}
