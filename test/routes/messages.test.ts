import t from 'tap'
import { buildService } from '../helper/build.ts'
import { skill } from '../helper/skills.ts'

const FILES = { demo: skill('demo', { 'notes.md': 'notes' }) }

t.test('K47: an unknown or wrong query parameter is named, with what is allowed and the nearest name', async (t) => {
  const service = await buildService(t, { files: FILES })
  const cases: ReadonlyArray<readonly [target: string, detail: string]> = [
    ['/skills/demo?revison=current', "Unknown query parameter 'revison', allowed: revision; did you mean 'revision'?"],
    ['/skills?limit=5', "Unknown query parameter 'limit', this address takes none"],
    ['/livez?verbose', "Unknown query parameter 'verbose', this address takes none"],
    ['/skills/demo?__proto__=1', "Unknown query parameter '__proto__', allowed: revision"],
    [`/skills/demo?${'a'.repeat(81)}=1`, `Unknown query parameter '${'a'.repeat(80)}…', allowed: revision`],
    ['/skills/demo?a%0Ab=1', "Unknown query parameter 'a\\nb', allowed: revision"],
    ['/agent/tools?format=openia', "Query parameter 'format' is 'openia', allowed: openai, "],
    ['/agent/tools?format=claude', "Query parameter 'format' is 'claude', allowed: openai, "],
    ['/skills/demo/files/notes.md?encoding=base46', "Query parameter 'encoding' is 'base46', allowed: base64; did you mean 'base64'?"],
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
    if (target.includes('codx')) t.match(problem.detail, /, all; did you mean 'codex'\?$/)
  }
  t.equal((await service.fetch('/docs?x=1')).status, 200, 'what is not in the document takes any')
  for (const path of ['/docs', '/ui/status', '/ui/skills/demo', '/']) {
    t.equal((await fetch(`${service.url}${path}?utm_source=mail`, { headers: { accept: 'text/html' } })).status, 200, `${path} is for people, whose links carry more than they ask for`)
  }
})

t.test('K47: an address that does not exist names the one that was meant', async (t) => {
  const service = await buildService(t, { files: FILES })
  const cases: ReadonlyArray<readonly [target: string, meant: string]> = [
    ['/skills/demo/SKILL.md', '/skills/demo/files/SKILL.md'],
    ['/skills/demo/docs/a%20b.md', '/skills/demo/files/docs/a%20b.md'],
    ['/skills/demo/', '/skills/demo'],
    ['/skills/demo/archive', '/skills/demo/archive.zip'],
    ['/skills/demo/archive.tar.gz', '/skills/demo/archive.zip'],
    ['/skills/demo/archive/notes.md', '/skills/demo/files/archive/notes.md'],
    ['/skills/demo/file/docs/a%20b.md', '/skills/demo/files/docs/a%20b.md'],
    ['/agent/tool/get_skill', '/agent/tools/get_skill'],
    ['/ui/statuz', '/ui/status'],
    ['/ui/skill/demo', '/ui/skills/demo'],
    ['/ui/skills/demo/', '/ui/skills/demo'],
    ['/ui/skills/demo/docs/a%20b.md', '/ui/skills/demo/files/docs/a%20b.md'],
    ['/ui/skills/demo/archive', '/skills/demo/archive.zip'],
    ['/ui/nowhere', ''],
    ['/skill/demo', '/skills/demo'],
    ['/catalogs', '/catalog'],
    ['/mpc', '/mcp'],
    ['/mcp/', '/mcp'],
    ['/doc', '/docs'],
    ['/ui/skils', '/ui/skills'],
    ['/agent/prompts', '/agent/prompt'],
    ['/agent/tool', '/agent/tools'],
    ['/openapi.yml', '/openapi.yaml'],
    ['/.well-known/agent-skill/index.json', '/.well-known/agent-skills/index.json'],
    ['/.wellknown/skills/index.json', '/.well-known/skills/index.json'],
    ['/nowhere/index.json', '']
  ]
  for (const [target, meant] of cases) {
    const problem = (await service.fetch(target)).json() as { readonly detail: string }
    t.match(problem, { status: 404, code: 'route_not_found' }, target)
    t.equal(/did you mean (\S+)\?$/.exec(problem.detail)?.[1] ?? '', meant, target)
    if (meant !== '') t.equal((await fetch(service.url + meant.replace(/docs\/a%20b|archive\/notes/, 'notes'))).status, ['/agent/tools/get_skill', '/mcp'].includes(meant) ? 405 : 200, meant)
  }
})

t.test('K47: with a base path, an address that does not exist names the list of doors below it', async (t) => {
  const service = await buildService(t, { files: FILES, options: { basePath: '/team' } })
  t.match((await service.fetch('/team/nowhere')).json(), { status: 404, detail: /^There is no such route; GET \/team lists those there are/ })
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
