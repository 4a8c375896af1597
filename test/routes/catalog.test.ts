import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import fastify from 'fastify'
import t from 'tap'
import { MAX_PAGE_CHARACTERS } from '../../src/listing/pages.ts'
import { MAX_MAIN_FILE_BYTES } from '../../src/core/shared/limits.ts'
import { createSkillManager } from '../../src/core/skill-manager.ts'
import { catalogRoutes } from '../../src/routes/catalog.ts'
import { createValidator } from '../../src/verdicts/entry.ts'
import { wellKnown } from '../../src/well-known/well-known.ts'
import { buildService, type Service } from '../helper/build.ts'
import { createFaultyDisk, failing, passTick, skill, skills, skillText, until } from '../helper/skills.ts'

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

type Inject = Pick<Service, 'app'>

async function get<T = Page> ({ app }: Inject, target: string): Promise<T> {
  const response = await app.inject(target)
  if (response.statusCode !== 200) throw new Error(`${target}: ${response.payload}`)
  return response.json<T>()
}

const page = async (service: Inject, query = ''): Promise<Page> => await get(service, `/catalog${query}`)

function names ({ skills }: Page): string[] {
  return skills.map(({ name }) => name)
}

/** The names on each page, `between` being done after each. */
async function allPages (service: Inject, query: string,
  between: (number: number) => void | Promise<void> = () => {}): Promise<string[][]> {
  const pages: string[][] = []
  let cursor: string | null = null
  do {
    const next: Page = await page(service, `${query}${cursor === null ? '' : `&cursor=${cursor}`}`)
    pages.push(names(next))
    cursor = next.next_cursor
    await between(pages.length)
  } while (cursor !== null)
  return pages
}

function write (root: string, name: string, body?: string): void {
  fs.mkdirSync(join(root, name), { recursive: true })
  fs.writeFileSync(join(root, name, 'SKILL.md'), skillText(name, body))
}

t.test('K46: one service', async (t) => {
  const service = await buildService(t, {
    files: {
      ...skills('beta', 'gamma'),
      alpha: skill('alpha', { docs: { 'a.md': '12345' }, '.env': 'secret' }),
      hostile: { 'SKILL.md': HOSTILE },
      prose: { 'SKILL.md': '# About alpha' },
      recettes: { 'SKILL.md': '---\nname: recettes\ndescription: Crème brûlée\n---\n# 東京の天気\n' }
    }
  })

  t.test('K46: GET /catalog has an entry for each skill, sorted', async (t) => {
    const all = await page(service)
    t.same(names(all), ['alpha', 'beta', 'gamma', 'hostile', 'prose', 'recettes'])
    const { revision } = await get<{ revision: string }>(service, '/skills/alpha/files')
    t.match(all.skills[0], {
      name: 'alpha',
      description: 'What alpha is for',
      type: 'project',
      frontmatter: { name: 'alpha', description: 'What alpha is for' },
      revision,
      size_bytes: Buffer.byteLength(skillText('alpha')) + 5,
      file_count: 2,
      valid: true
    })
    t.same(Object.keys(all.skills[0] ?? {}),
      ['name', 'description', 'type', 'frontmatter', 'revision', 'size_bytes', 'file_count', 'valid', 'tokens',
        'findings'])
    t.equal(all.total, 6)
    t.equal(all.next_cursor, null)
    for (const entry of all.skills) t.same((await service.fetch(`/catalog/${entry.name}`)).json(), entry, entry.name)
  })

  t.test('K46, K38: any frontmatter is JSON', async (t) => {
    const response = await service.fetch('/catalog/hostile')
    t.equal(response.status, 200)
    const { frontmatter } = response.json() as { frontmatter: Record<string, unknown> }
    t.match(frontmatter, {
      name: 'hostile', nan: 'NaN', inf: '-Infinity', date: '2026-11-22', toJSON: 'nothing', '': 'empty'
    })
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
    for (const [query, expected] of Object.entries(found)) {
      t.same(names(await page(service, `?q=${query}`)), expected, query)
    }
    const response = await service.fetch('/catalog?q=secretbodyword')
    t.notMatch(response.text, 'secretbodyword')
    t.ok(((response.json() as Page).skills[0]?.['score'] as number) > 0)
    t.equal((await service.fetch('/catalog?q=%20')).text, (await service.fetch('/catalog')).text, 'blank: the catalog')
  })

  t.test('K46: pages by name or by a search, of all skills or the valid ones', async (t) => {
    for (const [query, pages] of [
      ['limit=4', [['alpha', 'beta', 'gamma', 'hostile'], ['prose', 'recettes']]],
      ['limit=3&valid=true', [['alpha', 'beta', 'gamma'], ['hostile', 'recettes']]],
      ['valid=false', [['prose']]],
      ['limit=1&q=alpha', [['alpha'], ['prose']]],
      ['limit=5&q=alpha&valid=false', [['prose']]]
    ] as const) t.same(await allPages(service, `?${query}`), pages, query)
    t.match(await page(service, '?limit=1&valid=true'), { total: 5 })
  })

  t.test('K48: a cursor of another list is refused; any words are a query', async (t) => {
    const good = (await page(service, '?limit=1')).next_cursor
    for (const cursor of ['', 'x', '__proto__', '%00', 'A'.repeat(10_000), `${good}x`, `${good}&q=alpha`,
      `${good}&valid=true`]) {
      t.match((await service.fetch(`/catalog?cursor=${cursor}`)).json(), { status: 400, code: 'bad_cursor' },
        cursor.slice(0, 60))
    }
    t.equal((await service.fetch(`/catalog?cursor=${good}&limit=2`)).status, 200)
    for (const query of ['q=%00', 'q=(a%2B)%2B%24', `q=${'%F0%9F%98%80'.repeat(1_000)}`, 'q=__proto__',
      'q=constructor']) {
      t.same((await page(service, `?${query}`)).total, 0, query.slice(0, 60))
    }
  })

  t.test('K48: GET /catalog/:name for what is not there', async (t) => {
    for (const [path, status, code] of [['nope', 404, 'skill_not_found'], ['Alpha', 404, 'skill_not_found'],
      ['..%2Falpha', 400, 'invalid_skill_name'], ['', 400, 'invalid_skill_name'], ['%ff', 400, 'bad_url']] as const) {
      const response = await service.fetch(`/catalog/${path}`)
      t.equal(response.status, status, path)
      t.match(response.json(), { code })
    }
    t.match((await service.post('/catalog', {})).json(), { code: 'method_not_allowed' })
  })
})

t.test('K4, K9, K46: a broken skill has an entry with its findings, and so has one whose files ' +
  'cannot be listed', async (t) => {
  const disk = createFaultyDisk()
  const links = Object.fromEntries(
    ['/etc/passwd', '..', 'nothing', '../latin/SKILL.md', 'docs'].map((target, index) =>
      [`link${index}`, t.fixture('symlink', target)]))
  const service = await buildService(t, {
    files: {
      empty: {},
      'Bad Name': { 'SKILL.md': '---\nname: other\n---\nx' },
      large: { 'SKILL.md': 'x'.repeat(MAX_MAIN_FILE_BYTES + 1) },
      latin: { 'SKILL.md': Buffer.from([0xe9]) },
      linked: skill('linked', { docs: { 'a.md': '' }, ...links }),
      unread: skill('unread', { 'notes.md': 'x' })
    },
    options: { disk, prepare: (folder) => { execFileSync('mkfifo', [join(folder, 'skills/linked/fifo')]) } }
  })
  disk.intercept = failing('open', 'notes.md', 'EIO')
  const entries = Object.fromEntries((await page(service)).skills.map((entry) => [entry.name, entry]))
  for (const [name, code, count] of [
    ['empty', 'main_file_missing', 0], ['Bad Name', 'name_folder_mismatch', 1], ['large', 'main_file_too_large', 1],
    ['latin', 'main_file_not_utf8', 1]
  ] as const) {
    t.match(entries[name], { valid: false, file_count: count, revision: /^sha256:/ })
    t.ok(
      (entries[name]?.['findings'] as Array<{ code: string, fix: string }>).some((finding) =>
        finding.code === code && finding.fix !== ''), code)
  }
  t.match(entries['linked']?.['findings'], [
    { code: 'file_special', message: "files that are not regular files are skipped: 'fifo'" },
    { code: 'link_outside', message: /: 'link\d', 'link\d', 'link\d' and 1 more$/ },
    { code: 'link_to_folder', message: /: 'link4'$/ }
  ])
  t.match(entries['unread'], { revision: null, size_bytes: null, file_count: null, valid: true })
})

t.test('K7: a skill that hides others names their roots', async (t) => {
  const service = await buildService(t, {
    files: null,
    options: {
      siblings: { one: skills('a'), two: skills('a'), three: skills('a') }, roots: ['one', 'two', 'three']
    }
  })
  const findings = async () => (await get<{ findings: unknown }>(service, '/catalog/a')).findings
  t.match(await findings(), [{ code: 'shadowed', message: /: 'two', 'three'$/ }])
  for (const [gone, expected] of [['two', [{ code: 'shadowed', message: /: 'three'$/ }]], ['three', []]] as const) {
    fs.rmSync(join(service.folder, gone, 'a'), { recursive: true })
    await service.skills.list()
    t.match(await findings(), expected)
  }
})

t.test('K53: an entry is of one state, or does without the files', async (t) => {
  const disk = createFaultyDisk()
  const service = await buildService(t, { files: { demo: skill('demo', { a: 'a' }) }, options: { disk } })
  let edits = 0
  disk.intercept = (operation) => {
    if (operation === 'close' && edits++ < 2) write(service.root, 'demo', `${edits}`.repeat(edits))
  }
  for (let asked = 0; asked < 4; asked++) await get(service, '/catalog/demo')
  t.same(await get(service, '/catalog/demo'), await get(service, '/catalog/demo'))
  t.ok(edits > 2)
  // What is known from before says nothing about this. Each write has another size: a change within one tick of the
  // clock shows too.
  fs.appendFileSync(join(service.root, 'demo/a'), 'another')
  disk.intercept = (operation) => {
    if (operation === 'close') fs.writeFileSync(join(service.root, 'demo/a'), 'a'.repeat(++edits % 100))
  }
  t.match((await page(service)).skills, [{ revision: null, valid: true, findings: [{ code: 'revision_pending' }] }])
})

t.test('K46: a page of very large entries is shorter', async (t) => {
  // In JSON each quote is two characters.
  const metadata = `metadata: {x: '${'"'.repeat(7_000)}'}`
  const names = Array.from({ length: 350 }, (_, index) => `s${index}`)
  const service = await buildService(t,
    {
      files: Object.fromEntries(
        names.map((name) => [name, { 'SKILL.md': `---\nname: ${name}\ndescription: big\n${metadata}\n---\n` }]))
    })
  const first = await service.app.inject('/catalog?limit=500')
  const { skills, next_cursor: cursor } = first.json<Page>()
  t.same([...skills, ...(await page(service, `?limit=500&cursor=${cursor}`)).skills].map(({ name }) => name).sort(),
    names.sort())
  const { length } = first.payload
  t.ok(length > MAX_PAGE_CHARACTERS && length < MAX_PAGE_CHARACTERS * 1.1, `${length}`)
})

t.test('K46: a search goes on after the last entry, whatever new skills do to the ranks', async (t) => {
  const names = ['a', 'b', 'c', 'd', 'e']
  const service = await buildService(t, {
    files: Object.fromEntries(names.map((name) => [name, {
      'SKILL.md': skillText(name, '# Instructions\n')
    }])),
    options: {
      tickMs: 20
    }
  })
  const pages = await allPages(service, '?limit=2&q=instructions%20photosynthesis', async (number) => {
    if (number !== 1) return
    for (let index = 0; index < 9; index++) write(service.root, `x${index}`, '# About photosynthesis\n')
    await until(async () => (await page(service, '?q=photosynthesis')).total === 9)
  })
  t.same(pages.flat().filter((name) => !name.startsWith('x')), names)
})

t.test('K46: a skill that is there throughout is on exactly one page, whatever happens in between', async (t) => {
  const name = fc.constantFrom(...'abcdefghijklmnop')
  const change = fc.record({ name, isRemoved: fc.boolean() }, { noNullPrototype: true })
  const changes = fc.array(fc.array(change, { maxLength: 5 }), { maxLength: 8 })
  const service = await buildService(t)
  await fc.assert(fc.asyncProperty(fc.uniqueArray(name, { minLength: 1, maxLength: 20 }), changes, fc.integer({
    min: 1, max: 7
  }), async (first, changes, limit) => {
    fs.rmSync(service.root, { recursive: true })
    for (const name of first) write(service.root, name)
    const throughout = new Set(first)
    const pages = await allPages(service, `?limit=${limit}`, (number) => {
      for (const { name, isRemoved } of changes[number - 1] ?? []) {
        if (isRemoved) {
          fs.rmSync(join(service.root, name), { recursive: true, force: true })
          throughout.delete(name)
        } else write(service.root, name, '# Changed\n')
      }
    })
    const listed = pages.flat().filter((name) => throughout.has(name))
    return listed.length === throughout.size && new Set(listed).size === listed.length &&
      pages.every((page) => page.length <= limit)
  }), { numRuns: 25 })
})

t.test('K51, K52: an entry and a page tell of the disk as it is', async (t) => {
  const service = await buildService(t, { files: skills('a', 'b') })
  const { etag } = Object.fromEntries((await service.fetch('/catalog')).headers)
  passTick(service.folder)
  fs.writeFileSync(join(service.root, 'a/SKILL.md'),
    skillText('a', 'changed\n').replace('What a is for', 'Something else'))
  fs.writeFileSync(join(service.root, 'a/more.txt'), '123')
  const response = await service.fetch('/catalog', { headers: { 'if-none-match': etag ?? '' } })
  t.equal(response.status, 200)
  t.match(response.json(), {
    skills: [{ name: 'a', description: 'Something else', file_count: 2 }, { name: 'b', file_count: 1 }]
  })
  fs.rmSync(join(service.root, 'b'), { recursive: true })
  t.same(names(await page(service)), ['a'])
  await until(async () => names(await page(service, '?q=something')).length === 1)
})

t.test('K53, K92, K94: a list that was begun before the present revision of the catalog does not name it, and is of ' +
  'this process', async (t) => {
  const manager = createSkillManager({ projectRoots: [t.testdir({ one: skill('one') })], watcher: false })
  await manager.initialize()
  t.teardown(() => manager.close())
  for (const target of ['/catalog', '/.well-known/agent-skills/index.json', '/.well-known/skills/index.json']) {
    for (const [revisions, named] of [[['r1', 'r1'], 'r1'], [['r1', 'r2'], undefined], [[undefined, 'r2'], undefined],
      [['r1', undefined], undefined]] as const) {
      const asked: Array<string | undefined> = [...revisions]
      const next = () => asked.length > 1 ? asked.shift() : asked[0]
      const options = { skillsOf: () => manager }
      Object.defineProperty(manager, 'feed', { value: { get revision () { return next() } }, configurable: true })
      const app = fastify().setValidatorCompiler(() => () => true).setSerializerCompiler(() => String)
      await app.register(catalogRoutes, { ...options, validate: createValidator() })
      await app.register(wellKnown, { ...options, isPublic: false })
      const { statusCode, headers } = await app.inject(target)
      await app.close()
      t.strictSame([statusCode, headers['catalog-revision'], headers['cache-control']],
        [200, named, named === undefined ? 'no-cache' : undefined], `${target} ${revisions.join()}`)
    }
  }
})
