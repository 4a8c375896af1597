import { isJSONRPCRequest, ProtocolErrorCode, specTypeSchemas, type StandardSchemaV1Sync } from '@modelcontextprotocol/server'
import { MAX_LOG_LINE_CHARACTERS } from '../tools/limits.ts'
import { MAX_FOLLOWED_FILES } from './limits.ts'

/** The requests of the specification that this door answers. Methods of the Skills extension have schemas of their own. */
const SCHEMAS = new Map(Object.entries({
  initialize: specTypeSchemas.InitializeRequest,
  ping: specTypeSchemas.PingRequest,
  'tools/list': specTypeSchemas.ListToolsRequest,
  'tools/call': specTypeSchemas.CallToolRequest,
  'prompts/list': specTypeSchemas.ListPromptsRequest,
  'prompts/get': specTypeSchemas.GetPromptRequest,
  'resources/list': specTypeSchemas.ListResourcesRequest,
  'resources/templates/list': specTypeSchemas.ListResourceTemplatesRequest,
  'resources/read': specTypeSchemas.ReadResourceRequest,
  'resources/subscribe': specTypeSchemas.SubscribeRequest,
  'resources/unsubscribe': specTypeSchemas.UnsubscribeRequest
}))

/** Parameters of the methods of the Skills extension, which the SDK does not know. Its `fromJsonSchema` would set up an Ajv, for 20 ms. */
export const EXTENSION_PARAMS = {
  page: specTypeSchemas.PaginatedRequestParams,
  skill: specTypeSchemas.ResourceRequestParams,
  folder: both(specTypeSchemas.ResourceRequestParams, specTypeSchemas.PaginatedRequestParams)
} as const

const EXTENSION_SCHEMAS = new Map(Object.entries({
  'skills/list': EXTENSION_PARAMS.page,
  'skills/get': EXTENSION_PARAMS.skill,
  'resources/directory/read': EXTENSION_PARAMS.folder
}))

/**
 * The answer to a request whose parameters do not fit: -32602 with one sentence, as JSON-RPC 2.0 (5.1) has it. The SDK
 * answers -32603 with the whole list of its validator's issues. Undefined for every other message.
 */
export function refuseParams (message: unknown): Response | undefined {
  if (!isJSONRPCRequest(message)) return undefined
  const { id, method, params = {} } = message
  const issue = (SCHEMAS.get(method)?.['~standard'].validate(message) ?? EXTENSION_SCHEMAS.get(method)?.['~standard'].validate(params))?.issues?.[0]
  if (issue === undefined) return undefined
  return invalidParams(id, `Invalid params for ${method}: ${issue.path?.map(String).join('.')}: ${issue.message}`.slice(0, MAX_LOG_LINE_CHARACTERS))
}

/** The answer to a stream that would follow too many files; undefined for every other message. */
export function refuseSubscriptions (message: unknown, uris: readonly string[]): Response | undefined {
  if (uris.length <= MAX_FOLLOWED_FILES || !isJSONRPCRequest(message)) return undefined
  return invalidParams(message.id, `One stream follows at most ${MAX_FOLLOWED_FILES} resources, not ${uris.length}`)
}

function invalidParams (id: string | number, message: string): Response {
  return Response.json({ jsonrpc: '2.0', id, error: { code: ProtocolErrorCode.InvalidParams, message } })
}

/** What fits both schemas: the members of both, since each drops the others'. */
function both<First extends object, Second extends object> (first: StandardSchemaV1Sync<unknown, First>, second: StandardSchemaV1Sync<unknown, Second>): StandardSchemaV1Sync<unknown, First & Second> {
  return {
    '~standard': {
      version: 1,
      vendor: 'skillserve',
      validate (value) {
        const one = first['~standard'].validate(value)
        if (one.issues !== undefined) return one
        const other = second['~standard'].validate(value)
        return other.issues === undefined ? { value: { ...one.value, ...other.value } } : other
      }
    }
  }
}
