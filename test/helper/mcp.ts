import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { Test } from 'tap'

/** How a client finds its revision: `legacy` speaks 2025-11-25, `auto` asks and gets 2026-07-28. */
export type Era = 'legacy' | 'auto'

export const ERAS: readonly Era[] = ['legacy', 'auto']

/** An official client, connected over a real socket; the test's teardown closes it. */
export async function connectClient (t: Test, url: string, era: Era): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: era } })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)))
  t.teardown(() => client.close())
  return client
}

export const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {}
}

export interface Message {
  readonly method: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly id?: number
}

/** A message of revision 2026-07-28 with the headers that belong to it, ready for `fetch`. */
export function modernRequest ({ method, params = {}, id = 1 }: Message,
  headers: Readonly<Record<string, string>> = {}): RequestInit {
  const name = method === 'resources/read' ? params['uri'] : params['name']
  return {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...typeof name === 'string' && { 'mcp-name': name },
      ...headers
    },
    body: JSON.stringify({ jsonrpc: '2.0', id, method, params: { _meta: META, ...params } })
  }
}

/** The message that opens a stream of changes of the list of resources. */
export function listenRequest (headers: Readonly<Record<string, string>> = {}): RequestInit {
  return modernRequest({ method: 'subscriptions/listen', params: { notifications: { resourcesListChanged: true } } },
    headers)
}

/** Any body as a client of the 2025 revisions sends it. */
export function legacyRequest (message: unknown, headers: Readonly<Record<string, string>> = {}): RequestInit {
  return {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: typeof message === 'string' ? message : JSON.stringify(message)
  }
}

/** A message that answers a request, or a problem document. */
export interface Answer {
  readonly id?: unknown
  readonly error?: { readonly code: number, readonly message: string }
  readonly result?: object
  readonly code?: string
}

/** Sends a message, and reads its one answer, as JSON or as a stream of events. */
export async function sendMessage (url: string, init: RequestInit): Promise<{
  readonly status: number, readonly headers: Headers, readonly text: string, readonly body: Answer
}> {
  const response = await fetch(`${url}/mcp`, init)
  const { status, headers } = response
  const text = await response.text()
  const json = /^data: (.*)$/m.exec(text)?.[1] ?? text
  return { status, headers, text, body: json === '' ? {} : JSON.parse(json) as Answer }
}
