import { RevisionChangedError, SkillError } from '../../core/shared/errors.ts'
import type { View } from '../../core/view.ts'
import { parseArguments } from '../arguments.ts'
import { own } from '../../core/shared/json.ts'
import { type Tool, ToolArgumentsError } from '../tool.ts'

interface NamedSkill {
  readonly name: string
  /** Whether `name` may be the name in the frontmatter. */
  readonly isDisplayName: boolean
}

/** @throws {SkillError} `revision_changed` if a skill does not have the revision that the request asks for */
export type ConfirmSkill = (skill: NamedSkill) => Promise<void>

/** Call before it runs, with its arguments as they were sent. */
interface PlannedCall {
  readonly tool: Tool | undefined
  readonly args: unknown
}

/**
 * Confirms each skill that the calls name or find, so that a request with a stale revision runs nothing. All other
 * errors are outcomes of their calls.
 * @throws {SkillError} `revision_changed`
 */
export async function confirmSkills (
  calls: readonly PlannedCall[], skills: View, confirm: ConfirmSkill
): Promise<void> {
  for (const call of calls) {
    for (const skill of await skillsOf(call, skills)) {
      try {
        await confirm(skill)
      } catch (error) {
        if (error instanceof RevisionChangedError && calls.length > 1) {
          throw new RevisionChangedError(error.present, skill.name)
        }
        if (!(error instanceof SkillError) || error.code === 'revision_changed') throw error
      }
    }
  }
}

async function skillsOf ({ tool, args }: PlannedCall, skills: View): Promise<readonly NamedSkill[]> {
  if (tool?.skillArgument === undefined && tool?.skillsOf === undefined) return []
  try {
    const given = parseArguments(args, tool.parameters)
    if (tool.skillArgument === undefined) {
      return (await tool.skillsOf?.(given, skills) ?? []).map((name) => ({ name, isDisplayName: false }))
    }
    const isDisplayName = tool.skillArgument === 'skill'
    const name = own(given, tool.skillArgument)
    return typeof name === 'string' ? [{ name: isDisplayName ? name.trim() : name, isDisplayName }] : []
  } catch (error) {
    if (error instanceof ToolArgumentsError || error instanceof SkillError) return []
    throw error
  }
}
