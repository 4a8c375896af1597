import { Readable } from 'node:stream'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import t from 'tap'
import { strongEtag } from '../../src/http/etag.ts'
import { buildService } from '../helper/build.ts'
import { listenWithPlugins } from '../helper/plugin-app.ts'
import { jsonRequest, openRaw, rawRequest, type RawResponse, request } from '../helper/raw-http.ts'
import { skill, until } from '../helper/skills.ts'

const etag = strongEtag(`sha256:${'ab'.repeat(32)}`, 'json')
const modified = 'Sat, 21 Nov 2026 10:00:00 GMT'

t.test('conditional requests', async (t) => {
  const streams: Readable[] = []
  const { url } = await listenWithPlugins(t, (app) => {
    app.get('/tagged', (_request, reply) => reply.header('etag', etag).header('last-modified', modified).header('vary', 'accept').send({ a: 1 }))
    app.get('/plain', () => ({ a: 1 }))
    app.get('/buffer', () => Buffer.from('bytes'))
    app.get('/dated', (_request, reply) => reply.header('last-modified', modified).send('x'))
    app.get('/part', (_request, reply) => reply.code(206).header('etag', etag).header('content-range', 'bytes 0-0/2').send('x'))
    app.get('/private', (_request, reply) => reply.header('cache-control', 'private').send('x'))
    app.get('/stream', (_request, reply) => {
      const stream = new Readable({ read () { this.push('x'.repeat(1000)) } })
      streams.push(stream)
      return reply.header('etag', etag).header('content-length', 2 ** 40).type('text/plain').send(stream)
    })
    app.post('/post', (_request, reply) => reply.header('etag', etag).send('x'))
    app.get('/missing', (_request, reply) => reply.code(404).header('etag', etag).send('x'))
  })
  const send = (method: string, target: string, headers: string[] = []) => rawRequest(url, request(method, target, { headers }))

  function checkNotModified (response: RawResponse): void {
    t.equal(response.status, 304)
    t.equal(response.body.length, 0)
    for (const name of ['content-type', 'content-length', 'transfer-encoding', 'content-range']) t.equal(response.headers[name], undefined, name)
    t.equal(response.headers['cache-control'], 'no-cache')
    t.ok(response.headers.etag)
  }

  t.test('K49: GET and HEAD with a matching If-None-Match are 304 and keep the validators', async (t) => {
    for (const method of ['GET', 'HEAD']) {
      const response = await send(method, '/tagged', [`If-None-Match: "x", W/${etag}`])
      checkNotModified(response)
      t.match(response.headers, { etag, vary: 'accept', 'last-modified': modified })
    }
    t.equal((await send('GET', '/tagged', ['If-None-Match: "x"'])).status, 200)
    checkNotModified(await send('GET', '/part', [`If-None-Match: ${etag}`]))
  })

  t.test('K49: an answer without an ETag gets one from its bytes, the same each time', async (t) => {
    for (const target of ['/plain', '/buffer']) {
      const response = await send('GET', target)
      t.match(response.headers.etag, /^"[\da-f]{64}"$/)
      t.equal((await send('HEAD', target)).headers.etag, response.headers.etag)
      checkNotModified(await send('GET', target, [`If-None-Match: ${response.headers.etag}`]))
      checkNotModified(await send('HEAD', target, ['If-None-Match: *']))
    }
  })

  t.test('K51: If-Modified-Since never hides an edit of the same second', async (t) => {
    for (const since of ['Sat, 21 Nov 2026 09:59:59 GMT', modified, 'Sun, 22 Nov 2026 10:00:00 GMT', 'nonsense', '']) {
      t.equal((await send('GET', '/dated', [`If-Modified-Since: ${since}`])).status, 200, since)
    }
  })

  t.test('K49: Cache-Control is no-cache, no-store for errors, or what the route says', async (t) => {
    t.equal((await send('GET', '/tagged')).headers['cache-control'], 'no-cache')
    t.equal((await send('GET', '/missing')).headers['cache-control'], 'no-store')
    t.equal((await send('GET', '/nowhere')).headers['cache-control'], 'no-store')
    t.equal((await send('GET', '/private')).headers['cache-control'], 'private')
  })

  t.test('a stream that is not sent is destroyed, and HEAD never reads it', async (t) => {
    checkNotModified(await send('GET', '/stream', [`If-None-Match: ${etag}`]))
    checkNotModified(await send('HEAD', '/stream', [`If-None-Match: ${etag}`]))
    const head = await send('HEAD', '/stream')
    t.equal(head.status, 200)
    t.match(head.headers, { 'content-length': String(2 ** 40), 'content-type': /^text\/plain/ })
    t.equal(streams.length, 3)
    t.ok(streams.every((stream) => stream.destroyed))
  })
})

t.test('K94: shared caches keep what anybody may read for a time, and nothing else', async (t) => {
  const service = await buildService(t, { files: { a: skill('a') }, options: { cacheSeconds: 60 } })
  const kept = 'public, max-age=0, s-maxage=60, stale-while-revalidate=60'
  t.equal((await service.fetch('/skills')).headers.get('cache-control'), 'no-cache', 'a list without the revision of the catalog')
  await until(async () => (await service.fetch('/skills')).headers.has('catalog-revision'))
  for (const path of ['/skills', '/skills/a', '/skills/a/files', '/skills/a/files/SKILL.md', '/skills/a/archive.zip', '/catalog', '/agent/prompt', '/.well-known/skills/index.json']) {
    const response = await service.fetch(path)
    t.equal(response.headers.get('cache-control'), kept, path)
    const again = await service.fetch(path, { headers: { 'if-none-match': response.headers.get('etag') ?? '' } })
    t.equal(again.status, 304)
    t.equal(again.headers.get('cache-control'), kept)
    t.equal((await service.fetch(path, { method: 'HEAD' })).headers.get('cache-control'), kept)
  }
  for (const path of ['/livez', '/readyz', '/nowhere', '/skills/b', '/skills/a/files/b']) t.equal((await service.fetch(path)).headers.get('cache-control'), 'no-store', path)
  for (const [path, control] of [['/?q=about', kept], ['/ui/skills/a', kept], ['/ui/status', 'no-cache'], ['/ui/skills/a/changes', 'no-cache'], ['/ui/nowhere', 'no-store']] as const) {
    const page = await fetch(service.url + path, { headers: { accept: 'text/html' } })
    t.equal(page.headers.get('cache-control'), control, path)
  }
  t.equal((await service.post('/agent/tools/list_skills', {})).headers.get('cache-control'), 'no-cache', 'nobody keeps the answer to a POST')
  const { skills: [artifact] } = (await service.fetch('/.well-known/agent-skills/index.json')).json() as { readonly skills: ReadonlyArray<{ readonly url: string }> }
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
    rawRequest(url, request('GET', target, { headers: [...encoding === undefined ? [] : [`Accept-Encoding: ${encoding}`], ...headers] }))

  for (const [encoding, decode] of Object.entries(decoders)) {
    await t.test(`${encoding}: the same content, with the weak form of its tag`, async (t) => {
      for (const target of [FILE, '/skills/plain', '/skills/plain/files/SKILL.md', '/skills/plain/files/edge.txt', '/openapi.json', '/openapi.yaml', '/skills/plain/files/huge.txt', '/docs/static/swagger-ui.css']) {
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
        t.match(answer, { status: 304, headers: { etag: form, vary: 'Accept, accept-encoding' } }, `${form} ${encoding}`)
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
    const ranges = [['data.json', 'bytes=0-9'], ['huge.txt', 'bytes=0-9'], ['edge.txt', 'bytes=0-0'], ['small.txt', 'bytes=0-0'], ['binary.bin', 'bytes=0-2000']]
    for (const [file, range] of ranges) {
      const [whole, some] = [await get(`/skills/plain/files/${file}`), await get(`/skills/plain/files/${file}`, 'br', [`Range: ${range}`])]
      t.match(some, { status: 206, headers: { vary: whole.headers.vary, etag: whole.headers.etag } }, 'what caches go by is that of the whole')
    }
    const targets = ['/skills/plain/files/drawing.svg', '/skills/plain/files/binary.bin', '/skills/plain/files/small.txt', '/skills/plain/archive.zip', '/skills', '/skills/nope']
    for (const answer of [part, ...await Promise.all(targets.map((target) => get(target, 'br')))]) {
      t.notOk(answer.headers['content-encoding'])
      if (answer !== part) t.notMatch(answer.headers.vary ?? '', /encoding/i)
    }
    t.equal((await get(FILE, 'br', ['Range: bytes=0-9', `If-Range: ${(await get(FILE, 'br')).headers.etag}`])).status, 200, 'no range of an encoded form')
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
