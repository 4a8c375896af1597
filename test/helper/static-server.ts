/** A static server as plain as they come: files of a folder, with the types that the manifest of an export names. */

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

export interface StaticServer {
  readonly url: string
  /** Paths that were asked for and are not there. */
  readonly missing: readonly string[]
  close (): void
}

export async function serveFolder (folder: string): Promise<StaticServer> {
  const { files } = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as { readonly files: ReadonlyArray<{ readonly path: string, readonly content_type: string }> }
  const types = new Map(files.map((file) => [file.path, file.content_type]))
  const missing: string[] = []
  const server = createServer((request, response) => {
    const path = decodeURIComponent((request.url ?? '/').slice(1).split('?', 1)[0] ?? '')
    const type = types.get(path)
    if (type === undefined) {
      missing.push(path)
      response.writeHead(404).end()
    } else {
      response.writeHead(200, { 'content-type': type }).end(readFileSync(join(folder, path)))
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    missing,
    close: () => {
      server.closeAllConnections()
      server.close()
    }
  }
}
