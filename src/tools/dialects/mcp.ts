import { own } from '../json-object.ts'
import type { ToolOutcome } from '../tool.ts'
import { describeTool, type Dialect, readId, readName, type ToolCall } from './dialect.ts'

/** JSON-RPC's codes: the specification of `tools/call` asks for the second one when a tool is unknown. */
const INVALID_REQUEST = -32_600
const INVALID_PARAMS = -32_602

/** Of `_meta`: the revision of the skill that an answer belongs to. */
export const REVISION_KEY = 'skillserve/revision'

/** MCP: a JSON-RPC request `tools/call`. What a model can correct is a result with `isError`, an unknown tool is an error. */
export const mcp = {
  name: 'mcp',

  recognise: (value) => own(value, 'jsonrpc') === '2.0' && own(value, 'method') === 'tools/call',

  readCall (value) {
    const params = own(value, 'params')
    return { id: readId(own(value, 'id')), name: readName(own(params, 'name')), args: own(params, 'arguments') }
  },

  writeResult: (call, outcome) => envelope(call,
    `"result":{"resultType":"complete","content":[{"type":"text","text":${outcome.quotedText}}],"isError":${outcome.isError}${meta(outcome)}}`),

  writeRefusal (call, message) {
    const code = call.problem === undefined ? INVALID_PARAMS : INVALID_REQUEST
    return envelope(call, `"error":{"code":${code},"message":${JSON.stringify(message)}}`)
  },

  writeDefinitions: (tools) => tools.map((tool) => ({
    name: tool.name,
    description: describeTool(tool),
    inputSchema: tool.parameters,
    annotations: { readOnlyHint: true }
  }))
} satisfies Dialect

/** The revision of the skill that a result is from, where MCP has room for it. */
function meta ({ revision }: ToolOutcome): string {
  return revision === undefined ? '' : `,"_meta":{"${REVISION_KEY}":${JSON.stringify(revision)}}`
}

/** A JSON-RPC response always has an id: `null` when none could be read. */
function envelope ({ id }: ToolCall, member: string): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id ?? null)},${member}}`
}
