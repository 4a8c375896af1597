import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

export interface FaultServer {
  readonly url: string
  readonly requests: readonly IncomingMessage[]
  answer: (request: IncomingMessage, response: ServerResponse) => void
}

/** A server on loopback whose answers a test changes. */
export async function startServer (t: Test, answer: FaultServer['answer']): Promise<FaultServer> {
  const requests: IncomingMessage[] = []
  const started = { url: '', requests, answer }
  const server = createServer((request, response) => {
    requests.push(request)
    started.answer(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  started.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return started
}
