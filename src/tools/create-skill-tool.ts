import { basename, dirname } from 'node:path'
import type { SkillMetadata } from '../core/skill.ts'
import type { Awaitable } from '../core/skill-source.ts'
import type { ToolParameters } from './tool.ts'

/** What `createSkillTool` asks of a skill manager (K33). */
export interface SkillBodySource {
  getSkills (): readonly SkillMetadata[]
  /** The main file without its frontmatter. */
  readSkillBody (skill: SkillMetadata): Awaitable<string>
}

export interface NeovateSuccess {
  /** JSON text of two message parts. */
  readonly llmContent: string
  readonly returnDisplay: string
}

export interface NeovateFailure {
  readonly isError: true
  readonly llmContent: string
}

export interface NeovateSkillTool {
  readonly name: string
  readonly description: string
  readonly parameters: ToolParameters
  execute (input: { readonly skill: string }): Promise<NeovateSuccess | NeovateFailure>
  readonly approval: { readonly category: 'read' }
}

/** Name, description and parameters of `skill`, in the source document's words. */
export const neovateDefinition = {
  name: 'skill',
  description: 'Execute a skill within the conversation',
  parameters: {
    type: 'object',
    properties: {
      skill: { type: 'string', description: 'The skill name to execute' }
    },
    required: ['skill']
  }
} as const satisfies { name: string, description: string, parameters: ToolParameters }

/** Neovate's factory (K33): the tool `skill` over any skill manager that has the two methods. */
export function createSkillTool ({ skillManager }: { readonly skillManager: SkillBodySource }): NeovateSkillTool {
  return {
    ...neovateDefinition,

    async execute ({ skill }) {
      const label = skill.trim()
      const found = findByLabel(skillManager.getSkills(), label)
      if (found === undefined) return neovateFailure(notFoundSentence(label))
      return neovateSuccess(label, found, await skillManager.readSkillBody(found))
    },

    approval: { category: 'read' }
  }
}

/**
 * The two messages that bring a skill into a conversation (K30).
 * @param label what the caller asked for, trimmed
 */
export function neovateSuccess (label: string, skill: SkillMetadata, body: string): NeovateSuccess {
  const messages = [
    {
      type: 'text',
      text: `<command-message>${label} is running…</command-message>\n<command-name>${label}</command-name>`
    },
    {
      type: 'text',
      text: `Base directory for this skill: ${dirname(skill.path)}\n\n${body}`,
      isMeta: true
    }
  ]
  return { llmContent: JSON.stringify(messages), returnDisplay: `Loaded skill: ${skill.name}` }
}

export function neovateFailure (sentence: string): NeovateFailure {
  return { isError: true, llmContent: sentence }
}

export function notFoundSentence (label: string): string {
  return `Skill "${label}" not found`
}

/** The frontmatter's name first, then the folder's (K29). */
function findByLabel (skills: readonly SkillMetadata[], label: string): SkillMetadata | undefined {
  return skills.find(({ name }) => name === label) ?? skills.find(({ skillPath }) => basename(skillPath) === label)
}
