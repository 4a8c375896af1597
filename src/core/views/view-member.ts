import type { ServableFile } from '../files/file-store.ts'
import { SkillError } from '../shared/errors.ts'
import type { RootSkills } from '../root-skills.ts'
import type { SharedInspections } from './shared-inspections.ts'

/** A root as a view has it. */
export interface ViewMember {
  /** The skills of this root alone. */
  readonly skills: RootSkills
  readonly inspections: SharedInspections
  /** Whether the view may have a skill of this name of the root. */
  allows (name: string): boolean
  /** Whether `allows` is true for every name. */
  readonly isWhole: boolean
}

/** Whether a member has no such skill, or its root is not there. */
export function isMissing (error: unknown): boolean {
  return error instanceof SkillError &&
    (error.code === 'skill_not_found' || error.code === 'skills_folder_not_found' || error.code === 'skills_folder_permission_denied')
}

/** A root that is not there has no skills. */
export function ignoreMissingRoot (error: unknown): undefined {
  if (isMissing(error)) return undefined
  throw error
}

/** Gives back the file that an answer holds open, if it does. */
export async function closeUnused (answer: unknown): Promise<void> {
  const file = answer as ServableFile | undefined
  if (file?.kind === 'stream') await file.file.close()
}
