import { fastify } from 'fastify'
import t, { type Test } from 'tap'
import { security, type SecurityOptions } from '../../src/plugins/security.ts'
import { listenWithPlugins } from '../helper/plugin-app.ts'
import { rawRequest, request, type RequestHead } from '../helper/raw-http.ts'

/** Starts an app and returns what it says to a `Host`: `200`, or status and code. */
async function hostCheck (t: Test, options: Partial<SecurityOptions>): Promise<(head: RequestHead) => Promise<string>> {
  const { url } = await listenWithPlugins(t, (app) => { app.get('/ok', () => 'ok') }, { security: options })
  return async (head) => {
    const response = await rawRequest(url, request('GET', '/ok', head))
    return response.status === 200 ? '200' : `${response.status} ${(response.json() as { code: string }).code}`
  }
}

t.test('a loopback binding', async (t) => {
  const check = await hostCheck(t, { loopbackOnly: true })

  t.test('K55: loopback names and addresses are served, with any port and in any case', async (t) => {
    for (const host of ['localhost', 'LOCALHOST:8080', '127.0.0.1', '127.0.0.1:9', '[::1]', '[::1]:8080', '127.1.2.3', '127.255.255.255', 'localhost:', '127.1', '0x7f.1', '2130706433']) {
      t.equal(await check({ host }), '200', host)
    }
  })

  t.test('K55: every other name is 403 host_not_allowed', async (t) => {
    for (const host of [
      'evil.example', '127.0.0.1.evil.example', 'localhost.evil.example', 'evil.example:8080', 'localhost.',
      '127.0.0.256', '0.0.0.0', '[::]', '::1', '[::ffff:127.0.0.1]', '192.168.0.1', 'a b', '', 'localhost evil.example', 'localhost@evil.example',
      'localhost:80:80', 'localhost:x', 'localhost/', '%6cocalhost', 'xlocalhost', 'lo\xe7alhost'
    ]) t.equal(await check({ host }), '403 host_not_allowed', host)
  })

  t.test('no Host, or two of them, is 400', async (t) => {
    t.equal(await check({ host: null }), '400 bad_request')
    t.equal(await check({ host: 'localhost' }), '200')
    t.equal(await check({ host: 'localhost', headers: ['Host: evil.example'] }), '400 bad_request', 'also behind the name that was accepted last')
    t.equal(await check({ headers: ['Host: localhost'] }), '400 bad_request')
    t.equal(await check({ headers: ['hOST: evil.example'] }), '400 bad_request')
  })

  t.test('K55: HTTP/1.0 without Host is refused, with one it is checked', async (t) => {
    t.equal(await check({ version: '1.0', host: null }), '403 host_not_allowed')
    t.equal(await check({ version: '1.0' }), '200')
    t.equal(await check({ version: '1.0', host: 'evil.example' }), '403 host_not_allowed')
  })

  t.test('what a proxy would say is not believed', async (t) => {
    t.equal(await check({ host: 'evil.example', headers: ['X-Forwarded-Host: localhost', 'Forwarded: host=localhost'] }), '403 host_not_allowed')
    t.equal(await check({ headers: ['X-Forwarded-Host: evil.example'] }), '200')
  })
})

t.test('K55: the check comes before the route, the method and the body', async (t) => {
  const { url } = await listenWithPlugins(t, (app) => { app.post('/ok', () => 'ok') })
  for (const bytes of [
    request('GET', '/nowhere', { host: 'evil.example' }),
    request('DELETE', '/ok', { host: 'evil.example' }),
    request('POST', '/ok', { host: 'evil.example', headers: ['Content-Length: 1000000000'] })
  ]) {
    const response = await rawRequest(url, bytes)
    t.equal(response.status, 403)
    t.match(response.json(), { code: 'host_not_allowed', detail: /ALLOWED_HOSTS/ })
  }
})

t.test('K55: another binding without a list serves any host that is one', async (t) => {
  const check = await hostCheck(t, { loopbackOnly: false })
  for (const host of ['evil.example', 'localhost', '10.0.0.1:8080', '[fe80::1]:80', 'a_b']) t.equal(await check({ host }), '200', host)
  for (const host of ['a b', '', 'a:b', '[x]', '[127.0.0.1]', 'a/b', '[::1']) t.equal(await check({ host }), '400 bad_request', host)
  t.equal(await check({ host: null, version: '1.0' }), '200')
  t.equal(await check({ host: null }), '400 bad_request')
})

t.test('K55: the list is exact, case and port do not count on either side', async (t) => {
  const check = await hostCheck(t, { loopbackOnly: false, allowedHosts: ['a.Example', 'b.example:443', '[2001:DB8::1]', '2001:db8::2'] })
  for (const host of ['a.example', 'A.EXAMPLE', 'a.example:443', 'B.example', 'b.example:80', '[2001:db8::1]:8080', '[2001:db8::2]']) t.equal(await check({ host }), '200', host)
  for (const host of ['c.example', 'a.example.', 'x.a.example', 'localhost', '127.0.0.1', '']) t.equal(await check({ host }), '403 host_not_allowed', host)
  t.equal(await check({ host: null, version: '1.0' }), '403 host_not_allowed')
})

t.test('on a loopback binding the list adds to the loopback names', async (t) => {
  const check = await hostCheck(t, { loopbackOnly: true, allowedHosts: ['a.example'] })
  t.equal(await check({ host: 'a.example:80' }), '200')
  t.equal(await check({}), '200')
  t.equal(await check({ host: 'evil.example' }), '403 host_not_allowed')
})

t.test('an entry that is no host fails the start', async (t) => {
  for (const entry of ['', 'a b', 'http://a.example', '[a.example]', '*']) {
    await t.rejects(async () => { await fastify().register(security, { loopbackOnly: false, allowedHosts: [entry] }) }, { message: `Not a host name: '${entry}'` })
  }
})

t.test('no answer can be taken for another type, errors written by hand included', async (t) => {
  const { url } = await listenWithPlugins(t, (app) => { app.get('/ok', () => 'ok') })
  for (const bytes of [request('GET', '/ok'), request('HEAD', '/ok'), request('GET', '/nowhere'), request('GET', '/%zz'), request('GET', '/ok', { host: 'x' }), 'nonsense\r\n\r\n']) {
    const { headers } = await rawRequest(url, bytes)
    t.equal(headers['x-content-type-options'], 'nosniff')
    t.equal(headers['access-control-allow-origin'], undefined)
  }
})
