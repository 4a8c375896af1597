import { MAX_LOG_LINE_CHARACTERS } from '../limits.ts'
import { printable } from '../../core/shared/text.ts'
import { maskSecrets } from '../../secrets.ts'
import type { View } from '../../core/view.ts'
import type { Tool, ToolArguments, ToolOutcome } from '../tool.ts'

/** Logger of the lines of tool calls, such as pino's. */
export interface CallLogger {
  info (fields: object, message: string): void
}

/** Arguments that a log line shows; there is no room for more. */
const MAX_ARGUMENTS = 32

/** Names of arguments that a log line shows without quotes. */
const PLAIN_NAME = /^\w{1,64}$/

/**
 * Formats the log line of a call: `[Tool Call] name(key="value", …)`, cut at MAX_LOG_LINE_CHARACTERS.
 * @param tool the tool, or the unknown name that the caller sent, which is quoted
 */
export function toolCallLine (tool: Tool | string, args: ToolArguments): string {
  const keys = Object.keys(args).slice(0, MAX_ARGUMENTS)
  const shown = keys.map((key) => `${PLAIN_NAME.test(key) ? key : quote(key)}=${describeValue(args[key])}`)
  return cut(`[Tool Call] ${typeof tool === 'string' ? quote(tool) : tool.name}(${shown.join(', ')})`)
}

/**
 * Formats the line of a result: `[Tool Result] "first characters"`, cut at MAX_LOG_LINE_CHARACTERS.
 * @param hasCallers whether only some callers may read the skills: the line then has the size of the text instead
 */
export function toolResultLine ({ isError, text }: ToolOutcome, hasCallers: boolean): string {
  return cut(`[Tool Result] ${isError ? 'error ' : ''}${hasCallers ? `${text.length} characters` : quote(text)}`)
}

export function hasCallers ({ scope }: Pick<View, 'scope'>): boolean {
  return scope !== ''
}

/** Shows only the kind of arrays and objects, which may be deeply nested. */
function describeValue (value: unknown): string {
  if (typeof value === 'string') return quote(value)
  if (Array.isArray(value)) return '[…]'
  return typeof value === 'object' && value !== null ? '{…}' : String(value)
}

/** Quotes the beginning of a text as a JSON string, read far enough to mask a secret that the line would cut. */
function quote (text: string): string {
  return printable(JSON.stringify(maskSecrets(text.slice(0, 2 * MAX_LOG_LINE_CHARACTERS))))
}

function cut (line: string): string {
  return line.length > MAX_LOG_LINE_CHARACTERS ? `${line.slice(0, MAX_LOG_LINE_CHARACTERS - 1)}…` : line
}
