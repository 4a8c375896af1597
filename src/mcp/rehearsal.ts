import { createMcpHandler, Server } from '@modelcontextprotocol/server'
import { refuseParams } from './params.ts'

const CLIENT = { name: 'skillserve', version: '0' }

/** The first message of a client, by the kind of its protocol revision. */
const FIRST_MESSAGES = {
  legacy: { method: 'initialize', revision: '2025-11-25', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: CLIENT } },
  modern: {
    method: 'server/discover',
    revision: '2026-07-28',
    params: { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientInfo': CLIENT, 'io.modelcontextprotocol/clientCapabilities': {} } }
  }
} as const

export type Era = keyof typeof FIRST_MESSAGES

export const ERAS = Object.keys(FIRST_MESSAGES) as Era[]

/**
 * Answers a first message that nobody has sent, with a server of nothing. The SDK builds its schemas of each kind of revision with the
 * first message of it. That takes half of the time that the first client would wait.
 */
export async function rehearse (era: Era): Promise<Response> {
  const { method, revision, params } = FIRST_MESSAGES[era]
  const body = { jsonrpc: '2.0', id: 1, method, params }
  const handler = createMcpHandler(() => new Server(CLIENT, { capabilities: {} }))
  const request = new Request('http://localhost/mcp', {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', 'mcp-protocol-version': revision, 'mcp-method': method }
  })
  const answer = refuseParams(body) ?? await handler.fetch(request, { parsedBody: body })
  await handler.close()
  return answer
}
