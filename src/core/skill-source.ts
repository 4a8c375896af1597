import type { Awaitable } from './shared/async.ts'
import type { CatalogChange } from './catalog/catalog.ts'
import type { MainFilePreference } from './format/main-files.ts'
import type { RootStatus } from './roots/root-reports.ts'
import type { SkillArchive } from './content/archive.ts'
import type { Inspected, Unread } from './content/manifest.ts'
import type { SkillState } from './content/skill-state.ts'
import type { FileContent } from './files/file-content.ts'
import type { ServableFile } from './files/file-store.ts'
import type { SearchAnswer } from './search/search.ts'
import type { CatalogSkill, Manifest, SkillMetadata } from './shared/skill.ts'
import type { WatcherState } from './watch/watcher.ts'

/**
 * What all doors ask of the domain. Every answer is fresh: a change that was complete before the call is in it, unless a
 * method says otherwise. Every failure is a `SkillError`.
 */
export interface SkillSource {
  /** Names the set of skills: a cursor of one is not valid for another. Empty where there is one set. */
  readonly scope: string

  /** Names of all skills, sorted by code point. The array is the same object while nothing changes. Throws without a root. */
  list (): Promise<readonly string[]>

  /** The skill of exactly this folder name, or undefined. Never throws for a strange name. */
  find (name: string): Promise<CatalogSkill | undefined>

  /** Name of the root that a skill comes from, as the index knows it; undefined for one that it does not have. */
  rootOf (name: string): string | undefined

  /** All valid skills of those that are there now, sorted by folder name; each as fresh as the index. Waits for the first index. */
  available (): Promise<readonly SkillMetadata[]>

  /** The valid skills that the index holds now, without waiting. */
  availableNow (): readonly SkillMetadata[]

  /**
   * Skills with at least one word of the query in name, description or body, the best first; as fresh as the index. Throws
   * `folderError`'s sentences without a root.
   */
  search (query: string): Promise<SearchAnswer>

  /**
   * What `answer` makes of a skill in one state: index entry, manifest and bytes agree. `answer` may run several times, and
   * reads through its argument only.
   */
  read<T> (name: string, answer: (state: SkillState) => Promise<T>): Promise<T>

  /**
   * The same for a list of many skills, which waits for none of them. It fails with `skill_changing` while a skill is written without
   * pause, or has much to be read; the reading goes on in the background.
   */
  readListed<T> (name: string, answer: (state: SkillState) => Promise<T>): Promise<T>

  /** The same for the skill with this frontmatter name, else of this folder name. */
  readByDisplayName<T> (displayName: string, answer: (state: SkillState) => Promise<T>): Promise<T>

  /** The main file of a skill, whatever its encoding. Throws `mainFileError`'s sentences in their order, `folderError`'s without a root. */
  readMainFile (name: string, preference: MainFilePreference): Awaitable<FileContent>

  /** A file of a skill, up to MAX_TEXT_FILE_BYTES. Throws `fileError`'s sentences, `folderError`'s without a root. */
  readFile (name: string, path: string): Promise<FileContent>

  /** A file of any size, for a door that sends bytes. Same checks and sentences as `readFile`. */
  openFile (name: string, path: string): Promise<ServableFile>

  /** All files of a skill. */
  manifest (name: string): Promise<Manifest>

  /**
   * All files of a skill as a ZIP archive, to be read after the call.
   * @param nameOf what a file of the manifest is called in the archive; default: its path
   */
  archive (name: string, nameOf?: (path: string) => string): Promise<SkillArchive>

  /** Revisions of a skill, the latest first, that `at` gives although the skill may have moved on. */
  keptRevisions (name: string): readonly string[]

  /**
   * The same skills in one revision: reads of a skill with another present revision give the kept one, or throw
   * `revision_changed`. Made for one request: all its reads of one skill are of one revision.
   * @param revision `sha256:<hex>`, or `current` for the present one of each skill that is read
   * @param notesPresent whether each read finds out the present revision too, which `current` does in any case
   */
  at (revision: string, notesPresent?: boolean): SourceAtRevision
}

/** Skills in a chosen revision. */
export interface SourceAtRevision extends SkillSource {
  /** The revision of a skill that was read; undefined before. */
  revisionOf (name: string): string | undefined
  /** The revision of everything that was read, if it is one. */
  readonly onlyRevision: string | undefined
  /** The present revision of the skill that was read last, if it was noted; undefined for a skill that is gone. */
  readonly presentRevision: string | undefined
}

/** What /readyz tells. */
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
  /** Names of the skills whose disk does not answer. */
  readonly hanging: readonly string[]
  /** Names of the roots of which only some skills may be seen; absent without callers. */
  readonly partial?: readonly string[]
}

/** The skills of a running service: what doors ask that follow changes or report the state of the service. */
export interface SkillService extends SkillSource {
  readonly status: SkillStatus
  /** The same after a comparison of the roots with the disk. */
  freshStatus (): Promise<SkillStatus>
  /** A request was received on this connection: see `PollPhase`. */
  beginRequest (connection: object): void
  /** What `list` said last, without a comparison with the disk. */
  namesNow (): readonly string[]
  /** Stands for the folder that the index has of a skill, which may lie elsewhere a moment later. Undefined without such a skill. */
  folderIdNow (name: string): string | undefined
  /** Reports each change of the catalog once it is in place. Returns a function that stops it. */
  subscribe (listener: (change: CatalogChange) => void): () => void
  /** Reports skills whose files may have changed, all of them without names. Returns a function that stops it. */
  observe (listener: (names?: Iterable<string>) => void): () => void
  /**
   * The state of all files of a skill; `known` comes back as it is when nothing was touched since. Undefined without a skill,
   * `Unread` for one with much to be read.
   */
  inspect (name: string, known?: Inspected): Promise<Inspected | Unread | undefined>
}
