import { once } from 'node:events'
import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import t, { type Test } from 'tap'
import { SILENT } from '../../src/core/shared/log.ts'
import { serveMcpOverStdio } from '../../src/mcp/stdio.ts'
import { buildService, type Service } from '../helper/build.ts'
import {
  connectClient, ERAS, legacyRequest, listenRequest, modernRequest, sendMessage
} from '../helper/mcp.ts'
import { jsonRequest, openRaw } from '../helper/raw-http.ts'
import { skill, until } from '../helper/skills.ts'

const LISTEN = listenRequest()

async function startService (t: Test, options = {}): Promise<Service> {
  const files = { demo: skill('demo', { docs: { 'a.md': 'a' } }) }
  const service = await buildService(t, { files, options: { watcher: true, ...options } })
  await until(() => service.skills.parts.refresher.state.status === 'watching')
  return service
}

function writeSkill (folder: string, name: string, description = 'New'): void {
  mkdirSync(join(folder, name), { recursive: true })
  writeFileSync(join(folder, name, 'SKILL.md'), `---\nname: ${name}\ndescription: ${description}\n---\n`)
}

/** The notifications that a client gets: `resources`, `prompts`, or the URI of an update. */
function notificationsOf (client: Client) {
  const events = new EventTarget()
  const heard: string[] = []
  const note = (what: string) => {
    heard.push(what)
    events.dispatchEvent(new Event(what))
  }
  client.setNotificationHandler('notifications/resources/list_changed', () => { note('resources') })
  client.setNotificationHandler('notifications/prompts/list_changed', () => { note('prompts') })
  client.setNotificationHandler('notifications/resources/updated', ({ params: { uri } }) => { note(uri) })
  const next = (...names: readonly string[]) => Promise.all(names.map((name) => once(events, name)))
  return { heard, next }
}

t.test('GET /mcp, for clients of the 2025 revisions', async (t) => {
  async function openStream (t: Test, { url }: Service, headers: Readonly<Record<string, string>> = {}) {
    const gone = new AbortController()
    t.teardown(() => { gone.abort() })
    return await fetch(`${url}/mcp`, { headers: { accept: 'text/event-stream', ...headers }, signal: gone.signal })
  }

  t.test('a client hears of edits, and of skills that come and go', async (t) => {
    const service = await startService(t)
    const events = new EventTarget()
    const opened = once(events, 'opened')
    const client = new Client({ name: 'test', version: '1' })
    t.teardown(() => client.close())
    await client.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), {
      async fetch (url, init) {
        const response = await fetch(url, init)
        if (init?.method === 'GET') events.dispatchEvent(new Event('opened'))
        return response
      }
    }))
    t.match(client.getServerCapabilities(), {
      prompts: { listChanged: true }, resources: { listChanged: true, subscribe: true }
    })
    const { heard, next } = notificationsOf(client)
    await client.subscribeResource({ uri: 'skill://demo/SKILL.md' })
    await client.unsubscribeResource({ uri: 'skill://demo/SKILL.md' })
    for (const uri of ['skill://demo/docs/a.md', 'skill://demo', 'file:///etc/passwd']) {
      await t.rejects(client.subscribeResource({ uri }),
        { code: -32602, message: /Subscribe to skill:\/\/<name>\/SKILL\.md/ })
    }
    await opened

    const updated = next('skill://demo/SKILL.md')
    appendFileSync(join(service.root, 'demo/docs/a.md'), '!')
    await updated
    t.notOk(heard.includes('resources'), 'no list has changed')

    const lists = next('resources', 'prompts')
    writeSkill(service.root, 'new')
    await lists
    t.match(await client.listPrompts(), { prompts: [{ name: 'demo' }, { name: 'new' }] })
    const again = next('resources')
    rmSync(join(service.root, 'new'), { recursive: true })
    await again
  })

  t.test('the stream is opened only for clients that ask for it', async (t) => {
    const service = await startService(t)
    for (const headers of [{}, { 'mcp-protocol-version': '2025-06-18' }, {
      accept: 'application/json, text/event-stream'
    }]) {
      const response = await openStream(t, service, headers)
      t.match([response.status, response.headers.get('content-type'), response.headers.get('cache-control')],
        [200, 'text/event-stream', 'no-store'])
      t.equal(response.headers.get('mcp-session-id'), null)
    }
    for (const headers of [{ accept: '*/*' }, { accept: 'application/json' }, {
      'mcp-protocol-version': '2026-07-28'
    }]) {
      const response = await openStream(t, service, headers)
      t.match([response.status, response.headers.get('allow')], [405, 'POST'], JSON.stringify(headers))
    }
    t.equal((await openStream(t, service, { origin: 'https://evil.example' })).status, 403)
    const head = await fetch(`${service.url}/mcp`, { method: 'HEAD', headers: { accept: 'text/event-stream' } })
    t.match([head.status, await head.text()], [200, ''])
  })

  t.test('K91: closing ends the streams', async (t) => {
    const service = await startService(t)
    const ended = (await openStream(t, service)).text()
    await service.app.close()
    t.match(await ended, /^: notifications follow\n/)
  })
})

t.test('subscriptions/listen, for clients of revision 2026-07-28', async (t) => {
  t.test('a client hears of changed lists, and of its files when their skill changes', async (t) => {
    const service =
      await startService(t, { prepare: (folder: string) => { writeSkill(join(folder, 'skills'), 'old') } })
    const client = await connectClient(t, service.url, 'auto')
    const { heard, next } = notificationsOf(client)
    const [docs, main] = ['skill://demo/docs/a.md', 'skill://demo/SKILL.md']
    const [old, added] = ['skill://old/SKILL.md', 'skill://new/SKILL.md']
    const resourceSubscriptions = [docs, main, old, added, 'skill://nobody/x', 'skill://demo', 'http://other']
    await client.listen({ resourcesListChanged: true, promptsListChanged: true, resourceSubscriptions })

    const cases: ReadonlyArray<readonly [change: string, expected: readonly string[], change: () => void]> = [
      ['an edit of one file', [docs, main], () => { appendFileSync(join(service.root, 'demo/docs/a.md'), '!') }],
      ['a skill that comes', [added, 'resources', 'prompts'], () => {
        writeSkill(service.folder, 'new')
        renameSync(join(service.folder, 'new'), join(service.root, 'new'))
      }],
      ['a skill that goes', [old, 'resources', 'prompts'],
        () => { rmSync(join(service.root, 'old'), { recursive: true }) }],
      ['another description', [docs, main, 'resources', 'prompts'], () => { writeSkill(service.root, 'demo', 'Other') }]
    ]
    for (const [what, expected, change] of cases) {
      heard.length = 0
      const notified = next(...expected)
      change()
      await notified
      t.same(expected.filter((name) => !heard.includes(name)), [], what)
      if (!expected.includes('resources')) t.notOk(heard.includes('resources'), 'no list has changed')
    }
  })

  t.test('K91: streams end by their result when the service closes', async (t) => {
    const service = await startService(t)
    const client = await connectClient(t, service.url, 'auto')
    const filters = [{ resourcesListChanged: true }, { resourceSubscriptions: ['skill://demo/SKILL.md'] }]
    const subscriptions = await Promise.all(filters.map((filter) => client.listen(filter)))
    await service.app.close()
    t.strictSame(await Promise.all(subscriptions.map(({ closed }) => closed)), ['graceful', 'graceful'])
  })

  t.test('K91: closing waits for no client that reads nothing, and for none that subscribes late', async (t) => {
    const { url, app } = await buildService(t, { files: { demo: skill('demo') } })
    const { 'content-type': _, ...headers } = LISTEN.headers as Record<string, string>
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
    const subscribe = jsonRequest('POST', '/mcp', String(LISTEN.body), { headers: lines })
    const late = await openRaw(url)
    const begun = once(app.server, 'request')
    late.send(subscribe.subarray(0, -1))
    await begun
    app.server.prependOnceListener('request', ({ socket }: IncomingMessage) => { socket.cork() })
    const unread = await openRaw(url)
    const subscribed = once(app.server, 'request') as Promise<[IncomingMessage, ServerResponse]>
    unread.send(subscribe)
    const [, response] = await subscribed
    await until(() => response.writableLength > 0)
    const closed = app.close()
    await unread.closed()
    late.send(subscribe.subarray(-1))
    t.match((await late.response()).json(), { code: 'not_ready' })
    await closed
  })

  t.test('K67: the request of a stream, which it keeps, is of bounded length', async (t) => {
    const { url } = await buildService(t, { files: { demo: skill('demo') } })
    const resourceSubscriptions = [`skill://demo/${'x'.repeat(66_000)}`]
    const message = { method: 'subscriptions/listen', params: { notifications: { resourceSubscriptions } } }
    const refused = await fetch(`${url}/mcp`, modernRequest(message))
    t.match([refused.status, await refused.json()], [400, { code: 'bad_request', detail: /at most 65536 characters/ }])
  })
})

for (const era of ERAS) {
  t.test(`K88: a client over standard input and output, ${era}`, async (t) => {
    const { skills, registry, root } = await startService(t)
    const [input, output] = [new PassThrough(), new PassThrough()]
    const server = serveMcpOverStdio({ skills, registry, log: SILENT, version: '1', input, output })
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: era } })
    // The same framing in the other direction.
    await client.connect(new StdioServerTransport(output, input))
    t.match(await client.callTool({ name: 'list_skills' }), { content: [{ text: '{"skills": ["demo"]}' }] })
    t.match(await client.readResource({ uri: 'skill://demo/docs/a.md' }), { contents: [{ text: 'a' }] })
    await t.rejects(client.readResource({ uri: 'skill://demo/nope' }), { code: -32602 })
    const { next } = notificationsOf(client)
    if (era === 'auto') {
      await client.listen({
        resourcesListChanged: true, promptsListChanged: true, resourceSubscriptions: ['skill://demo/docs/a.md']
      })
    }
    await until(() => skills.feed.revision !== undefined)
    const updated = next(era === 'auto' ? 'skill://demo/docs/a.md' : 'skill://demo/SKILL.md')
    appendFileSync(join(root, 'demo/docs/a.md'), '!')
    await updated
    const lists = next('resources', 'prompts')
    writeSkill(root, 'new')
    await lists
    input.end()
    await server.closed
    await server.close()
  })
}

const FILES = {
  demo: { 'SKILL.md': '---\nname: demo\ndescription: A demo\n---\n# Demo\n', 'big.txt': 'x'.repeat(2_000_000) }
}

const FUTURE = {
  'io.modelcontextprotocol/protocolVersion': '2099-01-01', 'io.modelcontextprotocol/clientCapabilities': {}
}

/** Ping of either revision: what answers it lives. */
async function lives (t: Test, url: string): Promise<void> {
  t.match(
    await sendMessage(url, modernRequest({ method: 'tools/list' })), { status: 200, body: { result: {} } }, 'and it lives'
  )
}

t.test('hostile requests', async (t) => {
  const service = await buildService(t, { files: FILES })
  const { url } = service

  t.test('what is not one JSON object is refused before MCP sees it, as everywhere (K48, K57)', async (t) => {
    const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
    const cases: ReadonlyArray<readonly [name: string, init: RequestInit, status: number, code: string]> = [
      ['broken JSON', legacyRequest('{'), 400, 'invalid_json'],
      ['no body', legacyRequest(''), 400, 'invalid_json'],
      ['invalid UTF-8', { ...legacyRequest(''), body: Buffer.from([0x22, 0xff, 0x22]) }, 400, 'invalid_json'],
      ['a batch', legacyRequest(`[${ping},${ping}]`), 400, 'bad_request'],
      ['a string', legacyRequest('"ping"'), 400, 'bad_request'],
      ['null', legacyRequest('null'), 400, 'bad_request'],
      ['deep nesting', legacyRequest(`${'{"a":'.repeat(70)}1${'}'.repeat(70)}`), 400, 'json_too_deep'],
      ['a large body', legacyRequest({ x: 'x'.repeat(1_100_000) }), 413, 'body_too_large'],
      ['text', legacyRequest(ping, { 'content-type': 'text/plain' }), 415, 'unsupported_media_type'],
      ['a compressed body', legacyRequest(ping, { 'content-encoding': 'gzip' }), 415, 'unsupported_media_type']
    ]
    for (const [name, init, status, code] of cases) {
      const answer = await sendMessage(url, init)
      t.match(answer, { status, body: { code } }, name)
      t.equal(answer.headers.get('content-type'), 'application/problem+json', name)
    }
    const connection = await openRaw(url)
    connection.send(jsonRequest('POST', '/mcp', ping, { host: 'rebind.example' }))
    t.match(await connection.response(), { status: 403, headers: { 'content-type': 'application/problem+json' } })
    connection.destroy()
    await lives(t, url)
  })

  t.test('K47: other methods are 405 with Allow', async (t) => {
    for (const method of ['GET', 'DELETE', 'PUT', 'PATCH', 'OPTIONS']) {
      const answer = await sendMessage(url, { method })
      t.match(answer, { status: 405, body: { code: 'method_not_allowed' } }, method)
      t.equal(answer.headers.get('allow'), method === 'GET' ? 'POST' : 'GET, HEAD, POST', method)
    }
  })

  t.test('what is no message, or asks for what there is not, gets a JSON-RPC error', async (t) => {
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
    const call = { method: 'tools/call', params: { name: 'get_skill' } }
    const future = { 'mcp-protocol-version': '2099-01-01' }
    const cases: ReadonlyArray<readonly [name: string, init: RequestInit, status: number, code: number]> = [
      ['no message', legacyRequest({}), 400, -32600],
      ['a response', legacyRequest({ jsonrpc: '2.0', id: 1, result: {} }), 202, 0],
      ['an unknown method', legacyRequest({ jsonrpc: '2.0', id: 1, method: 'nope' }), 200, -32601],
      ['an unknown method, modern', modernRequest({ method: 'nope' }), 404, -32601],
      ['a version from the future', modernRequest({ method: 'tools/list', params: { _meta: FUTURE } }, future), 400,
        -32022],
      ['a version header from the future', legacyRequest(ping, future), 400, -32602],
      ['a method header that differs', modernRequest({ method: 'tools/list' }, { 'mcp-method': 'tools/call' }), 400,
        -32020],
      ['a name header that differs', modernRequest(call, { 'mcp-name': 'list_skills' }), 400, -32020],
      ['no Accept for a stream', legacyRequest(ping, { accept: 'application/json' }), 406, -32000],
      ['parameters of a wrong type', modernRequest({ method: 'skills/get', params: { uri: 5 } }), 200,
        -32602],
      ['no parameters', modernRequest({ method: 'skills/get' }), 200, -32602],
      ['a filter that is none', modernRequest({ method: 'subscriptions/listen', params: { notifications: 5 } }), 200,
        -32602]
    ]
    for (const [name, init, status, code] of cases) {
      const { status: actual, body, text } = await sendMessage(url, init)
      t.equal(actual, status, `${name}: ${text.slice(0, 200)}`)
      t.equal(body.error?.code ?? 0, code, `${name}: ${text.slice(0, 200)}`)
    }
    await lives(t, url)
  })
})

t.test('Origin', async (t) => {
  const message = { method: 'tools/list' }

  t.test('K55: on a loopback address programs and local pages pass, other pages get 403', async (t) => {
    const { url } = await buildService(t, { files: FILES })
    t.equal((await sendMessage(url, modernRequest(message))).status, 200, 'no Origin')
    for (const origin of ['http://localhost:6274', 'https://127.0.0.1', 'http://[::1]:3000', 'HTTP://LOCALHOST']) {
      t.equal((await sendMessage(url, modernRequest(message, { origin }))).status, 200, origin)
    }
    for (const origin of [
      'https://evil.example', 'null', 'http://localhost.evil.example', 'http://127.0.0.1.evil.example',
      'chrome-extension://abc', 'file://', 'http://localhost@evil.example', 'http://evil.example, http://localhost'
    ]) {
      const answer = await sendMessage(url, modernRequest(message, { origin }))
      t.match(answer, { status: 403, body: { code: 'origin_not_allowed' } }, origin)
      t.equal(answer.headers.get('content-type'), 'application/problem+json')
    }
  })

  t.test('ALLOWED_ORIGINS are those of a service that is bound elsewhere', async (t) => {
    const { url } = await buildService(t, {
      files: FILES, options: { host: '0.0.0.0', allowedOrigins: ['https://app.example', 'chrome-extension://abc'] }
    })
    for (const origin of ['https://app.example', 'https://APP.example', 'chrome-extension://abc']) {
      t.equal((await sendMessage(url, modernRequest(message, { origin }))).status, 200, origin)
    }
    t.equal((await sendMessage(url, modernRequest(message))).status, 200, 'no Origin')
    for (const origin of [
      'http://app.example', 'https://app.example:444', 'https://sub.app.example', 'http://localhost', 'null'
    ]) {
      t.equal((await sendMessage(url, modernRequest(message, { origin }))).status, 403, origin)
    }
  })
})

t.test('K65: answers to clients of the newer revision are for nobody else', async (t) => {
  const { url } = await buildService(t, { files: FILES })
  for (const [method, params] of [
    ['skills/list', {}], ['skills/get', { uri: 'skill://demo/SKILL.md' }],
    ['resources/directory/read', { uri: 'skill://demo' }]
  ] as const) {
    const [modern, old] = [modernRequest({ method, params }), legacyRequest({ jsonrpc: '2.0', id: 1, method, params })]
    t.match(await sendMessage(url, modern), { body: { result: { ttlMs: 0, cacheScope: 'private' } } }, method)
    t.notMatch(JSON.stringify((await sendMessage(url, old)).body), /error|ttlMs|cacheScope/, method)
  }
})
