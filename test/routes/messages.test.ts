import t from 'tap'
import { buildService } from '../helper/build.ts'
import { skill } from '../helper/skills.ts'

const FILES = { demo: skill('demo', { 'notes.md': 'notes' }) }

t.test('K47: an unknown or wrong query parameter is named, with what is allowed', async (t) => {
  const service = await buildService(t, { files: FILES })
  const cases: ReadonlyArray<readonly [target: string, detail: string]> = [
    ['/skills/demo?revison=current', "Unknown query parameter 'revison', allowed: revision"],
    ['/skills?limit=5', "Unknown query parameter 'limit', this address takes none"],
    ['/livez?verbose', "Unknown query parameter 'verbose', this address takes none"],
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
  t.equal((await service.fetch('/docs?x=1')).status, 200, 'what is not in the document takes any')
  for (const path of ['/docs', '/ui/status', '/ui/skills/demo', '/']) {
    t.equal((await fetch(`${service.url}${path}?utm_source=mail`, { headers: { accept: 'text/html' } })).status, 200, `${path} is for people, whose links carry more than they ask for`)
  }
})

t.test('K47: an address below a skill that is none names the file', async (t) => {
  const service = await buildService(t, { files: FILES })
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

t.test('K47: with a base path, an address that does not exist names the list of doors below it', async (t) => {
  const service = await buildService(t, { files: FILES, options: { basePath: '/team' } })
  t.match((await service.fetch('/team/nowhere')).json(), { status: 404, detail: /^There is no such route; GET \/team lists the routes/ })
})

t.test('GET / lists the doors, each of which is there', async (t) => {
  const service = await buildService(t, { files: FILES })
  const response = await service.fetch('/')
  t.equal(response.status, 200)
  const { name, doors } = response.json() as { readonly name: string, readonly doors: ReadonlyArray<{ readonly methods: readonly string[], readonly path: string, readonly what: string }> }
  t.equal(name, 'skillserve')
  const paths = doors.map(({ path }) => path)
  t.strictSame(['/', '/skills', '/skills/:name/files/*', '/agent/tool-call', '/mcp', '/docs', '/events', '/readyz'].filter((path) => !paths.includes(path)), [])
  t.strictSame(paths, [...new Set(paths)], 'each once')
  for (const { path, methods, what } of doors) {
    t.ok(what.length > 0)
    const found = await service.fetch(path.replace(':name', 'demo').replace('*', 'notes.md'), { method: 'DELETE' })
    t.match(found.headers.get('allow'), new RegExp(methods[0] ?? ''), path)
  }
})
