import { randomBytes } from 'node:crypto'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import t from 'tap'
import { identityEtag } from '../../src/http/etag.ts'
import { preferredEncoding } from '../../src/http/encoding.ts'
import { buildService } from '../helper/build.ts'
import { listenWithPlugins } from '../helper/plugin-app.ts'
import { jsonRequest, openRaw, rawRequest, request } from '../helper/raw-http.ts'

const TEXT = 'All of this is text, line after line.\n'.repeat(200)
const FILES = {
  plain: {
    'SKILL.md': `---\nname: plain\ndescription: About plain\n---\n${TEXT}`,
    'data.json': JSON.stringify({ text: TEXT }),
    'drawing.svg': `<svg xmlns="http://www.w3.org/2000/svg"><!-- ${TEXT} --></svg>`,
    'binary.bin': Buffer.alloc(4096, 1),
    'edge.txt': 'x'.repeat(1024),
    'small.txt': 'x'.repeat(1023),
    'huge.txt': TEXT.repeat(1000)
  }
}
const FILE = '/skills/plain/files/data.json'
const decoders = { br: brotliDecompressSync, gzip: gunzipSync }

t.test('an encoding is chosen by weight, then by the preference of the service', async (t) => {
  const cases: ReadonlyArray<readonly [string, string | undefined]> = [
    ['gzip', 'gzip'], ['br', 'br'], ['gzip, deflate, br', 'br'], ['GZIP', 'gzip'], ['*', 'br'], ['br;q=0.1, gzip', 'gzip'], ['br;q=0, *', preferredEncoding('zstd, gzip')],
    ['', undefined], ['identity', undefined], ['deflate', undefined], ['br;q=0', undefined], ['gzip;q=0, br;q=0', undefined], ['identity, gzip;q=0.5', undefined],
    [','.repeat(5000), undefined], ['nonsense;;q=,,', undefined], [`${'x, '.repeat(200)}gzip`, undefined]
  ]
  for (const [header, wanted] of cases) t.equal(preferredEncoding(header), wanted, header.slice(0, 40))
})

t.test('K49: what is named beside identity is asked for, unless identity weighs more', async (t) => {
  for (const header of ['gzip, identity', 'identity, gzip', 'deflate, gzip, identity;q=1', 'gzip;q=0.5, identity;q=0.5', 'identity;q=0.5, gzip']) t.equal(preferredEncoding(header), 'gzip', header)
  for (const header of ['gzip;q=0.5, identity', 'gzip;q=0.5, identity;q=0.6', 'gzip;q=0, identity']) t.equal(preferredEncoding(header), undefined, header)
})

t.test('K49: answers of 1 KiB and more are compressed when asked for', async (t) => {
  const { url, fetch } = await buildService(t, { files: FILES })
  const get = (target: string, encoding?: string, headers: readonly string[] = []) =>
    rawRequest(url, request('GET', target, { headers: [...encoding === undefined ? [] : [`Accept-Encoding: ${encoding}`], ...headers] }))

  for (const [encoding, decode] of Object.entries(decoders)) {
    await t.test(`${encoding}: the same content, a strong tag of its own`, async (t) => {
      for (const target of [FILE, '/skills/plain', '/skills/plain/files/SKILL.md', '/skills/plain/files/edge.txt', '/openapi.json', '/openapi.yaml', '/skills/plain/files/huge.txt', '/docs/swagger-ui.css']) {
        const plain = await get(target)
        const answer = await get(target, encoding)
        t.equal(answer.headers['content-encoding'], encoding, target)
        t.ok(decode(answer.body).equals(plain.body), 'the same content')
        t.ok(answer.body.length < plain.body.length)
        t.equal(answer.headers.etag, plain.headers.etag?.replace(/"$/, `-${encoding}"`))
        for (const { headers } of [plain, answer]) t.match(headers.vary, /(?:^|, )Accept-Encoding$/, target)
        t.notOk(answer.headers['accept-ranges'], 'ranges are those of the plain bytes')
        const head = await rawRequest(url, request('HEAD', target, { headers: [`Accept-Encoding: ${encoding}`] }))
        for (const name of ['etag', 'content-encoding', 'content-length', 'content-type', 'vary', 'cache-control']) t.equal(head.headers[name], answer.headers[name], `HEAD ${target} ${name}`)
        const again = await get(target, encoding)
        t.ok(again.body.equals(answer.body), 'also when the form is kept')
      }
    })
  }

  await t.test('a 304 names the form that the client has, and If-Match takes any form', async (t) => {
    const { headers: { etag = '' } } = await get(FILE)
    const forms = [etag, ...['br', 'gzip', 'zstd'].map((name) => etag.replace(/"$/, `-${name}"`))]
    for (const form of forms) {
      t.equal(identityEtag(form), etag)
      for (const encoding of [undefined, 'br', 'gzip']) {
        const answer = await get(FILE, encoding, [`If-None-Match: "x", W/${form}`])
        t.match(answer, { status: 304, headers: { etag: form, vary: 'Accept, Accept-Encoding' } }, `${form} ${encoding}`)
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

t.test('K49: many requests for one form at the same time get the same bytes', async (t) => {
  const { url } = await buildService(t, { files: FILES })
  const ask = () => rawRequest(url, request('GET', FILE, { headers: ['Accept-Encoding: br'] }))
  const answers = await Promise.all(Array.from({ length: 20 }, ask))
  t.equal(new Set(answers.map(({ body }) => body.toString('hex'))).size, 1)
})

t.test('K49: a form that loses its place while it is made is sent all the same', async (t) => {
  // Which brotli gives up on at once.
  const noise = randomBytes(2_000_000)
  const large = noise.toString('base64')
  const LARGE = large.length
  const service = await listenWithPlugins(t, (app) => {
    // Together more than what is kept; the large one takes longest.
    app.get('/:size', (request, reply) => {
      const { size } = request.params as { readonly size: string }
      return reply.type('application/json').header('etag', `"${size}"`).send(Number(size) === LARGE ? large : noise.subarray(0, Number(size)))
    })
  })
  const ask = async (size: number, encoding: string) => {
    const response = await fetch(`${service.url}/${size}`, { headers: { 'accept-encoding': encoding } })
    return [response.status, (await response.arrayBuffer()).byteLength]
  }
  const sizes = Array.from({ length: 10 }, (_, index) => 1_900_000 + index)
  const answer = ask(LARGE, 'gzip')
  t.same(await Promise.all(sizes.map((size) => ask(size, 'br'))), sizes.map((size) => [200, size]))
  t.same(await answer, [200, LARGE])
})
