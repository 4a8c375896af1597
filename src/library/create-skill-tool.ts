import { SkillError } from '../core/shared/errors.ts'
import { addressOf, type SkillMetadata } from '../core/shared/skill.ts'
import type { ToolParameters } from '../tools/tool.ts'
import {
  neovateDefinition, neovateFailure, type NeovateFailure, neovateSuccess, type NeovateSuccess, notFoundSentence
} from '../tools/neovate-skill.ts'

/** The part of a skill manager that `createSkillTool` uses. */
export interface SkillBodySource {
  getSkills (): readonly SkillMetadata[]
  /** Reads the main file without its frontmatter. */
  readSkillBody (skill: SkillMetadata): Promise<string>
}

export interface NeovateSkillTool {
  readonly name: string
  readonly description: string
  readonly parameters: ToolParameters
  execute (input: { readonly skill: string }): Promise<NeovateSuccess | NeovateFailure>
  readonly approval: { readonly category: 'read' }
}

/** Makes Neovate's tool `skill` from any skill manager with these two methods. */
export function createSkillTool ({ skillManager }: { readonly skillManager: SkillBodySource }): NeovateSkillTool {
  return {
    ...neovateDefinition,

    async execute ({ skill }) {
      const displayName = skill.trim()
      const found = findByDisplayName(skillManager.getSkills(), displayName)
      if (found === undefined) return neovateFailure(notFoundSentence(displayName))
      try {
        return neovateSuccess(displayName, found, await skillManager.readSkillBody(found))
      } catch (error) {
        // As through the service: the model gets an error, and the program goes on.
        if (error instanceof SkillError) {
          return neovateFailure(error.code === 'skill_not_found' ? notFoundSentence(displayName) : error.message)
        }
        throw error
      }
    },

    approval: { category: 'read' }
  }
}

/** Finds the skill with this frontmatter name, else the one with this folder name. */
function findByDisplayName (skills: readonly SkillMetadata[], displayName: string): SkillMetadata | undefined {
  return skills.find(({ name }) => name === displayName) ?? skills.find((skill) => addressOf(skill) === displayName)
}
