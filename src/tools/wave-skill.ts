import { type Static, Type } from '@sinclair/typebox'
import { preventsUse } from '../core/format/findings.ts'
import { SkillError, type SkillErrorKind, unlessRefused } from '../core/shared/errors.ts'
import { own, ownText } from '../core/shared/json.ts'
import type { CatalogSkill, Finding, SkillMetadata } from '../core/shared/skill.ts'
import { isSafeName } from '../core/shared/skill-name.ts'
import { foldWhitespace, printable } from '../core/shared/text.ts'
import type { View } from '../core/view.ts'
import { StringEnum } from '../schemas/typebox.ts'
import { invalidArguments } from './arguments.ts'
import { MAX_AVAILABLE_SKILLS } from './limits.ts'
import { loadSkill } from './load-skill.ts'
import {
  type Tool, type ToolArguments, ToolArgumentsError, type ToolFailure, ToolLimitError, ToolOutcome, type ToolParameters
} from './tool.ts'

const ERROR_TYPES =
  ['skill_not_found', 'skill_invalid', 'skill_inaccessible', 'skill_malformed', 'system_error'] as const

export type WaveErrorType = (typeof ERROR_TYPES)[number]

const WaveErrorDetailsSchema = Type.Object({
  type: StringEnum(ERROR_TYPES),
  skillName: Type.String(),
  message: Type.String(),
  suggestions: Type.Array(Type.String()),
  availableSkills: Type.Array(Type.String(), {
    maxItems: MAX_AVAILABLE_SKILLS,
    description: 'Names of valid skills, sorted; of more than ' +
      `${MAX_AVAILABLE_SKILLS} the first ${MAX_AVAILABLE_SKILLS}`
  })
})

export type WaveErrorDetails = Readonly<Static<typeof WaveErrorDetailsSchema>>

/** Wave's ToolResult; only failures have `errorDetails`. */
export interface WaveToolResult {
  readonly success: boolean
  readonly content: string
  readonly error?: string
  readonly shortResult?: string
  readonly errorDetails?: WaveErrorDetails
}

const TYPES_OF_KINDS = {
  invalid: 'skill_invalid',
  forbidden: 'skill_inaccessible',
  missing: 'skill_invalid',
  outdated: 'system_error',
  too_large: 'skill_invalid',
  unprocessable: 'skill_malformed',
  broken: 'system_error',
  unavailable: 'system_error'
} as const satisfies Record<SkillErrorKind, WaveErrorType>

/** Returns Wave's type for an error other than `skill_not_found`. */
function waveErrorType ({ code, kind }: SkillError): WaveErrorType {
  return code === 'skills_folder_permission_denied' ? 'skill_inaccessible' : TYPES_OF_KINDS[kind]
}

const SUGGESTIONS = {
  skill_not_found: ['Use one of the available skills'],
  skill_invalid: ['Fix the skill, or use one of the available skills'],
  skill_inaccessible: ["Give the server permission to read the skill's folder and its SKILL.md"],
  skill_malformed: ['Save SKILL.md as UTF-8 text with valid YAML frontmatter'],
  system_error: ['Try again, and ask the operator of the server if it fails again']
} as const satisfies Record<WaveErrorType, readonly string[]>

/** Problem of a skill, and how to fix it. */
interface WaveProblem {
  readonly type: WaveErrorType
  readonly message: string
  readonly fixes: readonly string[]
}

/** Creates the ToolResult for a skill that does not exist. */
function notFoundResult (name: string, available: readonly SkillMetadata[]): WaveToolResult {
  const shown = printable(name)
  const message = `Skill '${shown}' not found.`
  const steps = [`Create directory ~/.wave/skills/${shown}/`, 'Add SKILL.md file with proper YAML frontmatter']
  const error =
    `${message}\n\nAvailable skills:\n${bulletList(available)}\n\nTo create this skill:\n1. ${steps[0]}\n2. ${steps[1]}`
  return failure(name, error, error, { type: 'skill_not_found', message, suggestions: steps }, available)
}

/** Creates the ToolResult for a skill or a name that breaks Wave's rules. */
function invalidResult (
  name: string, problem: WaveProblem, available: readonly SkillMetadata[]
): WaveToolResult {
  const fixes = problem.fixes.map((fix) => `- ${foldWhitespace(fix)}`).join('\n')
  const message = `Skill '${printable(name)}' is invalid: ${foldWhitespace(problem.message)}`
  const error = `${message}\n\nFix by:\n${fixes}\n\nSkill will be available after fixing these issues.`
  return failure(name, error, error, { type: problem.type, message, suggestions: problem.fixes }, available)
}

/** Returns the tool's description, with all valid skills. */
function describeCatalog (available: readonly SkillMetadata[]): string {
  const skills = available.length === 0 ? 'No skills currently available' : available.map(describe).join(', ')
  return `Invoke skills based on available skill metadata. Skills: ${skills}`
}

function failure (
  name: string, error: string, reason: string,
  { type, message, suggestions }: Omit<WaveProblem, 'fixes'> & { readonly suggestions: readonly string[] },
  available: readonly SkillMetadata[]
): WaveToolResult {
  return {
    success: false,
    content: `Error invoking skill '${printable(name)}': ${reason}`,
    error,
    errorDetails: {
      type,
      skillName: name,
      message,
      suggestions: [...suggestions],
      availableSkills: available.slice(0, MAX_AVAILABLE_SKILLS).map((skill) => skill.name)
    }
  }
}

function bulletList (available: readonly SkillMetadata[]): string {
  const lines = available.slice(0, MAX_AVAILABLE_SKILLS).map((skill) => `- ${describe(skill)}`)
  const more = available.length - lines.length
  if (more > 0) lines.push(`- … and ${more} more: search_skills or GET /catalog?q= finds them`)
  return lines.length === 0 ? '- (none)' : lines.join('\n')
}

function describe ({ name, description }: SkillMetadata): string {
  return `${name}: ${foldWhitespace(description)}`
}

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

/** Codes of findings about frontmatter that cannot be read at all. */
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

/** Wave's tool `Skill`: returns a ToolResult, whose `content` is what the model reads, also on failure. */
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
    if (error instanceof ToolLimitError) {
      const { message } = error
      // Without the catalog: a refusal must stay small.
      return toOutcome(failure(name, message, message, { type: 'system_error', message, suggestions: [] }, []), error)
    }
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

/** Lists the valid skills; returns none if the list cannot be read, since the caller needs the original failure. */
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
  const type = error instanceof SkillError ? waveErrorType(error) : 'skill_invalid'
  const { message } = error
  const reason = `${message}\n\nAvailable skills:\n${bulletList(available)}`
  return failure(name, message, reason, { type, message, suggestions: SUGGESTIONS[type] }, available)
}

function toOutcome (result: WaveToolResult, failure: ToolFailure | boolean = !result.success): ToolOutcome {
  return new ToolOutcome(result, result.content, failure)
}
