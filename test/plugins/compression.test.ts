import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import t from 'tap'
import { buildService } from '../helper/build.ts'
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
    'huge.txt': TEXT.repeat(60)
  }
}
const FILE = '/skills/plain/files/data.json'
const decoders = { br: brotliDecompressSync, gzip: gunzipSync }

t.test('K49: answers of 1 KiB and more are compressed when asked for', async (t) => {
  const { url, fetch } = await buildService(t, { files: FILES })
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
