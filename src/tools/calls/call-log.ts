import { MAX_LOG_LINE_CHARACTERS } from '../limits.ts'
import { printable } from '../../core/shared/text.ts'
import { maskSecrets } from '../../secrets.ts'
import type { View } from '../../core/view.ts'
import type { Tool, ToolArguments, ToolOutcome } from '../tool.ts'

/** A logger for the lines of tool calls: pino's, or any other. */
export interface CallLogger {
  info (fields: object, message: string): void
}

/** More arguments have no room in a line. */
const MAX_ARGUMENTS = 32

/** An argument's name that needs no quotes. */
const PLAIN_NAME = /^\w{1,64}$/

/**
 * `[Tool Call] name(key="value", …)`, cut at MAX_LOG_LINE_CHARACTERS.
 * @param tool a tool, or the unknown name that was called: it comes from the caller, and is quoted
 */
export function toolCallLine (tool: Tool | string, args: ToolArguments): string {
  const keys = Object.keys(args).slice(0, MAX_ARGUMENTS)
  const shown = keys.map((key) => `${PLAIN_NAME.test(key) ? key : quote(key)}=${describeValue(args[key])}`)
  return cut(`[Tool Call] ${typeof tool === 'string' ? quote(tool) : tool.name}(${shown.join(', ')})`)
}

/**
 * `[Tool Result] "first characters"`, marked when it is an error and cut at MAX_LOG_LINE_CHARACTERS.
 * @param hasCallers whether only some may read the skills: then the line has the size of the text in its place
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

/** The beginning of a text as a JSON string; a secret in the part that a line shows is whole. */
function quote (text: string): string {
  return printable(JSON.stringify(maskSecrets(text.slice(0, 2 * MAX_LOG_LINE_CHARACTERS))))
}

function cut (line: string): string {
  return line.length > MAX_LOG_LINE_CHARACTERS ? `${line.slice(0, MAX_LOG_LINE_CHARACTERS - 1)}…` : line
}
