import type { RootFolder } from './scan-root.ts'

/** What is known of a root: for /readyz and the log. */
export interface RootStatus {
  readonly name: string
  readonly type: RootFolder['type']
  readonly state: 'ok' | 'waiting' | 'missing' | 'unreadable' | 'failed'
  readonly skills: number
  /** Entries that look like skills and are none: see the log. */
  readonly skipped: number
}

/** Why nothing of a root is listed, as the end of a sentence about its folder. */
export const ROOT_PROBLEMS = {
  waiting: 'is not fetched yet',
  missing: 'is missing, or is a file',
  unreadable: 'may not be read',
  failed: 'cannot be listed'
} as const satisfies Record<Exclude<RootStatus['state'], 'ok'>, string>

/** A root is in another state than before, or has its first skill, or lost its last one. */
export interface RootReport extends RootStatus {
  /** Undefined at the first scan. */
  readonly before: RootStatus['state'] | undefined
  /** The root holds a SKILL.md of its own. */
  readonly isSkill: boolean
}

/** A root has other folders than before, or is another folder itself. */
export interface RootChange {
  /** Undefined while the root is not there. */
  readonly realPath: string | undefined
  /** Paths of the links in the root, whatever they lead to. */
  readonly links: readonly string[]
  /** Of the folders that came, went, or are others. */
  readonly names: readonly string[]
}
