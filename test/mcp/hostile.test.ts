import t, { type Test } from 'tap'
import { buildService } from '../helper/build.ts'
import { modernRequest } from '../helper/mcp.ts'
import { jsonRequest, openRaw } from '../helper/raw-http.ts'

const FILES = {
  demo: { 'SKILL.md': '---\nname: demo\ndescription: A demo\n---\n# Demo\n', 'big.txt': 'x'.repeat(2_000_000) }
}

const LEGACY = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

const FUTURE = {
  'io.modelcontextprotocol/protocolVersion': '2099-01-01', 'io.modelcontextprotocol/clientCapabilities': {}
}

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: { readonly error?: { readonly code: number }, readonly code?: string, readonly result?: object }
}

async function send (url: string, init: RequestInit): Promise<Answer> {
  const response = await fetch(`${url}/mcp`, init)
  const { status, headers } = response
  const text = await response.text()
  const json = /^data: (.*)$/m.exec(text)?.[1] ?? text
  return { status, headers, text, body: json === '' ? {} : JSON.parse(json) as Answer['body'] }
}

function legacy (message: unknown, headers: Readonly<Record<string, string>> = {}): RequestInit {
  return {
    method: 'POST',
    headers: { ...LEGACY, ...headers },
    body: typeof message === 'string' ? message : JSON.stringify(message)
  }
}

/** Ping of either revision: what answers it lives. */
async function lives (t: Test, url: string): Promise<void> {
  t.match(
    await send(url, modernRequest({ method: 'tools/list' })), { status: 200, body: { result: {} } }, 'and it lives'
  )
}

t.test('hostile requests', async (t) => {
  const service = await buildService(t, { files: FILES })
  const { url } = service

  t.test('what is not one JSON object is refused before MCP sees it, as everywhere (K48, K57)', async (t) => {
    const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
    const cases: ReadonlyArray<readonly [name: string, init: RequestInit, status: number, code: string]> = [
      ['broken JSON', legacy('{'), 400, 'invalid_json'],
      ['no body', legacy(''), 400, 'invalid_json'],
      ['invalid UTF-8', { ...legacy(''), body: Buffer.from([0x22, 0xff, 0x22]) }, 400, 'invalid_json'],
      ['a batch', legacy(`[${ping},${ping}]`), 400, 'bad_request'],
      ['a string', legacy('"ping"'), 400, 'bad_request'],
      ['null', legacy('null'), 400, 'bad_request'],
      ['deep nesting', legacy(`${'{"a":'.repeat(70)}1${'}'.repeat(70)}`), 400, 'json_too_deep'],
      ['a large body', legacy({ x: 'x'.repeat(1_100_000) }), 413, 'body_too_large'],
      ['text', legacy(ping, { 'content-type': 'text/plain' }), 415, 'unsupported_media_type'],
      ['a compressed body', legacy(ping, { 'content-encoding': 'gzip' }), 415, 'unsupported_media_type']
    ]
    for (const [name, init, status, code] of cases) {
      const answer = await send(url, init)
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
      const answer = await send(url, { method })
      t.match(answer, { status: 405, body: { code: 'method_not_allowed' } }, method)
      t.equal(answer.headers.get('allow'), method === 'GET' ? 'POST' : 'GET, HEAD, POST', method)
    }
  })

  t.test('what is no message, or asks for what there is not, gets a JSON-RPC error', async (t) => {
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
    const call = { method: 'tools/call', params: { name: 'get_skill' } }
    const future = { 'mcp-protocol-version': '2099-01-01' }
    const cases: ReadonlyArray<readonly [name: string, init: RequestInit, status: number, code: number]> = [
      ['no message', legacy({}), 400, -32600],
      ['a response', legacy({ jsonrpc: '2.0', id: 1, result: {} }), 202, 0],
      ['an unknown method', legacy({ jsonrpc: '2.0', id: 1, method: 'nope' }), 200, -32601],
      ['an unknown method, modern', modernRequest({ method: 'nope' }), 404, -32601],
      ['a version from the future', modernRequest({ method: 'tools/list', params: { _meta: FUTURE } }, future), 400,
        -32022],
      ['a version header from the future', legacy(ping, future), 400, -32602],
      ['a method header that differs', modernRequest({ method: 'tools/list' }, { 'mcp-method': 'tools/call' }), 400,
        -32020],
      ['a name header that differs', modernRequest(call, { 'mcp-name': 'list_skills' }), 400, -32020],
      ['no Accept for a stream', legacy(ping, { accept: 'application/json' }), 406, -32000],
      ['parameters of a wrong type', modernRequest({ method: 'resources/directory/read', params: { uri: 5 } }), 200,
        -32602],
      ['no parameters', modernRequest({ method: 'skills/get' }), 200, -32602],
      ['a filter that is none', modernRequest({ method: 'subscriptions/listen', params: { notifications: 5 } }), 200,
        -32602]
    ]
    for (const [name, init, status, code] of cases) {
      const { status: actual, body, text } = await send(url, init)
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
    t.equal((await send(url, modernRequest(message))).status, 200, 'no Origin')
    for (const origin of ['http://localhost:6274', 'https://127.0.0.1', 'http://[::1]:3000', 'HTTP://LOCALHOST']) {
      t.equal((await send(url, modernRequest(message, { origin }))).status, 200, origin)
    }
    for (const origin of [
      'https://evil.example', 'null', 'http://localhost.evil.example', 'http://127.0.0.1.evil.example',
      'chrome-extension://abc', 'file://', 'http://localhost@evil.example', 'http://evil.example, http://localhost'
    ]) {
      const answer = await send(url, modernRequest(message, { origin }))
      t.match(answer, { status: 403, body: { code: 'origin_not_allowed' } }, origin)
      t.equal(answer.headers.get('content-type'), 'application/problem+json')
    }
  })

  t.test('ALLOWED_ORIGINS are those of a service that is bound elsewhere', async (t) => {
    const { url } = await buildService(t, {
      files: FILES, options: { host: '0.0.0.0', allowedOrigins: ['https://app.example', 'chrome-extension://abc'] }
    })
    for (const origin of ['https://app.example', 'https://APP.example', 'chrome-extension://abc']) {
      t.equal((await send(url, modernRequest(message, { origin }))).status, 200, origin)
    }
    t.equal((await send(url, modernRequest(message))).status, 200, 'no Origin')
    for (const origin of [
      'http://app.example', 'https://app.example:444', 'https://sub.app.example', 'http://localhost', 'null'
    ]) {
      t.equal((await send(url, modernRequest(message, { origin }))).status, 403, origin)
    }
  })
})

t.test('K65: answers to clients of the newer revision are for nobody else', async (t) => {
  const { url } = await buildService(t, { files: FILES })
  for (const [method, params] of [
    ['skills/list', {}], ['skills/get', { uri: 'skill://demo/SKILL.md' }],
    ['resources/directory/read', { uri: 'skill://demo' }]
  ] as const) {
    const [modern, old] = [modernRequest({ method, params }), legacy({ jsonrpc: '2.0', id: 1, method, params })]
    t.match(await send(url, modern), { body: { result: { ttlMs: 0, cacheScope: 'private' } } }, method)
    t.notMatch(JSON.stringify((await send(url, old)).body), /error|ttlMs|cacheScope/, method)
  }
})
