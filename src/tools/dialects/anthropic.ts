import { own } from '../json-object.ts'
import { describeTool, type Dialect, idMember, readId, readName } from './dialect.ts'

/** Anthropic Messages: a `tool_use` block, answered by a `tool_result` block for the next user message. */
export const anthropic = {
  name: 'anthropic',

  recognise: isToolUse,

  unwrap (value) {
    const content = own(value, 'content')
    const isMessage = own(value, 'role') === 'assistant' || own(value, 'type') === 'message'
    return isMessage && Array.isArray(content) ? content.filter(isToolUse) : undefined
  },

  isContent: (value) => typeof own(value, 'type') === 'string',

  readCall: (value) => ({ id: readId(own(value, 'id')), name: readName(own(value, 'name')), args: own(value, 'input') }),

  writeResult: (call, outcome) =>
    `{"type":"tool_result",${idMember('tool_use_id', call)}"content":${outcome.quotedText},"is_error":${outcome.isError}}`,

  writeDefinitions: (tools) => tools.map((tool) =>
    ({ name: tool.name, description: describeTool(tool), input_schema: tool.parameters }))
} satisfies Dialect

function isToolUse (value: unknown): boolean {
  return own(value, 'type') === 'tool_use'
}
