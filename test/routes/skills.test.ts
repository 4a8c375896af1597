import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import { MAX_MAIN_FILE_BYTES } from '../../src/core/shared/limits.ts'
import { type Answer, buildService, type Files } from '../helper/build.ts'

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

t.test('one service', async (t) => {
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
    for (const path of ['/skills', '/skills/demo', '/skills/demo?x=1', '/skills/demo/files',
      '/skills/demo/files/SKILL.md', '/skills/nope', '/livez', '/agent/tools']) {
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
    const strangers = ['/nope', '/skill', '/skills/demo/nope', '/agent', '/favicon.ico', '//skills/demo',
      '/skills/demo/', '/SKILLS/demo', '/skills%2fdemo', '/skills;x=1/demo', '/skills../etc/passwd']
    for (const path of strangers) {
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
