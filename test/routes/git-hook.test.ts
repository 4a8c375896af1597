import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { buildService } from '../helper/build.ts'
import { openRaw, rawRequest, request } from '../helper/raw-http.ts'

t.test('K84: a signed hook asks for a check of the sources with its secret', async (t) => {
  const asked: string[] = []
  const sources = {
    status: [],

    hooks: ['one', 'two', 'missing'].map((name) =>
      ({ secretFile: join(t.testdirName, name), checkSoon: () => { asked.push(name) } }))
  }
  const { app } = await buildService(t,
    { options: { sources, siblings: { one: 'secret-one\n', two: 'secret-two\n' } } })
  const body = JSON.stringify({ ref: 'refs/heads/main', repository: { url: 'https://elsewhere.example' } })
  const sign = (secret: string, text = body): string => createHmac('sha256', secret).update(text).digest('hex')
  const send = async (headers: Record<string, string>, payload = body): Promise<number> =>
    (await app.inject({
      method: 'POST',
      url: '/hooks/git',
      headers: { host: 'localhost', 'content-type': 'application/json', ...headers },
      payload
    })).statusCode

  t.equal(await send({ 'x-hub-signature-256': `sha256=${sign('secret-one')}` }), 200)
  t.equal(await send({ 'x-gitea-signature': sign('secret-two') }), 200)
  t.equal(await send({ 'x-gitlab-token': 'secret-one' }), 200)
  t.equal(await send({ 'x-forgejo-signature': sign('secret-one') }), 200)
  t.equal(await send({ 'x-hub-signature': `sha256=${sign('secret-two')}` }), 200, 'as Bitbucket names it')
  t.equal(
    await send({ 'x-hub-signature-256': `sha256=${sign('secret-two', 'no json')}`, 'content-type': 'text/plain' },
      'no json'), 200)
  t.strictSame(asked, ['one', 'two', 'one', 'one', 'two', 'two'])
  for (const headers of [{}, { 'x-hub-signature-256': sign('secret-one') }, {
    'x-hub-signature-256': `sha256=${sign('other')}`
  }, {
    'x-gitlab-token': ''
  }, {
    'x-gitea-signature': sign('')
  }]) {
    t.equal(await send(headers as Record<string, string>), 403)
  }
  t.equal(asked.length, 6)
})

t.test('K84: a signed hook that waits for 100 Continue may have any type, charset and coding, as one that ' +
  'does not wait', async (t) => {
  const sources = {
    status: [], hooks: [{ secretFile: join(t.testdirName, 'one'), checkSoon () {} }]
  }
  const { url, post } = await buildService(t, { options: { sources, siblings: { one: 'secret-one\n' } } })
  const body = 'payload=%7B%7D'
  const signature = `X-Hub-Signature-256: sha256=${createHmac('sha256', 'secret-one').update(body).digest('hex')}`
  const send = async (...headers: readonly string[]): Promise<number> => {
    const connection = await openRaw(url)
    t.teardown(() => { connection.destroy() })
    connection.send(request('POST', '/hooks/git', { headers: ['Expect: 100-continue', ...headers] }))
    while (connection.received.length === 0) await once(connection.socket, 'data')
    return (await connection.send(body).response()).status
  }

  const length = `Content-Length: ${body.length}`
  t.equal((await post('/hooks/git', {}, { 'content-type': 'x' })).status, 415,
    'no media type at all, as the document says')
  for (const headers of [
    ['Content-Type: application/x-www-form-urlencoded'], ['Content-Type: application/json; charset=latin1'],
    ['Content-Type: application/json', 'Content-Encoding: gzip'], []
  ]) t.equal(await send(...headers, length, signature), 200, headers.join())
  t.equal(await send('Content-Type: application/x-www-form-urlencoded', length), 403)
  t.equal(await send('Content-Type: application/x-www-form-urlencoded', `Content-Length: ${10 * 1_048_576 + 1}`,
    signature), 413)
})

t.test('K84: a hook of more than 10 MiB is 413, whatever it announces, and the service goes on', async (t) => {
  const { url, logged, log } = await buildService(t)
  const size = 10 * 1_048_576 + 1
  for (const [framing, body] of [
    [`Content-Length: ${size}`, Buffer.alloc(size)],
    ['Transfer-Encoding: chunked',
      Buffer.concat([Buffer.from(`${size.toString(16)}\r\n`), Buffer.alloc(size), Buffer.from('\r\n0\r\n\r\n')])]
  ] as const) {
    t.match(await rawRequest(url, request('POST', '/hooks/git', { headers: [framing], body })),
      { status: 413, headers: { connection: 'close' } })
  }
  await logged(({ code }) => code === 'body_too_large')
  t.equal((await rawRequest(url, request('POST', '/hooks/git'))).status, 403, 'without a webhook every hook is refused')
  t.strictSame(log().filter(({ level }) => Number(level) >= 50), [])
})

t.test('K84: a hook whose sender leaves in the middle is no error of the service', async (t) => {
  const { url, log, logged } = await buildService(t)
  const connection = await openRaw(url)
  const done = logged(({ msg }) => msg === 'request aborted')
  connection.send(request('POST', '/hooks/git', { headers: ['Content-Length: 100'], body: 'the beginning' }))
  // Behind the request, its answer tells that both have been read.
  await rawRequest(url, request('GET', '/livez'))
  connection.destroy()
  await done
  await rawRequest(url, request('GET', '/livez'))
  t.strictSame(log().filter(({ level }) => Number(level) >= 50), [])
})
