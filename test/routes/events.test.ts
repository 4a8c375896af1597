import { createHmac } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { appendFileSync, existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { mock } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { FeedEvent, FeedListener } from '../../src/core/events/change-feed.ts'
import { type Disk, localDisk } from '../../src/core/read/disk.ts'
import { createSkillManager } from '../../src/core/skill-manager.ts'
import { EVENT_HEARTBEAT_MS, MAX_EVENT_STREAMS } from '../../src/http/limits.ts'
import { Shutdown } from '../../src/http/shutdown.ts'
import { eventRoutes, type EventRoutesOptions } from '../../src/routes/events.ts'
import { buildService, buildWithRoutes, type Service } from '../helper/build.ts'
import { createFaultyDisk, type FaultyDisk } from '../helper/disk.ts'
import { type EventStream, type EventStreamOptions, openEvents, type ServerEvent } from '../helper/event-stream.ts'
import { openRaw, rawRequest, request } from '../helper/raw-http.ts'
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

async function open (t: Test, url: string, options?: EventStreamOptions): Promise<EventStream> {
  const stream = await openEvents(url, options)
  t.teardown(() => { stream.destroy() })
  return stream
}

/** Edits a file of a skill, and waits for its event: files that are as young as these may be reported before. */
async function editAndWait (service: Pick<Service, 'url' | 'root'>, stream: EventStream, name: string,
  file: string): Promise<ServerEvent> {
  appendFileSync(join(service.root, name, file), '!')
  const response = await fetch(`${service.url}/skills/${name}/files`)
  const { revision } = await response.json() as { revision: string }
  const find = () => stream.events.find(({ data }) => data['name'] === name && data['revision'] === revision)
  await stream.until(`an event about ${name}`, () => find() !== undefined)
  return find() as ServerEvent
}

t.test('K52 K91 K92: one service of events', async (t) => {
  const service = await buildService(t, { files: { a: deepSkill('a'), b: deepSkill('b') }, options: { watcher: true } })
  await until(() => service.skills.parts.refresher.state.status === 'watching')
  for (const [title, run] of Object.entries({
    'K91: each stream names another pause, so that clients of an ended process do not return at once': namePauses,
    'K92: a client resumes after the last event that it knows, by header or query': resume,
    'K47: HEAD, other methods, a client that wants something else': refuseOthers,
    'K52: changes arrive as they happen, with the revision of the manifest': followChanges
  })) await t.test(title, (t) => run(t, service))
})

async function namePauses (t: Test, service: Service): Promise<void> {
  const pauses: number[] = []
  for (let count = 0; count < 8; count++) {
    const stream = await open(t, service.url)
    await stream.until('the pause', () => stream.retry !== undefined)
    pauses.push(Number(stream.retry))
  }
  t.ok(pauses.every((pause) => pause >= 2_000 && pause < 4_000), pauses.join())
  t.ok(new Set(pauses).size > 1)
}

async function followChanges (t: Test, service: Service): Promise<void> {
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
}

async function resume (t: Test, service: Service): Promise<void> {
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
}

async function refuseOthers (t: Test, service: Service): Promise<void> {
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
}

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

t.test('K56 K92: a comment now and then keeps a silent stream open; a position is no event', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => { mock.timers.reset() })
  const { url, listeners } = await listen(t)
  const stream = await open(t, url, { target: `${FAKE}/events` })
  for (let i = 0; i < 3; i++) mock.timers.tick(EVENT_HEARTBEAT_MS)
  await stream.until('three of them', () => stream.comments.length >= 3)
  for (const listener of listeners) listener({ id: '0123456789ab-7', type: 'position' })
  await stream.until('its id', () => stream.lastEventId === '0123456789ab-7')
  t.strictSame(stream.events, [])
})

t.test('K67: so many streams and no more, until one ends', async (t) => {
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

t.test('K56: a client that reads nothing is dropped with what waits for it; another one gets everything', async (t) => {
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

t.test('K91: app.close() ends streams at once, also one that nobody reads', async (t) => {
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

t.test('K84: webhooks', async (t) => {
  const asked: string[] = []
  const sources = {
    status: [],
    hooks: ['one', 'two', 'missing'].map((name) =>
      ({ secretFile: join(t.testdirName, name), checkSoon: () => { asked.push(name) } }))
  }
  const service = await buildService(t,
    { options: { sources, siblings: { one: 'secret-one\n', two: 'secret-two\n' } } })
  for (const [title, run] of Object.entries({
    'K84: a signed hook asks for a check of the sources with its secret': askSigned,
    'K84: a signed hook that waits for 100 Continue may have any type, charset and coding, as others': askWaiting,
    'K84: a hook of more than 10 MiB is 413, whatever it announces': askTooMuch,
    'K84: a hook whose sender leaves in the middle': leave
  })) await t.test(title, (t) => run(t, service, asked))
  t.strictSame(service.log().filter(({ level }) => Number(level) >= 50), [], 'none is an error of the service')
})

async function askSigned (t: Test, { app }: Service, asked: readonly string[]): Promise<void> {
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
}

async function askWaiting (t: Test, { url, post }: Service): Promise<void> {
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
}

async function askTooMuch (t: Test, { url, logged }: Service): Promise<void> {
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
  t.equal((await rawRequest(url, request('POST', '/hooks/git'))).status, 403)
}

async function leave (t: Test, { url, logged }: Service): Promise<void> {
  const connection = await openRaw(url)
  const done = logged(({ msg, status }) => msg === 'request aborted' && status === 499)
  connection.send(request('POST', '/hooks/git', { headers: ['Content-Length: 100'], body: 'the beginning' }))
  // Behind the request, its answer tells that both have been read.
  await rawRequest(url, request('GET', '/livez'))
  connection.destroy()
  await done
  t.equal((await rawRequest(url, request('GET', '/livez'))).status, 200)
}

const DEMO = { demo: { 'SKILL.md': '---\nname: demo\ndescription: A test\n---\n# Demo\n' } }

/** A disk that lists the folder of one skill after `release`: until then the first index is not complete. */
function holdListing (name: string): { readonly disk: FaultyDisk, release (): void } {
  let release = () => {}
  const released = new Promise<void>((resolve) => { release = resolve })
  const disk = createFaultyDisk({
    intercept: (operation, path) => operation === 'readdir' && path.endsWith(`/${name}`) ? released : undefined
  })
  return { disk, release }
}

t.test('K50: GET /livez says ok, and waits for no disk', async (t) => {
  let release = (): void => {}
  let held: Promise<void> | undefined
  const disk = createFaultyDisk({ intercept: () => held })
  const service = await buildService(t, { files: DEMO, options: { disk } })
  held = new Promise((resolve) => { release = resolve })
  const response = await service.fetch('/livez')
  t.equal(response.status, 200)
  t.equal(response.text, '{"status":"ok"}')
  t.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
  t.equal(response.headers.get('x-content-type-options'), 'nosniff')
  t.equal(response.headers.get('cache-control'), 'no-store')
  t.equal(response.headers.get('etag'), null)
  release()
  held = undefined
  t.equal((await service.fetch('/skills')).status, 200)
})

t.test('K50: GET /readyz reports skills, generation, roots and watcher', async (t) => {
  const service = await buildService(t, {
    files: DEMO,
    options: { siblings: { mine: { own: { 'x.md': '' }, other: { 'x.md': '' } } }, personalRoot: 'mine' }
  })
  const response = await service.fetch('/readyz')
  t.equal(response.status, 200)
  t.strictSame([response.headers.get('cache-control'), response.headers.get('etag')], ['no-store', null],
    'no cache keeps it')
  t.match(response.json(), {
    status: 'ready',
    detail: undefined,
    skills: 3,
    generation: Number,
    roots: [{ type: 'project', state: 'ok', skills: 1 }, { type: 'personal', state: 'ok', skills: 2 }],
    watcher: { status: 'off', mode: 'events', errors: 0 },
    failures: []
  })
  t.notMatch(response.text, service.folder, 'no server path')
})

t.test('K3, K14, K50: readiness follows the root: absent, a file, there, removed, made again, swapped ' +
  'behind a link', async (t) => {
  const service = await buildService(t, { files: null, options: { siblings: { aside: { other: { 'x.md': '' } } } } })
  const { root, folder, fetch } = service
  const refused = async (): Promise<void> => {
    const response = await fetch('/readyz')
    t.match(response.headers.get('retry-after'), /^\d+$/)
    t.equal(response.headers.get('cache-control'), 'no-store')
    t.match(response.json(), {
      code: 'not_ready',
      status: 503,
      detail: /^folder "skills" \(project\) is missing, or is a file$/,
      instance: '/readyz',
      skills: 0,
      roots: [{ type: 'project', state: 'missing', skills: 0 }],
      watcher: { status: 'off', mode: 'events', errors: 0 },
      failures: []
    })
    t.match((await fetch('/skills')).json(),
      { status: 503, code: 'skills_folder_not_found', error: `Skills folder not found at path: ${root}` })
    t.equal((await fetch('/livez')).status, 200)
  }
  const ready = async (...names: readonly string[]): Promise<void> => {
    t.match((await fetch('/readyz')).json(), { status: 'ready', skills: names.length })
    t.same((await fetch('/skills')).json(), { skills: names })
  }

  await refused()
  t.notOk(existsSync(root), 'a root is never created')
  writeFileSync(root, '')
  await refused()
  rmSync(root)
  mkdirSync(`${root}/demo`, { recursive: true })
  await ready('demo')
  rmSync(root, { recursive: true })
  await refused()
  mkdirSync(root)
  await ready()
  renameSync(root, `${folder}/empty`)
  symlinkSync('nothing', root)
  await refused()
  for (const [target, names] of [['aside', ['other']], ['empty', []]] as const) {
    symlinkSync(target, `${root}.next`)
    renameSync(`${root}.next`, root)
    await ready(...names)
  }
})

t.test('K70: /readyz says in words what is wrong, with the names of folders and without their paths', async (t) => {
  const refused = (path: string): never => { throw Object.assign(new Error(path), { code: 'EACCES' }) }
  const disk: Disk = {
    ...localDisk, readdir: async (path) => path.endsWith('/locked') ? refused(path) : await localDisk.readdir(path)
  }
  const service = await buildService(t,
    { files: null, options: { siblings: { locked: {} }, roots: ['skills', 'locked'], personalRoot: 'mine', disk } })
  const all = 'folder "skills" (project) is missing, or is a file; folder "locked" (project) cannot be read: ' +
    'permission denied; folder "mine" (personal) is missing, or is a file'
  const bad = await service.fetch('/readyz')
  t.equal(bad.status, 503)
  t.match(bad.json(), { code: 'not_ready', detail: all, error: all })
  mkdirSync(service.root)
  const good = await service.fetch('/readyz')
  t.equal(good.status, 200)
  t.equal((good.json() as { detail?: string }).detail,
    'folder "locked" (project) cannot be read: permission denied; folder "mine" (personal) is missing, or is a file')
  for (const { text } of [bad, good]) t.notMatch(text, service.folder)
})

t.test('K85: callers get the name of a source that was never fetched, and no folder', async (t) => {
  const listed = Object.assign(new EventEmitter(), { folders: undefined, isFixed: true })
  const skills = createSkillManager({ projectRoots: [{ path: t.testdir({}), name: 'team', listed }], watcher: false })
  t.teardown(() => skills.close())
  const error = { code: 'source_not_available', message: 'The source team is not available yet' }
  await t.rejects(skills.list(), error)
  await t.rejects(skills.read('demo', (state) => state.mainFile()), error)
})

t.test('K50: before the first index is complete the service is not ready, and says so', async (t) => {
  const { disk, release } = holdListing('demo')
  const service = await buildService(t, { files: DEMO, options: { disk, indexed: false } })
  const early = await service.fetch('/readyz')
  t.equal(early.status, 503)
  t.match(early.json(), { detail: 'The first index is not complete', skills: 1, watcher: { status: 'off' } })
  t.same((await service.fetch('/skills')).json(), { skills: ['demo'] }, 'the list is complete all the same')
  release()
  await service.skills.initialize()
  t.equal((await service.fetch('/readyz')).status, 200)
})

t.test('K91: a service that is stopping is not ready, and answers', async (t) => {
  const shutdown = new Shutdown()
  const service = await buildService(t, { files: DEMO, options: { shutdown } })
  t.equal((await service.fetch('/readyz')).status, 200)
  shutdown.isStopping = true
  const response = await service.fetch('/readyz')
  t.equal(response.status, 503)
  t.match(response.json(), {
    code: 'not_ready', detail: 'The service is stopping', skills: 1, watcher: { status: 'off' }
  })
  t.equal((await service.fetch('/livez')).status, 200)
  t.equal((await service.fetch('/skills/demo')).status, 200)
})

t.test('K70: a root that is itself a skill is a warning that says what to give', async (t) => {
  const service = await buildService(t, { files: { 'SKILL.md': '# Demo\n', references: { 'a.md': 'a' } } })
  await service.fetch('/readyz')
  t.match(service.log().filter(({ msg }) => String(msg).includes('itself a skill')),
    [{ level: 40, root: service.root, msg: 'a skills folder is itself a skill: give its parent folder' }])
})
