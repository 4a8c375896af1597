import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readBody } from '../../src/sources/http/body.ts'
import { send } from '../../src/sources/http/http-client.ts'

/** An https host on loopback, and a proxy that connects to it whatever host is asked for. */
async function startHosts (t: Test) {
  const folder = t.testdir()
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
    '-days', '2',
    '-subj', '/CN=a.example', '-keyout', key, '-out', cert], { stdio: 'ignore' })
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
      title: 'an address',
      url: 'https://192.0.2.1/x',
      env: { HTTPS_PROXY: proxy },
      connect: '192.0.2.1:443',
      host: '192.0.2.1',
      servername: false
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
      title: 'NO_PROXY with the port',
      url: 'https://a.invalid:8443/x',
      env: { HTTPS_PROXY: proxy, NO_PROXY: 'a.invalid:8443' },
      error: { code: 'unreachable', message: /cannot be resolved/ }
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
