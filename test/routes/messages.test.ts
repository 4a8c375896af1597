import t from 'tap'
import { buildService } from '../helper/build.ts'
import { jsonRequest, rawRequest, request } from '../helper/raw-http.ts'
import { skill } from '../helper/skills.ts'

const service = await buildService(t, { files: { demo: skill('demo', { 'notes.md': 'notes' }) } })

const BAD_QUERIES: Readonly<Record<string, readonly string[]>> = {
  '/catalog': [
    'limit=0', 'limit=1.5', 'limit=', 'limit=1&limit=2', `limit=${'9'.repeat(400)}`, 'valid=maybe', 'valid=',
    'valid=TRUE', 'valid=1', 'valid=true&valid=true', 'q=a&q=b',
    `q=${'x'.repeat(1_001)}`, `q=${'x'.repeat(10_000)}`, 'cursor=a&cursor=b', '__proto__=1&limit=1'
  ],
  '/skills/demo/files/notes.md': ['encoding=hex', 'encoding=', 'encoding', 'encoding=BASE64',
    'encoding=base64&encoding=base64', 'encoding=__proto__'],
  '/skills/demo/archive.zip': ['wrap=1', 'wrap=', 'wrap', 'wrap=TRUE', 'wrap=true&wrap=true'],
  '/agent/tools': ['format=constructor', 'format=__proto__', 'format=', 'format=OpenAI', 'toolset=x',
    'format=mcp&format=mcp', 'toolset=all&toolset=all'],
  '/agent/prompt': [
    'format=', 'format=XML', 'format=constructor', 'format=json&format=json', 'budget=', 'budget=127', 'budget=0',
    'budget=-1', 'budget=200.5', 'budget=many', 'budget=NaN',
    'budget=200&budget=300', 'budget[]=200'
  ]
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
    ['/agent/tools?format=claude', "Query parameter 'format' is 'claude', allowed: openai, "],
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

t.test('GET / lists the endpoints, each of which is there', async (t) => {
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

const FILES = { plain: { 'SKILL.md': '---\nname: plain\ndescription: About plain\n---\nHello', 'notes.txt': 'notes' } }

interface Document { readonly servers: ReadonlyArray<{ readonly url: string }> }

t.test('K69: BASE_PATH serves everything below a path prefix', async (t) => {
  const { url } = await buildService(t, { files: FILES, options: { basePath: '/team/skills-api' } })
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
      { detail: `Skill 'nosuch' not found in skills folder. GET ${base}/skills lists the names there are` })
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
