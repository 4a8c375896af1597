import { createGetSkillTool } from './get-skill.ts'
import { createListSkillsTool } from './list-skills.ts'
import { createNeovateSkillTool } from './neovate-skill.ts'
import { createReadFileInSkillTool } from './read-file-in-skill.ts'
import { createSearchSkillsTool } from './search-skills.ts'
import type { Tool } from './tool.ts'
import { createWaveSkillTool } from './wave-skill.ts'

/** Every tool of the service, in the order of lists. A new tool is a file of its own and a line here. */
export function createTools (): readonly Tool[] {
  return [
    createListSkillsTool(),
    createGetSkillTool(),
    createReadFileInSkillTool(),
    createWaveSkillTool(),
    createNeovateSkillTool(),
    createSearchSkillsTool()
  ]
}
