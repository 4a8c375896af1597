import type { IgnoreRules } from '../disk/ignore-file.ts'
import type { Signal } from '../shared/signal.ts'

/** Where a skill of a listing lies. */
export interface ListedFolder {
  /** Absolute, as agents are shown it. */
  readonly path: string
  readonly realPath: string
  /** What the ignore file above it hides of it. */
  readonly rules?: IgnoreRules | undefined
}

/**
 * The skills of a root by name, as somebody in this process finds them. Consumers: folders with a layout, and sources. A source exchanges
 * thousands of skills in one step, and those that did not change keep folder and index entry. A request compares a reference,
 * and no disk.
 */
export interface Listing {
  /** A new map for each state; undefined while there is none. Names are safe. */
  readonly folders: ReadonlyMap<string, ListedFolder> | undefined
  /** Names of the skills that an ignore file hides whole. */
  readonly ignored?: ReadonlySet<string> | undefined
  /** Emits after each new state. */
  readonly changed: Signal<void>
  /** Whether the folders never change once they are listed: a change is another folder. */
  readonly isFixed: boolean
  /** True while the root lists its own folder, as if it had no listing. */
  readonly isDirect?: boolean | undefined
  /** How many entries of the folder could be skills and are left out. */
  readonly skipped?: number | undefined
  /** Whether a revision that was handed out before may still be read. Default: it may. */
  allows? (name: string, revision: string): boolean
}
