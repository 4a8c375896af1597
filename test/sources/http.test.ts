import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { readPackageVersion } from '../../src/config/files/version.ts'
import { proxyOf } from '../../src/sources/http/proxy.ts'
import { tarGzOf } from '../helper/archives.ts'
import { startServer } from '../helper/fault-server.ts'
import { skillText } from '../helper/skills.ts'
import { openSources, sourceAt } from '../helper/sources.ts'

/** A proxy that answers itself, and the requests that it got. */
async function startProxy (t: Test, body: Buffer) {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    response.end(body)
  }).on('connect', (request: IncomingMessage, socket) => {
    requests.push(request)
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return { url: `http://user:p%40ss@127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}

t.test('K83: archives, buckets, registries and sites are asked through the proxy of the environment', async (t) => {
  const proxy = await startProxy(t, await tarGzOf([['a/SKILL.md', skillText('a')]]))
  const server = await startServer(t, (_, response) => { response.writeHead(404).end() })
  const through = await openSources(t, [sourceAt(`${server.url}/a.tgz`)], { env: { http_proxy: proxy.url } })
  t.match(through.status(), { state: 'ok', skills: 1 })
  t.match(proxy.requests[0], {
    url: `${server.url}/a.tgz`,
    headers: { host: new URL(server.url).host, 'proxy-authorization': `Basic ${Buffer.from('user:p@ss').toString('base64')}` }
  })
  t.equal(server.requests.length, 0)
  await through.sources.close()

  const addresses = ['https://a.example/a.zip', 's3://bucket/a', 'oci://a.example/a:1', 'well-known+https://a.example']
  const { sources } = await openSources(t, addresses.map((address, index) => sourceAt(address, { name: `s${index}` })), {
    env: { HTTPS_PROXY: proxy.url }, stateDir: t.testdir()
  })
  for (const { error } of sources.status) {
    t.match(error, { code: 'unreachable', message: 'the proxy does not connect to the host: it answers with status 403' })
  }
  t.match(new Set(proxy.requests.slice(1).map(({ method, url }) => `${method ?? ''} ${url ?? ''}`)), new Set([
    'CONNECT a.example:443', 'CONNECT s3.us-east-1.amazonaws.com:443'
  ]))
})

t.test('K83: which proxy counts for an address', async (t) => {
  for (const [address, env, expected] of [
    ['https://a.example', { HTTPS_PROXY: 'http://p:1' }, 'http://p:1/'], ['https://a.example', { https_proxy: 'p:1', HTTPS_PROXY: 'http://q:1' }, 'http://p:1/'],
    ['http://a.example', { HTTPS_PROXY: 'http://p:1' }, undefined], ['http://a.example', { ALL_PROXY: 'http://p:1' }, 'http://p:1/'],
    ['https://a.example', { ALL_PROXY: 'http://p:1', NO_PROXY: 'b.example, .example' }, undefined], ['https://a.example', { ALL_PROXY: 'http://p:1', no_proxy: '*' }, undefined],
    ['https://a.example', { ALL_PROXY: 'http://p:1', NO_PROXY: 'a.example:8443' }, 'http://p:1/'], ['https://a.example:8443', { ALL_PROXY: 'http://p:1', NO_PROXY: 'a.example:8443' }, undefined],
    ['https://ba.example', { ALL_PROXY: 'http://p:1', NO_PROXY: 'a.example' }, 'http://p:1/'], ['https://a.example', {}, undefined]
  ] as const) t.equal(proxyOf(new URL(address), env)?.href, expected, `${address} ${JSON.stringify(env)}`)
  t.throws(() => proxyOf(new URL('https://a.example'), { HTTPS_PROXY: 'socks5://p:1' }), { code: 'unreachable' })
})

t.test('K83: requests name the service, and a refusal without credentials is called what it is', async (t) => {
  const server = await startServer(t, (_, response) => { response.writeHead(403).end() })
  const { sources, status } = await openSources(t, [sourceAt(`${server.url}/a.tgz`)])
  t.equal(server.requests[0]?.headers['user-agent'], `skillserve/${readPackageVersion()}`)
  t.match(status(), { error: { message: 'the host refuses the request (403), and no credentials are configured' } })
  server.answer = (_, response) => { response.writeHead(401).end() }
  await sources.sync()
  t.match(status(), { error: { message: 'the host asks for credentials, and none are configured' } })
})
