import { whenReady } from '../core/ground/async.ts'
import type { Awaitable } from '../core/ground/async.ts'
import type { SkillSource } from '../core/skill-source.ts'
import { parseArguments } from './arguments.ts'
import { type CallLogger, toolCallLine, toolResultLine } from './call-log.ts'
import type { ToolRegistry } from './registry.ts'
import { type Tool, type ToolArguments, ToolArgumentsError, type ToolOutcome } from './tool.ts'

export interface ToolRun {
  /** What the call may see. */
  readonly skills: SkillSource
  readonly registry: ToolRegistry
  readonly log: CallLogger
  /** Fields of the two log lines, such as the request id. */
  readonly fields: object
}

/**
 * Runs one call of a tool for any door: checks its arguments and logs its two lines. Never throws.
 * @param raw the arguments as they were sent: none means `{}`
 */
export function runTool (tool: Tool, raw: unknown, { skills, registry, log, fields }: ToolRun): Awaitable<ToolOutcome> {
  const args = readArguments(tool, raw)
  log.info(fields, toolCallLine(tool, args instanceof ToolArgumentsError ? {} : args))
  return whenReady(args instanceof ToolArgumentsError ? registry.refuse(tool, args, skills) : registry.call(tool, args, skills), (outcome) => {
    log.info(fields, toolResultLine(outcome))
    return outcome
  })
}

function readArguments (tool: Tool, raw: unknown): ToolArguments | ToolArgumentsError {
  try {
    return parseArguments(raw, tool.parameters)
  } catch (error) {
    if (error instanceof ToolArgumentsError) return error
    throw error
  }
}
