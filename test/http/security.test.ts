import fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { buildService } from '../helper/build.ts'
import { rawRequest, request, type RequestHead } from '../helper/raw-http.ts'

/** Hosts, or heads of requests, by the answer of a service that listens on an address with a list of hosts. */
type Answers = Readonly<Record<string, ReadonlyArray<string | RequestHead>>>

const HOSTS: ReadonlyArray<readonly [host: string, list: readonly string[], answers: Answers]> = [
  ['127.0.0.1', [], {
    200: [
      'localhost', 'LOCALHOST:8080', '127.0.0.1', '127.0.0.1:9', '[::1]', '[::1]:8080', '127.1.2.3',
      '127.255.255.255', 'localhost:', '127.1', '0x7f.1',
      '2130706433', { version: '1.0' }, { headers: ['X-Forwarded-Host: evil.example'] }
    ],
    '403 host_not_allowed': [
      'evil.example', '127.0.0.1.evil.example', 'localhost.evil.example', 'evil.example:8080', 'localhost.',
      '127.0.0.256', '0.0.0.0', '[::]', '::1',
      '[::ffff:127.0.0.1]', '192.168.0.1', 'a b', '', 'localhost evil.example', 'localhost@evil.example',
      'localhost:80:80', 'localhost:x', 'localhost/',
      '%6cocalhost', 'xlocalhost', 'lo\xe7alhost', { version: '1.0', host: null }, {
        version: '1.0', host: 'evil.example'
      },
      { host: 'evil.example', headers: ['X-Forwarded-Host: localhost', 'Forwarded: host=localhost'] }
    ],
    '400 bad_request': [{ host: null }, { headers: ['Host: evil.example'] }, { headers: ['Host: localhost'] },
      { headers: ['hOST: evil.example'] }]
  }],
  ['0.0.0.0', [], {
    200: ['evil.example', 'localhost', '10.0.0.1:8080', '[fe80::1]:80', 'a_b', { host: null, version: '1.0' }],
    '400 bad_request': ['a b', '', 'a:b', '[x]', '[127.0.0.1]', 'a/b', '[::1', { host: null }]
  }],
  ['0.0.0.0', ['a.example', 'b.example', '2001:db8::1', '2001:db8::2'], {
    200: ['a.example', 'A.EXAMPLE', 'a.example:443', 'B.example', 'b.example:80', '[2001:db8::1]:8080',
      '[2001:db8::2]'],
    '403 host_not_allowed': ['c.example', 'a.example.', 'x.a.example', 'localhost', '127.0.0.1', '',
      { host: null, version: '1.0' }]
  }],
  ['127.0.0.1', ['a.example'], { 200: ['a.example:80', 'localhost'], '403 host_not_allowed': ['evil.example'] }]
]

for (const [host, allowedHosts, answers] of HOSTS) {
  t.test(`K55: which hosts are served on ${host} with the list ${allowedHosts.join()}`, async (t) => {
    const { raw } = await buildService(t, { options: { host, allowedHosts } })
    for (const [answer, heads] of Object.entries(answers)) {
      for (const head of heads) {
        const { status, json } = await raw('GET', '/livez', typeof head === 'string' ? { host: head } : head)
        t.equal(status === 200 ? '200' : `${status} ${(json() as { code: string }).code}`, answer, JSON.stringify(head))
      }
    }
  })
}

t.test('K55: the check comes before the route, the method and the body', async (t) => {
  const { url } = await buildService(t)
  for (const bytes of [
    request('GET', '/nowhere', { host: 'evil.example' }),
    request('DELETE', '/livez', { host: 'evil.example' }),
    request('POST', '/agent/tool-call', { host: 'evil.example', headers: ['Content-Length: 1000000000'] })
  ]) {
    const response = await rawRequest(url, bytes)
    t.equal(response.status, 403)
    t.match(response.json(), { code: 'host_not_allowed', detail: /ALLOWED_HOSTS/ })
  }
})

t.test('K55: the authority of an absolute target counts, and Host does not', async (t) => {
  const { url } = await buildService(t)
  const ask = async (target: string, host?: string) =>
    (await rawRequest(url, request('GET', target, host === undefined ? {} : { host }))).status
  t.equal(await ask('/livez'), 200)
  for (const target of ['http://localhost/livez', 'HTTP://LOCALHOST:8080/livez', 'http://[::1]/livez',
    'https://127.0.0.1/livez']) {
    t.equal(await ask(target), 200, target)
    t.equal(await ask(target, 'evil.example'), 200, `${target} for another Host`)
  }
  for (const target of ['http://evil.example/livez', 'http://evil.example:80/livez',
    'http://localhost@evil.example/livez', 'http://user@localhost/livez', 'http://localhost.evil.example/livez',
    'http://evil.example?http://localhost/livez']) {
    t.equal(await ask(target), 403, target)
  }
  t.equal(await ask('/livez', 'evil.example'), 403, 'the target of another request opens no api')
  t.equal((await rawRequest(url, request('GET', 'http://localhost/livez', { host: null }))).status, 400)
  t.equal((await rawRequest(url, request('GET', 'http://localhost/livez', { headers: ['Host: localhost'] }))).status,
    400)
})

t.test('K55: without a list of hosts an absolute target needs an authority that is one', async (t) => {
  const { url } = await buildService(t, { options: { host: '0.0.0.0' } })
  t.equal((await rawRequest(url, request('GET', 'http://evil.example/livez'))).status, 200)
  for (const target of ['http:///livez', 'http://a@b/livez', 'http://[x]/livez']) {
    t.match((await rawRequest(url, request('GET', target))).json(), { status: 400, code: /^bad_(?:request|url)$/ },
      target)
  }
})

t.test('K48: no answer can be taken for another type, errors written by hand included', async (t) => {
  const { url } = await buildService(t)
  for (const bytes of [request('GET', '/livez'), request('HEAD', '/livez'), request('GET', '/nowhere'),
    request('GET', '/%zz'), request('GET', '/livez', {
      host: 'x'
    }), 'nonsense\r\n\r\n']) {
    const { headers } = await rawRequest(url, bytes)
    t.equal(headers['x-content-type-options'], 'nosniff')
    t.equal(headers['access-control-allow-origin'], undefined)
  }
})

const PAGE = 'https://app.example'
const STRANGER = 'https://evil.example'
const PLAIN = { plain: { 'SKILL.md': '---\nname: plain\ndescription: About plain\n---\nHello' } }
/** What pages read in any case, and what is for browsers and connections alone. */
const NOT_FOR_PAGES =
  /^(?:access-control-.*|cache-control|connection|content-(?:length|security-policy|type)|cross-origin-.*|date|keep-alive|referrer-policy|vary|x-content-type-options)$/
const MCP_CALL = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }

t.test('K69: ALLOWED_ORIGINS opens every api to a web page', async (t) => {
  const service = await buildService(t, { files: PLAIN, options: { allowedOrigins: [PAGE, 'http://localhost:5173'] } })
  const preflight = (target: string, origin: string, more: readonly string[] = []) =>
    rawRequest(service.url, request('OPTIONS', target, { headers: [`Origin: ${origin}`, ...more] }))

  await t.test('a preflight of any api is answered, with the headers that clients send', async (t) => {
    const wanted = [
      'accept', 'authorization', 'cache-control', 'content-type', 'if-match', 'if-none-match', 'if-range',
      'last-event-id', 'mcp-method', 'mcp-name', 'mcp-protocol-version',
      'mcp-session-id', 'range', 'traceparent', 'tracestate', 'x-request-id'
    ]
    for (const target of ['/mcp', '/skills', '/skills/plain/files/SKILL.md', '/agent/tool-call',
      '/agent/tools/get_skill', '/events', '/catalog', '/readyz', '/.well-known/agent-skills/index.json']) {
      const { status, headers, body } = await preflight(target, PAGE,
        ['Access-Control-Request-Method: POST', `Access-Control-Request-Headers: ${wanted.join(',')}`])
      t.equal(status, 204, target)
      t.equal(body.length, 0)
      t.match(headers,
        { 'access-control-allow-origin': PAGE, 'access-control-allow-methods': 'GET, HEAD, POST', 'access-control-max-age': '7200', vary: /Origin/, 'x-request-id': /./ }, target)
      const allowed = headers['access-control-allow-headers']?.split(',') ?? []
      t.same(wanted.filter((name) => !allowed.includes(name)), [], target)
    }
  })

  await t.test('the page reads every answer and the headers it needs, problems and 304 included', async (t) => {
    const { headers: { etag = '' } } = await service.raw('GET', '/skills')
    for (const [method, target, status, more] of [
      ['GET', '/skills', 200, []],
      ['HEAD', '/skills', 200, []],
      ['GET', '/skills', 304, [`If-None-Match: ${etag}`]],
      ['GET', '/skills/nope', 404, []],
      ['GET', '/nowhere', 404, []],
      ['DELETE', '/skills', 405, []],
      ['GET', '/skills?x=1', 400, []],
      ['GET', '/skills/%ff', 400, []],
      ['GET', '/%2', 400, []],
      ['GET', `/skills/${'x'.repeat(2_000)}`, 414, []],
      ['GET', '/skills/plain/files/SKILL.md', 206, ['Range: bytes=0-1']],
      ['GET', '/skills/plain/files/SKILL.md', 416, ['Range: bytes=999-']],
      ['GET', '/skills/plain/archive.zip', 200, []],
      ['HEAD', '/openapi.json', 200, ['Accept-Encoding: gzip']],
      ['POST', '/agent/tool-call', 415, ['Content-Type: text/plain', 'Content-Length: 0']]
    ] as const) {
      const answer = await service.raw(method, target, { headers: [`Origin: ${PAGE}`, ...more] })
      t.equal(answer.status, status, target)
      t.match(answer.headers,
        { 'access-control-allow-origin': PAGE, 'access-control-expose-headers': /ETag.*skill-revision.*WWW-Authenticate/i, vary: /Origin/ }, `${method} ${target}`)
      t.notOk(answer.headers['access-control-allow-credentials'])
      const exposed = answer.headers['access-control-expose-headers']?.toLowerCase().split(', ') ?? []
      t.same(Object.keys(answer.headers).filter((name) => !NOT_FOR_PAGES.test(name) && !exposed.includes(name)), [],
        `${method} ${target}`)
    }
  })

  await t.test('what depends on more than the origin says both', async (t) => {
    t.equal((await service.raw('GET', '/skills/plain', { headers: [`Origin: ${PAGE}`] })).headers.vary,
      'Origin, Accept')
  })

  await t.test('/mcp works from the page', async (t) => {
    const answer = await rawRequest(service.url, request('POST', '/mcp', {
      headers: [`Origin: ${PAGE}`, 'Content-Type: application/json', 'Accept: application/json, text/event-stream',
        'Mcp-Protocol-Version: 2025-11-25'],
      body: JSON.stringify(MCP_CALL)
    }))
    t.equal(answer.status, 200)
    t.equal(answer.headers['access-control-allow-origin'], PAGE)
  })

  await t.test('other pages stay out', async (t) => {
    for (const origin of [STRANGER, 'null', `${PAGE}:8443`, 'http://app.example', 'http://localhost:8080']) {
      const answer = await preflight('/skills', origin, ['Access-Control-Request-Method: GET'])
      t.equal(answer.status, 405, origin)
      t.match(answer.headers, { allow: 'GET, HEAD', vary: 'Origin' })
      const { headers } = await service.raw('GET', '/skills', { headers: [`Origin: ${origin}`] })
      const { headers: ofBadUrl } = await service.raw('GET', '/skills/%zz', { headers: [`Origin: ${origin}`] })
      for (const given of [answer.headers, headers, ofBadUrl]) {
        t.same(Object.keys(given).filter((name) => name.startsWith('access-control')), [], origin)
      }
    }
    t.match(await service.raw('POST', '/mcp', {
      headers: [`Origin: ${STRANGER}`, 'Content-Type: application/json'], body: '{}'
    }), {
      status: 403
    })
  })

  await t.test('the host is checked first', async (t) => {
    const answer = await service.raw('OPTIONS', '/mcp',
      { host: 'rebound.example', headers: [`Origin: ${PAGE}`, 'Access-Control-Request-Method: POST'] })
    t.equal(answer.status, 403)
    t.equal(answer.headers['access-control-allow-origin'], undefined)
  })

  await t.test('OPTIONS without an origin and addresses that do not exist are answered as ever', async (t) => {
    t.match(await service.raw('OPTIONS', '/skills'), { status: 405, headers: { allow: 'GET, HEAD' } })
    t.match(await service.raw('OPTIONS', '/nowhere'), { status: 404 })
    t.match(await preflight('/skills', PAGE), { status: 204, text: '' },
      'no refusal in plain text where it is no preflight')
    t.match(await service.raw('GET', '/nowhere'), { status: 404 })
    t.match(await service.raw('DELETE', '/nowhere'), { status: 404 })
  })
})

t.test('K69: without ALLOWED_ORIGINS no page of another origin reads anything', async (t) => {
  const service = await buildService(t, { files: PLAIN })
  for (const [method, target, status] of [['OPTIONS', '/skills', 405], ['OPTIONS', '/mcp', 405],
    ['GET', '/skills', 200], ['GET', '/nowhere', 404]] as const) {
    const answer = await service.raw(method, target,
      { headers: [`Origin: ${PAGE}`, 'Access-Control-Request-Method: GET'] })
    t.equal(answer.status, status)
    t.same(Object.keys(answer.headers).filter((name) => name.startsWith('access-control') || name === 'vary'), [],
      target)
  }
})

const FILES = {
  demo: {
    'SKILL.md': '---\nname: demo\ndescription: For tests\n---\n# Demo\n',
    references: { 'a.md': 'A\n' },
    'large.bin': Buffer.alloc(300_000, 1)
  },
  other: { 'SKILL.md': '---\nname: other\ndescription: For tests\n---\n' }
}

/** Every api to a skill that answers a GET. */
const TARGETS: ReadonlyArray<readonly [target: string, accept?: string]> = [
  ['/skills/demo'],
  ['/skills/demo', 'text/markdown'],
  ['/skills/demo/files'],
  ['/skills/demo/files/references/a.md'],
  ['/skills/demo/files/references/a.md', 'application/json'],
  ['/skills/demo/files/references/a.md?encoding=base64', 'application/json'],
  ['/skills/demo/files/large.bin'],
  ['/skills/demo/archive.zip'],
  ['/catalog/demo']
]

const NEVER = `sha256:${'0'.repeat(64)}`

/** Answers that are of one revision by nature. */
const INTRINSIC = /files$|zip$|catalog/

const call = (name: string, args: object) => ({ function: { name, arguments: JSON.stringify(args) } })

t.test('K58: revisions that are asked for', async (t) => {
  const service = await buildService(t, { files: FILES, options: { keep: { keepMs: 0 } } })
  const revisionOf = async (name = 'demo'): Promise<string> =>
    ((await service.fetch(`/skills/${name}/files`)).json() as { readonly revision: string }).revision
  const get = (target: string, accept: string | undefined, headers: Record<string, string> = {}) =>
    service.fetch(target, { headers: { ...headers, ...accept !== undefined && { accept } } })
  const asking = (target: string, revision: string) =>
    `${target}${target.includes('?') ? '&' : '?'}revision=${revision}`

  t.test('K58: an answer carries a revision where it is of one by nature, and otherwise when ' +
    'it was asked', async (t) => {
    const now = await revisionOf()
    for (const [target, accept] of TARGETS) {
      t.equal((await get(target, accept)).headers.get('skill-revision'), INTRINSIC.test(target) ? now : null,
        `${target} ${accept ?? ''}`)
      for (const revision of ['current', now]) {
        const answer = await get(asking(target, revision), accept)
        t.strictSame([answer.status, answer.headers.get('skill-revision')], [200, now], `${target} ${accept ?? ''}`)
      }
    }
  })

  t.test('K58: If-Match with the revision, the ETag or * is answered, anything else is 412', async (t) => {
    const now = await revisionOf()
    for (const [target, accept] of TARGETS) {
      const etag = (await get(target, accept)).headers.get('etag') ?? ''
      for (const tag of [`"other", "${now}"`, `W/"${now}"`, etag, '*']) {
        const answer = await get(target, accept, { 'if-match': tag })
        t.strictSame([answer.status, answer.headers.get('skill-revision')], [200, now], `${target} ${tag}`)
      }
      for (const tag of [`"${NEVER}"`, '"x"']) {
        t.equal((await get(target, accept, { 'if-match': tag })).status, 412, `${target} ${tag}`)
      }
    }
  })

  t.test('K58: a revision that never was is 412 and names the present one', async (t) => {
    const now = await revisionOf()
    for (const [target, accept] of TARGETS) {
      const answer = await get(asking(target, NEVER), accept)
      t.equal(answer.status, 412, `${target} ${accept ?? ''}`)
      t.match(answer.json(), { code: 'revision_changed', error: `The skill has changed: its revision is ${now} now` })
      t.equal(answer.headers.get('skill-revision'), now)
    }
  })

  t.test('K58: what is no revision is a bad query; of a skill that is not there, 404', async (t) => {
    for (const [target, accept] of TARGETS) {
      t.match((await get(asking(target, 'latest'), accept)).json(), { status: 400, code: 'bad_query' }, target)
      t.match((await get(asking(target.replace('demo', 'nope'), NEVER), accept)).json(),
        { status: 404, code: 'skill_not_found' })
    }
  })

  t.test('K58: a change to any file, also one that was not asked for, ends the revision', async (t) => {
    const before = await revisionOf()
    fs.writeFileSync(join(service.root, 'demo/references/a.md'), 'another A\n')
    for (const [target, accept] of TARGETS) {
      t.equal((await get(asking(target, before), accept)).status, 412, `${target} ${accept ?? ''}`)
    }
    const now = await revisionOf()
    t.not(now, before)
    for (const [target, accept] of TARGETS) t.equal((await get(asking(target, now), accept)).status, 200)
  })

  t.test('K58: a 304 names the revision that was asked for', async (t) => {
    const etag = (await service.fetch('/skills/demo')).headers.get('etag') ?? ''
    const again = await service.fetch('/skills/demo?revision=current', { headers: { 'if-none-match': etag } })
    t.strictSame([again.status, again.headers.get('skill-revision')], [304, await revisionOf()])
  })

  t.test('K58: tool calls are of the revision that was asked for, and a stale one runs nothing', async (t) => {
    const now = await revisionOf()
    const one = call('get_skill', { skill_name: 'demo' })
    const all = [one, call('list_skills', {}),
      call('read_file_in_skill', { skill_name: 'demo', file_path: 'references/a.md' }), call('Skill',
        { skill_name: 'demo' }), call('skill', { skill: ' demo ' })]
    const post = (target: string, body: unknown, headers: Record<string, string> = {}) =>
      service.post(target, body, headers)
    t.equal((await post('/agent/tool-call', all)).headers.get('skill-revision'), null)
    for (const revision of ['current', now]) {
      const answer = await post(`/agent/tool-call?revision=${revision}`, all)
      t.strictSame([answer.status, answer.headers.get('skill-revision')], [200, now])
    }
    t.equal((await post('/agent/tool-call', all, { 'if-match': `"${now}"` })).headers.get('skill-revision'), now)
    t.equal(
      (await post('/agent/tools/get_skill?revision=current', { skill_name: 'demo' })).headers.get('skill-revision'),
      now)
    t.equal(
      (await post('/agent/tool-call?revision=current',
        [...all, call('get_skill', { skill_name: 'other' })])).headers.get('skill-revision'), null, 'two skills')
    const before = service.logText().length
    for (const [target, body, headers] of [
      [`/agent/tool-call?revision=${NEVER}`, all], [`/agent/tool-call?revision=${NEVER}`, one],
      [`/agent/tool-call?revision=${NEVER}`, call('skill', { skill: 'demo' })],
      [`/agent/tool-call?revision=${now}`, [...all, call('get_skill', { skill_name: 'other' })]],
      [`/agent/tools/get_skill?revision=${NEVER}`, { skill_name: 'demo' }], ['/agent/tool-call', all,
        { 'if-match': `"${NEVER}"` }],
      [`/agent/tool-call?revision=${NEVER}`, call('search_skills', { query: 'demo' })],
      [`/agent/tools/search_skills?revision=${NEVER}`, { query: 'tests' }],
      ['/agent/tools/search_skills', { query: 'demo' }, { 'if-match': `"${NEVER}"` }]
    ] as ReadonlyArray<readonly [string, unknown, Record<string, string>?]>) {
      const answer = await post(target, body, headers)
      t.strictSame([answer.status, (answer.json() as { readonly code: string }).code], [412, 'revision_changed'],
        target)
    }
    t.notOk(service.logText().slice(before).includes('[Tool Call]'), 'nothing ran')
    for (const headers of [{}, { 'if-match': `"${now}"` }]) {
      t.match((await post(`/agent/tool-call?revision=${now}`, [...all, call('get_skill', {
        skill_name: 'other'
      })], headers)).json(), {
        error: `Skill 'other' has changed: its revision is ${await revisionOf('other')} now`
      }, 'of several skills, which one')
    }
    const found = await post(`/agent/tool-call?revision=${now}`, call('search_skills', { query: 'demo', limit: 1 }))
    t.match([found.status, found.headers.get('skill-revision'), found.json()], [200, now, { content: /"demo"/ }])
    t.match((await post(`/agent/tool-call?revision=${NEVER}`, call('search_skills', {
      query: 'nothing of the kind'
    }))).json(), {
      content: /"skills": \[\]/
    }, 'no hit is stale')
    t.match((await post(`/agent/tool-call?revision=${NEVER}`, call('search_skills', { query: '' }))).json(),
      { content: /must not be empty/ })
    t.match((await post('/agent/tool-call?revision=latest', one)).json(), { status: 400, code: 'bad_query' })
    t.match((await post(`/agent/tool-call?revision=${NEVER}`, call('get_skill', { skill_name: 'nope' }))).json(),
      { role: 'tool', content: /not found/ }, 'the tool says so')
  })
})

t.test('K59: what was handed out stays readable through every api after a change', async (t) => {
  const service = await buildService(t, { files: FILES })
  const { revision } = (await service.fetch('/skills/demo/files')).json() as { readonly revision: string }
  const asking = (target: string) => `${target}${target.includes('?') ? '&' : '?'}revision=${revision}`
  const answers = await Promise.all(
    TARGETS.map(([target, accept]) =>
      service.fetch(asking(target), accept === undefined ? {} : { headers: { accept } })))
  const said = await service.post(asking('/agent/tool-call'), call('get_skill', { skill_name: 'demo' }))
  fs.writeFileSync(join(service.root, 'demo/references/a.md'), 'another A\n')
  fs.writeFileSync(join(service.root, 'demo/SKILL.md'), '---\nname: demo\ndescription: Changed\n---\n')
  fs.writeFileSync(join(service.root, 'demo/large.bin'), 'small')
  for (const [index, [target, accept]] of TARGETS.entries()) {
    const after = await service.fetch(asking(target), accept === undefined ? {} : { headers: { accept } })
    t.equal(after.status, 200, target)
    t.ok(after.bytes.equals(answers[index]?.bytes ?? Buffer.alloc(0)), `${target} ${accept ?? ''}`)
    t.equal(after.headers.get('etag'), answers[index]?.headers.get('etag'))
    t.equal(after.headers.get('skill-revision'), revision)
    const part = await service.fetch(asking(target),
      { headers: { range: 'bytes=1-2', ...accept !== undefined && { accept } } })
    if (part.status === 206) t.ok(part.bytes.equals(after.bytes.subarray(1, 3)), `${target}: a range`)
  }
  t.equal((await service.post(asking('/agent/tool-call'), call('get_skill', { skill_name: 'demo' }))).text, said.text)
  t.match((await service.fetch('/catalog/demo')).json(), { description: 'Changed' },
    'who does not ask gets the present one')
  t.match(await service.fetch('/skills/demo', { headers: { 'if-match': `"${revision}"` } }),
    { status: 412, text: /revision_changed/ }, 'K58: If-Match asks for the present one')
})
