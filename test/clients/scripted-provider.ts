import { once } from 'node:events'
import { createServer as createHttp } from 'node:http'
import { createServer as createHttp2 } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import type { Test } from 'tap'

export interface ScriptedProvider {
  readonly url: string
  /** The bodies of the requests so far. */
  readonly requests: readonly unknown[]
}

/** Stands in for the API of a provider: gives these answers, one for each request. */
export async function startProvider (t: Test, answers: readonly object[], { http2 = false } = {}): Promise<ScriptedProvider> {
  const requests: unknown[] = []
  async function answer (request: AsyncIterable<Uint8Array>): Promise<string> {
    requests.push(await json(request))
    return JSON.stringify(answers[requests.length - 1] ?? {})
  }
  const head = { 'content-type': 'application/json' }
  const server = http2
    ? createHttp2((request, response) => { void answer(request).then((body) => { response.writeHead(200, head).end(body) }) })
    : createHttp((request, response) => { void answer(request).then((body) => { response.writeHead(200, head).end(body) }) })
  server.listen(0, '127.0.0.1')
  t.teardown(() => { server.close() })
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}
