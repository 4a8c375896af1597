import { appendFileSync, rmSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import type { FeedEvent, FeedListener } from '../../src/core/events/change-feed.ts'
import { EVENT_HEARTBEAT_MS, MAX_EVENT_STREAMS } from '../../src/http/limits.ts'
import { eventRoutes, type EventRoutesOptions } from '../../src/routes/events.ts'
import { buildService, buildWithRoutes, type Service } from '../helper/build.ts'
import { type EventStream, type EventStreamOptions, openEvents, type ServerEvent } from '../helper/event-stream.ts'
import { openRaw, request } from '../helper/raw-http.ts'
import { skill, until } from '../helper/skills.ts'
import { startStopwatch } from '../helper/timing.ts'

/** Far above what a stop needs, far below the deadline of the drain. */
const AT_ONCE_MS = 4_000

const HEAD = [
  'HTTP/1.1 200 OK', 'x-content-type-options: nosniff', /^x-request-id: /, 'content-type: text/event-stream',
  'cache-control: no-store',
  'x-accel-buffering: no', /^Date: /, 'Connection: keep-alive', /^Keep-Alive: /, 'Transfer-Encoding: chunked'
]

function deepSkill (name: string) {
  return skill(name, { references: { 'x.md': 'x' } })
}

async function startService (t: Test): Promise<Service> {
  const service = await buildService(t, { files: { a: deepSkill('a'), b: deepSkill('b') }, options: { watcher: true } })
  await until(() => service.skills.refresher.state.status === 'watching')
  return service
}

async function open (t: Test, url: string, options?: EventStreamOptions): Promise<EventStream> {
  const stream = await openEvents(url, options)
  t.teardown(() => { stream.destroy() })
  return stream
}

/** Edits a file of a skill, and waits for the event about that: files that are as young as these may be told before. */
async function editAndWait (service: Pick<Service, 'url' | 'root'>, stream: EventStream, name: string,
  file: string): Promise<ServerEvent> {
  appendFileSync(join(service.root, name, file), '!')
  const response = await fetch(`${service.url}/skills/${name}/files`)
  const { revision } = await response.json() as { revision: string }
  const find = () => stream.events.find(({ data }) => data['name'] === name && data['revision'] === revision)
  await stream.until(`an event about ${name}`, () => find() !== undefined)
  return find() as ServerEvent
}

t.test('K91: each stream names another pause before its client connects again, so that all clients of an ended ' +
  'process do not return at once', async (t) => {
  const service = await startService(t)
  const pauses: number[] = []
  for (let count = 0; count < 8; count++) {
    const stream = await open(t, service.url)
    await stream.until('the pause', () => stream.retry !== undefined)
    pauses.push(Number(stream.retry))
  }
  t.ok(pauses.every((pause) => pause >= 2_000 && pause < 4_000), pauses.join())
  t.ok(new Set(pauses).size > 1)
})

t.test('K52: changes arrive as they happen, with the revision of the manifest', async (t) => {
  const service = await startService(t)
  const stream = await open(t, service.url)
  const lines = stream.head.split('\r\n')
  t.match(lines, HEAD)
  t.equal(lines.length, HEAD.length, 'no ETag, no length')
  await stream.until('the revision of the catalog', () => stream.lastEventId.length === 64)

  for (const file of ['references/x.md', 'SKILL.md']) {
    t.match(await editAndWait(service, stream, 'a', file), { type: 'changed', id: /^[\da-f]{64}$/ })
  }
  rmSync(join(service.root, 'b'), { recursive: true })
  await stream.until('the removal', () => stream.events.at(-1)?.type === 'removed')
  t.strictSame(stream.events.at(-1), { id: stream.lastEventId, type: 'removed', data: { name: 'b' } })
})

t.test('a client resumes after the last event that it knows, by header or query', async (t) => {
  const service = await startService(t)
  const other = await open(t, service.url)
  for (const name of ['a', 'b']) await editAndWait(service, other, name, 'SKILL.md')
  const known = other.lastEventId
  const count = other.events.length
  for (const name of ['a', 'b', 'a']) await editAndWait(service, other, name, 'references/x.md')

  for (const options of [
    { headers: [`Last-Event-ID: ${known}`] },
    { target: `/events?last_event_id=${known}` },
    { target: '/events?last_event_id=old', headers: [`Last-Event-ID: ${known}`] }
  ]) {
    const again = await open(t, service.url, options)
    await again.event(other.events.length - count - 1)
    t.strictSame(again.events, other.events.slice(count), JSON.stringify(options))
  }

  for (const id of ['nonsense', `${known}0000`, '0123456789ab-1', '__proto__', 'ÿ', 'x'.repeat(5000)]) {
    const reset = await open(t, service.url, { headers: [`Last-Event-ID: ${id}`] })
    t.match(await reset.event(0), { type: 'reset', id: other.lastEventId, data: { message: /read the skills/ } },
      id.slice(0, 20))
  }
  const fresh = await open(t, service.url, { headers: ['Last-Event-ID: '] })
  await fresh.until('its beginning', () => fresh.lastEventId === other.lastEventId)
  t.strictSame(fresh.events, [])
  const bad = await service.raw('GET', '/events?last_event_id=1&last_event_id=2')
  t.match(bad, { status: 400, text: /"code":"bad_query"/ })
})

t.test('what is not a stream: HEAD, other methods, a client that wants something else', async (t) => {
  const service = await startService(t)
  const head = await service.raw('HEAD', '/events')
  t.match(head, {
    status: 200,
    headers: {
      'content-type': 'text/event-stream', 'cache-control': 'no-store', etag: undefined, 'content-length': undefined
    }
  })
  for (const ifNoneMatch of ['*', '"x"']) {
    t.equal((await service.raw('HEAD', '/events', { headers: [`If-None-Match: ${ifNoneMatch}`] })).status, 200)
  }
  t.match(await service.raw('POST', '/events', { body: '' }), { status: 405, headers: { allow: /GET/ } })
  for (const accept of ['application/json', 'text/html;q=1', 'text/event-stream;q=0', 'text/*;q=0, application/json']) {
    t.match(await service.raw('GET', '/events', { headers: [`Accept: ${accept}`] }),
      { status: 406, text: /"code":"not_acceptable"/ }, accept)
  }
  for (const accept of ['text/event-stream', '*/*', 'text/*', 'application/json, */*;q=0.1',
    'TEXT/EVENT-STREAM; charset=utf-8', '']) {
    const stream = await open(t, service.url, { headers: [`Accept: ${accept}`, 'If-None-Match: *'] })
    t.match(stream.head, /^HTTP\/1.1 200/, accept)
    stream.destroy()
  }
})

interface FakeFeed {
  readonly feed: ReturnType<EventRoutesOptions['feedOf']>
  readonly listeners: ReadonlySet<FeedListener>
  emit (name: string): void
}

function createFakeFeed (): FakeFeed {
  const listeners = new Set<FeedListener>()
  let count = 0
  return {
    listeners,
    feed: {
      get position () { return `0123456789ab-${count}` },
      subscribe (listener) {
        listeners.add(listener)
        return () => { listeners.delete(listener) }
      }
    },
    emit (name) {
      const event: FeedEvent = { id: `0123456789ab-${++count}`, type: 'changed', name, revision: 'sha256:0' }
      for (const listener of listeners) listener(event)
    }
  }
}

/** Where the events of a fake feed are, next to those of the service. */
const FAKE = '/fake'

async function listen (t: Test, options: Partial<EventRoutesOptions> = {}) {
  const fake = createFakeFeed()
  const service = await buildWithRoutes(t, (app) => {
    app.register(eventRoutes, { prefix: FAKE, feedOf: () => fake.feed, onAccessEnd: () => () => {}, ...options })
  })
  return { ...service, ...fake }
}

t.test('a comment now and then keeps a silent stream open', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => { mock.timers.reset() })
  const { url } = await listen(t)
  const stream = await open(t, url, { target: `${FAKE}/events` })
  for (let i = 0; i < 3; i++) mock.timers.tick(EVENT_HEARTBEAT_MS)
  await stream.until('three of them', () => stream.comments.length >= 3)
  t.strictSame(stream.events, [])
})

t.test('K92: a client remembers a position, which is no event', async (t) => {
  const { url, listeners } = await listen(t)
  const stream = await open(t, url, { target: `${FAKE}/events` })
  for (const listener of listeners) listener({ id: '0123456789ab-7', type: 'position' })
  await stream.until('its id', () => stream.lastEventId === '0123456789ab-7')
  t.strictSame(stream.events, [])
})

t.test('so many streams and no more, until one ends', async (t) => {
  t.equal(MAX_EVENT_STREAMS, 256)
  let watched = 0
  const onAccessEnd = () => {
    watched++
    return () => { watched-- }
  }
  const { url, listeners } = await listen(t, { maxStreams: 3, onAccessEnd })
  const streams = await Promise.all(Array.from({ length: 3 }, () => open(t, url, { target: `${FAKE}/events` })))
  for (const method of ['GET', 'HEAD']) {
    const connection = await openRaw(url)
    const refused = await connection.send(request(method, `${FAKE}/events`)).response({ head: method === 'HEAD' })
    t.match(refused, {
      status: 503,
      headers: { 'retry-after': /^\d+$/, 'content-type': 'application/problem+json', 'cache-control': 'no-store' }
    })
    if (method === 'GET') t.match(refused.json(), { code: 'too_many_streams' })
    connection.destroy()
  }
  streams[0]?.destroy()
  await until(() => listeners.size === 2)
  t.equal(watched, 2, 'nor is its caller watched')
  t.match((await open(t, url, { target: `${FAKE}/events` })).head, /^HTTP\/1.1 200/)
})

t.test('a client that reads nothing is dropped with what waits for it; another one gets everything', async (t) => {
  const { url, listeners, emit, logged } = await listen(t)
  const fast = await open(t, url, { target: `${FAKE}/events` })
  const slow = await open(t, url, { target: `${FAKE}/events` })
  slow.response.pause()
  const name = 'x'.repeat(1_000)
  const before = process.memoryUsage().rss
  let count = 0
  while (listeners.size === 2 && count < 50_000) {
    emit(name)
    if (++count % 10 === 0) await nextTurn()
  }
  const megabytes = count * 1_000 / 1e6
  t.comment(`dropped after ${megabytes.toFixed(1)} MB, most of them in the buffers of the kernel`)
  t.equal(listeners.size, 1)
  t.ok(megabytes < 40)
  t.ok((process.memoryUsage().rss - before) / 1e6 < 80)
  await logged(({ msg }) => msg === 'slow event-stream client disconnected')
  emit('last')
  await fast.until('the last one', () => fast.events.at(-1)?.data['name'] === 'last')
  t.equal(fast.events.length, count + 1)
  slow.response.resume()
  await until(() => slow.ended)
  t.notOk(slow.complete, 'its answer has no proper end')
})

t.test('app.close() ends streams at once, also one that nobody reads', async (t) => {
  const { app, url, listeners, emit } = await listen(t)
  const sockets: Socket[] = []
  app.server.on('connection', (socket) => { sockets.push(socket) })
  const streams =
    await Promise.all([open(t, url, { target: `${FAKE}/events` }), open(t, url, { target: `${FAKE}/events` })])
  const slow = await open(t, url, { target: `${FAKE}/events` })
  slow.response.pause()
  const response = await stuckSocket(sockets, () => { for (let i = 0; i < 100; i++) emit('x'.repeat(1_000)) })
  t.ok(response.writableLength > 0)
  const elapsed = startStopwatch()
  await app.close()
  const took = elapsed()
  t.ok(took < AT_ONCE_MS, `closed after ${Math.round(took)} ms`)
  for (const stream of streams) {
    await until(() => stream.ended)
    t.ok(stream.complete, 'with a proper end')
  }
  t.equal(listeners.size, 0)
})

/** Does something until one of a server's sockets holds data that its client does not take. */
async function stuckSocket (sockets: readonly Socket[], act: () => void): Promise<Socket> {
  for (;;) {
    act()
    await nextTurn()
    const stuck = sockets.find(({ writableLength }) => writableLength > 0)
    if (stuck !== undefined) return stuck
  }
}
