import fs from 'node:fs'
import { join } from 'node:path'
import fastify from 'fastify'
import t from 'tap'
import { createSkillManager } from '../../src/core/skill-manager.ts'
import { catalogRoutes } from '../../src/routes/catalog.ts'
import { createValidator } from '../../src/verdicts/entry.ts'
import { wellKnown } from '../../src/well-known/well-known.ts'
import { buildService, type Service } from '../helper/build.ts'
import { passTick, skill, skills, skillText, until } from '../helper/skills.ts'

interface Page {
  readonly skills: ReadonlyArray<Readonly<Record<string, unknown>> & { readonly name: string }>
  readonly total: number
  readonly next_cursor: string | null
}

/** What YAML holds and JSON does not, or not as it is. */
const HOSTILE = `---
name: hostile
description: "quotes \\" and \\u2028 and \\uD800"
nan: .nan
inf: -.inf
big: 123456789012345678901234567890
date: 2026-11-22
__proto__: {polluted: 1}
constructor: {prototype: {polluted: 1}}
toJSON: nothing
"": empty
deep: ${'['.repeat(25)}${']'.repeat(25)}
---
# secretbodyword
`

async function page (service: Service, query = ''): Promise<Page> {
  const response = await service.fetch(`/catalog${query}`)
  if (response.status !== 200) throw new Error(response.text)
  return response.json() as Page
}

function names ({ skills }: Page): string[] {
  return skills.map(({ name }) => name)
}

t.test('K46: one service', async (t) => {
  const service = await buildService(t, {
    files: {
      ...skills('alpha', 'beta', 'gamma'),
      hostile: { 'SKILL.md': HOSTILE },
      prose: { 'SKILL.md': '# About alpha' },
      recettes: { 'SKILL.md': '---\nname: recettes\ndescription: Crème brûlée\n---\n# 東京の天気\n' }
    }
  })

  t.test('K46: GET /catalog has an entry for each skill, sorted', async (t) => {
    const all = await page(service)
    t.same(names(all), ['alpha', 'beta', 'gamma', 'hostile', 'prose', 'recettes'])
    t.same(Object.keys(all.skills[0] ?? {}), ['name', 'description', 'type', 'frontmatter', 'revision', 'size_bytes', 'file_count', 'valid', 'tokens', 'findings'])
    t.equal(all.total, 6)
    t.equal(all.next_cursor, null)
    for (const entry of all.skills) t.same((await service.fetch(`/catalog/${entry.name}`)).json(), entry, entry.name)
  })

  t.test('K46: the revision is that of the manifest', async (t) => {
    const { revision } = (await service.fetch('/skills/alpha/files')).json() as { revision: string }
    t.match((await service.fetch('/catalog/alpha')).json(), { revision })
  })

  t.test('K46, K38: any frontmatter is JSON', async (t) => {
    const response = await service.fetch('/catalog/hostile')
    t.equal(response.status, 200)
    const { frontmatter } = response.json() as { frontmatter: Record<string, unknown> }
    t.match(frontmatter, { name: 'hostile', nan: 'NaN', inf: '-Infinity', date: '2026-11-22', toJSON: 'nothing', '': 'empty' })
    t.ok(Object.hasOwn(frontmatter, '__proto__') && Object.hasOwn(frontmatter, 'constructor'))
    t.match(response.text, '"__proto__":{"polluted":1}')
    t.equal(({} as { polluted?: number }).polluted, undefined)
  })

  t.test('K46: ?q= ranks, folds accents, knows beginnings and misspellings, and shows no body', async (t) => {
    const found: Readonly<Record<string, readonly string[]>> = {
      alpha: ['alpha', 'prose'],
      ALPHA: ['alpha', 'prose'],
      'creme%20brulee': ['recettes'],
      'cr%C3%A8me': ['recettes'],
      '%E5%A4%A9%E6%B0%97': ['recettes'],
      recet: ['recettes'],
      recetes: ['recettes'],
      secretbodyword: ['hostile'],
      nothingatall: [],
      '%3F%3F': []
    }
    for (const [query, expected] of Object.entries(found)) t.same(names(await page(service, `?q=${query}`)), expected, query)
    const response = await service.fetch('/catalog?q=secretbodyword')
    t.notMatch(response.text, 'secretbodyword')
    t.ok(((response.json() as Page).skills[0]?.['score'] as number) > 0)
    t.equal((await service.fetch('/catalog?q=%20')).text, (await service.fetch('/catalog')).text, 'blank: the catalog')
  })

  t.test('K46: ?valid=, ?limit= and cursor', async (t) => {
    t.same(names(await page(service, '?valid=false')), ['prose'])
    t.equal((await page(service, '?valid=true')).total, 5)
    const first = await page(service, '?limit=4')
    t.same(names(first), ['alpha', 'beta', 'gamma', 'hostile'])
    const second = await page(service, `?limit=4&cursor=${first.next_cursor}`)
    t.same([names(second), second.next_cursor, second.total], [['prose', 'recettes'], null, 6])
    const search = await page(service, '?q=alpha&limit=1')
    t.same(names(await page(service, `?q=alpha&limit=1&cursor=${search.next_cursor}`)), ['prose'])
  })

  t.test('K48: a bad query is refused, and says how', async (t) => {
    const good = (await page(service, '?limit=1')).next_cursor
    const rows: ReadonlyArray<readonly [query: string, code: string]> = [
      ...['limit=0', 'limit=-1', 'limit=abc', 'limit=1.5', 'limit=', 'limit=501', 'limit=1&limit=2', `limit=${'9'.repeat(400)}`,
        'valid=maybe', 'valid=', 'valid=TRUE', 'valid=1', 'valid=true&valid=true', 'q=a&q=b', `q=${'x'.repeat(1_001)}`, `q=${'x'.repeat(10_000)}`,
        'cursor=a&cursor=b'].map((query) => [query, 'bad_query'] as const),
      ...['cursor=', 'cursor=x', 'cursor=__proto__', 'cursor=%00', `cursor=${'A'.repeat(10_000)}`, `cursor=${good}x`, `cursor=${good}&q=alpha`, `cursor=${good}&valid=true`]
        .map((query) => [query, 'bad_cursor'] as const)
    ]
    for (const [query, code] of rows) {
      const response = await service.fetch(`/catalog?${query}`)
      t.equal(response.status, 400, query.slice(0, 60))
      t.match(response.json(), { code })
    }
    t.equal((await service.fetch(`/catalog?cursor=${good}&limit=2`)).status, 200)
    t.match((await service.fetch('/catalog?__proto__=1&limit=1')).json(), { status: 400, code: 'bad_query' })
    for (const query of ['q=%00', 'q=(a%2B)%2B%24', `q=${'%F0%9F%98%80'.repeat(1_000)}`, 'q=__proto__', 'q=constructor']) {
      t.same((await page(service, `?${query}`)).total, 0, query.slice(0, 60))
    }
  })

  t.test('K48: GET /catalog/:name for what is not there', async (t) => {
    for (const [path, status, code] of [['nope', 404, 'skill_not_found'], ['Alpha', 404, 'skill_not_found'], ['..%2Falpha', 400, 'invalid_skill_name'], ['', 400, 'invalid_skill_name'], ['%ff', 400, 'bad_url']] as const) {
      const response = await service.fetch(`/catalog/${path}`)
      t.equal(response.status, status, path)
      t.match(response.json(), { code })
    }
    t.match((await service.post('/catalog', {})).json(), { code: 'method_not_allowed' })
  })

  t.test('K49: an ETag of the content, 304, HEAD', async (t) => {
    for (const path of ['/catalog', '/catalog?q=alpha&limit=1', '/catalog?limit=2', '/catalog/alpha']) {
      const headers = { 'accept-encoding': 'identity' }
      const response = await service.fetch(path, { headers })
      const etag = response.headers.get('etag') ?? ''
      t.match(etag, /^"[\da-f]{64}"$/)
      t.equal((await service.fetch(path, { headers })).headers.get('etag'), etag, path)
      t.equal((await service.fetch(path, { headers: { 'if-none-match': etag } })).status, 304)
      const head = await service.fetch(path, { method: 'HEAD', headers })
      t.same([head.headers.get('etag'), head.headers.get('content-length')], [etag, String(response.bytes.length)])
    }
  })
})

t.test('K51, K52: an entry and a page tell of the disk as it is', async (t) => {
  const service = await buildService(t, { files: skills('a', 'b') })
  const { etag } = Object.fromEntries((await service.fetch('/catalog')).headers)
  passTick(service.folder)
  fs.writeFileSync(join(service.root, 'a/SKILL.md'), skillText('a', 'changed\n').replace('What a is for', 'Something else'))
  fs.writeFileSync(join(service.root, 'a/more.txt'), '123')
  const response = await service.fetch('/catalog', { headers: { 'if-none-match': etag ?? '' } })
  t.equal(response.status, 200)
  t.match(response.json(), { skills: [{ name: 'a', description: 'Something else', file_count: 2 }, { name: 'b', file_count: 1 }] })
  fs.rmSync(join(service.root, 'b'), { recursive: true })
  t.same(names(await page(service)), ['a'])
  await until(async () => names(await page(service, '?q=something')).length === 1)
})

t.test('K14, K48: no root', async (t) => {
  const service = await buildService(t, { files: null, options: { indexed: false } })
  for (const path of ['/catalog', '/catalog?q=x', '/catalog?valid=true', '/catalog/x']) {
    const response = await service.fetch(path)
    t.equal(response.status, 503, path)
    t.equal(response.headers.get('retry-after'), '5')
    t.match(response.json(), { code: 'skills_folder_not_found' })
  }
  fs.mkdirSync(join(service.root, 'a'), { recursive: true })
  fs.writeFileSync(join(service.root, 'a/SKILL.md'), skillText('a'))
  t.same(names(await page(service)), ['a'])
})

t.test('K46: search_skills through the service', async (t) => {
  const service = await buildService(t, { files: { ...skills('pdf', 'other'), form: { 'SKILL.md': '# Fills a pdf' } } })
  t.same((await service.post('/agent/tools/search_skills', { query: 'pdf' })).json(), {
    skills: [{ skill_name: 'pdf', description: 'What pdf is for' }, { skill_name: 'form', description: '' }]
  })
  t.match((await service.post('/agent/tools/search_skills', { query: 'pdf', limit: '1' })).json(), { error: /^Invalid tool arguments: 'limit' must be an integer/ })
  t.match((await service.post('/agent/tool-call', { name: 'search_skills', arguments: { query: 'pdf', limit: 1 } })).json(), {
    name: 'search_skills', content: '{"skills": [{"skill_name": "pdf", "description": "What pdf is for"}]}'
  })
})

t.test('K53, K92, K94: a list that was begun before the present revision of the catalog does not name it, and is of this process', async (t) => {
  const manager = createSkillManager({ projectRoots: [t.testdir({ one: skill('one') })], watcher: false })
  await manager.initialize()
  t.teardown(() => manager.close())
  for (const target of ['/catalog', '/.well-known/agent-skills/index.json', '/.well-known/skills/index.json']) {
    for (const [revisions, named] of [[['r1', 'r1'], 'r1'], [['r1', 'r2'], undefined], [[undefined, 'r2'], undefined], [['r1', undefined], undefined]] as const) {
      const asked: Array<string | undefined> = [...revisions]
      const next = () => asked.length > 1 ? asked.shift() : asked[0]
      const options = { skillsOf: () => manager, revisionsOf: () => ({ get knownRevision () { return next() }, get revision () { return next() } }) }
      const app = fastify().setValidatorCompiler(() => () => true).setSerializerCompiler(() => String)
      await app.register(catalogRoutes, { ...options, validate: createValidator([]) })
      await app.register(wellKnown, { ...options, isPublic: false })
      const { statusCode, headers } = await app.inject(target)
      await app.close()
      t.strictSame([statusCode, headers['catalog-revision'], headers['cache-control']], [200, named, named === undefined ? 'no-cache' : undefined], `${target} ${revisions.join()}`)
    }
  }
})
