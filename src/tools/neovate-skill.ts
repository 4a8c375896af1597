import { dirname } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { skillBody } from '../core/format/main-file.ts'
import { SkillError } from '../core/shared/errors.ts'
import { own } from '../core/shared/json.ts'
import type { SkillMetadata } from '../core/shared/skill.ts'
import { stringArgument } from './arguments.ts'
import { loadSkill } from './load-skill.ts'
import { type Tool, ToolOutcome, type ToolParameters } from './tool.ts'

/** `llmContent` is the JSON text of two message parts. */
const ResultSchema = Type.Object({ llmContent: Type.String(), returnDisplay: Type.String() }, { title: 'skill' })
const FailureSchema = Type.Object(
  { isError: Type.Literal(true), llmContent: Type.String() }, { title: 'Failure of skill' }
)

export type NeovateSuccess = Readonly<Static<typeof ResultSchema>>
export type NeovateFailure = Readonly<Static<typeof FailureSchema>>

/** Definition of the tool `skill`, in the words of the source document. */
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
 * Creates the two messages that bring a skill into a conversation.
 * @param label the name that the caller asked for, trimmed
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

const EXAMPLE_SKILL = { name: 'calculator', path: '/srv/skills/calculator/SKILL.md' }

/** Tool `skill`: returns `{"llmContent","returnDisplay"}`, or `{"isError":true,"llmContent"}` on failure. */
export const neovateSkill: Tool = {
  ...neovateDefinition,
  toolset: 'neovate',
  skillArgument: 'skill',
  reads: { event: 'skill.read' },
  resultSchema: ResultSchema,
  failureSchema: FailureSchema,
  example: {
    args: { skill: 'calculator' },
    outcome: toOutcome(neovateSuccess('calculator', EXAMPLE_SKILL, '# Calculator Skill\n'))
  },

  async run (args, skills) {
    const label = stringArgument(args, 'skill', neovateDefinition.parameters).trim()
    const { skill, text } = await skills.readByDisplayName(label, loadSkill)
    return toOutcome(neovateSuccess(label, skill.metadata, skillBody(text)), skill.name)
  },

  async fail (error, args) {
    const missing = error instanceof SkillError && error.code === 'skill_not_found'
    const result = neovateFailure(missing ? notFoundSentence(String(own(args, 'skill')).trim()) : error.message)
    return new ToolOutcome(result, result.llmContent, error)
  }
}

function toOutcome (result: NeovateSuccess, skill?: string): ToolOutcome {
  return new ToolOutcome(result, result.llmContent, false, skill)
}
