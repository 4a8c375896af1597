import { createGetSkillTool } from './reader/get-skill.ts'
import { createListSkillFilesTool } from './reader/list-skill-files.ts'
import { createListSkillsTool } from './reader/list-skills.ts'
import { createNeovateSkillTool } from './neovate/neovate-skill.ts'
import { createReadFileInSkillTool } from './reader/read-file-in-skill.ts'
import { createSearchSkillsTool } from './reader/search-skills.ts'
import type { Tool } from './tool.ts'
import { createWaveSkillTool } from './wave/wave-skill.ts'

/** Every tool of the service, in the order of lists. A new tool is a file of its own and a line here. */
export function createTools (): readonly Tool[] {
  return [
    createListSkillsTool(),
    createGetSkillTool(),
    createReadFileInSkillTool(),
    createWaveSkillTool(),
    createNeovateSkillTool(),
    createSearchSkillsTool(),
    createListSkillFilesTool()
  ]
}
