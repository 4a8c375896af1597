import t from 'tap'
import { listenWithPlugins } from '../../helper/plugin-app.ts'
import { rawRequest, request } from '../../helper/raw-http.ts'

t.test('K55: the authority of an absolute target counts, and Host does not', async (t) => {
  const { url } = await listenWithPlugins(t, (app) => { app.get('/ok', () => 'ok') })
  const ask = async (target: string, host?: string) => (await rawRequest(url, request('GET', target, host === undefined ? {} : { host }))).status
  t.equal(await ask('/ok'), 200)
  for (const target of ['http://localhost/ok', 'HTTP://LOCALHOST:8080/ok', 'http://[::1]/ok', 'https://127.0.0.1/ok']) {
    t.equal(await ask(target), 200, target)
    t.equal(await ask(target, 'evil.example'), 200, `${target} for another Host`)
  }
  for (const target of ['http://evil.example/ok', 'http://evil.example:80/ok', 'http://localhost@evil.example/ok', 'http://user@localhost/ok', 'http://localhost.evil.example/ok', 'http://evil.example?http://localhost/ok']) {
    t.equal(await ask(target), 403, target)
  }
  t.equal(await ask('/ok', 'evil.example'), 403, 'the target of another request opens no door')
  t.equal((await rawRequest(url, request('GET', 'http://localhost/ok', { host: null }))).status, 400)
  t.equal((await rawRequest(url, request('GET', 'http://localhost/ok', { headers: ['Host: localhost'] }))).status, 400)
})

t.test('without a list of hosts an absolute target needs an authority that is one', async (t) => {
  const { url } = await listenWithPlugins(t, (app) => { app.get('/ok', () => 'ok') }, { security: { loopbackOnly: false } })
  t.equal((await rawRequest(url, request('GET', 'http://evil.example/ok'))).status, 200)
  for (const target of ['http:///ok', 'http://a@b/ok', 'http://[x]/ok']) t.match((await rawRequest(url, request('GET', target))).json(), { status: 400, code: /^bad_(?:request|url)$/ }, target)
})
