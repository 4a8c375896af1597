import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { sha256 } from '../../src/core/shared/digest.ts'
import { MAX_MAIN_FILE_BYTES } from '../../src/core/shared/limits.ts'
import type { OverloadOptions } from '../../src/plugins/overload.ts'
import { mcpCall } from '../adversarial/attacks/attack-target.ts'
import { buildService, buildWithRoutes, type Service } from '../helper/build.ts'
import { jsonRequest, openRaw, rawRequest, request } from '../helper/raw-http.ts'
import { skill, until } from '../helper/skills.ts'

const JSON_TYPE = 'application/json'

/** Of each kind of resource one, in each form. */
const RESOURCES: ReadonlyArray<readonly [target: string, accept?: string]> = [
  ['/'], ['/skills'], ['/skills/demo'], ['/skills/demo', 'text/markdown'], ['/skills/demo', 'text/plain'],
  ['/skills/demo/files'],
  ['/skills/demo/files/a.md'], ['/skills/demo/files/a.md', JSON_TYPE], ['/skills/demo/files/a.md?encoding=base64',
    JSON_TYPE],
  ['/skills/demo/files/empty.txt'], ['/skills/demo/files/large.bin'], ['/skills/demo/archive.zip'],
  ['/skills/demo/archive.zip?wrap=true'],
  ['/catalog'], ['/catalog?q=demo'], ['/catalog?limit=1'], ['/catalog/demo'], ['/agent/tools'],
  ['/agent/tools?format=mcp&toolset=all'],
  ['/agent/prompt'], ['/agent/prompt?format=json'], ['/agent/prompt?format=markdown'], ['/agent/prompt?budget=130'],
  ['/openapi.json'], ['/openapi.yaml'], ['/llms.txt'], ['/.well-known/agent-skills/index.json'],
  ['/.well-known/skills/index.json'], ['/.well-known/skills/demo/SKILL.md']
]

/** What a 304 and an error do not have. */
const OF_CONTENT = ['content-length', 'content-range', 'content-disposition']

const service = await buildService(t, {
  files: {
    demo: skill('demo', { 'a.md': '# A\n', 'empty.txt': '', 'large.bin': Buffer.alloc(300_000) }),
    big: { 'SKILL.md': 'x'.repeat(MAX_MAIN_FILE_BYTES + 1) }
  }
})

t.test('K47 K49: every GET has a tag of its own, HEAD, 304 for that tag, and 412 for another ' +
  'one in If-Match', async (t) => {
  const tags = new Set<string>()
  for (const [target, accept = '*/*'] of RESOURCES) {
    const what = `${target} ${accept}`
    const ask = async (headers: Readonly<Record<string, string>> = {}, method = 'GET') =>
      await service.fetch(target, { method, headers: { accept, 'accept-encoding': 'identity', ...headers } })
    const get = await ask()
    const tag = get.headers.get('etag') ?? ''
    t.match(tag, /^"[\da-f]{64}(?:-\w+)?"$/, what)
    tags.add(tag)
    t.equal((await ask()).headers.get('etag'), tag, what)
    t.match(get.headers.get('cache-control'), 'no-cache', what)
    const head = await ask({ range: 'bytes=0-0' }, 'HEAD')
    t.strictSame([head.status, head.bytes.length], [200, 0], `${what}: a HEAD has no range`)
    for (const [method, value, range] of [['GET', tag, ''], ['HEAD', `W/${tag}`, 'bytes=0-1'],
      ['GET', `"x", ${tag}`, 'bytes=99999999-'], ['GET', '*', '']] as const) {
      const same = await ask({ 'if-none-match': value, ...range !== '' && { range } }, method)
      t.strictSame([same.status, same.bytes.length, same.headers.get('etag')?.replace('W/', '')], [304, 0, tag],
        `${method} ${what} ${value}`)
      for (const name of ['cache-control', 'vary']) {
        t.equal(same.headers.get(name), get.headers.get(name), `${what} ${name}`)
      }
      for (const name of OF_CONTENT) t.equal(same.headers.get(name), null, `${what} ${name}`)
    }
    for (const headers of [{ 'if-none-match': '"x"' }, { 'if-match': tag }]) {
      t.equal((await ask({ ...headers, 'if-modified-since': 'Fri, 01 Jan 2100 00:00:00 GMT' })).status, 200,
        `${what}: a date proves nothing`)
    }
    const refused = await ask({ 'if-match': '"another"' })
    t.equal(refused.status, 412, what)
    const vary = refused.headers.get('vary')?.split(', ') ?? []
    t.equal(vary.length, new Set(vary).size, `${what} ${vary.join()}`)
  }
  t.equal(tags.size, RESOURCES.length)
  for (const target of ['/readyz', '/livez']) t.equal((await service.fetch(target)).headers.get('etag'), null)
})

t.test('K47: HEAD has the headers of its GET, for the same request headers', async (t) => {
  const targets = [
    ...RESOURCES, ['/readyz'], ['/livez'], ['/docs'], ['/nowhere'], ['/skills/none'], ['/skills/big'],
    ['/catalog?limit=x'], ['/ui/skills/demo', 'text/html'], ['/', 'text/html'],
    ['/skills/demo/.well-known/agent-skills/index.json']
  ] as const
  const dropped = new Set(['date', 'x-request-id', 'transfer-encoding', 'connection', 'keep-alive'])
  for (const [target, accept = '*/*'] of targets) {
    for (const coding of ['identity', 'br']) {
      const of = async (method: string) => {
        const headers = [`Accept: ${accept}`, `Accept-Encoding: ${coding}`]
        const { status, headers: all } = await rawRequest(service.url, request(method, target, { headers }))
        const { 'content-length': length, ...others } = all
        if (method === 'HEAD' && all['content-encoding'] !== undefined) t.equal(length, undefined, target)
        const compared = { status, ...all['content-encoding'] === undefined ? all : others }
        return Object.fromEntries(Object.entries(compared).filter(([name]) => !dropped.has(name)).sort())
      }
      t.strictSame(await of('HEAD'), await of('GET'), `${target} ${accept} ${coding}`)
    }
  }
})

t.test('K49: If-Match with another tag is 412 with a range too, and with its own 206 or 416', async (t) => {
  for (const resource of ['/skills/demo/files/SKILL.md', '/skills/demo/files/large.bin', '/skills/demo/archive.zip',
    '/.well-known/skills/demo/SKILL.md', '/.well-known/skills/demo/large.bin']) {
    const etag = (await service.fetch(resource)).headers.get('etag') ?? ''
    const statusOf = async (tag: string, range: string) =>
      (await service.fetch(resource, { headers: { 'if-match': tag, range } })).status
    t.equal(await statusOf('"another"', 'bytes=0-1'), 412, resource)
    t.equal(await statusOf(etag, 'bytes=0-1'), 206, resource)
    t.equal(await statusOf(etag, 'bytes=9000000-'), 416, resource)
  }
  const { revision } = (await service.fetch('/skills/demo/files')).json() as { readonly revision: string }
  t.equal(
    (await service.fetch('/skills/demo/files/large.bin',
      { headers: { 'if-match': `"${revision}"`, range: 'bytes=0-1' } })).status, 206)
})

t.test('K51: a change that was complete before a request is in its answer, with another tag, ' +
  'behind a link too', async (t) => {
  const { fetch, root } = await buildService(t,
    { files: { demo: skill('demo', { 'a.txt': 'old', 'link.txt': t.fixture('symlink', 'a.txt') }) } })
  const tags: Record<string, string> = {}
  for (const text of ['one', 'two', 'six']) {
    for (const file of ['SKILL.md', 'a.txt']) writeFileSync(join(root, 'demo', file), text)
    for (const path of ['', '/files', '/files/SKILL.md', '/files/a.txt', '/files/link.txt', '/archive.zip']) {
      const { status, headers, text: content, json } =
        await fetch(`/skills/demo${path}`, { headers: { 'if-none-match': tags[path] ?? '' } })
      t.equal(status, 200, `${path} ${text}`)
      tags[path] = headers.get('etag') ?? ''
      if (path === '/files') t.match(json(), { files: [{ digest: sha256(text) }, { digest: sha256(text) }, {}] })
      else t.match(content, text, path)
    }
  }
})

t.test('K49: a page with If-Match of another tag is 412 as a page, and names each header of Vary once', async (t) => {
  for (const page of ['/', '/ui/skills/demo']) {
    const { status, headers } = await fetch(service.url + page,
      { headers: { accept: 'text/html', 'accept-encoding': 'gzip', 'if-match': '"another"' } })
    const vary = headers.get('vary')?.split(', ') ?? []
    t.equal(status, 412, page)
    t.equal(vary.length, new Set(vary).size, `${page} ${vary.join()}`)
  }
})

t.test('K47 K49: a stream that is not sent is destroyed, and HEAD never reads it', async (t) => {
  const streams: Readable[] = []
  const etag = `"${'ab'.repeat(32)}"`
  const { url } = await buildWithRoutes(t, (app) => {
    app.get('/stream', (_request, reply) => {
      const stream = new Readable({ read () { this.push('x'.repeat(1000)) } })
      streams.push(stream)
      return reply.header('etag', etag).header('content-length', 2 ** 40).type('text/plain').send(stream)
    })
  })
  const send = (method: string, ...headers: readonly string[]) =>
    rawRequest(url, request(method, '/stream', { headers }))
  for (const method of ['GET', 'HEAD']) {
    t.match(await send(method, `If-None-Match: ${etag}`), { status: 304, text: '', headers: { etag } })
  }
  t.match(await send('HEAD'), {
    status: 200, headers: { 'content-length': String(2 ** 40), 'content-type': /^text\/plain/ }
  })
  t.strictSame(streams.map((stream) => stream.destroyed), [true, true, true])
})

t.test('K94: shared caches keep what anybody may read for a time, and nothing else', async (t) => {
  const service = await buildService(t, { files: { a: skill('a') }, options: { cacheSeconds: 60 } })
  const kept = 'public, max-age=0, s-maxage=60, stale-while-revalidate=60'
  await until(async () => (await service.fetch('/skills')).headers.has('catalog-revision'))
  for (const path of ['/skills', '/skills/a', '/skills/a/files', '/skills/a/files/SKILL.md', '/skills/a/archive.zip',
    '/catalog', '/agent/prompt', '/.well-known/skills/index.json']) {
    const response = await service.fetch(path)
    t.equal(response.headers.get('cache-control'), kept, path)
    const again = await service.fetch(path, { headers: { 'if-none-match': response.headers.get('etag') ?? '' } })
    t.equal(again.status, 304)
    t.equal(again.headers.get('cache-control'), kept)
    t.equal((await service.fetch(path, { method: 'HEAD' })).headers.get('cache-control'), kept)
  }
  for (const path of ['/livez', '/readyz', '/nowhere', '/skills/b', '/skills/a/files/b']) {
    t.equal((await service.fetch(path)).headers.get('cache-control'), 'no-store', path)
  }
  for (const [path, control] of [['/?q=about', kept], ['/ui/skills/a', kept], ['/ui/status', 'no-cache'],
    ['/ui/skills/a/changes', 'no-cache'], ['/ui/nowhere', 'no-store']] as const) {
    const page = await fetch(service.url + path, { headers: { accept: 'text/html' } })
    t.equal(page.headers.get('cache-control'), control, path)
  }
  t.equal((await service.post('/agent/tools/list_skills', {})).headers.get('cache-control'), 'no-cache',
    'nobody keeps the answer to a POST')
  const { skills: [artifact] } = (await service.fetch('/.well-known/agent-skills/index.json')).json() as {
    readonly skills: ReadonlyArray<{ readonly url: string }>
  }
  t.match((await service.fetch(`/.well-known/agent-skills/${artifact?.url}`)).headers.get('cache-control'), 'immutable')
})

const TEXT = 'All of this is text, line after line.\n'.repeat(200)
const COMPRESSIBLE = {
  plain: {
    'SKILL.md': `---\nname: plain\ndescription: About plain\n---\n${TEXT}`,
    'data.json': JSON.stringify({ text: TEXT }),
    'drawing.svg': `<svg xmlns="http://www.w3.org/2000/svg"><!-- ${TEXT} --></svg>`,
    'binary.bin': Buffer.alloc(4096, 1),
    'edge.txt': 'x'.repeat(1024),
    'small.txt': 'x'.repeat(1023),
    'huge.txt': TEXT.repeat(60)
  }
}
const FILE = '/skills/plain/files/data.json'
const decoders = { br: brotliDecompressSync, gzip: gunzipSync }

t.test('K49: answers of 1 KiB and more are compressed when asked for', async (t) => {
  const { url, fetch } = await buildService(t, { files: COMPRESSIBLE })
  const get = (target: string, encoding?: string, headers: readonly string[] = []) =>
    rawRequest(url,
      request('GET', target, {
        headers: [...encoding === undefined ? [] : [`Accept-Encoding: ${encoding}`], ...headers]
      }))

  for (const [encoding, decode] of Object.entries(decoders)) {
    await t.test(`${encoding}: the same content, with the weak form of its tag`, async (t) => {
      for (const target of [FILE, '/skills/plain', '/skills/plain/files/SKILL.md', '/skills/plain/files/edge.txt',
        '/openapi.json', '/openapi.yaml', '/skills/plain/files/huge.txt', '/docs/static/swagger-ui.css']) {
        const plain = await get(target)
        const answer = await get(target, encoding)
        t.equal(answer.headers['content-encoding'], encoding, target)
        t.ok(decode(answer.body).equals(plain.body), 'the same content')
        t.ok(answer.body.length < plain.body.length)
        t.equal(answer.headers.etag, `W/${(plain.headers.etag ?? '').replace('W/', '')}`)
        for (const { headers } of [plain, answer]) t.match(headers.vary, /(?:^|, )accept-encoding$/, target)
        t.notOk(answer.headers['accept-ranges'], 'ranges are those of the plain bytes')
      }
    })
  }

  await t.test('a 304 names the form that the client has, and If-Match takes either', async (t) => {
    const { headers: { etag = '' } } = await get(FILE)
    for (const form of [etag, `W/${etag}`]) {
      for (const encoding of [undefined, 'br']) {
        const answer = await get(FILE, encoding, [`If-None-Match: "x", ${form}`])
        t.match(answer, { status: 304, headers: { etag: form, vary: 'Accept, accept-encoding' } },
          `${form} ${encoding}`)
        t.notOk(answer.headers['content-encoding'])
        t.equal((await get(FILE, encoding, [`If-Match: ${form}`])).status, 200, `If-Match ${form}`)
      }
      t.equal((await get(FILE, 'br', [`If-None-Match: ${form.replace('"', '"0')}`])).status, 200)
      t.equal((await get(FILE, 'br', [`If-Match: ${form.replace('"', '"0')}`])).status, 412)
    }
    t.equal((await get(FILE, 'br', ['If-None-Match: *'])).status, 304)
  })

  await t.test('ranges, images, binary files, archives and small answers stay as they are', async (t) => {
    const part = await get(FILE, 'br', ['Range: bytes=0-1499'])
    t.match(part, { status: 206, headers: { 'content-length': '1500', 'accept-ranges': 'bytes' } })
    const ranges = [['data.json', 'bytes=0-9'], ['huge.txt', 'bytes=0-9'], ['edge.txt', 'bytes=0-0'],
      ['small.txt', 'bytes=0-0'], ['binary.bin', 'bytes=0-2000']]
    for (const [file, range] of ranges) {
      const [whole, some] = [await get(`/skills/plain/files/${file}`),
        await get(`/skills/plain/files/${file}`, 'br', [`Range: ${range}`])]
      t.match(some, { status: 206, headers: { vary: whole.headers.vary, etag: whole.headers.etag } },
        'what caches go by is that of the whole')
    }
    const targets = ['/skills/plain/files/drawing.svg', '/skills/plain/files/binary.bin',
      '/skills/plain/files/small.txt', '/skills/plain/archive.zip', '/skills', '/skills/nope']
    for (const answer of [part, ...await Promise.all(targets.map((target) => get(target, 'br')))]) {
      t.notOk(answer.headers['content-encoding'])
      if (answer !== part) t.notMatch(answer.headers.vary ?? '', /encoding/i)
    }
    t.equal((await get(FILE, 'br', ['Range: bytes=0-9', `If-Range: ${(await get(FILE, 'br')).headers.etag}`])).status,
      200, 'no range of an encoded form')
  })

  await t.test('an event stream goes out event by event', async (t) => {
    const connection = await openRaw(url)
    connection.send(request('GET', '/events', { headers: ['Accept-Encoding: br, gzip'] }))
    const { headers } = await connection.response({ head: true })
    connection.destroy()
    t.match(headers['content-type'], /^text\/event-stream/)
    t.notOk(headers['content-encoding'])
  })

  await t.test('results of tool calls too', async (t) => {
    const call = { function: { name: 'get_skill', arguments: { skill_name: 'plain' } } }
    const send = (headers: string[]) => rawRequest(url, jsonRequest('POST', '/agent/tool-call', call, { headers }))
    const [plain, answer] = [await send([]), await send(['Accept-Encoding: gzip'])]
    t.equal(answer.headers['content-encoding'], 'gzip')
    t.ok(gunzipSync(answer.body).equals(plain.body))
  })

  await t.test('ordinary clients notice nothing', async (t) => {
    t.match((await fetch('/skills/plain')).headers.get('content-encoding'), /^(?:br|gzip)$/)
    t.match((await fetch('/catalog')).json(), { total: 1 })
  })
})

const ARTIFACT = `/.well-known/agent-skills/demo/${'0'.repeat(64)}`

/** In the order in which they are refused. */
const COSTLY = ['/skills/demo/archive.zip', '/catalog', '/catalog?q=demo', '/.well-known/agent-skills/index.json',
  '/.well-known/skills/index.json', `${ARTIFACT}/archive.zip`]
const USUAL = ['/skills', '/skills/demo', '/skills/demo/files', '/skills/demo/files/SKILL.md', '/catalog/demo',
  '/agent/tools', '/agent/prompt', '/openapi.json']
const PROBES = ['/livez', '/readyz']

/** A service whose process is always past these limits. */
async function buildOverloaded (t: Test, overload: OverloadOptions): Promise<Service> {
  const service = await buildService(t,
    { options: { overload: { ...overload, sampleInterval: 10 } }, files: { demo: skill('demo') } })
  await until(() => service.app.isUnderPressure())
  return service
}

t.test('K68: archives, search and lists with entries are refused first, as a page and through every API, then ' +
  'everything but probes', async (t) => {
  const statusesOf = async ({ url }: Service, targets: readonly string[], method = 'GET') =>
    await Promise.all(targets.map(async (target) => (await rawRequest(url, request(method, target))).status))
  const busy = await buildOverloaded(t, { maxRssBytes: 1 })
  const { url } = busy

  for (const target of COSTLY) {
    const response = await rawRequest(busy.url, request('GET', target))
    t.match(response,
      {
        status: 503,
        headers: {
          'retry-after': /^[1-9]\d*$/, 'content-type': 'application/problem+json', 'cache-control': 'no-store'
        }
      }, target)
    t.match(response.json(), { code: 'overloaded' })
  }
  t.strictSame(new Set(await statusesOf(busy, [...USUAL, ...PROBES])), new Set([200]))

  const askPage = async (target: string) => await fetch(url + target, { headers: { accept: 'text/html' } })
  for (const target of ['/', '/?q=demo']) {
    const page = await askPage(target)
    t.equal(page.status, 503, target)
    t.match(page.headers.get('retry-after'), /^[1-9]\d*$/)
    t.match(await page.text(), /<h1>[^]*The service is overloaded/)
  }
  t.equal((await askPage('/ui/skills/demo')).status, 200)
  t.equal((await fetch(url)).status, 200, 'the list of endpoints')

  const ask = async (bytes: Buffer) => (await rawRequest(url, bytes)).json()
  t.match(await ask(jsonRequest('POST', '/agent/tools/search_skills', { query: 'demo' })),
    { error: 'The service is overloaded' }, 'a search is refused in the form of its API')
  const [search, list] = await ask(jsonRequest('POST', '/agent/tool-call', [
    { type: 'tool_use', id: 'a', name: 'search_skills', input: { query: 'demo' } },
    { type: 'tool_use', id: 'b', name: 'list_skills', input: {} }
  ])) as readonly object[]
  t.match(search, { type: 'tool_result', tool_use_id: 'a', is_error: true, content: /The service is overloaded/ })
  t.notMatch(list, { is_error: true }, 'other calls of the same batch run')
  const called =
    (await rawRequest(url, mcpCall('tools/call', { name: 'search_skills', arguments: { query: 'demo' } }))).text
  t.match(called, /"isError":true/)
  t.match((await rawRequest(url, mcpCall('skills/list', {}))), { status: 503, headers: { 'retry-after': /^\d+$/ } })
  t.equal((await rawRequest(url, mcpCall('tools/list', {}))).status, 200)

  // On an idle machine, the mean delay may be 0.
  const blocker = setInterval(() => { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20) }, 1)
  t.teardown(() => { clearInterval(blocker) })
  const late = await buildOverloaded(t, { maxEventLoopDelay: Number.MIN_VALUE })
  for (const target of [...COSTLY, ...USUAL, '/nothing-is-here']) {
    t.match(await rawRequest(late.url, request('GET', target)),
      { status: 503, headers: { 'retry-after': /^[1-9]\d*$/ } }, target)
  }
  t.equal((await rawRequest(late.url, jsonRequest('POST', '/agent/tools/list_skills', {}))).status, 503)
  t.strictSame(await statusesOf(late, PROBES), [200, 200])
  t.strictSame(await statusesOf(late, PROBES, 'HEAD'), [200, 200])
})
