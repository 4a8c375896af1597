import type { Layout } from '../../core/layout/layout.ts'

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

/** A ref of a repository, and a folder in it. */
export interface RefAndPath {
  /** Branch, tag, `refs/…` or full commit id. Absent: the default branch. */
  readonly ref?: string
  /** '' is the top. */
  readonly path: string
}

export interface GitSource extends SourceCommon {
  readonly kind: 'git'
  /** `https:`, `ssh:`, `file:`, or `http:` of this machine; without credentials. */
  readonly url: string
  /** The first whose ref exists counts: in an address from a browser, nothing shows where the ref ends. */
  readonly at: readonly RefAndPath[]
}

export interface ArchiveSource extends SourceCommon {
  readonly kind: 'archive'
  readonly url: string
  /** `sha256:<hex>` of the archive's bytes: other bytes are never published. */
  readonly digest?: string
  /** A folder in the archive. */
  readonly path: string
}

export interface S3Source extends SourceCommon {
  readonly kind: 's3'
  readonly bucket: string
  /** Without a slash at the end. */
  readonly prefixPath: string
  /** Default: Amazon's of the region. */
  readonly endpoint?: string
  readonly region?: string
  /** Key below the prefix, written last by whoever uploads: only its change is looked for. */
  readonly marker?: string
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

export type Source = GitSource | ArchiveSource | S3Source | OciSource

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

export type RootSpec = FolderRoot | Source

/** In the order in which documents name them. */
export const ROOT_KINDS = ['folder', 'git', 'archive', 's3', 'oci'] as const satisfies ReadonlyArray<RootSpec['kind']>

export const DEFAULT_TIMEOUT_MS = 120_000
