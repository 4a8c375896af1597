import { Readable } from 'node:stream'
import fc from 'fast-check'
import t from 'tap'
import { matchesEtag, strongEtag } from '../../src/http/etag.ts'
import { buildService } from '../helper/build.ts'
import { listenWithPlugins } from '../helper/plugin-app.ts'
import { type RawResponse, openRaw, rawRequest, request } from '../helper/raw-http.ts'
import { skill, until } from '../helper/skills.ts'
import { checkTime } from '../helper/timing.ts'

const etag = strongEtag(`sha256:${'ab'.repeat(32)}`, 'json')
const modified = 'Sat, 21 Nov 2026 10:00:00 GMT'

t.test('K49: a strong ETag is the digest, with a variant where content has several forms', (t) => {
  t.equal(strongEtag('sha256:abc'), '"abc"')
  t.equal(strongEtag('sha256:abc', 'json'), '"abc-json"')
  t.end()
})

t.test('If-None-Match is a tag, a list or *, compared weakly', (t) => {
  for (const header of [etag, `W/${etag}`, `"x", ${etag}`, `${etag},"x"`, `"x",W/${etag} , "y"`, '*', ' * ']) t.equal(matchesEtag(header, etag), true, header)
  for (const header of ['', '"x"', 'abc', etag.slice(1, -1), etag.slice(0, -1), '**', `"x${etag.slice(1)}`, '"*"', ',,,']) t.equal(matchesEtag(header, etag), false, header)
  t.equal(matchesEtag('"x"', 'W/"x"'), true)
  t.end()
})

t.test('any header is looked at in linear time', async (t) => {
  fc.assert(fc.property(fc.string(), fc.string(), (a, b) => typeof matchesEtag(a, `"${b}"`) === 'boolean'))
  fc.assert(fc.property(fc.array(fc.stringMatching(/^[\da-f]*$/), { minLength: 1 }), fc.nat(), (tags, i) => {
    const tag = tags[i % tags.length] ?? ''
    return matchesEtag(tags.map((each) => `"${each}"`).join(', '), `"${tag}"`) && !matchesEtag(tags.map((each) => `"${each}"`).join(', '), `"${tag}-json"`)
  }))
  await checkTime(t, 200, () => {
    matchesEtag('"x",'.repeat(10_000), etag)
    matchesEtag(etag.slice(0, -1).repeat(10_000), etag)
    matchesEtag(' '.repeat(100_000), etag)
  })
})

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

  t.test('only a good answer to GET or HEAD becomes 304', async (t) => {
    t.equal((await send('POST', '/post', [`If-None-Match: ${etag}`])).status, 200)
    t.equal((await send('GET', '/missing', [`If-None-Match: ${etag}`])).status, 404)
    t.equal((await send('GET', '/nowhere', ['If-None-Match: *'])).status, 404)
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

  t.test('10,000 tags in 16 KiB are answered, the connection stays in step', async (t) => {
    const connection = await openRaw(url)
    const headers = [`If-None-Match: ${'"",'.repeat(5000)}`]
    t.equal((await connection.send(request('GET', '/tagged', { headers })).response()).status, 200)
    t.equal((await connection.send(request('GET', '/tagged', { headers: [`If-None-Match: ${etag}`] })).response()).status, 304)
    t.equal((await connection.send(request('GET', '/tagged')).response()).text, '{"a":1}')
    connection.destroy()
  })
})

t.test('K49: If-Match that names another representation is 412', async (t) => {
  const streams: Readable[] = []
  const { url } = await listenWithPlugins(t, (app) => {
    app.get('/tagged', (_request, reply) => reply.header('etag', etag).header('vary', 'accept').send({ a: 1 }))
    app.get('/plain', () => ({ a: 1 }))
    app.get('/weak', (_request, reply) => reply.header('etag', `W/${etag}`).send('x'))
    app.get('/revision', (_request, reply) => reply.header('etag', etag).header('skill-revision', 'r1').send('x'))
    app.get('/stream', (_request, reply) => {
      const stream = new Readable({ read () { this.push('x'.repeat(1000)) } })
      streams.push(stream)
      return reply.header('etag', etag).send(stream)
    })
    app.get('/missing', (_request, reply) => reply.code(404).send('x'))
  })
  const send = (target: string, ...headers: string[]) => rawRequest(url, request('GET', target, { headers }))

  const other = ['"x"', '"x", "y"', '', 'x', etag.slice(1, -1), '"undefined"']
  for (const tag of other) {
    for (const target of ['/tagged', '/plain', '/stream', '/revision']) {
      const response = await send(target, `If-Match: ${tag}`, `If-None-Match: ${etag}`)
      t.match(response, { status: 412, headers: { 'content-type': 'application/problem+json', etag: undefined } }, `${target} ${tag}`)
      t.match(response.json(), { code: 'precondition_failed' })
    }
  }
  t.ok(streams.every(({ destroyed }) => destroyed))
  const head = await rawRequest(url, request('HEAD', '/tagged', { headers: ['If-Match: "x"'] }))
  t.equal(head.status, 412)

  for (const tag of ['*', etag, `"x", ${etag}`, `"x",${etag},"y"`]) t.equal((await send('/tagged', `If-Match: ${tag}`)).status, 200, tag)
  t.equal((await send('/plain', `If-Match: ${(await send('/plain')).headers.etag}`)).status, 200)
  t.equal((await send('/revision', 'If-Match: "r1"')).status, 200)
  t.equal((await send('/weak', `If-Match: W/${etag}`)).status, 200)
  t.equal((await send('/weak', 'If-Match: *')).status, 200)
  t.equal((await send('/tagged', `If-Match: ${etag}`, `If-None-Match: ${etag}`)).status, 304)
  t.equal((await send('/missing', 'If-Match: "x"')).status, 404)
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
