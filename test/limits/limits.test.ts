import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { fastify } from 'fastify'
import fp from 'fastify-plugin'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import t, { type Test } from 'tap'
import type { Principal } from '../../src/http/callers.ts'
import { createLimits } from '../../src/limits/limits.ts'
import { connectStore } from '../../src/limits/store.ts'
import { MAX_TOOL_CALLS } from '../../src/tools/limits.ts'
import { buildService } from '../helper/build.ts'
import { listenRequest, modernRequest } from '../helper/mcp.ts'
import { startProcess } from '../helper/process.ts'
import { freePort, hasProgram } from '../helper/proxies.ts'
import { jsonRequest, openRaw } from '../helper/raw-http.ts'
import { skills as skillFolders, until } from '../helper/skills.ts'

const FILES = {
  demo: {
    'SKILL.md': '---\nname: demo\ndescription: A demo\n---\n# Demo\n',
    'large.bin': Buffer.alloc(2 * 1_048_576),
    'large.txt': 'a'.repeat(2 * 1_048_576)
  }
}

type Limited = Awaited<ReturnType<typeof buildLimited>>

/** Sets the principal that the header of a test names. */
const login = fp(async (app) => {
  app.addHook('onRequest', async (request) => {
    const name = request.headers['x-test-principal']
    const known = typeof name === 'string'
      ? { id: `token:${name}`, name, kind: 'token' as const }
      : { id: 'anonymous', name: 'anonymous', kind: 'anonymous' as const }
    request.principal = { ...known, groups: [], scopes: new Set(), view: '' } satisfies Principal
  })
})

async function buildLimited (
  t: Test, { trustedProxies = [] as readonly string[], principals = false, burst = 20, rate = 0.01 } = {}
) {
  let units: RateLimiterMemory | undefined
  const limits = createLimits({
    limitRate: rate, limitBurst: burst, limiter: (options) => (units = new RateLimiterMemory(options))
  })
  const service = await buildService(t, {
    files: FILES,
    options: {
      trustedProxies, admitCall: limits.admitCall, plug: () => [...principals ? [login] : [], limits.plugin]
    }
  })
  /** Ends the window of the one address. */
  const pass = async (): Promise<void> => { await units?.delete('127.0.0.1') }
  // What the set-up itself has used.
  await pass()
  return {
    ...service,
    refusals: () => ({ ...limits.refusals }),
    pass,
    /** Status and `Retry-After` of an answer. */
    get: async (path: string, headers: Readonly<Record<string, string>> = {}) => {
      const answer = await service.fetch(path, { headers })
      return [answer.status, Number(answer.headers.get('retry-after'))] as const
    }
  }
}

const shared = await buildLimited(t)

/** The service of most tests, in a new window. */
async function newWindow (): Promise<Limited> {
  await shared.pass()
  return shared
}

async function spend (service: Limited, count: number, headers: Readonly<Record<string, string>> = {}) {
  return await Promise.all(Array.from({ length: count }, async () => (await service.get('/skills/demo', headers))[0]))
}

t.test('K67: a client that loops gets 429 with Retry-After, and is served again after that time', async (t) => {
  const service = await buildLimited(t, { rate: 10 })
  t.strictSame(await spend(service, 20), Array(20).fill(200))
  const { status, headers, json } = await service.fetch('/skills/demo')
  t.equal(status, 429)
  t.equal(headers.get('cache-control'), 'no-store')
  t.match(json(), {
    code: 'rate_limited', detail: /^The limit is 20 units in 2 s for address 127\.0\.0\.1; try again in \d+ s$/
  })
  await new Promise((resolve) => setTimeout(resolve, Number(headers.get('retry-after')) * 1_000))
  t.strictSame(await service.get('/skills/demo'), [200, 0])
})

t.test('K67: probes are never limited; unknown routes and other methods are', async (t) => {
  const service = await newWindow()
  await spend(service, 20)
  for (const path of ['/livez', '/readyz']) t.equal((await service.get(path))[0], 200)
  for (const path of ['/nowhere', '/openapi.json', '/']) t.equal((await service.get(path))[0], 429, path)
  t.equal((await service.raw('DELETE', '/skills')).status, 429)
})

t.test('K67: calls are counted and not requests: those past the limit get a sentence for the model', async (t) => {
  const service = await newWindow()
  const before = service.refusals().units ?? 0
  const calls = Array.from({ length: 25 },
    (_, i) => ({ id: `c${i}`, type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":"demo"}' } }))
  const { status, json } = await service.post('/agent/tool-call', calls)
  const contents = (json() as Array<{ readonly content: string }>).map(({ content }) => content)
  t.equal(status, 200)
  t.equal(contents.filter((content) => content.includes('# Demo')).length, 20)
  t.match(contents.slice(20), Array(5).fill(/Rate limit: try again in \d+ s/))
  t.equal(service.refusals().units, before + 5, 'each call that was refused')
  t.equal((await service.post('/agent/tool-call', calls)).status, 429, 'before any call of the next request')
  t.equal(service.refusals().units, before + 6)
  await service.pass()
  t.equal((await service.post('/agent/tool-call', calls.slice(0, 10))).status, 200)
})

t.test('K67: a search costs the same through every api, and any other call through MCP or ' +
  '/agent/tools is one unit', async (t) => {
  const search = { name: 'search_skills', arguments: { query: 'demo' } }
  const read = { name: 'get_skill', arguments: { skill_name: 'demo' } }
  const endpoints: ReadonlyArray<(service: Limited, call: typeof search | typeof read) => Promise<number>> = [
    async ({ post }, call) => (await post(`/agent/tools/${call.name}`, call.arguments)).status,
    async ({ url }, call) => {
      const response = await fetch(`${url}/mcp`, modernRequest({ method: 'tools/call', params: call }))
      await response.text()
      return response.status
    }
  ]
  const service = await newWindow()
  for (const api of endpoints) {
    await service.pass()
    for (let i = 0; i < 5; i++) t.equal(await api(service, search), 200)
    for (let i = 0; i < 5; i++) t.equal(await api(service, read), 200, '20 - 5 * 3')
    t.equal(await api(service, read), 429)
  }
  await service.pass()
  const call = (i: number) =>
    ({ id: `c${i}`, type: 'function', function: { name: 'search_skills', arguments: '{"query":"demo"}' } })
  const { json } = await service.post('/agent/tool-call', Array.from({ length: 8 }, (_, i) => call(i)))
  const contents = (json() as Array<{ readonly content: string }>).map(({ content }) => content)
  t.equal(contents.filter((content) => content.includes('Rate limit')).length, 2)
})

t.test('K67: large answers and searches cost more', async (t) => {
  const service = await newWindow()
  t.equal((await service.get('/skills/demo/files/large.bin'))[0], 200)
  t.equal((await service.get('/catalog?q=demo'))[0], 200)
  t.equal((await service.get('/skills/demo/files/large.bin', { 'if-none-match': '*' }))[0], 304,
    'whoever has the file gets none')
  const statuses = await spend(service, 15)
  t.equal(statuses.filter((status) => status === 200).length, 13, '20 - 1 - 2 - 3 - 1')
})

t.test('K67: by default one address installs a thousand skills at once', async (t) => {
  const app = fastify()
  app.decorateRequest('principal', undefined)
  await app.register(createLimits({ limitRate: 1 }).plugin)
  app.get('/skills/:name', async () => 'text')
  // Four look for the index where it is not, as the installer does.
  let refused = 0
  for (let i = 0; i < 1_004; i++) if ((await app.inject(i < 4 ? '/nowhere' : '/skills/x')).statusCode === 429) refused++
  t.equal(refused, 0)
  await app.close()
})

t.test('K67: one principal at its limit slows no other, whatever address they share', async (t) => {
  const service = await buildLimited(t, { principals: true })
  await spend(service, 30, { 'x-test-principal': 'ci-docs' })
  const { status, json } = await service.fetch('/skills/demo', { headers: { 'x-test-principal': 'ci-docs' } })
  t.equal(status, 429)
  t.match(json(), { detail: /for token ci-docs;/ })
  t.equal((await service.get('/skills/demo', { 'x-test-principal': 'other' }))[0], 200)
  t.equal((await service.get('/skills/demo'))[0], 200)
})

t.test('K67: behind a trusted proxy each client has its own limit, and the log has its address', async (t) => {
  const service = await buildLimited(t, { trustedProxies: ['127.0.0.0/8'] })
  await spend(service, 20, { 'x-forwarded-for': '203.0.113.7' })
  t.equal((await service.get('/skills/demo', { 'x-forwarded-for': '203.0.113.7' }))[0], 429)
  t.equal((await service.get('/skills/demo', { 'x-forwarded-for': '6.6.6.6, 203.0.113.7' }))[0], 429,
    'what the client has put before')
  t.equal((await service.get('/skills/demo', { 'x-forwarded-for': '203.0.113.8' }))[0], 200)
  await spend(service, 20, { 'x-forwarded-for': '2001:db8::1' })
  for (const [client, status] of [['2001:db8::ffff:2', 429], ['2001:db8:0:1::1', 200]] as const) {
    t.equal((await service.get('/skills/demo', { 'x-forwarded-for': client }))[0], status, client)
  }
  t.match(service.log().filter(({ msg }) => msg === 'request completed').map(({ client }) => client), ['203.0.113.7'])
  t.notOk(service.log().some(({ msg }) => String(msg).startsWith('X-Forwarded-For is ignored')))
})

t.test('K67: the client is the last address that no trusted proxy has', async (t) => {
  const { app, logged } = await buildService(t, { options: { trustedProxies: ['10.0.0.0/8', '::1', 'fd00::/8'] } })
  for (const [index, [peer, forwarded, client]] of ([
    ['10.0.0.1', '6.6.6.6, 203.0.113.7, 10.2.3.4', '203.0.113.7'],
    ['::ffff:10.0.0.1', '203.0.113.7', '203.0.113.7'],
    ['10.0.0.1', '::ffff:203.0.113.7', '203.0.113.7'],
    ['::1', '2001:db8::7', '2001:db8::7'],
    ['10.0.0.1', 'unknown', '10.0.0.1'],
    ['10.0.0.1', '10.1.1.1, 10.2.2.2', '10.1.1.1'],
    ['203.0.113.9', '10.0.0.1', '203.0.113.9'],
    ['::ffff:203.0.113.9', '', '203.0.113.9'],
    ['10.0.0.1', '203.0.113.7:4711', '203.0.113.7'],
    ['10.0.0.1', '6.6.6.6, 203.0.113.7:4711, 10.2.3.4:80', '203.0.113.7'],
    ['::1', '[2001:db8::7]:4711', '2001:db8::7'],
    ['::1', '[2001:db8::7], [fd00::1]:443, [fd00::2]', '2001:db8::7'],
    ['10.0.0.1', '203.0.113.7:x', '10.0.0.1'],
    ['10.0.0.1', '[203.0.113.7', '10.0.0.1'],
    ['10.0.0.1', '[10.0.0.9]x, 203.0.113.7', '203.0.113.7']
  ] as const).entries()) {
    const headers = { 'x-forwarded-for': forwarded, 'x-request-id': String(index) }
    await app.inject({ url: '/skills', remoteAddress: peer, headers })
    t.match(await logged(({ reqId, status }) => reqId === String(index) && status !== undefined), { client },
      `${peer} ${forwarded}`)
  }
})

t.test('K67: without trusted proxies X-Forwarded-For changes nothing; the log says so once', async (t) => {
  const service = await buildLimited(t)
  await service.raw('GET', '/skills/demo', { host: 'evil.example', headers: ['X-Forwarded-For: 203.0.113.1'] })
  await Promise.all(Array.from({ length: 20 }, (_, i) =>
    service.get('/skills/demo', { 'x-forwarded-for': `203.0.113.${i}`, 'x-forwarded-host': 'evil.example' })))
  t.equal((await service.get('/skills/demo', { 'x-forwarded-for': '203.0.113.99' }))[0], 429)
  const lines = service.log()
  t.ok(lines.filter(({ msg }) => msg === 'request completed').every(({ client }) => client === '127.0.0.1'))
  const warnings = lines.filter(({ msg }) => String(msg).startsWith('X-Forwarded-For is ignored'))
  t.match(warnings, [{ peer: '127.0.0.1' }])
  t.equal(lines.indexOf(warnings[0] ?? {}), lines.findIndex(({ code }) => code === 'host_not_allowed') - 1,
    'with the first')
})

t.test('K67: a caller has at most sixteen streams of events through all endpoints, and another one its own; each ' +
  'takes ten units', async (t) => {
  const service = await buildLimited(t, { burst: 20 * 10 + 1, principals: true })
  const warnings: Error[] = []
  const warn = (warning: Error) => { warnings.push(warning) }
  process.on('warning', warn)
  t.teardown(() => { process.off('warning', warn) })
  const abort = new AbortController()
  const open = async (headers: Readonly<Record<string, string>> = {}, path = '/events', init: RequestInit = {}) => {
    const response = await fetch(`${service.url}${path}`,
      { ...init, headers: { ...init.headers, ...headers }, signal: abort.signal })
    if (response.status === 200) await response.body?.getReader().read()
    return response
  }
  const listen = async () => await open({}, '/mcp', listenRequest())
  for (let i = 0; i < 5; i++) t.equal((await open({ accept: 'text/event-stream' })).status, 200)
  // What fetch and curl send by themselves.
  for (let i = 0; i < 3; i++) t.equal((await open({ accept: '*/*' })).status, 200)
  for (let i = 0; i < 4; i++) t.equal((await open({ accept: 'text/event-stream' }, '/mcp')).status, 200)
  for (let i = 0; i < 4; i++) t.equal((await listen()).status, 200)
  const refused = [await open({ accept: 'text/event-stream' }), await open({ accept: 'text/*' }),
    await open({ accept: 'text/event-stream' }, '/mcp'), await listen()]
  for (const answer of refused) {
    t.equal(answer.status, 429)
    t.match(await answer.json(), { code: 'rate_limited', detail: /^The limit is 16 event streams for address/ })
  }
  t.equal((await service.raw('HEAD', '/events', { headers: ['Accept: text/event-stream'] })).status, 200,
    'a HEAD has no stream')
  t.equal((await service.get('/skills/demo'))[0], 429,
    'sixteen streams, four attempts and the HEAD have taken all units')
  t.equal((await open({ accept: 'text/event-stream', 'x-test-principal': 'other' })).status, 200)
  t.equal(service.refusals().streams, 4)
  abort.abort()
  await service.pass()
  for (;;) {
    const again = await fetch(`${service.url}/events`, { headers: { accept: 'text/event-stream' } })
    await again.body?.cancel()
    if (again.status === 200) break
    await new Promise((resolve) => setImmediate(resolve))
  }
  t.strictSame(warnings, [], 'Node takes more than ten listeners of one answer for a leak')
})

const CALLS = jsonRequest('POST', '/agent/tool-call',
  Array.from({ length: MAX_TOOL_CALLS }, () => ({ function: { name: 'list_skills' } })))

t.test('K67: on a loopback address without callers nothing is limited, unless the setting says so', async (t) => {
  const root = t.testdir(skillFolders('demo'))
  for (const [limits, host, isLimited] of [
    ['auto', '127.0.0.1', false], ['off', '0.0.0.0', false], ['on', '127.0.0.1', true]
  ] as const) {
    const env = { HOST: host, LIMITS: limits, LIMIT_RATE: '1', LIMIT_BURST: '50' }
    const { port, stop } = await startProcess(t, { args: [root], env })
    const connection = await openRaw(`http://127.0.0.1:${port}`)
    const { text } = await connection.send(CALLS).response()
    t.equal(text.split('Rate limit: try again').length - 1, isLimited ? MAX_TOOL_CALLS - 50 : 0, limits)
    connection.destroy()
    await stop()
  }
})

async function startRedis (t: Test, port: number): Promise<ChildProcess> {
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  const redis = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'ignore'] })
  t.teardown(() => { redis.kill('SIGKILL') })
  for await (const chunk of redis.stdout) if (String(chunk).includes('Ready to accept connections')) break
  return redis
}

/** A replica with a connection of its own, and a window that does not end in a test. */
async function startReplica (t: Test, port: number, url = `redis://:CANARY-PASSWORD@127.0.0.1:${port}`) {
  const lines: string[] = []
  const log = {
    info: (_: object, line: string) => { lines.push(line) },
    warn: (fields: object, line: string) => { lines.push(line + JSON.stringify(fields)) }
  }
  const store = await connectStore(url, log)
  const limits = createLimits({ limitRate: 0.1, limitBurst: 100, limiter: store.limiter })
  const app = fastify()
  app.decorateRequest('principal', undefined)
  await app.register(limits.plugin)
  app.get('/', async () => 'text')
  t.teardown(() => {
    store.close()
    return app.close()
  })
  return {
    store,
    lines,
    /** How many of so many requests are served, and how long the slowest took in milliseconds. */
    use: async (count: number, remoteAddress = '192.0.2.1') => {
      let served = 0
      let slowest = 0
      for (let i = 0; i < count; i++) {
        const start = performance.now()
        if ((await app.inject({ url: '/', remoteAddress })).statusCode === 200) served++
        slowest = Math.max(slowest, performance.now() - start)
      }
      return { served, slowest }
    },
    /** Resolves when the log says that the store answers. */
    unreachable: async () => { await until(() => lines.at(-1)?.startsWith('rate-limit store unreachable') === true) },
    connected: async () => { await until(() => lines.at(-1) === 'rate-limit store connected') }
  }
}

const noRedis = hasProgram('redis-server', '--version') ? false : 'redis-server is not installed'
t.test('K67: replicas share one limit through Redis, and a store that hangs or goes away costs accuracy ' +
  'and no answer', { skip: noRedis }, async (t) => {
  const port = await freePort()
  let redis = await startRedis(t, port)
  const [one, two] = [await startReplica(t, port), await startReplica(t, port)]
  await one.connected()
  await two.connected()
  t.strictSame([(await one.use(60)).served, (await two.use(60)).served, (await one.use(5)).served], [60, 40, 0])

  redis.kill('SIGSTOP')
  const hung = await one.use(30, '192.0.2.2')
  t.equal(hung.served, 30)
  t.ok(hung.slowest < 1_000, `${hung.slowest} ms`)
  t.ok((await one.use(30, '192.0.2.2')).slowest < 250, 'only the first requests wait')
  await one.unreachable()
  redis.kill('SIGCONT')
  await one.connected()

  redis.kill('SIGKILL')
  await once(redis, 'exit')
  const before = one.store.failures()
  t.equal((await one.use(120, '192.0.2.3')).served, 100, 'each replica counts for itself')
  await until(() => one.store.failures() > before)
  await one.unreachable()
  await two.unreachable()
  redis = await startRedis(t, port)
  await one.connected()
  await two.connected()
  t.strictSame([(await one.use(60, '192.0.2.4')).served, (await two.use(60, '192.0.2.4')).served], [60, 40])
  const kinds = one.lines.map((line) => line.includes('unreachable'))
  t.strictSame(kinds, kinds.map((_, index) => index % 2 === 1), 'a line for each time that it goes and comes back')
  t.equal(kinds.length, 5)
  t.notMatch(one.lines.join(), 'CANARY')
  redis.kill('SIGKILL')
})

/** A store that answers each command with what `reply` returns, in the form of RESP. */
async function fakeStore (t: Test, reply: (name: string, text: string) => string): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (data) => {
      for (const command of String(data).split(/(?=\*\d+\r\n\$)/)) {
        socket.write(reply(/\r\n(\w+)\r\n/.exec(command)?.[1]?.toLowerCase() ?? '', command))
      }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.close() })
  return (server.address() as AddressInfo).port
}

const REFUSALS = [
  { commands: ['select'], error: 'ERR DB index is out of range' },
  { commands: ['set', 'eval'], error: 'READONLY You can\'t write against a read only replica.' },
  { commands: ['set', 'eval'], error: 'OOM command not allowed when used memory > \'maxmemory\'.' },
  { commands: ['set', 'eval'], error: 'NOPERM this user has no permissions to run the \'set\' command' }
]

t.test('K67: a store that answers with errors costs no answer; each is counted, and the store ' +
  'is tried again', async (t) => {
  for (const { commands, error } of REFUSALS) {
    let isRefusing = true
    const written: string[] = []
    const port = await fakeStore(t, (name) => {
      if (isRefusing && commands.includes(name)) return `-${error}\r\n`
      written.push(name)
      return name.startsWith('eval') ? '*2\r\n:1\r\n:1000\r\n' : '+OK\r\n'
    })
    const replica = await startReplica(t, port, `valkey://127.0.0.1:${port}/99`)
    await until(async () => {
      t.equal((await replica.use(1)).served, 1, error)
      return replica.store.failures() >= 2
    })
    t.notOk(written.includes('eval'), 'nothing was counted in another database, or as written')
    t.match(replica.lines, [new RegExp(`^rate-limit store unreachable.*${error.slice(0, 6)}`)])
    isRefusing = false
    await until(() => replica.lines.at(-1) === 'rate-limit store connected')
    t.equal((await replica.use(1)).served, 1)
    t.ok(written.includes('eval'), error)
  }
})

t.test('K67: a store that was never there delays no start and no request, and is in the log once', async (t) => {
  const replica = await startReplica(t, await freePort())
  const { served, slowest } = await replica.use(120)
  t.equal(served, 100)
  t.ok(slowest < 1_000, `${slowest} ms`)
  await until(() => replica.store.failures() > 2)
  t.equal(replica.lines.filter((line) => line.includes('unreachable')).length, 1)
})
