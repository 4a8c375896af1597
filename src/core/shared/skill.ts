import { basename } from 'node:path'

export type SkillType = 'project' | 'personal'

export type FindingSeverity = 'error' | 'warning' | 'info'

/** A problem of a skill. Its files are served all the same. With severity `error` the skill is not valid. */
export interface Finding {
  /** Stable snake_case name of the kind of finding. */
  readonly code: string
  readonly severity: FindingSeverity
  /** One sentence that says what is wrong, without a full stop. */
  readonly message: string
  readonly fix: string
  readonly field?: string
  /** Path of the affected file in the skill. */
  readonly file?: string
  /** Where in that file, counted from 1. Columns are UTF-16 code units, as editors count them. */
  readonly line?: number
  readonly column?: number
  /** The clients that it matters to; absent for all. */
  readonly targets?: readonly string[]
}

/** Parsed frontmatter: plain JSON data. Untrusted, so read own properties only, with `own`. */
export type Frontmatter = Readonly<Record<string, unknown>>

/** Metadata of a skill: the fields of both Wave's and Neovate's interfaces. */
export interface SkillMetadata {
  /** `name` of the frontmatter, or of the folder if there is none. */
  readonly name: string
  /** `description` of the frontmatter; empty if there is none. */
  readonly description: string
  readonly type: SkillType
  /** Absolute path of the skill's folder, as configured. */
  readonly skillPath: string
  /** Absolute path of the main file, `skillPath` + `/SKILL.md` when there is none yet. */
  readonly path: string
  /** Name that addresses the skill, if a layout makes it differ from that of the folder. */
  readonly address?: string
}

export function addressOf ({ address, skillPath }: Pick<SkillMetadata, 'address' | 'skillPath'>): string {
  return address ?? basename(skillPath)
}

export interface CatalogSkill {
  /** Name that addresses the skill, mostly that of its folder. */
  readonly name: string
  readonly metadata: SkillMetadata
  readonly frontmatter: Frontmatter
  readonly findings: readonly Finding[]
  /** Whether the Agent Skills format takes it: it has no finding of severity `error`. */
  readonly valid: boolean
  /** `sha256:<hex>` of the main file, absent when it cannot be read. */
  readonly digest?: string
}

/** A skill with its content: what Wave's `loadSkill` returns. */
export interface Skill extends CatalogSkill {
  /** The whole main file with its frontmatter, verbatim. */
  readonly content: string
}

export interface ManifestFile {
  /** Path in the skill, with `/` between segments. */
  readonly path: string
  readonly size_bytes: number
  readonly media_type: string
  /** `sha256:<hex>` of the bytes. */
  readonly digest: string
}

export type ListedFile = Pick<ManifestFile, 'path' | 'size_bytes'>

export interface FileList {
  readonly files: readonly ListedFile[]
}

/** All files of a skill in one state. */
export interface Manifest {
  readonly skill_name: string
  /** `sha256:<hex>` over paths and digests, equal wherever the content is equal. */
  readonly revision: string
  readonly files: readonly ManifestFile[]
}
