import { once } from 'node:events'
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/server'
import t, { type Test } from 'tap'
import type { CatalogChange } from '../../src/core/catalog/catalog.ts'
import { Signal } from '../../src/core/shared/signal.ts'
import { createWatcher } from '../../src/core/watch/watcher.ts'
import type { FeedListener } from '../../src/core/events/change-feed.ts'
import { onListChanges } from '../../src/mcp/changes/list-changes.ts'
import { LIST_CHANGES, Notifications } from '../../src/mcp/changes/notifications.ts'
import { Shutdown } from '../../src/http/connections/shutdown.ts'
import { buildService, type Service } from '../helper/build.ts'
import { connectClient, modernRequest } from '../helper/mcp.ts'
import { jsonRequest, openRaw } from '../helper/raw-http.ts'
import { skill, until } from '../helper/skills.ts'

const STREAM = { headers: { accept: 'text/event-stream' } }

async function startService (t: Test, options = {}): Promise<Service> {
  const service = await buildService(t, { files: { demo: skill('demo', { docs: { 'a.md': 'a' } }) }, options: { watcher: createWatcher, ...options } })
  await until(() => service.skills.status.watcher.status === 'watching')
  return service
}

async function openStream (t: Test, { url }: Service, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  const gone = new AbortController()
  t.teardown(() => { gone.abort() })
  return await fetch(`${url}/mcp`, { headers: { ...STREAM.headers, ...headers }, signal: gone.signal })
}

t.test('a client of revision 2025-11-25 hears of edits, and of skills that come and go', async (t) => {
  const service = await startService(t)
  let tellOpened = () => {}
  const opened = new Promise<void>((resolve) => { tellOpened = resolve })
  const client = new Client({ name: 'test', version: '1' })
  t.teardown(() => client.close())
  await client.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), {
    async fetch (url, init) {
      const response = await fetch(url, init)
      if (init?.method === 'GET') tellOpened()
      return response
    }
  }))
  t.match(client.getServerCapabilities(), { prompts: { listChanged: true }, resources: { listChanged: true, subscribe: true } })
  const heard: string[] = []
  const events = new EventTarget()
  const tell = (what: string) => {
    heard.push(what)
    events.dispatchEvent(new Event(what))
  }
  client.setNotificationHandler('notifications/resources/list_changed', () => { tell('resources') })
  client.setNotificationHandler('notifications/prompts/list_changed', () => { tell('prompts') })
  client.setNotificationHandler('notifications/resources/updated', ({ params: { uri } }) => { tell(uri) })
  await client.subscribeResource({ uri: 'skill://demo/SKILL.md' })
  await client.unsubscribeResource({ uri: 'skill://demo/SKILL.md' })
  await t.rejects(client.subscribeResource({ uri: 'skill://demo/docs/a.md' }), { code: -32602, message: /Subscribe to skill:\/\/<name>\/SKILL\.md/ })
  // The client opens its stream beside its first requests.
  await opened

  const updated = once(events, 'skill://demo/SKILL.md')
  appendFileSync(join(service.root, 'demo/docs/a.md'), '!')
  await updated
  t.notOk(heard.includes('resources'), 'no list has changed')

  const lists = Promise.all([once(events, 'resources'), once(events, 'prompts')])
  mkdirSync(join(service.root, 'new'))
  writeFileSync(join(service.root, 'new/SKILL.md'), '---\nname: new\ndescription: New\n---\n')
  await lists
  t.match(await client.listPrompts(), { prompts: [{ name: 'demo' }, { name: 'new' }] })
  const again = once(events, 'resources')
  rmSync(join(service.root, 'new'), { recursive: true })
  await again
})

t.test('the stream is opened only by who asks for it', async (t) => {
  const service = await startService(t)
  for (const headers of [{}, { 'mcp-protocol-version': '2025-06-18' }, { accept: 'application/json, text/event-stream' }]) {
    const response = await openStream(t, service, headers)
    t.match([response.status, response.headers.get('content-type'), response.headers.get('cache-control')], [200, 'text/event-stream', 'no-store'])
    t.equal(response.headers.get('mcp-session-id'), null)
  }
  for (const headers of [{ accept: '*/*' }, { accept: 'application/json' }, { 'mcp-protocol-version': '2026-07-28' }]) {
    const response = await openStream(t, service, headers)
    t.equal(response.status, 405, JSON.stringify(headers))
    t.equal(response.headers.get('allow'), 'POST')
  }
  for (const revision of SUPPORTED_PROTOCOL_VERSIONS) t.equal((await openStream(t, service, { 'mcp-protocol-version': revision })).status, 200, revision)
  for (const revision of ['1999-01-01', '2025-11-26', '2025-06-18, 2025-06-18']) {
    const response = await openStream(t, service, { 'mcp-protocol-version': revision })
    t.equal(response.status, 400, revision)
    if (response.status === 400) t.match(await response.json(), { code: 'bad_request', detail: /^MCP-Protocol-Version is one of 2025-11-25, / })
  }
  t.equal((await openStream(t, service, { origin: 'https://evil.example' })).status, 403)
  const head = await fetch(`${service.url}/mcp`, { method: 'HEAD', ...STREAM })
  t.match([head.status, await head.text()], [200, ''])
})

t.test('closing ends the streams, and opens no other', async (t) => {
  const service = await startService(t)
  const stream = await openStream(t, service)
  const ended = stream.text()
  await service.app.close()
  t.match(await ended, /^: notifications follow\n/)

  const shutdown = new Shutdown()
  await shutdown.begin()
  const draining = await startService(t, { shutdown })
  t.equal((await openStream(t, draining)).status, 503)
})

t.test('K91: while the process leaves, streams of subscriptions end by their result', async (t) => {
  const shutdown = new Shutdown()
  const service = await startService(t, { shutdown })
  const client = await connectClient(t, service.url, 'auto')
  const subscriptions = [await client.listen({ resourcesListChanged: true }), await client.listen({ resourceSubscriptions: ['skill://demo/SKILL.md'] })]
  await shutdown.begin(10)
  t.strictSame(await Promise.all(subscriptions.map(({ closed }) => closed)), ['graceful', 'graceful'])
})

t.test('K67: what the requests of open streams hold is bounded, and free again when they end', async (t) => {
  const { url } = await buildService(t, { files: { demo: skill('demo') } })
  const gone = new AbortController()
  t.teardown(() => { gone.abort() })
  const message = modernRequest({ method: 'subscriptions/listen', params: { notifications: { resourcesListChanged: true }, more: 'x'.repeat(1_000_000) } })
  const listen = async (signal: AbortSignal) => await fetch(`${url}/mcp`, { ...message, signal })
  // A stream that nobody refers to is ended by `fetch`, whenever garbage is collected.
  const open: Response[] = []
  for (let i = 0; i < 16; i++) open.push(await listen(gone.signal))
  const refused = await listen(gone.signal)
  t.match([refused.status, await refused.json()], [503, { code: 'too_many_streams' }])
  for (const { status, body } of open) t.match([status, body?.locked], [200, false])
  gone.abort()
  const last = new AbortController()
  t.teardown(() => { last.abort() })
  await until(async () => (await listen(last.signal)).status === 200)
})

t.test('a client that resumes, as the SDK does, gets a new stream', async (t) => {
  const service = await startService(t)
  const transport = new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`))
  t.teardown(() => transport.close())
  await transport.start()
  await transport.resumeStream('7')
  t.pass()
})

t.test('an answer as a stream of events ends its connection, if its client asks for that', async (t) => {
  const { url } = await startService(t)
  const connection = await openRaw(url)
  t.teardown(() => { connection.destroy() })
  connection.send(jsonRequest('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }, {
    headers: ['Accept: application/json, text/event-stream', 'MCP-Protocol-Version: 2025-11-25', 'Connection: close']
  }))
  t.match((await connection.response()).headers, { 'content-type': 'text/event-stream', connection: 'close' })
  await connection.closed()
})

t.test('nothing is followed without a stream', async (t) => {
  const listeners = new Set<FeedListener>()
  let subscribed = 0
  const notifications = new Notifications(
    {
      subscribe () {
        subscribed++
        return () => { subscribed-- }
      }
    },
    {
      subscribe (listener) {
        listeners.add(listener)
        return () => { listeners.delete(listener) }
      }
    }
  )
  const sent: string[] = []
  const [first, second] = [notifications.subscribe((frame) => { sent.push(`1 ${frame}`) }), notifications.subscribe((frame) => { sent.push(`2 ${frame}`) })]
  t.same([listeners.size, subscribed], [1, 1], 'once for all')
  for (const listener of listeners) listener({ type: 'changed', id: '1', name: 'a b', revision: 'x' })
  for (const listener of listeners) listener({ type: 'added', id: '2', name: 'c' })
  const frame = 'data: {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"skill://a%20b/SKILL.md"}}\n\n'
  t.same(sent, [`1 ${frame}`, `2 ${frame}`])
  first()
  first()
  t.same([listeners.size, subscribed], [1, 1])
  second()
  t.same([listeners.size, subscribed], [0, 0])
  const third = notifications.subscribe(() => {})
  t.same([listeners.size, subscribed], [1, 1])
  third()
})

t.test('any number of changes at once make one notification of each list, and those after it another', async (t) => {
  const changed = new Signal<CatalogChange>()
  const change = () => { for (let i = 0; i < 100; i++) changed.emit({} as CatalogChange) }
  const sent: string[] = []
  const stops = [
    onListChanges({ subscribe: (listener) => changed.subscribe(listener) }, () => { sent.push('lists') }),
    new Notifications({ subscribe: (listener) => changed.subscribe(listener) }, { subscribe: () => () => {} }).subscribe((frame) => { sent.push(String(frame)) })
  ]
  const expected = ['lists', String(LIST_CHANGES)]
  change()
  await until(() => sent.length >= 2)
  t.strictSame(sent.splice(0), expected)
  change()
  await until(() => sent.length >= 2)
  t.strictSame(sent, expected)
  for (const stop of stops) stop()
})
