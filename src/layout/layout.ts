/** Where skills lie below a folder; `auto` finds out. */
export const LAYOUTS = ['auto', 'flat', 'single', 'tree', 'marketplace'] as const
export type Layout = (typeof LAYOUTS)[number]

/** Something in a folder, links resolved. */
export interface TreeEntry {
  readonly name: string
  readonly kind: 'folder' | 'file'
  /** Whether it is a symbolic link. */
  readonly linked: boolean
}

/** A folder on a disk, or a state of a source. Paths are relative to its top, `''`. */
export interface LayoutTree {
  /** Sorted by code point; empty for what is not a folder. Links out of the tree are skipped. */
  entries (folder: string): Promise<readonly TreeEntry[]>
  /** The path behind all links: two paths with one answer are one folder. */
  realPath (folder: string): Promise<string>
  /** Undefined for what is not a file, or larger than `limit` bytes. */
  read (file: string, limit: number): Promise<Buffer | undefined>
}

export interface LayoutOptions {
  readonly layout: Layout
  /** The name of a skill that is the whole tree, unless its frontmatter has a good one. */
  readonly name: string
  /** Globs of paths: only these skills, and not these folders. */
  readonly include?: readonly string[] | undefined
  readonly exclude?: readonly string[] | undefined
}

type LeftOutReason =
  | 'shadowed' | 'excluded' | 'unsafe_name' | 'remote_plugin' | 'bad_manifest' | 'not_found' | 'bad_package'
  | 'bad_entry' | 'digest_mismatch' | 'unreachable' | 'link_outside' | 'ignored' | 'submodule' | 'lfs_pointer'
  | 'bound_reached' | 'unknown_key'

/** An entry that looks like a skill and is not served, with the reason. */
export interface LeftOut {
  readonly path: string
  readonly reason: LeftOutReason
  /** The path of the skill that has the name. */
  readonly by?: string
}

export interface FoundSkill {
  readonly name: string
  /** Its folder. */
  readonly path: string
  readonly realPath: string
}

export interface FoundSkills {
  readonly layout: Exclude<Layout, 'auto'>
  readonly skills: readonly FoundSkill[]
  readonly leftOut: readonly LeftOut[]
  /** Files that may be packages of skills, where the layout takes them. */
  readonly packages: readonly string[]
}
