import { createHash } from 'node:crypto'
import { type Dirent, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { type Disk, localDisk } from '../../src/core/read/disk.ts'
import { MAX_MAIN_FILE_BYTES, MAX_SKILL_BYTES, MAX_SKILL_ENTRIES } from '../../src/core/shared/limits.ts'
import { type Answer, buildService, type Files, type Service } from '../helper/build.ts'
import { createFaultyDisk, osError } from '../helper/disk.ts'
import { openEvents } from '../helper/event-stream.ts'
import { modernRequest } from '../helper/mcp.ts'
import { skill, skillText, until } from '../helper/skills.ts'

const DOCUMENT = '\uFEFF---\r\nname: demo\r\ndescription: A test\r\n---\r\n# Demo\r\n\r\n  "quotes", \\ and é \u2028\n'
const FULL_WIDTH_A = '\uFF21'
const EMOJI = '\u{1F600}'
const LATIN1 = Buffer.from('caf\xe9\n', 'latin1')

const FILES: Files = {
  demo: {
    'SKILL.md': DOCUMENT,
    references: { 'a.md': '# A\n' },
    'logo.png': Buffer.from([0x89, 0x50, 0, 1]),
    [EMOJI]: '',
    '\uFFFD': '',
    '.git': { config: 'x' },
    '.env': 'x'
  },
  bare: { 'x.md': 'x' },
  latin: { 'SKILL.md': LATIN1 },
  full: { 'SKILL.md': 'a'.repeat(MAX_MAIN_FILE_BYTES) },
  large: { 'SKILL.md': 'a'.repeat(MAX_MAIN_FILE_BYTES + 1) },
  both: { 'SKILL.md': 'lower', 'SKILL.MD': 'upper' }
}

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8'
const AXIOS = 'application/json, text/plain, */*'

function sha256 (bytes: Buffer | string): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** What every JSON answer to a GET carries. */
function checkJson (t: Test, response: Answer): void {
  t.equal(response.status, 200)
  t.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
  t.equal(response.headers.get('cache-control'), 'no-cache')
  t.equal(response.headers.get('x-content-type-options'), 'nosniff')
  t.equal(response.headers.get('content-length'), String(response.bytes.length))
  t.match(response.headers.get('etag'), /^"[\da-f]{64}(?:-\w+)?"$/)
}

t.test('K11, K42: GET /skills is the object of list_skills, every folder, sorted', async (t) => {
  const service = await buildService(t, {
    files: {
      ...FILES,
      Zeta: { x: '' },
      [FULL_WIDTH_A]: { x: '' },
      [EMOJI]: { x: '' },
      '.hidden': { 'SKILL.md': '' },
      'README.md': 'no skill'
    }
  })
  const response = await service.fetch('/skills')
  checkJson(t, response)
  t.equal(response.text, '{"skills":["Zeta","bare","both","demo","full","large","latin","\uFF21","\u{1F600}"]}',
    'by code point, not by UTF-16 unit')
  t.same((await service.post('/agent/tools/list_skills', {})).text, response.text)
  t.match((await service.fetch('/skills?unknown=1')).json(), { code: 'bad_query' })
})

t.test('K42 K43: one service', async (t) => {
  const service = await buildService(t, { files: FILES })

  t.test('K15, K42: GET /skills/:name is the object of get_skill, verbatim', async (t) => {
    const response = await service.fetch('/skills/demo')
    checkJson(t, response)
    t.equal(response.text, JSON.stringify({ skill_name: 'demo', documentation: DOCUMENT }))
    t.equal(response.headers.get('vary'), 'Accept')
    t.equal((await service.post('/agent/tools/get_skill', { skill_name: 'demo' })).text, response.text)
  })

  t.test('K16: exactly 1,048,576 bytes are returned, one more is refused in every form', async (t) => {
    const full = await service.fetch('/skills/full')
    t.equal((full.json() as { documentation: string }).documentation.length, MAX_MAIN_FILE_BYTES)
    for (const accept of ['application/json', 'text/markdown', 'text/plain']) {
      const response = await service.fetch('/skills/large', { headers: { accept } })
      t.equal(response.status, 413)
      t.match(response.json(), { code: 'main_file_too_large', error: "SKILL.MD too large (>1MB) for skill 'large'" })
    }
    const hint = await service.fetch('/skills/large/files/SKILL.md')
    t.equal(hint.bytes.length, MAX_MAIN_FILE_BYTES + 1, 'the way out that the problem names')
  })

  t.test('K42: Accept chooses between JSON and the bytes', async (t) => {
    const json = 'application/json; charset=utf-8'
    const markdown = 'text/markdown; charset=utf-8'
    const plain = 'text/plain; charset=utf-8'
    const table: ReadonlyArray<readonly [accept: string, type: string]> = [
      ['*/*', json],
      ['application/json', json],
      ['application/*', json],
      [AXIOS, json],
      [BROWSER, json],
      ['image/png', json],
      ['text/html', json],
      ['garbage', json],
      ['', json],
      ['text/markdown', markdown],
      ['Text/Markdown', markdown],
      ['text/plain', plain],
      ['text/markdown, application/json;q=0.9', markdown],
      ['text/markdown;q=0.5, application/json;q=0.9', json],
      ['text/markdown;q=0.5, text/plain;q=0.9', plain],
      ['application/json;q=0, text/*', markdown],
      ['text/*', markdown],
      ['text/markdown;q=0', json],
      ['text/markdown, text/plain', markdown],
      ['TEXT/PLAIN;charset=utf-8', plain],
      ['application/*;q=0.2, text/plain;q=0.1', json],
      ...['text/plain;q=NaN', ';;;,,,', 'q=1', '/', '"', ','.repeat(8_000), `a/b;${'x='.repeat(4_000)}`,
        `"${'\\"'.repeat(4_000)}`].map((accept) => [accept, json] as const),
      [`text/markdown, ${'a/b, '.repeat(5000)}`.slice(0, 8000), markdown]
    ]
    for (const [accept, type] of table) {
      const response = await service.fetch('/skills/demo', { headers: { accept } })
      t.equal(response.status, 200)
      t.equal(response.headers.get('content-type'), type, accept.slice(0, 100))
      t.equal(response.headers.get('vary'), 'Accept')
      if (type !== json) t.ok(response.bytes.equals(Buffer.from(DOCUMENT)), 'the bytes, BOM and line ends kept')
    }
    const none = await service.raw('GET', '/skills/demo')
    t.equal(none.headers['content-type'], json, 'no Accept header')
  })

  t.test('K42, K44: the bytes come with validators, range support and a sandbox', async (t) => {
    const response = await service.fetch('/skills/demo', { headers: { accept: 'text/markdown' } })
    t.equal(response.headers.get('content-security-policy'), "default-src 'none'; sandbox")
    t.equal(response.headers.get('x-content-type-options'), 'nosniff')
    t.equal(response.headers.get('accept-ranges'), 'bytes')
    t.equal(response.headers.get('last-modified'), null, 'it differs between replicas')
    const part = await service.fetch('/skills/demo', { headers: { accept: 'text/markdown', range: 'bytes=3-5' } })
    t.equal(part.status, 206)
    t.equal(part.text, '---')
    const whole = await service.fetch('/skills/demo', { headers: { range: 'bytes=3-5' } })
    t.equal(whole.status, 200, 'JSON has no ranges')
    const beyond = await service.fetch('/skills/demo', { headers: { accept: 'text/plain', range: 'bytes=9999-' } })
    t.equal(beyond.status, 416)
    t.equal(beyond.headers.get('content-range'), `bytes */${Buffer.byteLength(DOCUMENT)}`)
  })

  t.test('K42, K48: a main file that is not UTF-8 is 422 as JSON, and its bytes otherwise, ' +
    'without a charset', async (t) => {
    const json = await service.fetch('/skills/latin')
    t.equal(json.status, 422)
    t.match(json.json(), { code: 'main_file_not_utf8', error: "SKILL.MD contains invalid UTF-8 for skill 'latin'" })
    for (const accept of ['text/markdown', 'text/plain']) {
      const bytes = await service.fetch('/skills/latin', { headers: { accept } })
      t.equal(bytes.status, 200)
      t.equal(bytes.headers.get('content-type'), accept)
      t.ok(bytes.bytes.equals(LATIN1))
    }
  })

  t.test('K43: the manifest lists every file, and its digests are those of the bytes', async (t) => {
    const response = await service.fetch('/skills/demo/files')
    checkJson(t, response)
    const { skill_name: name, revision, files } = response.json() as Manifest
    t.equal(name, 'demo')
    t.match(revision, /^sha256:[\da-f]{64}$/)
    t.same(Object.keys(response.json() as object), ['skill_name', 'revision', 'files'])
    t.same(files.map(({ path, media_type: type, size_bytes: size }) => [path, type, size]), [
      ['SKILL.md', 'text/markdown', Buffer.byteLength(DOCUMENT)],
      ['logo.png', 'image/png', 4],
      ['references/a.md', 'text/markdown', 4],
      ['\uFFFD', 'text/plain', 0],
      [EMOJI, 'text/plain', 0]
    ], 'by code point')
    for (const { path, digest } of files) {
      const file = await service.fetch(`/skills/demo/files/${encodeURI(path)}`)
      t.equal(digest, `sha256:${sha256(file.bytes)}`, path)
      t.equal(file.headers.get('etag'), `"${digest.slice(7)}"`, 'the ETag of a file is its digest')
    }
  })

  t.test('K47: other methods are 405 with Allow, and unknown routes 404', async (t) => {
    for (const path of ['/skills', '/skills/demo?x=1', '/skills/demo/files/SKILL.md', '/skills/nope', '/livez']) {
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY']) {
        const response = await service.raw(method, path)
        t.equal(response.status, 405, `${method} ${path}`)
        t.match(response.headers.allow, /^(?=.*\bGET\b)(?=.*\bHEAD\b)/)
        t.match(response.json(), { code: 'method_not_allowed' })
      }
    }
    for (const path of ['/agent/tool-call', '/agent/tools/get_skill']) {
      const response = await service.fetch(path)
      t.equal(response.status, 405)
      t.equal(response.headers.get('allow'), 'POST')
    }
    for (const path of ['/nope', '/skill', '/skills/demo/nope', '/agent', '/favicon.ico']) {
      for (const method of ['GET', 'HEAD', 'POST', 'DELETE']) {
        const response = await service.raw(method, path)
        t.equal(response.status, 404, `${method} ${path}`)
        if (method !== 'HEAD') t.match(response.json(), { code: 'route_not_found', instance: path })
      }
    }
  })
})

interface Manifest {
  readonly skill_name: string
  readonly revision: string
  readonly files: ReadonlyArray<{
    readonly path: string
    readonly size_bytes: number
    readonly media_type: string
    readonly digest: string
  }>
}

const link = (target: string) => t.fixture('symlink', target)

const ARCHIVED: Files = {
  demo: {
    'SKILL.md': '# Demo\n',
    docs: { 'é.md': 'é\n', '.env.example': 'x' },
    'logo.png': Buffer.from([0x89, 0x50, 0, 1]),
    '.env': 'x',
    '.git': { config: 'x' },
    folder: {},
    inside: link('docs/é.md'),
    out: link('../empty'),
    passwd: link('/etc/passwd'),
    dangling: link('nothing'),
    all: link('.')
  },
  'Crème "b%" (1)': { 'SKILL.md': 'x' },
  empty: {}
}

const PATH = '/skills/demo/archive.zip'

/** Names in the central directory. */
function namesIn (zip: Buffer): string[] {
  const names: string[] = []
  for (let at = zip.readUInt32LE(zip.length - 6); zip.readUInt32LE(at) === 0x02014b50;) {
    const length = zip.readUInt16LE(at + 28)
    names.push(zip.toString('utf8', at + 46, at + 46 + length))
    at += 46 + length
  }
  return names
}

t.test('K45: one service', async (t) => {
  const service = await buildService(t, { files: ARCHIVED })

  t.test('K45: every file of the manifest, the main file at the root, or all in one folder', async (t) => {
    const { files } = (await service.fetch('/skills/demo/files')).json() as { files: ReadonlyArray<{ path: string }> }
    const paths = files.map(({ path }) => path)
    t.strictSame(paths, ['SKILL.md', 'docs/.env.example', 'docs/é.md', 'inside', 'logo.png'])
    for (const query of ['', '?wrap=false']) {
      const response = await service.fetch(PATH + query)
      t.equal(response.status, 200)
      t.equal(response.headers.get('content-type'), 'application/zip')
      t.equal(response.headers.get('content-length'), String(response.bytes.length))
      t.equal(response.headers.get('cache-control'), 'no-cache')
      t.equal(response.headers.get('x-content-type-options'), 'nosniff')
      t.equal(response.headers.get('content-disposition'), 'attachment; filename="demo.zip"')
      t.same(namesIn(response.bytes), paths)
    }
    const wrapped = await service.fetch(`${PATH}?wrap=true`)
    t.same(namesIn(wrapped.bytes), paths.map((path) => `demo/${path}`))
  })

  t.test('K45: the name of the skill is that of the download, whatever it is', async (t) => {
    const name = 'Crème "b%" (1)'
    const response = await service.fetch(`/skills/${encodeURIComponent(name)}/archive.zip?wrap=true`)
    t.equal(response.headers.get('content-disposition'), 'attachment; filename="Crème \\"b%\\" (1).zip"')
    t.same(namesIn(response.bytes), [`${name}/SKILL.md`])
    t.equal((await service.fetch('/skills/empty/archive.zip')).bytes.length, 22)
  })

  t.test('K45: any range is that part of the whole', async (t) => {
    const { bytes, headers } = await service.fetch(PATH)
    const size = bytes.length
    const position = fc.nat(size - 1)
    await fc.assert(fc.asyncProperty(position, position, async (a, b) => {
      const [start, end] = a < b ? [a, b] : [b, a]
      for (const range of [`bytes=${start}-${end}`,
        ...end === size - 1 ? [`bytes=${start}-`, `bytes=-${size - start}`] : []]) {
        const response = await service.fetch(PATH, { headers: { range, 'if-range': headers.get('etag') ?? '' } })
        t.strictSame([response.status, response.headers.get('content-range')], [206, `bytes ${start}-${end}/${size}`])
        t.ok(response.bytes.equals(bytes.subarray(start, end + 1)), range)
      }
    }), { numRuns: 40, examples: [[0, 3], [50, size - 1], [size - 22, size - 1]] })
    const beyond = await service.fetch(PATH, { headers: { range: `bytes=${size}-` } })
    t.equal(beyond.status, 416)
    t.equal(beyond.headers.get('content-range'), `bytes */${size}`)
    t.equal(beyond.headers.get('content-disposition'), null)
  })

  t.test('K48: what is no skill, and other methods', async (t) => {
    t.match((await service.fetch('/skills/nope/archive.zip')).json(), { status: 404, code: 'skill_not_found' })
    t.match((await service.fetch('/skills/..%2Fdemo/archive.zip')).json(), { status: 400, code: 'invalid_skill_name' })
    t.equal((await service.fetch(PATH, { method: 'POST' })).status, 405)
    t.equal((await service.fetch('/skills/demo/archive.tar.gz')).status, 404)
  })
})

t.test('K53: what fails before the first byte is a problem like any other', async (t) => {
  let reads = 0
  let fails = false
  const disk = createFaultyDisk({
    intercept: (call, _path, file) => {
      if (call !== 'read' || !file.endsWith('/a')) return
      reads++
      if (fails) throw osError('EIO')
    }
  })
  const service = await buildService(t,
    { files: { demo: { a: 'a', z: 'one' } }, options: { disk, keep: { keepMs: 0 } } })
  // Once the file is old enough for its checksum to be kept.
  await until(async () => {
    reads = 0
    await service.fetch(PATH, { method: 'HEAD' })
    return reads === 0
  })
  fails = true
  t.equal((await service.fetch(PATH, { method: 'HEAD' })).status, 200, 'nothing is read for a HEAD')
  const response = await service.fetch(PATH)
  t.equal(response.status, 500)
  t.match(response.json(), { code: 'file_io_error', error: "Cannot read file 'a': I/O error" })
  for (const name of ['etag', 'content-disposition', 'accept-ranges']) t.equal(response.headers.get(name), null, name)
  t.equal(response.headers.get('content-length'), String(response.bytes.length))
})

// One skill of any size takes nothing from the others: each api that lists skills, with too much in one of them.

const LARGE_FILES = { large: skill('large'), small: skill('small', { 'a.md': 'a' }) }

interface Entry {
  readonly name: string
  readonly revision: string | null
  readonly valid: boolean
  readonly findings: ReadonlyArray<{ readonly code: string }>
}

async function entriesOf (service: Service): Promise<readonly Entry[]> {
  return ((await service.fetch('/catalog')).json() as { skills: Entry[] }).skills
}

/** What lists say of `small`, next to `large`. */
async function checkLists (t: Test, service: Service): Promise<void> {
  const [large, small] = await entriesOf(service)
  t.match(large, { name: 'large', revision: null, valid: true })
  t.match(large?.findings.at(-1), { code: 'too_many_bytes' })
  t.match(small, { name: 'small', revision: /^sha256:/, findings: [] })
  for (const index of ['agent-skills', 'skills']) {
    const { skills } = (await service.fetch(`/.well-known/${index}/index.json`)).json() as {
      skills: Array<{ name: string }>
    }
    t.same(skills.map(({ name }) => name), ['small'], index)
  }
  t.match(await (await fetch(`${service.url}/mcp`, modernRequest({ method: 'skills/list' }))).text(),
    'skill://small/a.md')
  t.match((await service.fetch('/catalog?q=small%20large')).json(), { total: 2 })
  t.match((await service.fetch('/skills')).json(), { skills: ['large', 'small'] })
}

/** A change of the other skill is reported. */
async function checkEvents (service: Service): Promise<void> {
  await until(() => service.skills.parts.refresher.state.status === 'watching')
  const stream = await openEvents(service.url)
  writeFileSync(join(service.root, 'small/a.md'), 'changed')
  await stream.until('the change', () => stream.events.some(({ data }) => data['name'] === 'small'))
  stream.destroy()
}

t.test('K9: a file of terabytes keeps nobody else\'s entry back, and is streamed', async (t) => {
  let reads = 0
  const disk = createFaultyDisk({
    intercept: (call, _path, file) => { if (call === 'read' && file.endsWith('huge.bin')) reads++ }
  })
  const service = await buildService(t, {
    files: LARGE_FILES,
    options: {
      disk, watcher: true, prepare: (folder) => { makeHuge(join(folder, 'skills/large/huge.bin')) }
    }
  })
  await checkLists(t, service)
  for (const path of ['files', 'archive.zip', 'files/SKILL.md?revision=current', '?revision=current']) {
    const answer = await service.fetch(`/skills/large${path.startsWith('?') ? '' : '/'}${path}`)
    t.equal(answer.status, 413, path)
    t.match(answer.json(), { code: 'skill_too_large' }, path)
  }
  t.match(await service.fetch('/skills/large', { headers: { accept: 'text/markdown' } }),
    { status: 200, text: skillText('large') })
  t.match(await service.fetch('/skills/large/files/SKILL.md'), { status: 200, text: skillText('large') })
  t.equal(reads, 0, 'nobody has read it')
  const head = await service.fetch('/skills/large/files/huge.bin', { method: 'HEAD' })
  t.ok(Number(head.headers.get('content-length')) > MAX_SKILL_BYTES)
  t.equal(head.headers.get('etag'), null, 'nobody knows its digest')
  t.match(await service.fetch('/skills/large/files/huge.bin', { headers: { range: 'bytes=0-9' } }),
    { status: 206, bytes: Buffer.alloc(10) })
  t.match(await service.fetch('/skills/large/files/huge.bin', { headers: { range: 'bytes=0-9', 'if-match': '"x"' } }),
    { status: 413 })
  await checkEvents(service)
  truncateSync(join(service.root, 'large/huge.bin'), 10)
  t.match((await service.fetch('/skills/large/files')).json(),
    { files: [{ path: 'SKILL.md' }, { path: 'huge.bin', size_bytes: 10 }] }, 'as soon as it is small')
})

/** As large as the file system has it: of 8 TiB on ext4, of nothing but a hole. */
function makeHuge (path: string): void {
  writeFileSync(path, '')
  try {
    truncateSync(path, 8 * 1_024 ** 4)
  } catch {
    truncateSync(path, 50 * 1_024 ** 3)
  }
}

/** One file more than a skill may have: to write them all takes longer than the test. */
function withManyFiles (disk: Disk): Disk {
  return {
    ...disk,
    lstat: (path) => disk.lstat(path.replace(/file-\d+$/, 'SKILL.md')),
    async readdir (path) {
      const entries = await disk.readdir(path)
      const [first] = entries
      if (first === undefined || !path.endsWith('/large')) return entries
      const more = Array.from({ length: MAX_SKILL_ENTRIES },
        (_, index): Dirent => Object.create(first, { name: { value: `file-${index}` } }))
      return [...more, ...entries]
    }
  }
}

t.test('K9: a skill with too many files keeps nobody else\'s entry back, and its document is served', async (t) => {
  const disk = createFaultyDisk({ disk: withManyFiles(localDisk) })
  const service = await buildService(t, { files: LARGE_FILES, options: { disk } })
  // Each of these asks the disk for 20,000 files.
  t.match(await entriesOf(service), [
    { name: 'large', revision: null, valid: true, findings: [{ code: 'too_many_files' }] },
    { name: 'small', revision: /^sha256:/ }
  ])
  t.match(await service.fetch('/skills/large/files'), { status: 413, text: /skill_too_large/ })
  t.match(await service.fetch('/skills/large/files/SKILL.md'), { status: 200, text: skillText('large') })
})
