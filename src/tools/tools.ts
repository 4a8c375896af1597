import { neovateSkill } from './neovate-skill.ts'
import { getSkill } from './reader/get-skill.ts'
import { listSkillFiles } from './reader/list-skill-files.ts'
import { listSkills } from './reader/list-skills.ts'
import { readFileInSkill } from './reader/read-file-in-skill.ts'
import { searchSkills } from './reader/search-skills.ts'
import type { Tool } from './tool.ts'
import { waveSkill } from './wave-skill.ts'

/** In the order of lists. A new tool is a file and a line here. */
export function createTools (): readonly Tool[] {
  return [listSkills, getSkill, readFileInSkill, waveSkill, neovateSkill, searchSkills, listSkillFiles]
}
