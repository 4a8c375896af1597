import type { View } from '../../core/view.ts'
import type { Tool, ToolArguments, ToolOutcome } from '../tool.ts'

/** A call of a tool through any API. */
export interface ObservedCall {
  /** Undefined when no tool has the name of the call. */
  readonly tool: Tool | undefined
  /** Arguments from the caller: read own properties only. */
  readonly args: ToolArguments
  /** View that the call runs on. */
  readonly skills: View
  /** Name of the call's dialect, or of the API: `openai`, `mcp`, `rest`. */
  readonly dialect: string
  /** Id of the call, as the caller sent it. */
  readonly id: string | number | undefined
  /** The request that the call came in. */
  readonly origin: object | undefined
  /** Start of the call, by `performance.now()`. */
  readonly start: number
}

/** How a call ended; `refused` if there is no such tool, or a limit is exceeded. */
export type CallResult = 'ok' | 'error' | 'refused'

export interface ToolObserver {
  /** Is called at the end of each call. */
  onCall (call: ObservedCall, result: CallResult, outcome: ToolOutcome): void
}
