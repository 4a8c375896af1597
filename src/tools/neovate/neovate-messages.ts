import { dirname } from 'node:path'
import type { SkillMetadata } from '../../core/shared/skill.ts'
import type { ToolParameters } from '../tool.ts'

export interface NeovateSuccess {
  /** JSON text of two message parts. */
  readonly llmContent: string
  readonly returnDisplay: string
}

export interface NeovateFailure {
  readonly isError: true
  readonly llmContent: string
}

/** Name, description and parameters of `skill`, in the source document's words. */
export const neovateDefinition = {
  name: 'skill',
  description: 'Execute a skill within the conversation',
  parameters: {
    type: 'object',
    properties: { skill: { type: 'string', description: 'The skill name to execute' } },
    required: ['skill']
  }
} as const satisfies { name: string, description: string, parameters: ToolParameters }

/**
 * The two messages that bring a skill into a conversation.
 * @param label what the caller asked for, trimmed
 */
export function neovateSuccess (
  label: string, { name, path }: Pick<SkillMetadata, 'name' | 'path'>, body: string
): NeovateSuccess {
  const messages = [
    {
      type: 'text',
      text: `<command-message>${label} is running…</command-message>\n<command-name>${label}</command-name>`
    },
    {
      type: 'text',
      text: `Base directory for this skill: ${dirname(path)}\n\n${body}`,
      isMeta: true
    }
  ]
  return { llmContent: JSON.stringify(messages), returnDisplay: `Loaded skill: ${name}` }
}

export function neovateFailure (sentence: string): NeovateFailure {
  return { isError: true, llmContent: sentence }
}

export function notFoundSentence (label: string): string {
  return `Skill "${label}" not found`
}
