import { isJSONRPCRequest, ProtocolErrorCode, specTypeSchemas } from '@modelcontextprotocol/server'
import { MAX_LOG_LINE_CHARACTERS } from '../tools/limits.ts'

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

/**
 * The answer to a request whose parameters do not fit: -32602 with one sentence, as JSON-RPC 2.0 (5.1) has it. The SDK
 * answers -32603 with the whole list of its validator's issues. Undefined for every other message.
 */
export function refuseParams (message: unknown): Response | undefined {
  if (!isJSONRPCRequest(message)) return undefined
  const { id, method } = message
  const issue = SCHEMAS.get(method)?.['~standard'].validate(message).issues?.[0]
  if (issue === undefined) return undefined
  const reason = `Invalid params for ${method}: ${issue.path?.map(String).join('.')}: ${issue.message}`.slice(0, MAX_LOG_LINE_CHARACTERS)
  return Response.json({ jsonrpc: '2.0', id, error: { code: ProtocolErrorCode.InvalidParams, message: reason } })
}
