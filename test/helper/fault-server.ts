import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ProcessOwner } from './process.ts'

export interface FaultServer {
  readonly url: string
  readonly requests: readonly IncomingMessage[]
  answer: RequestListener
  readonly server: Server
  close (): void
}

/** A server on loopback whose answers a test changes; the owner's teardown closes it. */
export async function startServer (t: ProcessOwner, answer: RequestListener): Promise<FaultServer> {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    started.answer(request, response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  t.teardown(close)
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const started: FaultServer = { url, requests, answer, server, close }
  return started
}

/** Serves an exported folder with the types that its manifest names. `missing` has the paths that are not there. */
export async function serveFolder (t: ProcessOwner, folder: string): Promise<{
  readonly url: string
  readonly missing: readonly string[]
}> {
  const { files } = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as {
    readonly files: ReadonlyArray<{ readonly path: string, readonly content_type: string }>
  }
  const types = new Map(files.map((file) => [file.path, file.content_type]))
  const missing: string[] = []
  const { url } = await startServer(t, (request, response) => {
    const path = decodeURIComponent((request.url ?? '/').slice(1).split('?', 1)[0] ?? '')
    const type = types.get(path)
    if (type === undefined) missing.push(path)
    if (type === undefined) response.writeHead(404).end()
    else response.writeHead(200, { 'content-type': type }).end(readFileSync(join(folder, path)))
  })
  return { url, missing }
}
