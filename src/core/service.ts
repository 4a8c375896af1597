import type { Keep } from './revisions/kept-revisions.ts'
import type { SkillState } from './revisions/state.ts'
import type { RootStatus } from './roots/root.ts'
import type { CatalogSkill, SkillMetadata } from './shared/skill.ts'
import type { WatcherState } from './watch/watcher.ts'

/**
 * The skills that a caller may see. What is asked for by name is fresh: a change that was complete before the call is
 * in the answer. What is said of many skills follows changes within a second. Every failure is a `SkillError`.
 */
export interface SkillSource {
  /** Identifies the set of skills: a cursor of one is not valid for another. Empty where everybody sees the same. */
  readonly scope: string

  /** Names of all skills, sorted by code point; fresh. The same array while nothing changes. Throws without a root. */
  list (): Promise<readonly string[]>

  /** The skill of exactly this name; fresh. Undefined for none, also for a name that no skill can have. */
  find (name: string): Promise<CatalogSkill | undefined>

  /** The skill of this name as the index has it, without a comparison with the disk. */
  findNow (name: string): CatalogSkill | undefined

  /** Name of the root that a skill comes from; undefined without such a skill. */
  rootOf (name: string): string | undefined

  /** All valid skills, sorted by name. Waits for the first index. */
  available (): Promise<readonly SkillMetadata[]>

  /** The valid skills that the index has now. */
  availableNow (): readonly SkillMetadata[]

  /** Names of skills that fit the words of a query, the best first. Throws `folderError`'s sentences without a root. */
  search (query: string): Promise<readonly string[]>

  /**
   * What `answer` makes of a skill in one state; fresh. `answer` may run several times, and reads through its argument.
   * @param keep whether a revision that the answer names stays readable; default `always`
   */
  read<T> (name: string, answer: (state: SkillState) => Promise<T>, keep?: Keep): Promise<T>

  /** As `read`, of the skill with this name in its frontmatter, else of this name. */
  readByDisplayName<T> (displayName: string, answer: (state: SkillState) => Promise<T>): Promise<T>

  /** Revisions of a skill that `at` gives although the skill may have moved on; the one used last first. */
  keptRevisions (name: string): readonly string[]

  /**
   * These skills in one revision: reads of a skill with another present revision give the kept one, or throw
   * `revision_changed`. What is said of many skills has no revision. Made for one request.
   * @param revision `sha256:<hex>`, or `current` for the one that each skill has at its first read
   */
  at (revision: string): SkillSource

  /** The revision of a skill that was read through `at`; undefined otherwise. */
  revisionOf (name: string): string | undefined
  /** The revision of everything that was read through `at`, if it is one. */
  readonly onlyRevision: string | undefined
}

/** What /readyz reports. */
export interface SkillStatus {
  /** The first index is complete and a root is there. */
  readonly ready: boolean
  readonly indexed: boolean
  readonly generation: number
  readonly skills: number
  readonly roots: readonly RootStatus[]
  readonly watcher: WatcherState
  /** Codes of what kept the last refresh from reading the disk; what was there before is served. */
  readonly failures: readonly string[]
  /** Names of the roots of which only some skills may be seen; absent without callers. */
  readonly partial?: readonly string[]
}

/** The skills of a running service, for those who follow changes or report its state. */
export interface SkillService extends SkillSource {
  /** Resolves after the first index: from then on, every change of any file is reported. */
  indexed (): Promise<void>

  readonly status: SkillStatus
  /** The status after a comparison of the roots with the disk. */
  freshStatus (): Promise<SkillStatus>
  /** What `list` gave last, without a comparison with the disk. */
  namesNow (): readonly string[]
  /**
   * Calls the listener with the names of skills that have changed in any of their files, have come or have gone.
   * Returns a function that stops it.
   */
  subscribe (listener: (names: readonly string[]) => void): () => void
}
