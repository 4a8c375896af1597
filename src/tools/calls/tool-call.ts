import type { SkillSource } from '../../core/service.ts'
import { MAX_TOOL_CALLS, MAX_TOOL_RESULTS_BYTES, TOOL_CALL_CONCURRENCY } from '../limits.ts'
import type { Dialect, ToolCall } from '../dialects/dialect.ts'
import { openEnvelope } from '../dialects/envelope.ts'
import type { ToolRegistry } from '../registry.ts'
import { isJsonObject } from '../../core/shared/json.ts'
import { type Tool, ToolArgumentsError, ToolLimitError, ToolOutcome, type Toolset } from '../tool.ts'
import { type CallLogger, hasCallers, toolCallLine, toolResultLine } from './call-log.ts'
import { type ConfirmSkill, confirmSkills } from './confirm-skills.ts'
import type { ToolObserver } from './observer.ts'
import { readArguments, runTool, type ToolRun } from './run-tool.ts'

export type ToolCallAnswer =
  /** The whole answer as JSON text: one result for one call, an array for a batch or a container. */
  | { readonly kind: 'answer', readonly json: string }
  /** Nothing in the body is a tool call. */
  | { readonly kind: 'unrecognised', readonly detail: string }
  /** More than MAX_TOOL_CALLS, or than MAX_BATCH_ELEMENTS; none was run. */
  | { readonly kind: 'too_many_calls', readonly detail: string }

/** The request that the calls came in. */
export interface ToolCallContext {
  /** What the calls may see. */
  readonly skills: SkillSource
  readonly requestId: string
  /** Called with each skill that the calls name, before any of them runs. */
  readonly confirmSkill?: ConfirmSkill | undefined
  /** The tools that the model was given. Default: all run, and errors name those of DEFAULT_TOOLSET. */
  readonly toolset?: Toolset | 'all' | undefined
  /** Leaves calls of other tools without an answer, instead of refusing them. */
  readonly skipOthers?: boolean | undefined
  /** The request itself, for the observer. */
  readonly origin?: object | undefined
  /**
   * Asked before each call runs, those of unknown tools too.
   * @returns the sentence that the call is refused with; undefined lets it run
   */
  readonly admit?: ((tool: Tool | undefined) => Promise<string | undefined>) | undefined
}

/** What `GET /agent/tools` gives to a caller who does not choose. */
export const DEFAULT_TOOLSET = 'reader'

export type ToolCallHandler = (body: unknown, context: ToolCallContext) => Promise<ToolCallAnswer>

/** The end of one call. `refused`: it was not a call of a tool of the registry. */
interface CallEnd {
  readonly outcome: ToolOutcome
  readonly refused: boolean
}

/** What the calls of a request run with. */
interface CallRun extends ToolRun {
  /** The tool of a call that can run. */
  find (call: ToolCall): Tool | undefined
  unknownTool (name: string): string
  readonly admit: ToolCallContext['admit']
}

const RESULT_LIMIT_MESSAGE =
  `The results of one request are limited to ${MAX_TOOL_RESULTS_BYTES} bytes together, and this call is past the ` +
    'limit: send it in another request'

interface ToolCallHandlerOptions {
  readonly registry: ToolRegistry
  readonly log: CallLogger
  readonly observer?: ToolObserver | undefined
}

/** The engine behind POST /agent/tool-call: parsed JSON in, JSON text out. Throws what `confirmSkill` throws. */
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
    const run: CallRun = {
      skills,
      registry,
      log,
      fields: { reqId: requestId },
      observer,
      dialect: dialect.name,
      origin,
      admit,
      find: ({ name, problem }) => problem === undefined ? registry.find(name, known) : undefined,
      unknownTool: (name) => registry.unknownTool(name, named)
    }
    if (confirmSkill !== undefined) {
      await confirmSkills(calls.map((call) => ({ tool: run.find(call), args: call.args })), skills, confirmSkill)
    }
    const results = await runAll(dialect, calls, run)
    return { kind: 'answer', json: batch ? `[${results.join(',')}]` : results.join('') }
  }

  /**
   * Runs the calls concurrently and writes their results in order. A call starts when the call TOOL_CALL_CONCURRENCY
   * places before it has been written. No more outcomes than that wait in memory behind a slow call.
   */
  async function runAll (dialect: Dialect, calls: readonly ToolCall[], request: CallRun): Promise<string[]> {
    const running: Array<Promise<CallEnd>> = []
    const results: string[] = []
    let started = 0
    let budget = MAX_TOOL_RESULTS_BYTES
    for (const [index, call] of calls.entries()) {
      const due = budget > 0 ? calls.slice(started, index + TOOL_CALL_CONCURRENCY) : []
      started += due.length
      running.push(...due.map((next) => run(next, request)))
      const end = await running.shift()
      const result = end === undefined ? undefined : writeWithin(budget, dialect, call, end)
      if (result === undefined) {
        budget = 0
        results.push(dialect.writeResult(
          call, await refuse(call, request.find(call), RESULT_LIMIT_MESSAGE, request, end === undefined)
        ))
      } else {
        // Counting the bytes of a long text costs as much as sending it. The last result, often the only one, is not
        // counted.
        if (index < calls.length - 1) budget -= Buffer.byteLength(result)
        results.push(result)
      }
    }
    return results
  }

  async function run (call: ToolCall, request: CallRun): Promise<CallEnd> {
    const tool = request.find(call)
    const refusal = await request.admit?.(tool)
    if (refusal !== undefined) {
      return { outcome: await refuse(call, tool, refusal, request), refused: tool === undefined }
    }
    if (tool === undefined) {
      log.info(request.fields, toolCallLine(call.name, {}))
      const message = call.problem ?? request.unknownTool(call.name)
      const outcome = new ToolOutcome({ error: message }, message, true)
      log.info(request.fields, toolResultLine(outcome, hasCallers(request.skills)))
      observeRefusal(call, undefined, outcome, request)
      return { outcome, refused: true }
    }
    return { outcome: await runTool(tool, call.args, request, call.id), refused: false }
  }

  /** A call that a limit refuses has a result and two log lines too. */
  async function refuse (
    call: ToolCall, tool: Tool | undefined, message: string, request: CallRun, neverRan = true
  ): Promise<ToolOutcome> {
    const read = tool === undefined ? {} : readArguments(tool, call.args)
    const args = read instanceof ToolArgumentsError ? {} : read
    const outcome = tool === undefined
      ? new ToolOutcome({ error: message }, message, true)
      : await registry.refuse(tool, new ToolLimitError(message), args, request.skills)
    if (!neverRan) return outcome
    log.info(request.fields, toolCallLine(tool ?? call.name, args))
    log.info(request.fields, toolResultLine(outcome, hasCallers(request.skills)))
    observeRefusal(call, tool, outcome, request)
    return outcome
  }

  function observeRefusal (
    { id, args }: ToolCall, tool: Tool | undefined, outcome: ToolOutcome, { skills, dialect = '', origin }: CallRun
  ): void {
    observer?.onCall({ tool, args: isJsonObject(args) ? args : {}, skills, dialect, id, origin })?.('refused', outcome)
  }
}

/** No UTF-16 unit takes more bytes in UTF-8. */
const MAX_BYTES_PER_UNIT = 3

/** The result as JSON text, or undefined when it has more bytes than are left. */
function writeWithin (
  budget: number, dialect: Dialect, call: ToolCall, { outcome, refused }: CallEnd
): string | undefined {
  if (outcome.text.length >= budget) return undefined
  const result = refused && dialect.writeRefusal !== undefined
    ? dialect.writeRefusal(call, outcome.text)
    : dialect.writeResult(call, outcome)
  return result.length * MAX_BYTES_PER_UNIT > budget && Buffer.byteLength(result) > budget ? undefined : result
}
