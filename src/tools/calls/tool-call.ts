import { isJsonObject } from '../../core/shared/json.ts'
import { yieldIfNeeded } from '../../core/shared/async.ts'
import type { View } from '../../core/view.ts'
import { MAX_TOOL_CALLS, MAX_TOOL_RESULTS_BYTES, TOOL_CALL_CONCURRENCY } from '../limits.ts'
import type { ToolCall } from '../dialects/dialect.ts'
import { openEnvelope } from '../dialects/envelope.ts'
import type { ToolRegistry } from '../registry.ts'
import { type Tool, ToolLimitError, type ToolOutcome, type Toolset } from '../tool.ts'
import type { CallLogger } from './call-log.ts'
import { type ConfirmSkill, confirmSkills } from './confirm-skills.ts'
import type { ToolObserver } from './observer.ts'
import { refuseCall, runTool, type ToolRun } from './run-tool.ts'

export type ToolCallAnswer =
  /** The whole answer as JSON text: one result for one call, an array for a batch or a container. */
  | { readonly kind: 'answer', readonly json: string }
  /** Nothing in the body is a tool call, or there are more than may be in one request; none was run. */
  | { readonly kind: 'unrecognised' | 'too_many_calls', readonly detail: string }

export interface ToolCallContext {
  /** View that the calls run on. */
  readonly skills: View
  readonly requestId: string
  /** Checks each skill that the calls name, before any of them runs. */
  readonly confirmSkill?: ConfirmSkill | undefined
  /** Tools that the model was given. Default: all tools run, and errors list those of DEFAULT_TOOLSET. */
  readonly toolset?: Toolset | 'all' | undefined
  /** Whether calls of tools outside the toolset get no answer, rather than a refusal. */
  readonly skipOthers?: boolean | undefined
  /** Request object, for the observer. */
  readonly origin?: object | undefined
  /**
   * Is asked before each call runs, also for unknown tools.
   * @returns the sentence to refuse the call with; undefined lets it run
   */
  readonly admit?: ((tool: Tool | undefined) => Promise<string | undefined>) | undefined
}

export const DEFAULT_TOOLSET = 'reader'

export type ToolCallHandler = (body: unknown, context: ToolCallContext) => Promise<ToolCallAnswer>

const RESULT_LIMIT_MESSAGE =
  `The results of one request are limited to ${MAX_TOOL_RESULTS_BYTES} bytes together, and this call is past the ` +
    'limit: send it in another request'

interface ToolCallHandlerOptions {
  readonly registry: ToolRegistry
  readonly log: CallLogger
  readonly observer?: ToolObserver | undefined
}

/** The result of a call that was refused, as JSON, or the outcome of one that counts towards the limit of a request. */
type Attempt = string | { readonly call: ToolCall, readonly tool: Tool, readonly outcome: ToolOutcome }

/** Creates the handler of POST /agent/tool-call: JSON in, JSON text out. It throws what `confirmSkill` throws. */
export function createToolCallHandler ({ registry, log, observer }: ToolCallHandlerOptions): ToolCallHandler {
  return async function handle (body, { skills, requestId, confirmSkill, toolset, skipOthers = false, origin, admit }) {
    const envelope = openEnvelope(body)
    if (envelope.kind !== 'calls') return envelope
    const known = toolset === 'all' ? undefined : toolset
    const named = toolset === undefined ? DEFAULT_TOOLSET : known
    const { dialect, batch } = envelope
    const calls = skipOthers
      ? envelope.calls.filter(({ name }) => name === '' || registry.find(name, known) !== undefined)
      : envelope.calls
    if (calls.length === 0) return { kind: 'answer', json: '[]' }
    if (calls.length > MAX_TOOL_CALLS) {
      return {
        kind: 'too_many_calls', detail: `${calls.length} tool calls in one request: the limit is ${MAX_TOOL_CALLS}`
      }
    }
    const toolOf = ({ name, problem }: ToolCall) => problem === undefined ? registry.find(name, known) : undefined
    if (confirmSkill !== undefined) {
      await confirmSkills(calls.map((call) => ({ tool: toolOf(call), args: call.args })), skills, confirmSkill)
    }
    const run: ToolRun = {
      skills, registry, log, fields: { reqId: requestId }, observer, dialect: dialect.name, origin
    }

    const toJson = (call: ToolCall, outcome: ToolOutcome) => JSON.stringify(dialect.writeResult(call, outcome))
    let bytesLeft = MAX_TOOL_RESULTS_BYTES
    const attempt = async (call: ToolCall): Promise<Attempt> => {
      // Without a pause, calls that begin together would read large files in one turn.
      for (let pause = yieldIfNeeded(); pause !== undefined; pause = yieldIfNeeded()) await pause
      const tool = toolOf(call)
      const refusal = bytesLeft < 0 ? RESULT_LIMIT_MESSAGE : await admit?.(tool)
      if (tool === undefined) {
        const outcome = refuseCall(call, refusal ?? call.problem ?? registry.unknownTool(call.name, named), run)
        const refused = dialect.writeRefusal?.(call, outcome.text)
        return refused === undefined ? toJson(call, outcome) : JSON.stringify(refused)
      }
      const outcome = await runTool(tool, call.args, run, call.id, refusal)
      return refusal === undefined ? { call, tool, outcome } : toJson(call, outcome)
    }
    const write = async (attempted: Attempt): Promise<string> => {
      if (typeof attempted === 'string') return attempted
      const { call, tool, outcome } = attempted
      await yieldIfNeeded()
      // JSON is at least as long as its text: a result that cannot fit is not written.
      const result = outcome.text.length > bytesLeft ? undefined : toJson(call, outcome)
      bytesLeft = result === undefined ? -1 : bytesLeft - Buffer.byteLength(result)
      if (result !== undefined && bytesLeft >= 0) return result
      const args = isJsonObject(call.args) ? call.args : {}
      return toJson(call, await registry.refuse(tool, new ToolLimitError(RESULT_LIMIT_MESSAGE), args, skills))
    }
    const results: string[] = []
    for (let start = 0; start < calls.length; start += TOOL_CALL_CONCURRENCY) {
      const attempts = await Promise.all(calls.slice(start, start + TOOL_CALL_CONCURRENCY).map(attempt))
      // The limit counts results in the order of the calls, whichever ended first.
      for (const attempted of attempts) results.push(await write(attempted))
    }
    return { kind: 'answer', json: batch ? `[${results.join(',')}]` : results.join('') }
  }
}
