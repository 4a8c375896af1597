import { locateFrontmatter } from '../core/format/fences.ts'
import { MAX_FRONTMATTER_BYTES } from '../core/shared/limits.ts'
import type { CatalogSkill, Finding, ListedFile } from '../core/shared/skill.ts'

/** One state of a skill to validate, on a disk or sent by a client. */
export interface Subject {
  /** Skill as the catalog has it, with the findings of its main file. */
  readonly skill: CatalogSkill
  /** Bytes of the main file; undefined if they cannot be read. */
  readonly mainFile: Buffer | undefined
  /** Files that are served; undefined if they are not known, as for a SKILL.md that was sent alone. */
  readonly files: readonly ListedFile[] | undefined
  /** Findings on its files, and those of MCP and discovery. */
  readonly otherFindings: readonly Finding[]
}

/** Returns the text between the fences of a main file; undefined if there is none. */
export function frontmatterOf ({ mainFile }: Subject): string | undefined {
  const location = mainFile && locateFrontmatter(mainFile)
  if (location?.kind !== 'found' || location.end - location.start > MAX_FRONTMATTER_BYTES) return undefined
  return mainFile?.toString('utf8', location.start, location.end)
}

/** Returns the size of all files together. */
export function bytesOf ({ files = [] }: Pick<Subject, 'files'>): number {
  return files.reduce((sum, { size_bytes: size }) => sum + size, 0)
}
