import type { SkillState } from '../core/content/skill-state.ts'
import { documentError } from '../core/ground/errors.ts'
import type { FileContent } from '../core/files/file-content.ts'
import type { CatalogSkill } from '../core/ground/skill.ts'

export interface LoadedSkill {
  readonly skill: CatalogSkill
  /** The main file that `skill` was read from. */
  readonly content: FileContent
}

/**
 * A skill and its main file of one state, for `SkillSource.read`.
 * @throws {SkillError} `get_skill`'s sentences, also for a file that is not UTF-8
 */
export async function loadSkill (state: SkillState): Promise<LoadedSkill> {
  const content = await state.mainFile()
  if (content.utf8 === undefined) throw documentError.notUtf8(state.skill.name)
  return { skill: state.skill, content }
}
