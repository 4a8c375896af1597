import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, readFileSync, renameSync, rmSync, statSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { MAX_BUFFERED_FILE_BYTES, MAX_HASHED_FIRST_BYTES } from '../../src/core/read/file-cache.ts'
import { buildService, type Files } from '../helper/build.ts'
import { createFaultyDisk } from '../helper/disk.ts'
import { openRaw, request } from '../helper/raw-http.ts'
import { until } from '../helper/skills.ts'

const BIG = randomBytes(20_000_000)
/** The largest file that is read whole, and the smallest that is streamed. */
const EDGE = randomBytes(MAX_BUFFERED_FILE_BYTES)
const OVER = randomBytes(MAX_BUFFERED_FILE_BYTES + 1)
const BINARY = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2, 3])
const SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'

const DEMO: Readonly<Record<string, string | Buffer>> = {
  'SKILL.md': '# Demo\n',
  'a.md': 'é\n',
  'latin.md': Buffer.from('caf\xe9\n', 'latin1'),
  'latin.xyzzy': Buffer.from('caf\xe9\n', 'latin1'),
  'large-latin.xyzzy': Buffer.alloc(MAX_BUFFERED_FILE_BYTES + 1, 'caf\xe9\n', 'latin1'),
  'larger-latin.xyzzy': Buffer.alloc(MAX_HASHED_FIRST_BYTES + 1, 'caf\xe9\n', 'latin1'),
  'utf16.txt': Buffer.from('\uFEFFhé', 'utf16le'),
  'page.html': '<script>alert(1)</script>',
  'pic.svg': SVG,
  'data.json': '{"a": 1}\n',
  'data.yaml': 'a: 1\n',
  'tool.py': 'print(1)\n',
  'logo.png': BINARY,
  'doc.pdf': BINARY,
  LICENSE: 'MIT\n',
  'strange.xyzzy': 'x',
  'x.tar.gz': BINARY,
  Makefile: BINARY,
  'x.__proto__': BINARY,
  'x.constructor': 'x',
  '.bashrc': 'x',
  'a.kt': 'x',
  'a.PY': 'x',
  'empty.txt': '',
  'edge.bin': EDGE,
  'over.bin': OVER,
  'big.bin': BIG
}

const LARGE_FILES: Files = { demo: { 'SKILL.md': '# Demo\n', 'over.bin': OVER, 'big.bin': BIG } }

const base = '/skills/demo/files'

const AXIOS = 'application/json, text/plain, */*'
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8'

function digest (bytes: Buffer | string): string {
  return createHash('sha256').update(bytes).digest('hex')
}

t.test('K44: one service', async (t) => {
  const service = await buildService(t, { files: { demo: { ...DEMO } } })

  t.test('K43 K44: Latin-1 under an unknown extension is text, in the manifest and in the answer', async (t) => {
    const { files } = (await service.fetch(base)).json() as { readonly files: ReadonlyArray<Record<string, unknown>> }
    for (const path of ['latin.xyzzy', 'large-latin.xyzzy', 'larger-latin.xyzzy']) {
      const answer = await service.fetch(`${base}/${path}`, { method: 'HEAD' })
      t.equal(answer.headers.get('content-type'), 'text/plain', path)
      t.match(files.find((file) => file['path'] === path), { media_type: 'text/plain' })
    }
  })

  t.test('K44: each file goes out under its media type, text with its charset only if it is UTF-8', async (t) => {
    const table = {
      'SKILL.md': 'text/markdown; charset=utf-8',
      'a.md': 'text/markdown; charset=utf-8',
      'latin.md': 'text/markdown',
      'utf16.txt': 'text/plain',
      'page.html': 'text/html; charset=utf-8',
      'pic.svg': 'image/svg+xml; charset=utf-8',
      'data.json': 'application/json; charset=utf-8',
      'data.yaml': 'application/yaml; charset=utf-8',
      'tool.py': 'text/x-python; charset=utf-8',
      'logo.png': 'image/png',
      'doc.pdf': 'application/pdf',
      LICENSE: 'text/plain; charset=utf-8',
      'strange.xyzzy': 'text/plain; charset=utf-8',
      'x.tar.gz': 'application/gzip',
      Makefile: 'application/octet-stream',
      'x.__proto__': 'application/octet-stream',
      'x.constructor': 'text/plain; charset=utf-8',
      '.bashrc': 'text/plain; charset=utf-8',
      'a.kt': 'text/plain; charset=utf-8',
      'a.PY': 'text/x-python; charset=utf-8',
      'empty.txt': 'text/plain; charset=utf-8',
      'big.bin': 'application/octet-stream'
    }
    for (const [path, type] of Object.entries(table)) {
      const response = await service.fetch(`${base}/${path}`)
      const expected = DEMO[path] ?? ''
      t.equal(response.status, 200, path)
      t.equal(response.headers.get('content-type'), type, path)
      t.equal(digest(response.bytes), digest(expected), path)
      const isSentAtOnce = Buffer.byteLength(expected) > MAX_HASHED_FIRST_BYTES
      const etag = response.headers.get('etag')
      // A large file has its tag once somebody has read it whole: the ledger may have.
      t.equal(etag, isSentAtOnce && etag === null ? null : `"${digest(expected)}"`, path)
      t.equal(response.headers.get('content-length'), String(Buffer.byteLength(expected)), path)
      t.equal(response.headers.get('x-content-type-options'), 'nosniff', path)
      t.equal(response.headers.get('content-security-policy'), "default-src 'none'; sandbox", path)
      t.equal(response.headers.get('cross-origin-resource-policy'), 'same-origin', path)
      t.equal(response.headers.get('referrer-policy'), 'no-referrer', path)
      t.equal(response.headers.get('accept-ranges'), 'bytes', path)
      t.equal(response.headers.get('vary'), 'Accept', path)
      t.equal(response.headers.get('cache-control'), 'no-cache', path)
      t.equal(response.headers.get('last-modified'), null, path)
    }
  })

  t.test('K47 K49: a very large file has its ETag as soon as somebody has read it whole', async (t) => {
    const file = join(service.root, 'demo/big.bin')
    const etag = `"${digest(BIG)}"`
    const etagOf = async (method: string) => (await service.fetch(`${base}/big.bin`, { method })).headers.get('etag')
    // A file that has just been written is hashed anew by each request.
    const touch = async () => {
      utimesSync(file, new Date(), new Date())
      await until(() => Date.now() - statSync(file).ctimeMs > 50)
    }
    await touch()
    t.strictSame([await etagOf('HEAD'), await etagOf('GET'), await etagOf('HEAD'), await etagOf('GET')],
      [null, null, etag, etag])
    await touch()
    t.equal(await etagOf('HEAD'), null)
    const answer = await service.fetch(`${base}/big.bin`, { headers: { 'if-none-match': etag } })
    t.equal(answer.status, 304)
    t.equal(await etagOf('HEAD'), etag)
  })

  t.test('K44: only an Accept that prefers JSON gets the JSON form', async (t) => {
    const table: ReadonlyArray<readonly [accept: string, path: string, json: boolean]> = [
      ['APPLICATION/JSON', 'a.md', true],
      ['application/json, text/markdown;q=0.9', 'a.md', true],
      [AXIOS, 'a.md', true],
      ['*/*', 'a.md', false],
      [BROWSER, 'page.html', false],
      ['image/*', 'logo.png', false],
      ['text/markdown, application/json;q=0.9', 'a.md', false],
      ['text/csv', 'a.md', false],
      ['application/json;q=0, */*', 'a.md', false],
      ['application/octet-stream', 'a.md', false]
    ]
    for (const [accept, path, json] of table) {
      const response = await service.fetch(`${base}/${path}`, { headers: { accept } })
      t.equal(response.status, 200)
      t.equal(response.headers.get('content-type')?.startsWith('application/json') ?? false, json, `${accept} ${path}`)
      t.equal(response.headers.get('vary'), 'Accept')
    }
    const none = await service.raw('GET', `${base}/a.md`)
    t.equal(none.headers['content-type'], 'text/markdown; charset=utf-8', 'no Accept header')
  })

  t.test('K17, K44: the JSON form is the object of read_file_in_skill', async (t) => {
    for (const path of ['a.md', 'latin.md', 'utf16.txt', 'empty.txt', 'data.json', 'page.html']) {
      const response = await service.fetch(`${base}/${path}`, { headers: { accept: 'application/json' } })
      t.equal(response.status, 200, path)
      t.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
      const tool = await service.post('/agent/tools/read_file_in_skill', { skill_name: 'demo', file_path: path })
      t.equal(response.text, tool.text, path)
    }
    const latin = await service.fetch(`${base}/latin.md`, { headers: { accept: 'application/json' } })
    t.equal(latin.text,
      '{"success":true,"skill_name":"demo","file_path":"latin.md","content":"café\\n","size_bytes":5,"encoding":"latin-1"}')
    const range = await service.fetch(`${base}/a.md`, { headers: { accept: 'application/json', range: 'bytes=0-1' } })
    t.equal(range.status, 200, 'JSON has no ranges')
  })

  t.test('K44: binary as JSON is 422, and base64 with ?encoding=base64', async (t) => {
    const json = { headers: { accept: 'application/json' } }
    const refused = await service.fetch(`${base}/logo.png`, json)
    t.equal(refused.status, 422)
    t.match(refused.json(), { code: 'file_not_text', error: "Cannot read file 'logo.png': not a text file" })
    const response = await service.fetch(`${base}/logo.png?encoding=base64`, json)
    t.equal(response.text, JSON.stringify({
      success: true,
      skill_name: 'demo',
      file_path: 'logo.png',
      content: BINARY.toString(
        'base64'),
      size_bytes: 8,
      encoding: 'base64'
    }))
    t.equal(response.headers.get('etag'), `"${digest(Buffer.from(response.text))}"`,
      'of the whole answer, which names skill and file')
    t.match((await service.fetch(`${base}/a.md?encoding=base64`, json)).json(),
      { content: Buffer.from('é\n').toString('base64'), size_bytes: 3 })
    t.match((await service.fetch(`${base}/empty.txt?encoding=base64`, json)).json(), { content: '', size_bytes: 0 })
    t.ok((await service.fetch(`${base}/logo.png?encoding=base64`)).bytes.equals(BINARY), 'the query chooses no form')
  })

  t.test('K44: Range, on a file from memory and on one that is streamed', async (t) => {
    for (const [path, bytes] of [['edge.bin', EDGE], ['over.bin', OVER]] as const) {
      const size = bytes.length
      const table: ReadonlyArray<readonly [range: string, start: number, end: number]> = [
        ['bytes=0-0', 0, 0],
        ['bytes=0-99', 0, 99],
        ['bytes=100-', 100, size - 1],
        ['bytes=-1', size - 1, size - 1],
        ['bytes=-500', size - 500, size - 1],
        [`bytes=-${size * 2}`, 0, size - 1],
        [`bytes=${size - 1}-`, size - 1, size - 1],
        [`bytes=5-${size * 2}`, 5, size - 1],
        ['bytes=0-99999999999999999999', 0, size - 1],
        ['bytes=65530-131080', 65530, 131080]
      ]
      for (const [range, start, end] of table) {
        const response = await service.fetch(`${base}/${path}`, { headers: { range } })
        t.equal(response.status, 206, `${path} ${range}`)
        t.equal(response.headers.get('content-range'), `bytes ${start}-${end}/${size}`, `${path} ${range}`)
        t.equal(response.headers.get('content-length'), String(end - start + 1))
        t.equal(digest(response.bytes), digest(bytes.subarray(start, end + 1)), `${path} ${range}`)
        t.equal(response.headers.get('etag'), `"${digest(bytes)}"`)
      }
      for (const range of [`bytes=${size}-`, 'bytes=-0', `bytes=${size}-${size + 5}`, 'bytes=99999999999999999999-']) {
        const response = await service.fetch(`${base}/${path}`, { headers: { range } })
        t.equal(response.status, 416, `${path} ${range}`)
        t.equal(response.headers.get('content-range'), `bytes */${size}`)
        t.match(response.json(), { code: 'range_not_satisfiable' })
        t.equal(response.headers.get('etag'), null)
      }
    }
    for (const range of ['bytes=0-1,3-4', `bytes=${'0-1,'.repeat(1000)}0-1`, 'bytes=5-1', 'bytes=abc', 'bytes=',
      'bytes=-', 'lines=0-1', '0-1']) {
      const response = await service.fetch(`${base}/tool.py`, { headers: { range } })
      t.strictSame([response.status, response.text], [200, DEMO['tool.py']], range.slice(0, 40))
    }
    t.equal((await service.fetch(`${base}/empty.txt`, { headers: { range: 'bytes=0-0' } })).status, 416)
  })

  t.test('K44: If-Range gives the range only of the very same content', async (t) => {
    for (const path of ['edge.bin', 'over.bin']) {
      const { headers } = await service.fetch(`${base}/${path}`, { method: 'HEAD' })
      const etag = headers.get('etag') ?? ''
      for (const [value, status] of [[etag, 206], [`W/${etag}`, 200], ['"x"', 200],
        ['Fri, 01 Jan 2100 00:00:00 GMT', 200]] as const) {
        const response = await service.fetch(`${base}/${path}`, { headers: { range: 'bytes=0-1', 'if-range': value } })
        t.equal(response.status, status, `${path} ${value}`)
      }
    }
  })
})

t.test('K44: a text that is streamed has its charset too, whether it was read before or not', async (t) => {
  const large = {
    // The characters lie over the ends of the pieces that are read.
    'utf8.md': Buffer.from('a' + 'é'.repeat(1_200_000)),
    'latin.md': Buffer.from(`${'a'.repeat(1_300_000)}\xe9`, 'latin1'),
    'cut.md': Buffer.from('é'.repeat(200_000)).subarray(0, -1)
  }
  const { fetch } = await buildService(t, { files: { demo: { 'SKILL.md': '# Demo\n', ...large } } })
  const types = { 'utf8.md': 'text/markdown; charset=utf-8', 'latin.md': 'text/markdown', 'cut.md': 'text/markdown' }
  for (const [path, type] of Object.entries(types)) {
    for (const init of [{}, { method: 'HEAD' }, { headers: { range: 'bytes=1-2' } }]) {
      t.equal((await fetch(`${base}/${path}`, init)).headers.get('content-type'), type, path)
    }
    await fetch(`${base}/${path}`, { headers: { accept: 'application/json' } })
    t.equal((await fetch(`${base}/${path}`)).headers.get('content-type'), type, `${path}, in memory`)
  }
})

t.test('K44: no file stays open behind a 304, a HEAD, a 416, a part or a client that goes away', async (t) => {
  let open = 0
  let allClosed = () => {}
  const disk = createFaultyDisk({
    intercept: (call) => {
      if (call === 'open') open++
      if (call === 'close' && --open === 0) allClosed()
    }
  })
  const service = await buildService(t, { files: LARGE_FILES, options: { disk } })
  const { headers } = await service.fetch(`${base}/big.bin`, { method: 'HEAD' })
  await service.fetch(`${base}/big.bin`, { headers: { 'if-none-match': headers.get('etag') ?? '' } })
  await service.fetch(`${base}/big.bin`, { headers: { range: 'bytes=99999999-' } })
  await service.fetch(`${base}/big.bin`, { headers: { range: 'bytes=0-1' } })

  const aborted = service.logged(({ msg }) => msg === 'request aborted')
  const connection = await openRaw(service.url)
  connection.send(request('GET', `${base}/big.bin`))
  await once(connection.socket, 'data')
  t.ok(open > 0, 'it is being sent')
  connection.destroy()
  await aborted
  if (open > 0) await new Promise<void>((resolve) => { allClosed = resolve })
  t.equal(open, 0)
})

t.test('K18: a file that changes before the first byte of it is out is unavailable for now, and leaves ' +
  'nothing open', async (t) => {
  let open = 0
  let isKnown = false
  let length = 0
  const disk = createFaultyDisk({
    intercept: (call, _path, file) => {
      if (!file.endsWith('big.bin')) return
      if (call === 'open') open++
      if (call === 'close') open--
      if (call === 'read' && isKnown) truncateSync(file, length -= 1)
    }
  })
  const service = await buildService(t, { files: LARGE_FILES, options: { disk } })
  await service.fetch(`${base}/big.bin`, { method: 'HEAD' })
  await service.fetch(`${base}/big.bin`)
  length = statSync(join(service.root, 'demo/big.bin')).size
  isKnown = true
  const answer = await service.fetch(`${base}/big.bin`, { headers: { range: 'bytes=0-9' } })
  t.match(answer, { status: 503 })
  t.match(answer.json(), { code: 'skill_changing', error: "Cannot read file 'big.bin': I/O error" })
  t.equal(open, 0)
})

t.test('K44: a large file that is replaced, removed or closed to others while it is sent arrives whole; one that is ' +
  'rewritten does not', async (t) => {
  let change: ((file: string) => void) | undefined
  let reads = 0
  const disk = createFaultyDisk({
    intercept: (call, _path, file) => {
      if (call !== 'read' || !file.endsWith('over.bin')) return
      reads++
      change?.(file)
      change = undefined
    }
  })
  const service = await buildService(t, { files: LARGE_FILES, options: { disk } })
  const file = join(service.root, 'demo/over.bin')
  const before = readFileSync(file)
  const temporary = join(service.root, 'demo/new.bin')
  const { mtime } = statSync(file)
  const changes: ReadonlyArray<readonly [what: string, act: (file: string) => void, isWhole: boolean]> = [
    ['replaced', (file) => { writeFileSync(temporary, 'new'); renameSync(temporary, file) }, true],
    ['removed', (file) => { rmSync(file) }, true],
    ['permissions', (file) => { chmodSync(file, 0o400) }, true],
    ['rewritten', (file) => { writeFileSync(file, Buffer.alloc(before.length)) }, false],
    ['rewritten, with its old time',
      (file) => { writeFileSync(file, Buffer.alloc(before.length)); utimesSync(file, mtime, mtime) }, false]
  ]
  for (const [what, act, isWhole] of changes) {
    rmSync(file, { force: true })
    writeFileSync(file, before)
    utimesSync(file, mtime, mtime)
    // The digest of a file that has just been written is not kept.
    await until(async () => {
      reads = 0
      await service.fetch(`${base}/over.bin`, { method: 'HEAD' })
      return reads === 0
    })
    change = act
    const answer = await service.fetch(`${base}/over.bin`).catch(() => undefined)
    t.equal(change, undefined, what)
    t.equal(answer?.status === 200 && answer.bytes.equals(before), isWhole, what)
  }
})
