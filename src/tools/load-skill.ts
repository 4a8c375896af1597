import type { SkillState } from '../core/content/skill-state.ts'
import type { FileContent } from '../core/files/file-content.ts'
import type { CatalogSkill } from '../core/skill.ts'

export interface LoadedSkill {
  readonly skill: CatalogSkill
  /** The main file that `skill` was read from. */
  readonly content: FileContent
}

/** A skill and its main file of one state, for `SkillSource.read`. */
export async function loadSkill (state: SkillState): Promise<LoadedSkill> {
  return { skill: state.skill, content: await state.mainFile() }
}
