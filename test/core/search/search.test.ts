import fs from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import type { CatalogChange } from '../../../src/core/catalog/catalog.ts'
import { mainFileError, folderError } from '../../../src/core/shared/errors.ts'
import { FileContent } from '../../../src/core/files/file-content.ts'
import { MAX_SEARCHED_BODY_CHARACTERS } from '../../../src/core/shared/limits.ts'
import type { SkillManagerOptions } from '../../../src/core/skill-manager.ts'
import { type SearchSource, SkillSearch } from '../../../src/core/search/search.ts'
import { createWatcher } from '../../../src/core/watch/watcher.ts'
import { createFaultyDisk, createManager, failing, skill, skills, skillText, startManager, until } from '../../helper/skills.ts'

/** K52's figure is measured by the bench: here other tests run on the same cores. */
const FOLLOWED_UNDER_LOAD_MS = 5_000
const HOUR_MS = 3_600_000

/** Skills in memory that count who reads them, and can make readers wait. */
class FakeSkills implements SearchSource {
  readonly bodies = new Map<string, string>()
  readonly reads: string[] = []
  failure: Error | undefined
  gate: Promise<void> = Promise.resolve()
  #listener: ((change: CatalogChange) => void) | undefined

  constructor (bodies: Readonly<Record<string, string>>) {
    for (const [name, body] of Object.entries(bodies)) this.bodies.set(name, body)
  }

  async list () {
    if (this.failure !== undefined) throw this.failure
    return [...this.bodies.keys()].sort()
  }

  async find (name: string) {
    if (this.failure !== undefined) throw this.failure
    return this.findNow(name)
  }

  findNow (name: string) {
    const metadata = { name, description: '', type: 'project' as const, skillPath: `/${name}`, path: `/${name}/SKILL.md` }
    const body = this.bodies.get(name)
    return body === undefined ? undefined : { name, metadata, frontmatter: {}, findings: [], valid: true, digest: contentOf(body).digest }
  }

  async readMainFile (name: string) {
    if (this.failure !== undefined) throw this.failure
    await this.gate
    this.reads.push(name)
    const body = this.bodies.get(name)
    if (body === undefined || body === 'unreadable') throw mainFileError.unreadable(name)
    return contentOf(body)
  }

  subscribe (listener: (change: CatalogChange) => void) {
    this.#listener = listener
    return () => {}
  }

  change (changed: Readonly<Record<string, string>>, removed: readonly string[] = []): void {
    for (const [name, body] of Object.entries(changed)) this.bodies.set(name, body)
    for (const name of removed) this.bodies.delete(name)
    this.#listener?.({ generation: 1, added: [], changed: Object.keys(changed), removed })
  }
}

function contentOf (body: string): FileContent {
  return new FileContent(Buffer.from(body))
}

/** A gate, and what opens it. */
function createGate () {
  let open = () => {}
  const gate = new Promise<void>((resolve) => { open = resolve })
  return { gate, open }
}

async function namesFor (search: Pick<SkillSearch, 'search'>, query: string): Promise<string[]> {
  return [...(await search.search(query)).names]
}

t.test('nothing is read before the first search', async (t) => {
  const source = new FakeSkills({ a: 'alpha' })
  const search = new SkillSearch(source)
  await nextTurn()
  t.same(source.reads, [])
  t.same(await namesFor(search, 'alpha'), ['a'])
  t.same(await namesFor(search, 'nothing'), [])
  t.same(source.reads, ['a'])
})

t.test('K53: concurrent first searches share one index, and wait until it is whole', async (t) => {
  const bodies = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`s${index}`, 'common']))
  const source = new FakeSkills(bodies)
  const search = new SkillSearch(source)
  const { gate, open } = createGate()
  source.gate = gate
  const searches = [search.search('common'), search.search('common')]
  await nextTurn()
  const late = search.search('common')
  open()
  for (const { names } of await Promise.all([...searches, late])) t.equal(names.length, 50)
  t.equal(source.reads.length, 50)
})

t.test('K46: a search that bodies are missing to says so, and knows every name and description', async (t) => {
  const source = new FakeSkills({ alpha: 'first', beta: 'second' })
  const search = new SkillSearch(source, 0)
  const { gate, open } = createGate()
  source.gate = gate
  t.same(await search.search('alpha'), { names: ['alpha'], scores: Float64Array.of(160), isComplete: false })
  t.same(await search.search('first'), { names: [], scores: new Float64Array(0), isComplete: false })
  open()
  await until(async () => (await search.search('x')).isComplete)
  t.match(await search.search('first'), { names: ['alpha'], isComplete: true })
  t.equal(source.reads.length, 2, 'each body is read once, however many searches came meanwhile')
  const second = createGate()
  source.gate = second.gate
  source.change({ alpha: 'third' })
  t.match(await search.search('first'), { names: ['alpha'], isComplete: false }, 'what was known stands')
  t.match(await search.search('second', ['beta']), { names: ['beta'], isComplete: true }, 'K64: who does not see the skill that is read is told nothing of it')
  source.change({ beta: 'fourth' })
  t.match(await search.search('second', ['beta']), { names: ['beta'], isComplete: false }, 'one that waits to be read')
  second.open()
})

t.test('K52: changes are followed: only what has changed is read again', async (t) => {
  const source = new FakeSkills({ a: 'alpha', b: 'beta' })
  const search = new SkillSearch(source)
  await search.search('x')
  source.change({ a: 'gamma', c: 'alpha' }, ['b'])
  t.same(await namesFor(search, 'alpha'), ['c'])
  t.same(await namesFor(search, 'gamma'), ['a'])
  t.same(await namesFor(search, 'beta'), [])
  t.same(source.reads, ['a', 'b', 'a', 'c'])
})

t.test('K52: changes are followed without a search', async () => {
  const source = new FakeSkills({ a: 'alpha' })
  await new SkillSearch(source).search('x')
  source.change({ a: 'beta' })
  await until(() => source.reads.length === 2)
})

t.test('K53: a search during a refresh waits for the changes that were reported to it', async (t) => {
  const source = new FakeSkills({ a: 'alpha', b: 'alpha' })
  const search = new SkillSearch(source)
  await search.search('x')
  const { gate, open } = createGate()
  source.gate = gate
  source.change({ a: 'beta' })
  const during = namesFor(search, 'beta')
  source.change({ b: 'beta' })
  open()
  t.same(await during, ['a', 'b'])
})

t.test('K14: without a root there is no search, and later there is', async (t) => {
  const source = new FakeSkills({ a: 'alpha' })
  const search = new SkillSearch(source)
  source.failure = folderError.notFound('/srv/skills')
  await t.rejects(search.search('alpha'), { code: 'skills_folder_not_found' })
  source.failure = undefined
  t.same(await namesFor(search, 'alpha'), ['a'])
  source.failure = folderError.notFound('/srv/skills')
  source.change({ a: 'beta' })
  await t.rejects(search.search('alpha'), { code: 'skills_folder_not_found' })
  source.failure = undefined
  t.same(await namesFor(search, 'beta'), ['a'], 'what could not be read then is read now')
})

t.test('K53: a root that goes away while the index begins costs that search only', async (t) => {
  const source = new FakeSkills({ a: 'alpha' })
  const search = new SkillSearch(source)
  source.findNow = () => {
    source.failure = folderError.notFound('/srv/skills')
    return undefined
  }
  await t.rejects(search.search('alpha'), { code: 'skills_folder_not_found' })
  Reflect.deleteProperty(source, 'findNow')
  source.failure = undefined
  t.same(await namesFor(search, 'alpha'), ['a'])
})

t.test('K64: what keeps a skill from being read fails only the searches that look there', async (t) => {
  const source = new FakeSkills({ a: 'alpha', b: 'alpha' })
  const { find, findNow } = source
  source.findNow = (name) => name === 'b' ? undefined : findNow.call(source, name)
  source.find = async (name) => {
    if (name === 'b') throw folderError.permissionDenied()
    return await find.call(source, name)
  }
  const search = new SkillSearch(source)
  t.match(await search.search('alpha', ['a']), { names: ['a'], isComplete: true })
  await t.rejects(search.search('alpha'), { code: 'skills_folder_permission_denied' })
})

t.test('a skill without a readable main file is found by its name', async (t) => {
  const source = new FakeSkills({ broken: 'unreadable', other: 'x' })
  const search = new SkillSearch(source)
  t.match(await search.search('broken'), { names: ['broken'], isComplete: true })
  source.change({ late: 'unreadable' })
  t.match(await search.search('late'), { names: ['late'], isComplete: true }, 'one that comes later too')
})

t.test('the end of a very long body is not searched, and frontmatter is no body', async (t) => {
  const search = new SkillSearch(new FakeSkills({
    long: `early ${'x '.repeat(MAX_SEARCHED_BODY_CHARACTERS / 2)} late`,
    plain: '---\nname: plain\nlicense: Beerware\n---\nText\n'
  }))
  t.same(await namesFor(search, 'early'), ['long'])
  t.same(await namesFor(search, 'late'), [])
  t.same(await namesFor(search, 'beerware'), [])
})

t.test('everybody else gets their turn while the index is built', async (t) => {
  const text = Array.from({ length: 4_000 }, (_, index) => `word${index}`).join(' ')
  const source = new FakeSkills(Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`s${index}`, text])))
  let turns = 0
  const ticking = new AbortController()
  const countTurns = () => {
    turns++
    if (!ticking.signal.aborted) setImmediate(countTurns)
  }
  countTurns()
  const before = process.cpuUsage()
  await new SkillSearch(source).search('word1')
  const { user, system } = process.cpuUsage(before)
  ticking.abort()
  // A slice is 5 ms. Threads of V8 work beside it, and a slice ends with the skill that it has begun.
  const milliseconds = (user + system) / 1_000
  t.ok(turns > milliseconds / 50, `${turns} turns in ${milliseconds} ms`)
  t.ok(milliseconds > 50)
})

t.test('K46: a skill manager searches its skills, whatever is wrong with one', async (t) => {
  const root = t.testdir({
    ...skills('demo'),
    'no-frontmatter': { 'SKILL.md': 'Just Prose\n' },
    empty: {},
    latin: { 'SKILL.md': Buffer.from('caf\xe9 prose', 'latin1') },
    both: { 'SKILL.MD': skillText('both', 'upper\n'), 'SKILL.md': skillText('both', 'lower\n') }
  })
  const manager = await startManager(t, [root])
  t.same(await namesFor(manager, 'prose'), ['no-frontmatter'])
  t.same(await namesFor(manager, 'empty'), ['empty'])
  t.same(await namesFor(manager, 'latin'), ['latin'])
  t.same(await namesFor(manager, 'lower'), ['both'], 'K6: the catalog prefers SKILL.md')
  t.same(await namesFor(manager, 'upper'), [])
})

t.test('K53: a search before the first index waits for all skills', async (t) => {
  const manager = createManager(t, [t.testdir(skills('a', 'b', 'c'))])
  await manager.start()
  t.same(await namesFor(manager, 'instructions'), ['a', 'b', 'c'])
})

t.test('K52: search follows the disk', async (t) => {
  const kinds: Readonly<Record<string, Partial<SkillManagerOptions>>> = {
    'with a watcher alone': { watcher: createWatcher, times: { reconcileHealthy: HOUR_MS, reconcileDegraded: HOUR_MS } },
    'without a watcher, by walks': { watcher: false, times: { reconcileDegraded: 20 } }
  }
  for (const [kind, options] of Object.entries(kinds)) {
    t.test(kind, async (t) => {
      const root = t.testdir({ ...skills('a', 'gone'), kept: skill('kept') })
      const manager = await startManager(t, [root], options)
      t.same(await namesFor(manager, 'instructions'), ['a', 'gone', 'kept'])
      if (options.watcher !== false) await until(() => manager.status.watcher.status === 'watching')

      fs.writeFileSync(join(root, 'a/SKILL.md'), skillText('a', 'Photosynthesis\n'))
      await until(async () => (await namesFor(manager, 'photosynthesis')).join() === 'a', FOLLOWED_UNDER_LOAD_MS)
      fs.mkdirSync(join(root, 'new'))
      fs.writeFileSync(join(root, 'new/SKILL.md'), skillText('new', 'Chlorophyll\n'))
      await until(async () => (await namesFor(manager, 'chlorophyll')).join() === 'new', FOLLOWED_UNDER_LOAD_MS)
      fs.rmSync(join(root, 'gone'), { recursive: true })
      t.same(await namesFor(manager, 'gone'), [], 'what is gone is gone at once')
      t.same(await namesFor(manager, 'instructions'), ['kept'])
    })
  }
})

t.test('K53: a disk that fails while the index is made, or at a change, takes no words from a skill for longer than that', async (t) => {
  const root = t.testdir({ demo: { 'SKILL.md': '---\nname: demo\ndescription: Leaves\n---\nPhotosynthesis\n' } })
  // Each of these fails another one of the questions that a search asks about a skill.
  for (const [operation, ending] of [['stat', '/demo'], ['stat', '/SKILL.md'], ['readdir', '/demo'], ['open', '/SKILL.md'], ['read', '/SKILL.md']] as const) {
    const disk = createFaultyDisk({ ageMs: HOUR_MS })
    const manager = await startManager(t, [root], { disk })
    const shown = `${operation} of ${ending}`
    disk.intercept = failing(operation, ending, 'EIO')
    await namesFor(manager, 'x')
    disk.intercept = () => {}
    t.same(await namesFor(manager, 'photosynthesis'), ['demo'], `the body, after ${shown}`)
    t.same(await namesFor(manager, 'leaves'), ['demo'], `the description, after ${shown}`)

    disk.intercept = failing(operation, ending, 'EIO')
    await manager.search('x')
    t.same(await namesFor(manager, 'photosynthesis'), ['demo'], `K53: what was known stands during ${shown}`)
    disk.intercept = () => {}
  }
})

t.test('K53: a change on a disk that fails is found when it works again', async (t) => {
  const source = new FakeSkills({ a: 'alpha', b: 'beta' })
  const search = new SkillSearch(source)
  await search.search('x')
  source.change({ a: 'unreadable' })
  t.same(await namesFor(search, 'alpha'), ['a'], 'what was known stands')
  source.bodies.set('a', 'gamma')
  t.same(await namesFor(search, 'gamma'), ['a'])
  t.same(await namesFor(search, 'alpha'), [])
})
