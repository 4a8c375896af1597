import type { IgnoreRules } from '../read/ignore-file.ts'

/** Where a skill of a listing lies. */
export interface ListedFolder {
  /** Absolute, as agents are shown it. */
  readonly path: string
  readonly realPath: string
  /** What the ignore file above it hides of it. */
  readonly rules?: IgnoreRules | undefined
}

/**
 * The skills of a root by name, where they are not simply its folders: a folder with a layout, or what a source has
 * published.
 */
export interface Listing {
  /** A new map for each state; undefined while there is none. Names are safe. */
  readonly folders: ReadonlyMap<string, ListedFolder> | undefined
  /** Whether the folders never change once they are listed: a change is another folder. */
  readonly isFixed: boolean
  /** Names of the skills that an ignore file hides whole. */
  readonly ignored?: ReadonlySet<string> | undefined
  /** True while the root lists its own folder, as if it had no listing. */
  readonly isDirect?: boolean | undefined
  /** How many entries of the folder could be skills and are left out. */
  readonly skipped?: number | undefined
  /** Whether a revision that was handed out before may still be read. Default: it may. */
  allows? (name: string, revision: string): boolean
  /** Calls the listener after each new state. Returns a function that stops it. */
  readonly changed: { subscribe (listener: () => void): () => void }
}
