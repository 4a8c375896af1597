import { execFileSync } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type ClientRequest, createServer, type IncomingMessage } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readPackageVersion } from '../../src/operator/package-files.ts'
import { readBody } from '../../src/sources/http/body.ts'
import { isInsideAddress, send } from '../../src/sources/http/http-client.ts'
import { startServer } from '../helper/fault-server.ts'
import { openSources, sourceAt } from '../helper/sources.ts'

/** An https host on loopback, and a proxy that connects to it whatever host is asked for. */
async function startHosts (t: Test) {
  const folder = t.testdir()
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
    '-days', '2', '-subj', '/CN=a.example', '-keyout', key, '-out', cert], { stdio: 'ignore' })
  const requests: IncomingMessage[] = []
  const names: unknown[] = []
  const host = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) }, (request, response) => {
    requests.push(request)
    response.end('{}')
  }).listen(0, '127.0.0.1')
  host.on('secureConnection', ({ servername }) => { names.push(servername) })
  const connects: string[] = []
  const proxy = createServer().on('connect', ({ url = '' }: IncomingMessage, socket) => {
    connects.push(url)
    const upstream = connect(portOf(host), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      upstream.pipe(socket).pipe(upstream)
    })
    for (const each of [socket, upstream]) each.on('error', () => {})
  }).listen(0, '127.0.0.1')
  await Promise.all([once(host, 'listening'), once(proxy, 'listening')])
  t.teardown(() => {
    host.closeAllConnections()
    host.close()
    proxy.close()
  })
  return { connects, requests, names, proxy: `http://127.0.0.1:${portOf(proxy)}` }
}

function portOf (server: { address (): unknown }): number {
  return (server.address() as AddressInfo).port
}

t.test('K83: requests through a proxy are those that the host would get without one', async (t) => {
  const { connects, requests, names, proxy } = await startHosts(t)
  // The certificate of the host is its own. Restored before the next file: each has a process.
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  t.teardown(() => { delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'] })
  const gone = 'http://127.0.0.1:1'
  interface Case {
    readonly title: string
    readonly url: string
    readonly env: Readonly<Record<string, string>>
    readonly connect?: string
    readonly host?: string
    /** The name in TLS; false for none. */
    readonly servername?: string | false
    readonly error?: { readonly code: string, readonly message: string | RegExp }
  }
  const cases: readonly Case[] = [
    {
      title: 'the usual port',
      url: 'https://a.example/x',
      env: { HTTPS_PROXY: proxy },
      connect: 'a.example:443',
      host: 'a.example',
      servername: 'a.example'
    },
    {
      title: 'another port',
      url: 'https://a.example:8443/x',
      env: { ALL_PROXY: proxy },
      connect: 'a.example:8443',
      host: 'a.example:8443',
      servername: 'a.example'
    },
    {
      title: 'an address of IPv6',
      url: 'https://[2001:db8::1]/x',
      env: { HTTPS_PROXY: proxy },
      connect: '[2001:db8::1]:443',
      host: '[2001:db8::1]',
      servername: false
    },
    {
      title: 'NO_PROXY with another port',
      url: 'https://a.example/x',
      env: { HTTPS_PROXY: proxy, NO_PROXY: 'a.example:8443, b.example' },
      connect: 'a.example:443',
      host: 'a.example'
    },
    {
      title: 'NO_PROXY of a domain with the usual port',
      url: 'https://b.a.invalid/x',
      env: { HTTPS_PROXY: proxy, NO_PROXY: '.a.invalid:443' },
      error: { code: 'unreachable', message: /cannot be resolved/ }
    },
    {
      title: 'a proxy that is not there',
      url: 'https://a.example/x',
      env: { HTTPS_PROXY: gone },
      error: { code: 'unreachable', message: 'connection refused by the proxy 127.0.0.1:1' }
    }
  ]
  for (const { title, url, env, connect, host, servername, error } of cases) {
    const signal = AbortSignal.timeout(10_000)
    const asked = send({ url, env, signal }).then(async (answer) => String(await readBody(answer, 100)))
    if (error !== undefined) await t.rejects(asked, error, title)
    else t.equal(await asked, '{}', title)
    t.strictSame(connects.splice(0), connect === undefined ? [] : [connect], title)
    t.equal(requests.splice(0)[0]?.headers.host, host, title)
    const [name] = names.splice(0)
    if (servername !== undefined) t.equal(name, servername, title)
  }
})

t.test('K83: archives, buckets, registries and sites are asked through the proxy of the environment, and ' +
  'loopback is not', async (t) => {
  const requests: IncomingMessage[] = []
  // It refuses.
  const proxy = createServer().on('connect', (request: IncomingMessage, socket) => {
    requests.push(request)
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  t.teardown(() => proxy.close())
  const server = await startServer(t, (_, response) => { response.writeHead(404).end() })
  const addresses = ['https://a.example/a.zip', 's3://bucket/a', 'oci://a.example/a:1', 'well-known+https://a.example',
    `${server.url}/a.zip`]
  // The lower case counts, and the protocol may be missing.
  const env = {
    https_proxy: `user:p%40ss@127.0.0.1:${portOf(proxy)}`,
    HTTPS_PROXY: 'http://127.0.0.1:1',
    HTTP_PROXY: 'http://127.0.0.1:1',
    no_proxy: 'b.example, 127.0.0.1'
  }
  const { sources } = await openSources(t, addresses.map((address, index) => sourceAt(address, { name: `s${index}` })),
    { env, stateDir: join(t.testdir(), 'state') })
  t.strictSame(sources.status.map(({ error }) => error?.code),
    ['unreachable', 'unreachable', 'unreachable', 'unreachable', 'not_found'])
  t.strictSame(new Set(requests.map(({ method, url }) => `${method ?? ''} ${url ?? ''}`)),
    new Set(['CONNECT a.example:443', 'CONNECT s3.us-east-1.amazonaws.com:443']))
  const authorization = `Basic ${Buffer.from('user:p@ss').toString('base64')}`
  t.ok(requests.every(({ headers }) => headers['proxy-authorization'] === authorization))
})

t.test('K83: an address that a server has named does not lead into this network, whatever its ' +
  'name resolves to', async (t) => {
  const server = await startServer(t, (_, response) => { response.end('inside') })
  const { port } = new URL(server.url)
  const signal = AbortSignal.timeout(10_000)
  for (const host of ['127.0.0.1', 'localhost', '[::1]', '[::ffff:127.0.0.1]', '169.254.169.254', '10.0.0.1',
    hostname()]) {
    await t.rejects(send({ url: `http://${host}:${port}/`, signal, env: {}, mayBeInside: false }),
      { code: 'redirected' }, host)
  }
  t.equal(server.requests.length, 0)
  for (const address of ['8.8.8.8', '64:ff9b::808:808', '2606:4700::1', '172.15.0.1', '172.32.0.1', '100.63.0.1',
    '100.128.0.1', '223.0.0.1', '1.0.0.1', '110.0.0.1']) {
    t.notOk(isInsideAddress(address), address)
  }
  const inside = [
    '0.0.0.0', '10.0.0.1', '127.0.0.2', '169.254.0.1', '192.168.0.1', '172.16.0.1', '172.20.0.1', '172.31.0.1',
    '100.64.0.1', '100.70.0.1', '100.100.0.1', '100.127.0.1', '224.0.0.1', '239.0.0.1',
    '255.255.255.255', '::', '::1', '::ffff:10.0.0.1', '::ffff:a00:1', '::FFFF:10.0.0.1', '64:ff9b::a00:1', 'fc00::1',
    'fd00::1', 'fe80::1', 'FE90::1', 'fea0::1', 'feb0::1', 'ff02::1',
    // 6to4, Teredo, benchmarking, documentation, and no address at all.
    '2002:a00:1::', '2001::1', '198.18.0.1', '198.19.255.255', '192.0.2.1', '2001:db8::1', 'fe80::1%eth0', ''
  ]
  for (const address of inside) t.ok(isInsideAddress(address), address)
})

t.test('K83: a host outside of this network does not lead into it by a redirect to itself, although its name ' +
  'resolves to another address by then', async (t) => {
  const server = await startServer(t, (request, response) => {
    if (request.url === '/first') response.writeHead(302, { location: '/second' }).end()
    else response.end('inside')
  })
  const request = { url: `${server.url}/first`, signal: AbortSignal.timeout(10_000), env: {} }
  t.equal((await readBody(await send(request), 10)).toString(), 'inside', 'a host in this network may')
  const showOutside = (message: unknown): void => {
    const { socket } = (message as { readonly request: ClientRequest }).request
    if (socket !== null) Object.defineProperty(socket, 'remoteAddress', { value: '8.8.8.8' })
  }
  subscribe('http.client.request.start', showOutside)
  t.teardown(() => unsubscribe('http.client.request.start', showOutside))
  await t.rejects(send(request), { code: 'redirected', message: 'the host leads to an address inside this network' })
  t.strictSame(server.requests.map(({ url }) => url), ['/first', '/second', '/first'])
})

t.test('K83: requests name the service, and a refusal without credentials is called what it is', async (t) => {
  const server = await startServer(t, (_, response) => { response.writeHead(403).end() })
  const { status } = await openSources(t, [sourceAt(`${server.url}/a.tgz`)])
  t.equal(server.requests[0]?.headers['user-agent'], `skillserve/${readPackageVersion()}`)
  t.match(status(), { error: { message: 'the host refuses the request (403), and no credentials are configured' } })
})
