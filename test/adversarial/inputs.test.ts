import fs, { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { buildService, type Files, type Service } from '../helper/build.ts'
import type { RawResponse } from '../helper/raw-http.ts'
import { skill, until } from '../helper/skills.ts'
import { createFaultyDisk } from '../helper/disk.ts'

/** Lies outside the root, in a sibling with its prefix, and in what K8 hides: no answer may ever hold it. */
const CANARY = 'CANARY-7f3a'

const FILES: Files = {
  'README.md': CANARY,
  '.hidden': { 'SKILL.md': CANARY },
  '.git': { config: CANARY },
  demo: {
    'SKILL.md': '# Demo\n',
    references: { 'a.md': '# A\n' },
    '100%.txt': 'percent',
    'a b.md': 'blank',
    'é.md': 'nfc',
    'foo..bar.txt': 'dots',
    '.hidden.md': 'hidden',
    '.env': CANARY,
    '.env.example': 'example',
    '.git': { config: CANARY },
    '.github': { 'x.yml': 'x: 1' },
    modules: { x: { 'index.js': 'x' } },
    sub: { '.env': CANARY },
    'a+b.txt': 'plus',
    'a;b.txt': 'semicolon',
    'a,b@c!.txt': 'comma',
    'a?b#c.txt': 'question',
    '%2e%2e': 'two encoded dots',
    'empty.txt': '',
    up: t.fixture('symlink', '..'),
    'secret.txt': t.fixture('symlink', '../../outside/secret.txt')
  },
  'demo-evil': { 'x.md': 'evil' },
  é: { 'SKILL.md': 'nfc' },
  upper: { 'SKILL.MD': 'upper' }
}
const SIBLINGS: Files = { 'skills-evil': { 'x.md': CANARY }, outside: { 'secret.txt': CANARY } }

/** For tests one after the other: the last one makes skills of names that the first one sees refused. */
const service = await buildService(t, { files: FILES, options: { siblings: SIBLINGS } })

/** What an answer must be; the sentence is compared where it is not left open. */
interface Expected {
  readonly statuses: readonly number[]
  readonly error?: string
  readonly code?: string
}

const name16 = (name: string): Expected =>
  ({
    statuses: [400],
    code: 'invalid_skill_name',
    error: `Invalid skill name: '${name}'. Skill names must not contain '/', '\\', or '..'`
  })
const NAME18: Expected = {
  statuses: [400], code: 'invalid_skill_name', error: 'Invalid skill name: must not contain special characters'
}
const noSkill = (name: string): Expected =>
  ({ statuses: [404], code: 'skill_not_found', error: `Skill '${name}' not found in skills folder` })
const TRAVERSAL: Expected = {
  statuses: [403], code: 'path_traversal', error: 'Path traversal detected: cannot access files outside skill folder'
}
const noFile = (file: string): Expected =>
  ({ statuses: [404], code: 'file_not_found', error: `File '${file}' not found in skill 'demo'` })
const isDirectory = (file: string): Expected =>
  ({ statuses: [404], code: 'file_is_directory', error: `Cannot read file '${file}': is a directory` })
const BADURL: Expected = { statuses: [400], code: 'bad_url' }
const NOROUTE: Expected = { statuses: [404], code: 'route_not_found' }

/** Sends the target as GET and as HEAD, and checks what holds for every answer. */
async function attack (t: Test, target: string, expected: Expected): Promise<RawResponse> {
  const shown = JSON.stringify(target.length > 80 ? `${target.slice(0, 80)}… (${target.length})` : target)
  const response = await service.raw('GET', target)
  const { status, text } = response
  t.ok(expected.statuses.includes(status), `${shown}: ${status}`, { expected, text: text.slice(0, 400) })
  t.notMatch(response.headerLines.join('\n') + text, CANARY)
  if (status >= 400) {
    t.notMatch(text, /\bE(?:NOENT|ACCES|ISDIR|NAMETOOLONG|LOOP|INVAL|NOTDIR)\b|errno|\n +at |node:/,
      `${shown}: nothing of the inside`)
    const problem = response.json() as { readonly code: string, readonly error: string, readonly detail: string }
    t.notOk((problem.error + problem.detail).includes(service.folder), `${shown}: no server path`)
    if (expected.code !== undefined) t.equal(problem.code, expected.code, shown)
    if (expected.error !== undefined) t.equal(problem.error, expected.error, shown)
  }
  const head = await service.raw('HEAD', target)
  t.equal(head.status, status, `HEAD ${shown}`)
  t.equal(head.body.length, 0)
  return response
}

/** One entry for each request, each of one line, and nothing in them is the canary. */
async function checkLog (t: Test): Promise<void> {
  // All but the one by which the helper reads the document that it holds answers against.
  const entries = () => service.log().filter(({ msg, url }) =>
    /^(?:request (?:completed|aborted)|malformed HTTP request)$/.test(String(msg)) && url !== '/openapi.json')
  // The last entry is written when its connection has closed.
  await until(() => entries().length >= service.sent)
  t.equal(entries().length, service.sent, 'one entry for each request')
  const text = service.logText()
  t.notMatch(text, CANARY)
  t.notOk([...text].some((character) => character < ' ' && character !== '\n'), 'control characters are escaped')
  t.ok(service.log().every(({ level }) => Number(level) < 50), 'no request was an error of the service')
}

/** Names as they stand in the URL. */
const names = [
  '..', '%2e%2e', '.%2e', '%2E.', '', 'demo%2ffiles%2fSKILL.md', 'demo%2f..', 'demo%2f', 'a%5cb', 'a\\b', '..%5cdemo',
  'foo..bar', 'demo..', 'demo%2f..%2fother', '.', '%2e', '%252e%252e', 'demo%252fx', 'demo%00', 'demo%0a', '%1b[31m',
  'Demo', 'DEMO', 'demo%20', '%20demo', 'demo.', 'demo::$DATA', '.hidden', '.git', 'README.md', '__proto__',
  'constructor', 'toString', 'hasOwnProperty', '%e2%80%ae', '%e2%80%8bdemo', '%ef%bc%8e%ef%bc%8e', 'e%cc%81',
  'demo;x=1', 'a'.repeat(255), 'a'.repeat(1000)
]

const isRefused = (name: string) => name === '' || /[/\\]|\.\./.test(name)

type ExpectedOfName = (name: string) => Expected
const byK16: ExpectedOfName = (name) => isRefused(name) ? name16(name) : noSkill(name)
const byK18: ExpectedOfName = (name) => isRefused(name) ? NAME18 : noSkill(name)
const notListed: ExpectedOfName = () => ({ statuses: [404], code: 'artifact_not_found' })
const DIGEST = '0'.repeat(64)

/** Routes with a name, which `*` stands for, and how they refuse a bad one. */
const namedRoutes: ReadonlyArray<readonly [route: string, expected: ExpectedOfName]> = [
  ['/skills/*', byK16],
  ['/skills/*/files', byK18],
  ['/skills/*/files/SKILL.md', byK18],
  ['/skills/*/archive.zip', byK18],
  ['/catalog/*', byK16],
  ['/.well-known/skills/*/SKILL.md', notListed],
  [`/.well-known/agent-skills/*/${DIGEST}/SKILL.md`, notListed],
  [`/.well-known/agent-skills/*/${DIGEST}/archive.zip`, notListed]
]

t.test('K4 K5: hostile skill names', async (t) => {
  for (const [route, expected] of namedRoutes) {
    await t.test(`K16 K18: names that are no skill's, on ${route}`, async (t) => {
      for (const name of names) {
        await attack(t, route.replace('*', () => name), expected(decodeURIComponent(name)))
      }
    })
  }
  await t.test('what looks like a path behind the name', async (t) => {
    for (const start of ['..', '%2e%2e', '']) await attack(t, `/skills/${start}/files/etc/passwd`, NAME18)
  })
  await t.test('K48: what is not percent-encoded UTF-8', async (t) => {
    for (const bad of ['%', '%zz', '%ff', '%c0%ae', '%e0%80%af', '%f0%80%80%af', '%ed%a0%80', '%u002e',
      '%zz<script>']) {
      for (const [route] of namedRoutes) {
        const response = await attack(t, route.replace('*', () => bad), BADURL)
        t.notMatch(response.text, '<script>', 'no markup is echoed')
      }
    }
  })
  await t.test('K47: what is no route', async (t) => {
    for (const target of [
      '//skills/demo', '/skills/demo/', '/SKILLS/demo', '/skills%2fdemo', '/skills;x=1/demo',
      '/skills../etc/passwd', '/skills/demo../SKILL.md', '/skills/demo/files../x', '/proc/self/environ',
      '/skills/demo/files%2fSKILL.md/x'
    ]) await attack(t, target, NOROUTE)
  })
  await t.test('letters that are encoded without need', async (t) => {
    const plain = await service.raw('GET', '/skills/demo')
    for (const [target, body] of [['/%73kills/demo', plain.text], ['/skills/demo/%66iles/SKILL.md', '# Demo\n'],
      ['/skills/%64emo', plain.text]] as const) {
      const response = await attack(t, target, { statuses: [200, 404] })
      if (response.status === 200) t.equal(response.text, body)
    }
  })
})

t.test('K18 K19: hostile file paths', async (t) => {
  const folder = join(service.root, 'demo')
  writeFileSync(join(folder, '..\\x'), CANARY)

  const tables: Readonly<Record<string, ReadonlyArray<readonly [appended: string, expected: Expected]>>> = {
    'what climbs out or is absolute': [
      '../../../etc/passwd', '..', '../SKILL.md', '../', '../demo/SKILL.md',
      '%2e%2e/%2e%2e/etc/passwd', '.%2e/x', '%2e./x',
      '..%2f..%2fetc%2fpasswd', '%2E%2E%2f%2E%2E%2fetc%2fpasswd',
      '../demo-evil/x.md', '../../skills-evil/x.md',
      'references/../../demo-evil/x.md', 'references/../..', '../README.md', '../../outside/secret.txt',
      '../'.repeat(5000),
      '..%5c..%5cetc%5cpasswd', '..\\..\\..\\Windows\\System32', 'references%5c..%5c..%5cx', '..%5c../x', '..%5cx',
      '/etc/passwd', '%2fetc/passwd', '//SKILL.md', `${folder}/SKILL.md`, encodeURIComponent(`${folder}/SKILL.md`),
      'C:/windows/win.ini', 'C%3a%5cwindows', '%5c%5chost%5cshare', '%5cetc%5cpasswd',
      '%00/../../x', 'up/demo-evil/x.md', 'up/../../x', 'secret.txt', 'up/README.md'
    ].map((path) => [path, TRAVERSAL] as const),
    'what is decoded once, control characters, other spellings, and endless paths': [
      '%252e%252e%252fetc%252fpasswd', '..%255c..%255c', '%25252e', 'SKILL.md%00', 'SKILL.md%00.png', '.%00./x',
      'a%0d%0aSet-Cookie:x=1', 'a%09b', '%1b[31m', '%7f', 'skill.md', 'Skill.md', 'SKILL.md%20', 'SKILL.md.',
      'SKILL.md::$DATA', 'SKILL~1.MD', 'CON', 'NUL', 'aux.md', 'e%cc%81.md', '%e2%80%aegpj.md', '%e2%80%8bSKILL.md',
      '%ef%bc%8e%ef%bc%8e/x', 'file:///etc/passwd', '~/.ssh/id_rsa', '$HOME/x', '..;/..;/etc/passwd', '.../.../x',
      'proc/self/environ', '__proto__', 'constructor', 'a/'.repeat(2000), 'a'.repeat(256), '%2e'.repeat(5000),
      'references%5ca.md'
    ].map((path) => [path, noFile(decodeURIComponent(path))] as const),
    'what is not percent-encoded UTF-8': [
      '%', '%zz', '%c0%ae%c0%ae%c0%af', '%e0%80%af', '%ff', '%u002e%u002e%u2215etc', '%ed%a0%80', 'SKILL.md%'
    ].map((path) => [path, BADURL] as const),
    'what K8 hides, and a file taken for a folder': [
      '.git/config', 'sub/../.git/config', '.git', '.env', 'sub/.env', '.git/', '.git/HEAD', 'SKILL.md/', 'SKILL.md/x',
      '%2eenv', '.%65nv', '%2egit%2fconfig'
    ].map((path) => [path, noFile(decodeURIComponent(path))] as const),
    'folders, and nothing': [
      ...['references', 'references/', '.', 'references/..'].map((path) => [path, isDirectory(path)] as const),
      ['', { statuses: [400], code: 'invalid_file_path', error: 'Invalid file path' }]
    ]
  }
  for (const [name, rows] of Object.entries(tables)) {
    await t.test(name, async (t) => {
      for (const [appended, expected] of rows) {
        const response = await attack(t, `/skills/demo/files/${appended}`, expected)
        t.equal(response.headers['set-cookie'], undefined)
      }
    })
  }

  await t.test('the same paths are refused in the JSON form', async (t) => {
    for (const [appended, { statuses, error }] of Object.values(tables).flat()) {
      const response = await service.raw('GET', `/skills/demo/files/${appended}`,
        { headers: ['Accept: application/json'] })
      t.ok(statuses.includes(response.status), appended.slice(0, 60))
      if (error !== undefined) t.equal((response.json() as { error: string }).error, error)
      t.notMatch(response.text, CANARY)
    }
  })

  await t.test('other spellings of a path inside give the same bytes and ETag', async (t) => {
    const document = await service.raw('GET', '/skills/demo/files/SKILL.md')
    const reference = await service.raw('GET', '/skills/demo/files/references/a.md')
    t.equal(document.text, '# Demo\n')
    t.equal(reference.text, '# A\n')
    const rows = [
      ...['references%2fa.md', 'references//a.md', 'references/./a.md', './references/a.md',
        'sub/../references/a.md'].map((path) => [path, reference] as const),
      ...['./SKILL.md', 'references/../SKILL.md', 'SKILL%2emd'].map((path) => [path, document] as const)
    ]
    for (const [appended, plain] of rows) {
      const response = await attack(t, `/skills/demo/files/${appended}`, { statuses: [200] })
      t.equal(response.text, plain.text, appended)
      t.equal(response.headers.etag, plain.headers.etag, appended)
    }
  })

  await t.test('K47: a query leads nowhere else', async (t) => {
    for (const query of ['?x=../../etc/passwd', '?raw', '?import&raw??', '?.svg?import', '#/../../x']) {
      await attack(t, `/skills/demo/files/SKILL.md${query}`, { statuses: [400], code: 'bad_query' })
    }
  })

  await t.test('raw bytes above 0x7f in the request line', async (t) => {
    const response = await service.raw('GET', '/skills/demo/files/\xe9.md')
    t.equal(response.status, 400)
    t.match(response.json(), { code: 'bad_request' })
  })

  await t.test('other request targets', async (t) => {
    for (const target of ['*', 'skills', '?', '#', '/.', '/..', '/../../etc/passwd']) {
      const response = await service.raw('GET', target)
      t.ok(response.status === 400 || response.status === 404, `${target}: ${response.status}`)
      t.notMatch(response.text, CANARY)
    }
    const absolute = await service.raw('GET', 'http://evil.example/skills/demo')
    t.ok(absolute.status === 200 || absolute.status === 403)
    t.notMatch(absolute.headerLines.join('\n') + absolute.text, 'evil.example')
  })
})

t.test('K4 K44: legal inputs work', async (t) => {
  const longName = 'n'.repeat(255)
  const names = ['My Skill', 'UPPER', '日本語', 'v1.2', 'a_b', '__proto__', 'constructor', '-x', '100%', longName]
  for (const name of names) {
    mkdirSync(join(service.root, name))
    writeFileSync(join(service.root, name, 'SKILL.md'), name)
  }

  await t.test('file names', async (t) => {
    const rows: ReadonlyArray<readonly [appended: string, text: string]> = [
      ['foo..bar.txt', 'dots'],
      ['100%25.txt', 'percent'],
      ['a%20b.md', 'blank'],
      ['%c3%a9.md', 'nfc'],
      ['.hidden.md', 'hidden'],
      ['.github/x.yml', 'x: 1'],
      ['.env.example', 'example'],
      ['modules/x/index.js', 'x'],
      ['SKILL.MD', '# Demo\n'],
      ['a+b.txt', 'plus'],
      ['a%2bb.txt', 'plus'],
      ['a;b.txt', 'semicolon'],
      ['a,b@c!.txt', 'comma'],
      ['a%3fb%23c.txt', 'question'],
      ['%252e%252e', 'two encoded dots'],
      ['empty.txt', '']
    ]
    for (const [appended, text] of rows) {
      const response = await attack(t, `/skills/demo/files/${appended}`, { statuses: [200] })
      t.equal(response.text, text, appended)
      const json = await service.raw('GET', `/skills/demo/files/${appended}`, { headers: ['Accept: application/json'] })
      t.match(json.json(), { success: true, content: text, file_path: decodeURIComponent(appended) })
    }
    t.equal((await service.raw('GET', '/skills/upper/files/SKILL.md')).text, 'upper', 'K6: the other spelling')
    t.equal((await service.raw('GET', '/skills/demo-evil/files/x.md')).text, 'evil',
      'a folder without SKILL.md is a skill')
    const { files } = (await service.fetch('/skills/demo/files')).json() as { files: ReadonlyArray<{ path: string }> }
    for (const path of ['.hidden.md', '.github/x.yml', '.env.example', 'modules/x/index.js']) {
      t.ok(files.some((file) => file.path === path), path)
    }
  })

  await t.test('names of skills, on every route', async (t) => {
    const { skills } = (await service.fetch('/skills')).json() as { skills: readonly string[] }
    for (const name of names) {
      t.ok(skills.includes(name), name)
      const encoded = encodeURIComponent(name)
      t.same((await service.fetch(`/skills/${encoded}`)).json(), { skill_name: name, documentation: name })
      t.match((await service.fetch(`/skills/${encoded}/files`)).json(),
        { skill_name: name, files: [{ path: 'SKILL.md' }] })
      t.equal((await service.fetch(`/skills/${encoded}/files/SKILL.md`)).text, name)
      t.same((await service.post('/agent/tools/get_skill', { skill_name: name })).json(),
        { skill_name: name, documentation: name })
    }
  })

  await t.test('a GET with a body, a Host with a port, HTTP/1.0 with a Host', async (t) => {
    const { port } = new URL(service.url)
    t.equal((await service.raw('GET', '/skills/demo', { body: 'ignored' })).status, 200)
    t.equal((await service.raw('GET', '/skills/demo', { host: `127.0.0.1:${port}` })).status, 200)
    t.equal((await service.raw('GET', '/skills/demo', { version: '1.0' })).status, 200)
  })
  await checkLog(t)
})

t.test('K4 K19: roots that are links, relative or end with a slash; links inside a skill', async (t) => {
  const service = await buildService(t, {
    files: null,
    options: {
      roots: ['link/'],
      siblings: {
        real: {
          demo: {
            'SKILL.md': 'x',
            folder: { 'a.md': 'a' },
            other: t.fixture('symlink', 'folder'),
            'b.md': t.fixture('symlink', 'other/a.md')
          }
        },
        link: t.fixture('symlink', 'real')
      }
    }
  })
  for (const path of ['folder/a.md', 'other/a.md', 'b.md']) {
    t.equal((await service.raw('GET', `/skills/demo/files/${path}`)).text, 'a', path)
  }
  t.equal((await service.raw('GET', '/skills/demo/files/../x')).status, 403)
})

// A writer that meets every moment of a request: the disk itself writes, before the calls that answer it.
/** Everything that is made of all files of a skill. */
async function ofAllFiles (service: Service): Promise<string[]> {
  const index = (await service.fetch('/.well-known/agent-skills/index.json')).json() as {
    readonly skills: ReadonlyArray<{ readonly url: string }>
  }
  return ['/skills/demo/archive.zip', '/skills/demo/files', '/skills/demo?revision=current',
    ...index.skills.map(({ url }) => new URL(url, `${service.url}/.well-known/agent-skills/`).pathname)]
}

t.test('K45 K48 K53: of a skill that is written without a pause archives and artifacts are 503 with Retry-After, of ' +
  'one that holds in between 200', async (t) => {
  const disk = createFaultyDisk()
  const service = await buildService(t,
    { files: { demo: skill('demo', { a: 'a' }) }, options: { disk, keep: { keepMs: 0 } } })
  const targets = await ofAllFiles(service)
  t.equal(targets.length, 4)
  let writes = 0
  let isOver = () => false
  disk.intercept = (operation, _path, file) => {
    if (operation === 'close' && file.includes('demo') && !isOver()) {
      fs.writeFileSync(join(service.root, 'demo/a'), 'a'.repeat(++writes % 100))
    }
  }
  fs.writeFileSync(join(service.root, 'demo/a'), 'other')
  const statuses = await Promise.all(targets.map(async (target) => {
    const { status, headers, text } = await service.fetch(target)
    t.match(headers.get('retry-after'), /^[1-9]\d*$/, target)
    t.match(JSON.parse(text), { code: 'skill_changing' }, target)
    return status
  }))
  t.strictSame(statuses, targets.map(() => 503))
  const begun = writes
  t.ok(begun > 0)
  isOver = () => writes >= begun + 1
  t.equal((await service.fetch('/skills/demo/archive.zip')).status, 200, 'a state that holds is waited for')
})
