import type { SkillState } from './revisions/state.ts'
import { fileError } from './shared/errors.ts'
import { hasForbiddenSequence } from './shared/skill-name.ts'
import type { View } from './view.ts'

/** Reads files of a skill as `View.read` does, with the sentence of `read_file_in_skill` for a name of no skill. */
export async function readInSkill<T> (
  skills: View, name: string, read: (skill: SkillState) => Promise<T>
): Promise<T> {
  if (hasForbiddenSequence(name)) throw fileError.invalidName()
  return await skills.read(name, read)
}
