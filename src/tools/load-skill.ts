import type { SkillState } from '../core/revisions/state.ts'
import { mainFileText } from '../core/read/file-content.ts'
import type { CatalogSkill } from '../core/shared/skill.ts'

/**
 * Reads a skill and its main file from one state, for `View.read`.
 * @throws {SkillError} with the messages of `get_skill`, also for a file that is not UTF-8
 */
export async function loadSkill (state: SkillState): Promise<{ readonly skill: CatalogSkill, readonly text: string }> {
  return { skill: state.skill, text: mainFileText(await state.mainFile(), state.skill.name) }
}
