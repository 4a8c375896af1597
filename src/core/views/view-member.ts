import type { SkillManager } from '../skill-manager.ts'

/** A root as a view has it. */
export interface ViewMember {
  /** The skills of this root alone. */
  readonly skills: SkillManager
  /** Whether the view may have a skill of this name of the root. */
  allows (name: string): boolean
  /** Whether `allows` is true for every name. */
  readonly isWhole: boolean
}
