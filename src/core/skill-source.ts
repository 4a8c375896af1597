import type { FileContent } from './file-content.ts'
import type { SearchHit } from './search-index.ts'
import type { CatalogueSkill, SkillMetadata } from './skill.ts'

/** A value, or a promise of it: local disks answer at once, network disks later. Always `await` it. */
export type Awaitable<T> = T | Promise<T>

/** Which main file is taken when a folder has several (K6). */
export type MainFilePreference = 'SKILL.MD' | 'SKILL.md'

/**
 * What the tools and the routes ask of the domain; `SkillManager` is the implementation. Every answer is fresh:
 * a change that was complete before the call is in it (K51). Every failure is a `SkillError`.
 */
export interface SkillSource {
  /** Names of all skills, sorted by code point (K11). The array is the same object while nothing changes. */
  list (): Awaitable<readonly string[]>

  /** The skill of exactly this folder name (K5), or undefined. Never throws for a strange name. */
  find (name: string): Awaitable<CatalogueSkill | undefined>

  /** The skill with this frontmatter name, else with this folder name (K29), or undefined. */
  findByLabel (label: string): Awaitable<CatalogueSkill | undefined>

  /** All valid skills, sorted by folder name (K26, K28); as fresh as the index (K52). Waits for the first index. */
  available (): Awaitable<readonly SkillMetadata[]>

  /** The valid skills that the index holds now, without waiting. */
  availableNow (): readonly SkillMetadata[]

  /**
   * Skills with at least one word of the query in name, description or body, the best first (K46); as fresh as the
   * index (K52). Throws `folderError`'s sentences without a root.
   */
  search (query: string): Awaitable<readonly SearchHit[]>

  /** The main file of a skill. Throws `documentError`'s sentences in K16's order, `folderError`'s without a root. */
  readDocument (name: string, preference: MainFilePreference): Awaitable<FileContent>

  /** A file of a skill, up to MAX_TEXT_FILE_BYTES. Throws `fileError`'s sentences, `folderError`'s without a root. */
  readFile (name: string, filePath: string): Awaitable<FileContent>
}
