import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import t from 'tap'
import { observeReads } from '../../src/observe/metrics/skill-reads.ts'
import { buildAudited } from '../helper/audited.ts'
import { listenRequest } from '../helper/mcp.ts'
import { openRaw, request } from '../helper/raw-http.ts'
import { until } from '../helper/skills.ts'

const STREAM = { accept: 'text/event-stream' }
const LISTEN = listenRequest()

for (const [name, path, init, door] of [
  ['GET /events', '/events', { headers: STREAM }, 'rest'],
  ['GET /mcp', '/mcp', { headers: STREAM }, 'mcp/legacy'],
  ['subscriptions/listen', '/mcp', LISTEN, 'mcp/modern']
] as const) {
  t.test(`K73: ${name} leaves its line when the stream opens, and none when it ends`, async (t) => {
    const { app, url, next, text, audit } = await buildAudited(t)
    const gone = new AbortController()
    t.teardown(() => { gone.abort() })
    const response = await fetch(`${url}${path}`, { ...init, signal: gone.signal })
    t.equal(response.status, 200)
    t.match(await next(1), [{ event: 'events.open', outcome: 'success', door, principal: { kind: 'anonymous' }, source: { peer: '127.0.0.1' }, reqId: String }])

    gone.abort()
    await t.rejects(response.text())
    // Every response has closed then.
    await app.close()
    await audit.close()
    t.equal(text(), '')
  })
}

t.test('K73: an event stream that is refused leaves one line, with what came of it', async (t) => {
  const { url, app, next, audit } = await buildAudited(t)
  for (const [path, code] of [['/events', 'not_acceptable'], ['/mcp', 'method_not_allowed']] as const) {
    t.ok((await fetch(`${url}${path}`, { headers: { accept: 'application/json' } })).status > 400)
    t.match(await next(1), [{ event: 'events.open', outcome: 'failure', target: { code } }], path)
  }
  await app.inject({ method: 'HEAD', url: '/events', headers: STREAM })
  t.match(await next(1), [{ event: 'events.open', outcome: 'success' }], 'HEAD has no stream')
  await audit.close()
})

t.test('K71 K73: a read that was never answered is no success, and none is counted', async (t) => {
  const reads: string[] = []
  const { app, url, next, audit } = await buildAudited(t, {
    observe: [observeReads({ count: ({ event }) => { reads.push(event) } })],
    plug: () => [async (app) => {
      for (const [path, reads] of [['/calls', { callsOf: 'rest' }], ['/slow', { event: 'skill.list', door: 'rest' }]] as const) {
        app.get(path, { config: { reads } }, async () => {
          connection.socket.resetAndDestroy()
          await new Promise(() => {})
        })
      }
    }]
  })
  let connection = await openRaw(url)
  const closed = once(connection.socket, 'close')
  connection.send(request('GET', '/calls'))
  await closed
  connection = await openRaw(url)
  connection.send(request('GET', '/slow'))
  t.match(await next(1), [{ event: 'skill.list', outcome: 'failure', target: { complete: false } }], 'calls have lines of their own')
  t.strictSame(reads, [])
  await app.close()
  await audit.close()
})

t.test('K73: an answer that the end of the process cuts off leaves its line before the last', async (t) => {
  const { app, url, text, audit } = await buildAudited(t, { files: { demo: { 'SKILL.md': '# Demo', 'large.bin': Buffer.alloc(32 * 1_048_576) } } })
  audit.started()
  const asked = get(`${url}/skills/demo/archive.zip`)
  const [response] = await once(asked, 'response') as [IncomingMessage]
  asked.on('error', () => {})
  response.on('error', () => {})
  // It is not read: the rest waits for the client.
  const closed = app.close()
  await until(() => !app.server.listening)
  app.server.closeAllConnections()
  await closed
  await audit.close()
  const lines = text().trim().split('\n').map((line) => JSON.parse(line) as { readonly event: string })
  t.match(lines, [{ event: 'service.started' }, { event: 'skill.archive', target: { complete: false } }, { event: 'service.stopped' }])
  t.equal(lines.length, 3)
})
