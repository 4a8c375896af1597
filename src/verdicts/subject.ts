import type { CatalogSkill, Finding, ListedFile } from '../core/shared/skill.ts'

/** One state of a skill, on a disk or sent by a client. */
export interface Subject {
  /** As the catalog knows it; its findings are those of the main file. */
  readonly skill: CatalogSkill
  /** The bytes of the main file; undefined when they cannot be read. */
  readonly mainFile: Buffer | undefined
  /** All files that are served; undefined when nobody knows them, as for a SKILL.md that was sent alone. */
  readonly files: readonly ListedFile[] | undefined
  /** What is to be said of its files, and by the clients of other APIs. */
  readonly otherFindings: readonly Finding[]
}

/** Of all files together. */
export function bytesOf ({ files = [] }: Subject): number {
  return files.reduce((sum, { size_bytes: size }) => sum + size, 0)
}
