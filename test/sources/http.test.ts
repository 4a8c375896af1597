import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Environment } from '../../src/config/setting.ts'
import { readPackageVersion } from '../../src/config/files/version.ts'
import { startServer } from '../helper/fault-server.ts'
import { openSources, sourceAt } from '../helper/sources.ts'

/** A proxy that refuses, and the requests that it got. */
async function startProxy (t: Test) {
  const requests: IncomingMessage[] = []
  const server = createServer().on('connect', (request: IncomingMessage, socket) => {
    requests.push(request)
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return { url: `http://user:p%40ss@127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}

t.test('K83: archives, buckets, registries and sites are asked through the proxy of the environment, and loopback is not', async (t) => {
  const proxy = await startProxy(t)
  const server = await startServer(t, (_, response) => { response.writeHead(404).end() })
  const addresses = ['https://a.example/a.zip', 's3://bucket/a', 'oci://a.example/a:1', 'well-known+https://a.example', `${server.url}/a.zip`]
  const open = async (env: Environment, name: string) => await openSources(t, addresses.map((address, index) => sourceAt(address, { name: `s${index}` })), {
    env: { ...env, HTTP_PROXY: proxy.url }, stateDir: join(t.testdirName, name)
  })
  for (const [index, env] of [{ HTTPS_PROXY: proxy.url }, { https_proxy: proxy.url.replace('http://', ''), HTTPS_PROXY: 'http://127.0.0.1:1' }, { ALL_PROXY: proxy.url, no_proxy: 'b.example, 127.0.0.1' }].entries()) {
    const { sources } = await open(env, String(index))
    t.strictSame(sources.status.map(({ error }) => error?.code), ['unreachable', 'unreachable', 'unreachable', 'unreachable', 'not_found'])
    await sources.close()
    t.strictSame(new Set(proxy.requests.map(({ method, url }) => `${method ?? ''} ${url ?? ''}`)), new Set(['CONNECT a.example:443', 'CONNECT s3.us-east-1.amazonaws.com:443']))
    t.ok(proxy.requests.splice(0).every(({ headers }) => headers['proxy-authorization'] === `Basic ${Buffer.from('user:p@ss').toString('base64')}`))
  }
})

t.test('K83: requests name the service, and a refusal without credentials is called what it is', async (t) => {
  const server = await startServer(t, (_, response) => { response.writeHead(403).end() })
  const { sources, status } = await openSources(t, [sourceAt(`${server.url}/a.tgz`)])
  t.equal(server.requests[0]?.headers['user-agent'], `skillserve/${readPackageVersion()}`)
  t.match(status(), { error: { message: 'the host refuses the request (403), and no credentials are configured' } })
  server.answer = (_, response) => { response.writeHead(401).end() }
  await sources.sync()
  t.match(status(), { error: { message: 'the host refuses the request (401), and no credentials are configured' } })
})
