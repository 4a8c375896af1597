import type { SkillState } from '../core/revisions/state.ts'
import { type FileContent, mainFileText } from '../core/read/file-content.ts'
import type { CatalogSkill } from '../core/shared/skill.ts'

interface LoadedSkill {
  readonly skill: CatalogSkill
  /** The main file that `skill` was read from. */
  readonly content: FileContent
  readonly text: string
}

/**
 * A skill and its main file of one state, for `SkillSource.read`.
 * @throws {SkillError} `get_skill`'s sentences, also for a file that is not UTF-8
 */
export async function loadSkill (state: SkillState): Promise<LoadedSkill> {
  const content = await state.mainFile()
  return { skill: state.skill, content, text: mainFileText(content, state.skill.name) }
}
