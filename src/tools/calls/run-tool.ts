import type { View } from '../../core/view.ts'
import { isJsonObject } from '../../core/shared/json.ts'
import { parseArguments } from '../arguments.ts'
import type { ToolCall } from '../dialects/dialect.ts'
import type { ToolRegistry } from '../registry.ts'
import {
  type Tool, type ToolArguments, ToolArgumentsError, type ToolFailure, ToolLimitError, ToolOutcome
} from '../tool.ts'
import { type CallLogger, hasCallers, toolCallLine, toolResultLine } from './call-log.ts'
import type { ToolObserver } from './observer.ts'

export interface ToolRun {
  /** View that the call runs on. */
  readonly skills: View
  readonly registry: ToolRegistry
  readonly log: CallLogger
  /** Fields of the two log lines, such as the request id. */
  readonly fields: object
  readonly observer?: ToolObserver | undefined
  /** Name of the calls' dialect, or of the API. Default: `rest`. */
  readonly dialect?: string
  /** The request that the call came in, for the observer. */
  readonly origin?: object | undefined
}

/**
 * Runs one call of a tool for any API: checks its arguments and logs its two lines. Never throws.
 * @param raw the arguments as they were sent; undefined means `{}`
 * @param id id of the call, for the observer
 * @param refusal reason to refuse the call; undefined lets it run
 */
export async function runTool (
  tool: Tool, raw: unknown, run: ToolRun, id?: string | number, refusal?: string
): Promise<ToolOutcome> {
  const { skills, registry, log, fields, observer, dialect = 'rest', origin } = run
  let args: ToolArguments = {}
  let failure: ToolFailure | undefined
  try {
    args = parseArguments(raw, tool.parameters)
  } catch (error) {
    if (!(error instanceof ToolArgumentsError)) throw error
    failure = error
  }
  if (refusal !== undefined) failure = new ToolLimitError(refusal)
  log.info(fields, toolCallLine(tool, args))
  const start = performance.now()
  const outcome = await (failure === undefined
    ? registry.call(tool, args, skills)
    : registry.refuse(tool, failure, args, skills))
  log.info(fields, toolResultLine(outcome, hasCallers(skills)))
  const result = refusal !== undefined ? 'refused' : outcome.isError ? 'error' : 'ok'
  observer?.onCall({ tool, args, skills, dialect, id, origin, start }, result, outcome)
  return outcome
}

/** Refuses a call that has no tool, with the same two lines in the log. */
export function refuseCall (call: ToolCall, message: string, run: ToolRun): ToolOutcome {
  const { skills, log, fields, observer, dialect = 'rest', origin } = run
  const outcome = new ToolOutcome({ error: message }, message, true)
  log.info(fields, toolCallLine(call.name, {}))
  log.info(fields, toolResultLine(outcome, hasCallers(skills)))
  const args = isJsonObject(call.args) ? call.args : {}
  const start = performance.now()
  observer?.onCall({ tool: undefined, args, skills, dialect, id: call.id, origin, start }, 'refused', outcome)
  return outcome
}
