import { Type } from '@sinclair/typebox'
import { own } from '../../../core/shared/json.ts'
import { type Dialect, readId, readParts } from '../dialect.ts'

/** JSON-RPC error codes. The specification of `tools/call` asks for the second one if a tool is unknown. */
const INVALID_REQUEST = -32_600
const INVALID_PARAMS = -32_602

/** Hints for MCP clients: all tools only read, and only what the service has. */
const ANNOTATIONS = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false } as const

const VersionSchema = Type.Literal('2.0')
const AnswerIdSchema = Type.Unsafe<string | number | null>({ type: ['string', 'integer', 'number', 'null'] })

/** MCP `tools/call`. Errors that a model can correct are results with `isError`; unknown tools are JSON-RPC errors. */
export const mcp = {
  name: 'mcp',
  title: 'MCP tools/call',

  resultSchema: Type.Object({
    jsonrpc: VersionSchema,
    id: AnswerIdSchema,
    result: Type.Object({
      resultType: Type.Literal('complete'),
      content: Type.Array(Type.Object({ type: Type.Literal('text'), text: Type.String() })),
      isError: Type.Boolean()
    })
  }),
  refusalSchema: Type.Object({
    jsonrpc: VersionSchema,
    id: AnswerIdSchema,
    error: Type.Object({ code: Type.Integer(), message: Type.String() })
  }),
  example: {
    jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get_skill', arguments: { skill_name: 'calculator' } }
  },

  recognise: (value) => own(value, 'jsonrpc') === '2.0' && own(value, 'method') === 'tools/call',

  explainMarked: (value) =>
    own(value, 'jsonrpc') === undefined ? undefined : 'The only JSON-RPC 2.0 method here is tools/call',

  isAnswer: (value) =>
    own(value, 'jsonrpc') === '2.0' && (Object.hasOwn(value, 'result') || Object.hasOwn(value, 'error')),

  readCall (value) {
    const params = own(value, 'params')
    return { ...readParts(params, 'name', 'arguments'), id: readId(own(value, 'id')) }
  },

  // A JSON-RPC response always has an id: `null` when the request had none.
  writeResult: ({ id = null }, { text, isError }) =>
    ({ jsonrpc: '2.0', id, result: { resultType: 'complete', content: [{ type: 'text', text }], isError } }),

  writeRefusal: ({ id = null, problem }, message) =>
    ({ jsonrpc: '2.0', id, error: { code: problem === undefined ? INVALID_PARAMS : INVALID_REQUEST, message } }),

  writeDefinitions: (tools) => tools.map(({ name, currentDescription, parameters }) => ({
    name,
    description: currentDescription,
    inputSchema: {
      ...parameters,
      required: [...parameters.required],
      ...Object.keys(parameters.properties).length === 0 && { additionalProperties: false }
    },
    annotations: ANNOTATIONS
  }))
} as const satisfies Dialect
