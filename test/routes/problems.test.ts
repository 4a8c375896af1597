import { execFileSync } from 'node:child_process'
import { rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { SkillErrorCode } from '../../src/core/shared/errors.ts'
import { MAX_MAIN_FILE_BYTES, MAX_TEXT_FILE_BYTES } from '../../src/core/shared/limits.ts'
import { problems } from '../../src/schemas/problem.ts'
import { buildService, buildWithRoutes, type Files, type Service } from '../helper/build.ts'
import { createFaultyDisk, osError } from '../helper/disk.ts'
import { jsonRequest, openRaw, rawRequest, request } from '../helper/raw-http.ts'
import { skill } from '../helper/skills.ts'

const OVER_LIMIT = MAX_TEXT_FILE_BYTES + 1

const FILES: Files = {
  demo: {
    'SKILL.md': 'x',
    'logo.png': Buffer.from([0, 1]),
    'secret.md': 'x',
    'broken.md': 'x',
    'huge.bin': '',
    references: { 'a.md': 'x' }
  },
  bare: { 'x.md': '' },
  large: { 'SKILL.md': 'a'.repeat(MAX_MAIN_FILE_BYTES + 1) },
  latin: { 'SKILL.md': Buffer.from('\xe9', 'latin1') },
  locked: { 'SKILL.md': 'x' },
  broken: { 'SKILL.md': 'x' }
}

/** What the disk throws instead of opening or reading. */
const FAULTS: ReadonlyArray<readonly [call: string, path: RegExp, code: string]> = [
  ['open', /locked\/SKILL\.md$/, 'EACCES'],
  ['open', /demo\/secret\.md$/, 'EACCES'],
  ['read', /broken\/SKILL\.md$/, 'EIO'],
  ['read', /demo\/broken\.md$/, 'EIO']
]

interface Row {
  readonly path: string
  readonly status: number
  readonly error: string
  /** The tool that says the same. */
  readonly tool: readonly [name: string, args: object]
}

const document = (skillName: string) => ['get_skill', { skill_name: skillName }] as const
const file = (path: string) => ['read_file_in_skill', { skill_name: 'demo', file_path: path }] as const

/** Statuses of codes whose requests have tests of their own. */
const OTHER_STATUSES = {
  archive_too_large: 413,
  skill_too_large: 413,
  skill_changing: 503,
  revision_changed: 412,
  overloaded: 503,
  disk_not_answering: 503,
  source_not_available: 503
} as const

type ToolErrorCode = Exclude<SkillErrorCode, keyof typeof OTHER_STATUSES>

/** A real request for each other code of the domain (K48). */
const table: Readonly<Record<ToolErrorCode, Row>> = {
  invalid_skill_name: {
    path: '/skills/a%2Fb', status: 400, error: "Invalid skill name: 'a/b'. Skill names must not contain '/', '\\', or '..'", tool: document('a/b')
  },
  skill_not_found: {
    path: '/skills/nope', status: 404, error: "Skill 'nope' not found in skills folder", tool: document('nope')
  },
  main_file_not_found: {
    path: '/skills/bare', status: 404, error: "SKILL.MD not found for skill 'bare'", tool: document('bare')
  },
  main_file_too_large: {
    path: '/skills/large', status: 413, error: "SKILL.MD too large (>1MB) for skill 'large'", tool: document('large')
  },
  main_file_permission_denied: {
    path: '/skills/locked', status: 403, error: "Permission denied reading SKILL.MD for skill 'locked'", tool: document('locked')
  },
  main_file_not_utf8: {
    path: '/skills/latin',
    status: 422,
    error: "SKILL.MD contains invalid UTF-8 for skill 'latin'",
    tool: document('latin')
  },
  main_file_unreadable: {
    path: '/skills/broken', status: 500, error: "Error reading SKILL.MD for skill 'broken'", tool: document('broken')
  },
  invalid_file_path: { path: '/skills/demo/files/', status: 400, error: 'Invalid file path', tool: file('') },
  path_traversal: {
    path: '/skills/demo/files/..%2Fx',
    status: 403,
    error: 'Path traversal detected: cannot access files outside ' +
      'skill folder',
    tool: file('../x')
  },
  file_not_found: {
    path: '/skills/demo/files/nope', status: 404, error: "File 'nope' not found in skill 'demo'", tool: file('nope')
  },
  file_permission_denied: {
    path: '/skills/demo/files/secret.md', status: 403, error: "Cannot read file 'secret.md': permission denied", tool: file('secret.md')
  },
  file_is_directory: {
    path: '/skills/demo/files/references',
    status: 404,
    error: "Cannot read file 'references': is a directory",
    tool: file('references')
  },
  file_not_regular: {
    path: '/skills/demo/files/pipe',
    status: 404,
    error: "Cannot read file 'pipe': not a regular file",
    tool: file('pipe')
  },
  file_not_text: {
    path: '/skills/demo/files/logo.png',
    status: 422,
    error: "Cannot read file 'logo.png': not a text file",
    tool: file('logo.png')
  },
  file_too_large: {
    path: '/skills/demo/files/huge.bin',
    status: 413,
    error: `Cannot read file 'huge.bin': file too large (${OVER_LIMIT} bytes, limit ${MAX_TEXT_FILE_BYTES})`,
    tool: file('huge.bin')
  },
  file_io_error: {
    path: '/skills/demo/files/broken.md',
    status: 500,
    error: "Cannot read file 'broken.md': I/O error",
    tool: file('broken.md')
  },
  skills_folder_not_found: {
    path: '/skills', status: 503, error: 'Skills folder not found at path: ROOT', tool: ['list_skills', {}]
  },
  skills_folder_permission_denied: {
    path: '/skills', status: 503, error: 'Permission denied reading skills folder', tool: ['list_skills', {}]
  }
}

/** A detail names the skill that the request names, and the main file as the format does. */
function detailOf ({ path }: Row, text: string): string {
  return text.replace(':name', path.split('/')[2] ?? '').replace('SKILL.MD', 'SKILL.md')
}

async function checkRow (t: Test, service: Service, code: ToolErrorCode): Promise<void> {
  const row = table[code]
  const error = row.error.replace('ROOT', service.root)
  const response = await service.fetch(row.path, { headers: { accept: 'application/json' } })
  t.equal(response.status, row.status, code)
  t.equal(response.headers.get('content-type'), 'application/problem+json')
  t.equal(response.headers.get('cache-control'), 'no-store')
  t.equal(response.headers.get('etag'), null)
  t.same(response.json(), {
    type: `urn:skillserve:problem:${code}`,
    title: problems[code].title,
    status: row.status,
    detail: detailOf(row, `${error}. ${problems[code].text}`),
    instance: row.path,
    error,
    code,
    requestId: response.headers.get('x-request-id')
  })
  t.notMatch(response.text, /EACCES|EIO|errno|secret\/place|\n +at /)
  if (row.status === 503) t.match(response.headers.get('retry-after'), /^\d+$/)

  const head = await service.fetch(row.path, { method: 'HEAD', headers: { accept: 'application/json' } })
  t.equal(head.status, row.status, `HEAD ${code}`)

  const [name, args] = row.tool
  const result = await service.post(`/agent/tools/${name}`, args)
  t.equal(result.status, 200)
  t.equal((result.json() as { error: string }).error, error, `${code}: the same sentence through the tool`)
}

t.test('K48: every code of the domain has its status, and the sentence of the tool', async (t) => {
  const disk = createFaultyDisk({
    intercept: (call, _path, file) => {
      for (const [faultyCall, pattern, code] of FAULTS) {
        if (call === faultyCall && pattern.test(file)) throw osError(code)
      }
    }
  })
  const service = await buildService(t, { files: FILES, options: { disk } })
  execFileSync('mkfifo', [join(service.root, 'demo/pipe')])
  truncateSync(join(service.root, 'demo/huge.bin'), OVER_LIMIT)

  for (const [code, status] of Object.entries(OTHER_STATUSES)) {
    t.equal(problems[code as SkillErrorCode].status, status, code)
  }
  const needsRoot = (Object.keys(table) as ToolErrorCode[]).filter((code) => !code.startsWith('skills_folder'))
  for (const code of needsRoot) await checkRow(t, service, code)

  const raw = await service.fetch('/skills/demo/files/huge.bin')
  t.equal(raw.bytes.length, OVER_LIMIT, 'the way out that file_too_large names')
  const { status, headers } = await service.fetch('/skills/demo/files/huge.bin',
    { method: 'HEAD', headers: { accept: 'application/json, text/plain, */*' } })
  t.strictSame([status, headers.get('content-type')], [200, 'application/octet-stream'],
    'K44: and what a client gets that takes bytes too')

  await t.test('K14: the root may not be read', async (t) => {
    const locked = createFaultyDisk({
      intercept: (call, path) => { if (call === 'readdir' && path.endsWith('/skills')) throw osError('EACCES') }
    })
    await checkRow(t, await buildService(t, { files: FILES, options: { disk: locked } }),
      'skills_folder_permission_denied')
  })

  rmSync(service.root, { recursive: true })
  await checkRow(t, service, 'skills_folder_not_found')
  for (const path of [
    '/skills/demo', '/skills/nope', '/skills/demo/files', '/skills/demo/files/SKILL.md', '/catalog', '/catalog?q=x',
    '/catalog?valid=true', '/catalog/x', '/agent/prompt', '/llms.txt'
  ]) t.match((await service.fetch(path)).json(), { status: 503, code: 'skills_folder_not_found' }, path)
  t.equal((await service.fetch('/skills/..%2Fx')).status, 400, 'an invalid name is reported first (K16)')
  t.match(service.log().find(({ url }) => url === '/skills/broken'), { status: 500 })
  t.match(service.log().find(({ msg }) => msg === 'request failed'), { reqId: /./, err: { message: /EIO/ } },
    'the log has what the system said')
})

t.test('K48: instance is the path as a URI reference, without origin, query and what no URI may hold', async (t) => {
  const { raw } = await buildService(t)
  for (const [target, status, code, instance] of [
    ['/skills/a%20b/files/x?revision=current', 404, 'skill_not_found', '/skills/a%20b/files/x'],
    ['/%zz<script>"', 400, 'bad_url', '/%25zz%3Cscript%3E%22'],
    ['/%', 400, 'bad_url', '/%25'],
    ['http://evil.example/skills/x?y', 403, 'host_not_allowed', '/skills/x'],
    ['/../..\\x', 404, 'route_not_found', '/../..%5Cx'],
    ['/skills/%c0%ae', 400, 'bad_url', '/skills/%c0%ae']
  ] as const) {
    const { headers, json } = await raw('GET', target)
    t.match(json(), { status, code, instance, requestId: headers['x-request-id'] }, target)
  }
})

t.test('K48: an error drops the headers of the answer that it replaces, and says nothing of the inside; ' +
  'the log has all', async (t) => {
  const errors: Readonly<Record<string, unknown>> = {
    secret: new Error('password', { cause: new Error('hunter2') }),
    status: Object.assign(new Error('/srv/skills'), { statusCode: 409 }),
    odd: Object.assign(new Error('/srv/skills'), { statusCode: 200 }),
    string: 'thrown text',
    null: null
  }
  const { url, logged } = await buildWithRoutes(t, (app) => {
    app.get('/throw/:name', (request, reply) => {
      reply.header('etag', '"stale"').header('accept-ranges', 'bytes').type('text/plain')
      throw errors[(request.params as { name: string }).name]
    })
  })
  for (const name of Object.keys(errors)) {
    const { status, headers, text, json } = await rawRequest(url, request('GET', `/throw/${name}`))
    t.equal(status, name === 'status' ? 400 : 500, name)
    t.match(headers, {
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
      etag: undefined,
      'accept-ranges': undefined
    })
    t.match(json(), { status, code: status === 500 ? 'internal_error' : 'bad_request' })
    t.notMatch(text, /password|hunter2|Error:|\.ts|srv|thrown/)
  }
  t.match(await logged(({ level }) => level === 50),
    { msg: 'request failed', err: { message: /password.*hunter2/, stack: /problems\.test/ } })
})

t.test('K57: a body that nobody wants, or that is too large, is refused before it is read', async (t) => {
  const { url } = await buildService(t)
  for (const [target, status] of [['/skills/demo', 405], ['/agent/tool-call', 413], ['/nowhere', 404]] as const) {
    const connection = await openRaw(url)
    connection.send(request('POST', target,
      { headers: ['Content-Type: application/json', `Content-Length: ${2 ** 30}`] }))
    t.match(await connection.response(), { status, headers: { connection: 'close' } }, target)
    await connection.closed()
  }
})

const service = await buildService(t, { files: { demo: skill('demo', { 'notes.md': 'notes' }) } })

/** Of each rule of a schema one, and what hostile clients send. */
const BAD_QUERIES: Readonly<Record<string, readonly string[]>> = {
  '/catalog': [
    'limit=0', 'limit=1.5', 'limit=', `limit=${'9'.repeat(400)}`, 'valid=', 'valid=TRUE', 'valid=1', 'q=a&q=b',
    `q=${'x'.repeat(1_001)}`, `q=${'x'.repeat(10_000)}`, 'cursor=a&cursor=b', '__proto__=1&limit=1'
  ],
  '/skills/demo/files/notes.md': ['encoding=hex', 'encoding=', 'encoding', 'encoding=__proto__'],
  '/skills/demo/archive.zip': ['wrap=1', 'wrap=', 'wrap'],
  '/agent/tools': ['format=constructor', 'format=__proto__', 'format=OpenAI', 'toolset=x'],
  '/agent/prompt': ['format=XML', 'format=constructor', 'budget=', 'budget=127', 'budget=NaN', 'budget[]=200']
}

t.test('K47: an unknown or wrong query parameter is named, with what is allowed', async (t) => {
  const cases: ReadonlyArray<readonly [target: string, detail: string]> = [
    ['/skills/demo?revison=current', "Unknown query parameter 'revison', allowed: revision"],
    ['/skills?limit=5', "Unknown query parameter 'limit', this route has no query parameters"],
    ['/livez?verbose', "Unknown query parameter 'verbose', this route has no query parameters"],
    ['/skills/demo?__proto__=1', "Unknown query parameter '__proto__', allowed: revision"],
    [`/skills/demo?${'a'.repeat(81)}=1`, `Unknown query parameter '${'a'.repeat(80)}…', allowed: revision`],
    ['/skills/demo?a%0Ab=1', "Unknown query parameter 'a\\nb', allowed: revision"],
    ['/agent/tools?format=openia', "Query parameter 'format' is 'openia', allowed: openai, "],
    ['/skills/demo/files/notes.md?encoding=base46', "Query parameter 'encoding' is 'base46', allowed: base64"],
    ['/skills/demo?revision=latest', "Query parameter 'revision' is 'latest', it must match pattern "],
    ['/skills/demo?revision=current&revision=current', "Query parameter 'revision' is given 2 times, send it once"],
    ['/catalog?limit=501', "Query parameter 'limit' is '501', it must be <= 500"],
    ['/catalog?limit=many', "Query parameter 'limit' is 'many', it must be integer"],
    ['/catalog?limit=-1', "Query parameter 'limit' is '-1', it must be >= 1"],
    ['/catalog/demo?target=codx', "Query parameter 'target' has 'codx', allowed: spec, "],
    ['/catalog?valid=yes', "Query parameter 'valid' is 'yes', allowed: true, false"]
  ]
  for (const [target, detail] of cases) {
    const problem = (await service.fetch(target)).json() as { readonly detail: string }
    t.match(problem, { status: 400, code: 'bad_query' }, target)
    t.ok(problem.detail.startsWith(detail), `${target}: ${problem.detail}`)
  }
  for (const [target, queries] of Object.entries(BAD_QUERIES)) {
    for (const query of queries) {
      t.match((await service.fetch(`${target}?${query}`)).json(),
        { status: 400, code: 'bad_query', instance: target }, `${target}?${query}`)
    }
  }
  t.equal((await service.fetch('/docs?x=1')).status, 200, 'what is not in the document takes any')
  for (const path of ['/docs', '/ui/status', '/ui/skills/demo', '/']) {
    t.equal((await fetch(`${service.url}${path}?utm_source=mail`, { headers: { accept: 'text/html' } })).status, 200,
      `${path} is for people, whose links carry more than they ask for`)
  }
})

t.test('K47: an address below a skill that is none names the file', async (t) => {
  for (const [target, meant] of [
    ['/skills/demo/SKILL.md', '/skills/demo/files/SKILL.md'],
    ['/skills/demo/docs/a%20b.md', '/skills/demo/files/docs/a%20b.md'],
    ['/ui/skills/demo/docs/a%20b.md', '/ui/skills/demo/files/docs/a%20b.md'],
    ['/skills/demo/', ''],
    ['/skils', ''],
    ['/nowhere/index.json', '']
  ] as const) {
    const problem = (await service.fetch(target)).json() as { readonly detail: string }
    t.match(problem, { status: 404, code: 'route_not_found' }, target)
    t.equal(/did you mean (\S+)\?$/.exec(problem.detail)?.[1] ?? '', meant, target)
  }
})

interface Endpoints {
  readonly name: string
  readonly endpoints: ReadonlyArray<Record<'path' | 'summary', string> & { readonly methods: readonly string[] }>
}

t.test('K74: GET / lists the endpoints, each of which is there', async (t) => {
  const response = await service.fetch('/')
  t.equal(response.status, 200)
  const { name, endpoints } = response.json() as Endpoints
  t.equal(name, 'skillserve')
  const paths = endpoints.map(({ path }) => path)
  t.strictSame(
    ['/', '/skills', '/skills/:name/files/*', '/agent/tool-call', '/mcp', '/docs', '/events', '/readyz'].filter(
      (path) => !paths.includes(path)), [])
  t.strictSame(paths, [...new Set(paths)], 'each once')
  for (const { path, methods, summary } of endpoints) {
    t.ok(summary.length > 0)
    const found = await service.fetch(path.replace(':name', 'demo').replace('*', 'notes.md'), { method: 'DELETE' })
    t.match(found.headers.get('allow'), new RegExp(methods[0] ?? ''), path)
  }
})

const PLAIN = { plain: { 'SKILL.md': '---\nname: plain\ndescription: About plain\n---\nHello', 'notes.txt': 'notes' } }

interface Document { readonly servers: ReadonlyArray<{ readonly url: string }> }

t.test('K69: BASE_PATH serves everything below a path prefix', async (t) => {
  const { url } = await buildService(t, { files: PLAIN, options: { basePath: '/team/skills-api' } })
  const base = '/team/skills-api'
  const get = (target: string) => rawRequest(url, request('GET', target))

  await t.test('every api is there, and below no other address', async (t) => {
    for (const target of ['/skills', '/skills/plain', '/skills/plain/files/notes.txt', '/skills/plain/archive.zip',
      '/catalog', '/readyz', '/livez', '/agent/tools', '/docs', '/docs/static/swagger-ui.css',
      '/.well-known/agent-skills/index.json']) {
      t.equal((await get(base + target)).status, 200, target)
      t.equal((await get(target)).status, 404, target)
    }
    t.equal((await get('/')).status, 404)
    t.match((await rawRequest(url, jsonRequest('POST', `${base}/agent/tool-call`, {
      function: { name: 'list_skills', arguments: {} }
    }))), {
      status: 200, text: /plain/
    })
    const initialize = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
    t.equal(
      (await rawRequest(url,
        jsonRequest('POST', `${base}/mcp`, initialize,
          { headers: ['Accept: application/json, text/event-stream'] }))).status, 200)
  })

  await t.test('the list of endpoints names each once, with the prefix', async (t) => {
    for (const target of [base, `${base}/`]) {
      const { endpoints } = (await get(target)).json() as Endpoints
      const paths = endpoints.map(({ path }) => path)
      t.ok(paths.every((path) => path === base || path.startsWith(`${base}/`)), paths.join(' '))
      t.equal(new Set(endpoints.map(({ path, methods }) => `${methods.join()} ${path}`)).size, endpoints.length)
      for (const path of [`${base}/mcp`, `${base}/docs`, `${base}/skills`]) t.ok(paths.includes(path), path)
    }
  })

  await t.test('the OpenAPI document, the prompt and problems name the prefix', async (t) => {
    t.equal(((await get(`${base}/openapi.json`)).json() as Document).servers[0]?.url, base)
    t.match((await get(`${base}/openapi.yaml`)).text, `servers:\n  - url: ${base}\n`)
    t.match((await get(`${base}/agent/prompt`)).text, `${base}/skills/plain/files/SKILL.md`)
    t.match((await get(`${base}/skills/plain/notes.txt`)).json(),
      {
        instance: `${base}/skills/plain/notes.txt`,
        detail: new RegExp(
        `did you mean ${base}/skills/plain/files/notes.txt`)
      })
    t.match((await get(`${base}/skills/nosuch`)).json(),
      { detail: `Skill 'nosuch' not found in skills folder. GET ${base}/skills lists all names` })
    t.match((await get(`${base}/skills/plain/files/nosuch.md`)).json(),
      { detail: new RegExp(`GET ${base}/skills/plain/files lists`) })
    t.match((await get(`${base}/nosuch`)).json(), { detail: `There is no such route; GET ${base} lists the routes` })
    t.match(await rawRequest(url, request('DELETE', `${base}/skills`)),
      { status: 405, headers: { allow: 'GET, HEAD' } })
  })

  await t.test('addresses in the discovery index lead to artifacts', async (t) => {
    const index = `${url}${base}/.well-known/agent-skills/index.json`
    const { skills } = await (await fetch(index)).json() as { readonly skills: ReadonlyArray<{ readonly url: string }> }
    for (const skill of skills) t.equal((await fetch(new URL(skill.url, index))).status, 200)
    t.equal(skills.length, 1)
  })
})
