import { SkillError } from '../../core/ground/errors.ts'
import { parseArguments } from '../arguments.ts'
import { own } from '../../core/ground/json.ts'
import { type Tool, ToolArgumentsError } from '../tool.ts'

/** A skill as a call names it. */
export interface NamedSkill {
  readonly name: string
  /** Whether the name may be the frontmatter's. */
  readonly isDisplayName: boolean
}

/** @throws {SkillError} `revision_changed` when the skill has another revision than the request asks for */
export type ConfirmSkill = (skill: NamedSkill) => Promise<void>

/** A call before it runs; `args` are as they came. */
interface PlannedCall {
  readonly tool: Tool | undefined
  readonly args: unknown
}

/**
 * Confirms each skill that the calls name, so that a request with a stale revision runs nothing. What else is wrong with a
 * call or its skill is the outcome of the call.
 * @throws {SkillError} `revision_changed`
 */
export async function confirmSkills (calls: readonly PlannedCall[], confirm: ConfirmSkill): Promise<void> {
  for (const call of calls) {
    const skill = skillOf(call)
    if (skill === undefined) continue
    try {
      await confirm(skill)
    } catch (error) {
      if (!(error instanceof SkillError) || error.code === 'revision_changed') throw error
    }
  }
}

function skillOf ({ tool, args }: PlannedCall): NamedSkill | undefined {
  if (tool?.skillArgument === undefined) return undefined
  const isDisplayName = tool.skillArgument === 'skill'
  try {
    const name = own(parseArguments(args, tool.parameters), tool.skillArgument)
    return typeof name === 'string' ? { name: isDisplayName ? name.trim() : name, isDisplayName } : undefined
  } catch (error) {
    if (error instanceof ToolArgumentsError) return undefined
    throw error
  }
}
