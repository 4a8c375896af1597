/** How skills are arranged below a folder; `auto` detects it. */
export const LAYOUTS = ['auto', 'flat', 'single', 'tree', 'marketplace'] as const
export type Layout = (typeof LAYOUTS)[number]

/** An entry of a folder, with links resolved. */
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
  /** Resolves all links: two paths with the same result are the same folder. */
  realPath (folder: string): Promise<string>
  /** Reads a file; undefined if it is not a file or is larger than `limit` bytes. */
  read (file: string, limit: number): Promise<Buffer | undefined>
}

export interface LayoutOptions {
  readonly layout: Layout
  /** Name for a skill that is the whole tree, if its frontmatter has no valid one. */
  readonly name: string
  /** Globs of skill paths to serve, and of folders to skip. */
  readonly include?: readonly string[] | undefined
  readonly exclude?: readonly string[] | undefined
}

type LeftOutReason =
  | 'shadowed' | 'excluded' | 'unsafe_name' | 'remote_plugin' | 'bad_manifest' | 'not_found' | 'bad_package'
  | 'bad_entry' | 'digest_mismatch' | 'unreachable' | 'link_outside' | 'ignored' | 'submodule' | 'lfs_pointer'
  | 'bound_reached'

/** Something that looks like a skill or a part of one and is not served, with the reason. */
export interface LeftOut {
  readonly path: string
  readonly reason: LeftOutReason
  /** Path of the skill that already uses the name. */
  readonly by?: string
}

export interface FoundSkill {
  readonly name: string
  /** Path of its folder. */
  readonly path: string
  readonly realPath: string
}

export interface FoundSkills {
  readonly layout: Exclude<Layout, 'auto'>
  readonly skills: readonly FoundSkill[]
  readonly leftOut: readonly LeftOut[]
  /** Paths of files that may be packed skills. */
  readonly packages: readonly string[]
}
