import { MAX_LOG_LINE_CHARACTERS } from '../limits.ts'
import { maskSecrets, quoteJson } from '../../core/shared/text.ts'
import type { Tool, ToolArguments, ToolOutcome } from '../tool.ts'

/** A logger for the lines of tool calls: pino's, or any other. */
export interface CallLogger {
  info (fields: object, message: string): void
}

/** Longest name of a tool or argument in a line, quotes included, in characters. It leaves room for a value. */
const MAX_LOGGED_NAME_CHARACTERS = 64

const ELLIPSIS = '…'

/** The end of a line that has no room for the next argument. */
const REST = `, ${ELLIPSIS})`

/** An argument's name that needs no quotes. */
const PLAIN_NAME = /^\w{1,64}$/

/**
 * `[Tool Call] name(key="value", …)`, at most MAX_LOG_LINE_CHARACTERS long.
 * @param tool a tool, or the unknown name that was called: it comes from the caller, and is quoted
 */
export function toolCallLine (tool: Tool | string, args: ToolArguments): string {
  let line = `[Tool Call] ${typeof tool === 'string' ? quoteWithin(tool, MAX_LOGGED_NAME_CHARACTERS) : tool.name}(`
  let separator = ''
  // Keys and not entries: only the first few of perhaps 100,000 arguments have room.
  for (const key of Object.keys(args)) {
    const head = `${separator}${PLAIN_NAME.test(key) ? key : quoteWithin(key, MAX_LOGGED_NAME_CHARACTERS)}=`
    const room = MAX_LOG_LINE_CHARACTERS - line.length - head.length - REST.length
    const shown = describeValue(args[key], room)
    if (shown.length > room) return `${line}${separator}${ELLIPSIS})`
    line += head + shown
    separator = ', '
  }
  return `${line})`
}

/** Calls for an unchanged document share its outcome, and so the line. */
const resultLines = new WeakMap<ToolOutcome, string>()

/** `[Tool Result] "first characters"`, marked when it is an error; at most MAX_LOG_LINE_CHARACTERS long. */
export function toolResultLine (outcome: ToolOutcome): string {
  let line = resultLines.get(outcome)
  if (line === undefined) {
    const head = outcome.isError ? '[Tool Result] error ' : '[Tool Result] '
    line = head + quoteWithin(outcome.text, MAX_LOG_LINE_CHARACTERS - head.length)
    resultLines.set(outcome, line)
  }
  return line
}

/** Arrays and objects are shown by their kind only: a caller may nest as much in them as a body holds. */
function describeValue (value: unknown, room: number): string {
  if (typeof value === 'string') return quoteWithin(value, room)
  if (Array.isArray(value)) return `[${ELLIPSIS}]`
  if (typeof value === 'object' && value !== null) return `{${ELLIPSIS}}`
  return String(value)
}

/**
 * Text as a JSON string of at most `room` characters. The text is cut before it is quoted: no cut falls into an escape,
 * and a long text costs no more than its line.
 */
function quoteWithin (text: string, room: number): string {
  const longest = Math.max(0, room - 2)
  let quoted = quoteMasked(text.slice(0, longest + 1))
  if (quoted.length <= room) return quoted
  for (let length = longest - ELLIPSIS.length; length > 0; length = Math.floor(length * room / (quoted.length + 1))) {
    quoted = quoteMasked(text.slice(0, length) + ELLIPSIS)
    if (quoted.length <= room) return quoted
  }
  return `"${ELLIPSIS}"`
}

function quoteMasked (text: string): string {
  return quoteJson(maskSecrets(text))
}
