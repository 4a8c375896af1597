import { own } from '../../core/shared/json.ts'
import { readId, readParts, type ToolCall } from './dialect.ts'

/** OpenAI's function call, which other providers use in their own messages. */
export const FUNCTION_CALL_EXAMPLE = {
  id: 'call_abc123', type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":"calculator"}' }
} as const

/** Error for a call of one of OpenAI's custom tools. */
export const FREE_TEXT = 'A custom tool call carries free text: call the tool as a function with JSON arguments'

export function isFunctionCall (value: unknown): boolean {
  return typeof own(own(value, 'function'), 'name') === 'string'
}

export function readFunctionCall (value: unknown): ToolCall {
  return { ...readParts(own(value, 'function'), 'name', 'arguments'), id: readId(own(value, 'id')) }
}
