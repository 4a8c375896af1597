import type { View } from '../../core/view.ts'
import type { Tool, ToolArguments, ToolOutcome } from '../tool.ts'

/** A call of a tool through any API. */
export interface ObservedCall {
  /** Undefined when no tool has the name of the call. */
  readonly tool: Tool | undefined
  /** From outside: read own properties only. */
  readonly args: ToolArguments
  /** What the call may see. */
  readonly skills: View
  /** The shape of the call, or the API: `openai`, `mcp`, `rest`. */
  readonly dialect: string
  /** As the caller sent it. */
  readonly id: string | number | undefined
  /** The request that the call came in. */
  readonly origin: object | undefined
  /** When it began, as `performance.now()` has it. */
  readonly start: number
}

/** The outcome of a call. `refused`: no such tool, or past a limit. */
export type CallResult = 'ok' | 'error' | 'refused'

export interface ToolObserver {
  /** A call has ended. */
  onCall (call: ObservedCall, result: CallResult, outcome: ToolOutcome): void
}
