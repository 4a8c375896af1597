import type { Awaitable } from './async.ts'
import type { FileContent } from './content/file-content.ts'
import type { MainFilePreference } from './catalog/main-files.ts'
import type { SearchHit } from './search/search-index.ts'
import type { CatalogSkill, SkillMetadata } from './skill.ts'

/**
 * What the tools and the routes ask of the domain; `SkillManager` is the implementation. Every answer is fresh:
 * a change that was complete before the call is in it. Every failure is a `SkillError`.
 */
export interface SkillSource {
  /** Names of all skills, sorted by code point. The array is the same object while nothing changes. */
  list (): Awaitable<readonly string[]>

  /** The skill of exactly this folder name, or undefined. Never throws for a strange name. */
  find (name: string): Awaitable<CatalogSkill | undefined>

  /** The skill with this frontmatter name, else with this folder name, or undefined. */
  findByLabel (label: string): Awaitable<CatalogSkill | undefined>

  /** All valid skills, sorted by folder name; as fresh as the index. Waits for the first index. */
  available (): Awaitable<readonly SkillMetadata[]>

  /** The valid skills that the index holds now, without waiting. */
  availableNow (): readonly SkillMetadata[]

  /**
   * Skills with at least one word of the query in name, description or body, the best first; as fresh as the
   * index. Throws `folderError`'s sentences without a root.
   */
  search (query: string): Awaitable<readonly SearchHit[]>

  /** The main file of a skill. Throws `documentError`'s sentences in K16's order, `folderError`'s without a root. */
  readDocument (name: string, preference: MainFilePreference): Awaitable<FileContent>

  /** A file of a skill, up to MAX_TEXT_FILE_BYTES. Throws `fileError`'s sentences, `folderError`'s without a root. */
  readFile (name: string, filePath: string): Awaitable<FileContent>
}
