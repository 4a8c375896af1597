import { Type } from '@sinclair/typebox'
import { preventsUse } from '../../core/format/findings.ts'
import { SkillError, unlessRefused } from '../../core/shared/errors.ts'
import type { CatalogSkill, Finding, SkillMetadata } from '../../core/shared/skill.ts'
import { isSafeName } from '../../core/shared/skill-name.ts'
import type { View } from '../../core/view.ts'
import { invalidArguments } from '../arguments.ts'
import { own, ownText } from '../../core/shared/json.ts'
import { loadSkill } from '../load-skill.ts'
import {
  type Tool, type ToolArguments, ToolArgumentsError, type ToolFailure, ToolLimitError, ToolOutcome, type ToolParameters
} from '../tool.ts'
import {
  describeCatalog, failureResult, invalidResult, notFoundResult, refusalResult,
  WaveErrorDetailsSchema, waveErrorType, type WaveProblem, type WaveToolResult
} from './wave-messages.ts'

const parameters: ToolParameters = {
  type: 'object',
  properties: { skill_name: { type: 'string', description: 'Name of the skill to invoke from available skills' } },
  required: ['skill_name'],
  additionalProperties: false
}

const UNSAFE_NAME: WaveProblem = {
  type: 'skill_invalid',
  message: "a skill name must not be empty, begin with '.', or contain '/', '\\', '..' or control characters",
  fixes: ['Use the name of one of the available skills', 'Name skills with lowercase letters, digits and hyphens only']
}

const NO_MAIN_FILE: WaveProblem = {
  type: 'skill_invalid',
  message: 'SKILL.md is missing',
  fixes: ['Add a SKILL.md file with YAML frontmatter']
}

/** Findings of frontmatter that cannot be read at all. */
const MALFORMED_FINDINGS: ReadonlySet<string> = new Set([
  'yaml_invalid', 'yaml_refused', 'frontmatter_unclosed', 'frontmatter_not_mapping', 'frontmatter_too_large'
])

const ResultSchema = Type.Object({
  success: Type.Literal(true),
  content: Type.String(),
  shortResult: Type.String()
}, { title: 'Skill' })

const FailureSchema = Type.Object({
  success: Type.Literal(false),
  content: Type.String(),
  error: Type.String(),
  errorDetails: WaveErrorDetailsSchema
}, { title: 'Failure of Skill' })

const EXAMPLE: WaveToolResult = {
  success: true,
  content: 'Skill: calculator (Type: project)\nPath: /srv/skills/calculator\n\n# Calculator Skill\n',
  shortResult: 'calculator: Provides basic arithmetic operations'
}

/** Wave's `Skill`: a ToolResult whose `content` is what the model reads, failures included. */
export const waveSkill: Tool = {
  name: 'Skill',
  toolset: 'wave',
  description: 'Invoke a skill to apply specialized expertise and capabilities',
  parameters,
  skillArgument: 'skill_name',
  reads: { event: 'skill.read' },
  resultSchema: ResultSchema,
  failureSchema: FailureSchema,
  example: { args: { skill_name: 'calculator' }, outcome: toOutcome(EXAMPLE) },

  currentDescription: (skills) => describeCatalog(skills.availableIndexed()),

  async run (args, skills) {
    const name = skillName(args)
    if (!isSafeName(name)) return toOutcome(invalidResult(name, UNSAFE_NAME, await availableSkills(skills)))
    const { skill, text } = await skills.read(name, loadSkill)
    const problem = problemOf(skill.findings)
    if (problem !== undefined) return toOutcome(invalidResult(name, problem, await availableSkills(skills)))
    return toOutcome(successResult(skill, text))
  },

  async fail (error, args, skills) {
    const name = ownText(args, 'skill_name')
    if (error instanceof ToolLimitError) return toOutcome(refusalResult(name, error.message), error)
    const available = await availableSkills(skills)
    if (error instanceof SkillError && error.code === 'main_file_not_found') {
      // The findings say whether SKILL.md is missing or not a file.
      const skill = await unlessRefused(() => skills.find(name))
      return toOutcome(invalidResult(name, problemOf(skill?.findings ?? []) ?? NO_MAIN_FILE, available), error)
    }
    return toOutcome(explain(error, name, available), error)
  }
}

function skillName (args: ToolArguments): string {
  const name = own(args, 'skill_name')
  if (typeof name !== 'string') throw new ToolArgumentsError('skill_name parameter is required and must be a string')
  const extra = Object.keys(args).find((key) => key !== 'skill_name')
  if (extra !== undefined) {
    throw invalidArguments(`unknown argument ${JSON.stringify(extra)}, the only one is 'skill_name'`, parameters)
  }
  return name
}

/** Empty when the list cannot be had: the failure to report is worth more than the failure of its list. */
async function availableSkills (skills: View): Promise<readonly SkillMetadata[]> {
  return await unlessRefused(() => skills.available()) ?? []
}

function problemOf (findings: readonly Finding[]): WaveProblem | undefined {
  const errors = findings.filter(preventsUse)
  const first = errors[0]
  if (first === undefined) return undefined
  const malformed = errors.some(({ code }) => MALFORMED_FINDINGS.has(code))
  return {
    type: malformed ? 'skill_malformed' : 'skill_invalid',
    message: first.message,
    fixes: [...new Set(errors.map(({ fix }) => fix))]
  }
}

function successResult ({ metadata }: CatalogSkill, text: string): WaveToolResult {
  return {
    success: true,
    content: `Skill: ${metadata.name} (Type: ${metadata.type})\nPath: ${metadata.skillPath}\n\n${text}`,
    shortResult: `${metadata.name}: ${metadata.description}`
  }
}

function explain (error: ToolFailure, name: string, available: readonly SkillMetadata[]): WaveToolResult {
  if (error instanceof SkillError && error.code === 'skill_not_found') return notFoundResult(name, available)
  return failureResult(
    name, error instanceof SkillError ? waveErrorType(error) : 'skill_invalid', error.message, available
  )
}

function toOutcome (result: WaveToolResult, failure: ToolFailure | boolean = !result.success): ToolOutcome {
  return new ToolOutcome(result, result.content, failure)
}
