import { Type } from '@sinclair/typebox'
import { SkillError } from '../../core/shared/errors.ts'
import { skillBody } from '../../core/format/main-file.ts'
import { stringArgument } from '../arguments.ts'
import { own } from '../../core/shared/json.ts'
import { loadSkill } from '../load-skill.ts'
import {
  neovateDefinition, neovateFailure, neovateSuccess, type NeovateSuccess, notFoundSentence
} from './neovate-messages.ts'
import { type Tool, ToolOutcome } from '../tool.ts'

const ResultSchema = Type.Object({ llmContent: Type.String(), returnDisplay: Type.String() }, { title: 'skill' })

const FailureSchema = Type.Object(
  { isError: Type.Literal(true), llmContent: Type.String() }, { title: 'Failure of skill' }
)

const EXAMPLE_SKILL = { name: 'calculator', path: '/srv/skills/calculator/SKILL.md' }

/** `skill`: `{"llmContent","returnDisplay"}`, failure `{"isError":true,"llmContent"}`. */
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
