import type { SkillSource } from '../../core/service.ts'
import { parseArguments } from '../arguments.ts'
import type { ToolRegistry } from '../registry.ts'
import { type Tool, type ToolArguments, ToolArgumentsError, type ToolOutcome } from '../tool.ts'
import { type CallLogger, hasCallers, toolCallLine, toolResultLine } from './call-log.ts'
import type { ToolObserver } from './observer.ts'

export interface ToolRun {
  /** What the call may see. */
  readonly skills: SkillSource
  readonly registry: ToolRegistry
  readonly log: CallLogger
  /** Fields of the two log lines, such as the request id. */
  readonly fields: object
  readonly observer?: ToolObserver | undefined
  /** The API, or the shape of the calls. */
  readonly dialect?: string
  /** The request that the call came in, for the observer. */
  readonly origin?: object | undefined
}

/**
 * Runs one call of a tool for any API: checks its arguments and logs its two lines. Never throws.
 * @param raw the arguments as they were sent: none means `{}`
 * @param id of the call, for the observer
 */
export async function runTool (tool: Tool, raw: unknown, run: ToolRun, id?: string | number): Promise<ToolOutcome> {
  const { skills, registry, log, fields, observer, dialect = 'rest', origin } = run
  const args = readArguments(tool, raw)
  log.info(fields, toolCallLine(tool, args instanceof ToolArgumentsError ? {} : args))
  const end =
    observer?.onCall({ tool, args: args instanceof ToolArgumentsError ? {} : args, skills, dialect, id, origin })
  const outcome = await (args instanceof ToolArgumentsError
    ? registry.refuse(tool, args, {}, skills)
    : registry.call(tool, args, skills))
  log.info(fields, toolResultLine(outcome, hasCallers(skills)))
  end?.(outcome.isError ? 'error' : 'ok', outcome)
  return outcome
}

/** The arguments of a call as its tool takes them, or what is wrong with them. */
export function readArguments (tool: Tool, raw: unknown): ToolArguments | ToolArgumentsError {
  try {
    return parseArguments(raw, tool.parameters)
  } catch (error) {
    if (error instanceof ToolArgumentsError) return error
    throw error
  }
}
