import { Type } from '@sinclair/typebox'
import type { SkillError, SkillErrorKind } from '../../core/shared/errors.ts'
import type { SkillMetadata } from '../../core/shared/skill.ts'
import { foldWhitespace, printable } from '../../core/shared/text.ts'
import { StringEnum } from '../../schemas/typebox.ts'
import { MAX_AVAILABLE_SKILLS } from '../limits.ts'

const ERROR_TYPES =
  ['skill_not_found', 'skill_invalid', 'skill_inaccessible', 'skill_malformed', 'system_error'] as const

/** Wave's error types. */
export type WaveErrorType = (typeof ERROR_TYPES)[number]

export const WaveErrorDetailsSchema = Type.Object({
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

export interface WaveErrorDetails {
  readonly type: WaveErrorType
  readonly skillName: string
  readonly message: string
  readonly suggestions: readonly string[]
  readonly availableSkills: readonly string[]
}

/** Wave's ToolResult; `errorDetails` on failure only. */
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

/** Wave's type for an error of the domain, other than a skill that is not there. */
export function waveErrorType ({ code, kind }: SkillError): WaveErrorType {
  return code === 'skills_folder_permission_denied' ? 'skill_inaccessible' : TYPES_OF_KINDS[kind]
}

const SUGGESTIONS = {
  skill_not_found: ['Use one of the available skills'],
  skill_invalid: ['Fix the skill, or use one of the available skills'],
  skill_inaccessible: ["Give the server permission to read the skill's folder and its SKILL.md"],
  skill_malformed: ['Save SKILL.md as UTF-8 text with valid YAML frontmatter'],
  system_error: ['Try again, and ask the operator of the server if it fails again']
} as const satisfies Record<WaveErrorType, readonly string[]>

/** A problem of a skill and its fix. */
export interface WaveProblem {
  readonly type: WaveErrorType
  readonly message: string
  readonly fixes: readonly string[]
}

/** A ToolResult for a skill that is not there. */
export function notFoundResult (name: string, available: readonly SkillMetadata[]): WaveToolResult {
  const shown = printable(name)
  const message = `Skill '${shown}' not found.`
  const steps = [`Create directory ~/.wave/skills/${shown}/`, 'Add SKILL.md file with proper YAML frontmatter']
  const error =
    `${message}\n\nAvailable skills:\n${bulletList(available)}\n\nTo create this skill:\n1. ${steps[0]}\n2. ${steps[1]}`
  return failure(name, error, error, { type: 'skill_not_found', message, suggestions: steps }, available)
}

/** A ToolResult for a skill, or a name, that breaks Wave's rules. */
export function invalidResult (
  name: string, problem: WaveProblem, available: readonly SkillMetadata[]
): WaveToolResult {
  const fixes = problem.fixes.map((fix) => `- ${foldWhitespace(fix)}`).join('\n')
  const message = `Skill '${printable(name)}' is invalid: ${foldWhitespace(problem.message)}`
  const error = `${message}\n\nFix by:\n${fixes}\n\nSkill will be available after fixing these issues.`
  return failure(name, error, error, { type: problem.type, message, suggestions: problem.fixes }, available)
}

/** A ToolResult for every other failure. */
export function failureResult (
  name: string, type: WaveErrorType, message: string, available: readonly SkillMetadata[]
): WaveToolResult {
  const reason = `${message}\n\nAvailable skills:\n${bulletList(available)}`
  return failure(name, message, reason, { type, message, suggestions: SUGGESTIONS[type] }, available)
}

/** A ToolResult without the catalog in it, for refusals that must stay small. */
export function refusalResult (name: string, message: string): WaveToolResult {
  return failure(name, message, message, { type: 'system_error', message, suggestions: [] }, [])
}

/** The tool's description as it follows the catalog. */
export function describeCatalog (available: readonly SkillMetadata[]): string {
  const skills = available.length === 0 ? 'No skills currently available' : available.map(describe).join(', ')
  return `Invoke skills based on available skill metadata. Skills: ${skills}`
}

function failure (
  name: string, error: string, reason: string,
  details: Pick<WaveErrorDetails, 'type' | 'message' | 'suggestions'>, available: readonly SkillMetadata[]
): WaveToolResult {
  return {
    success: false,
    content: `Error invoking skill '${printable(name)}': ${reason}`,
    error,
    errorDetails: {
      type: details.type,
      skillName: name,
      message: details.message,
      suggestions: details.suggestions,
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
