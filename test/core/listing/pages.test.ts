import fs from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { formatCursor, MAX_CURSOR_CHARACTERS, parseCursor } from '../../../src/core/listing/cursor.ts'
import type { CatalogEntry } from '../../../src/core/listing/entry.ts'
import { type CatalogPage, type CatalogQuestion, readCatalogPage } from '../../../src/core/listing/pages.ts'
import { sha256 } from '../../../src/core/shared/digest.ts'
import { MAX_PAGE_CHARACTERS } from '../../../src/core/shared/limits.ts'
import type { SkillManager } from '../../../src/core/skill-manager.ts'
import { codePoint } from '../../helper/code-point.ts'
import { ownFindings, skills, skillText, startManager, until } from '../../helper/skills.ts'

type ReadPage = (question: CatalogQuestion) => Promise<CatalogPage | undefined>

function pagesOf (manager: SkillManager): ReadPage {
  return (question) => readCatalogPage({ skills: manager, judge: ownFindings }, question)
}

function namesOf (page: CatalogPage | undefined): string[] {
  return (page?.entries ?? []).map((text) => (JSON.parse(text) as CatalogEntry).name)
}

/** The names on each page, `between` being done after each. */
async function allPages (readPage: ReadPage, question: CatalogQuestion, between: (page: readonly string[], number: number) => void | Promise<void> = () => {}): Promise<string[][]> {
  const pages: string[][] = []
  let cursor: string | undefined
  do {
    const page: CatalogPage | undefined = await readPage({ ...question, ...cursor !== undefined && { cursor } })
    if (page === undefined) throw new Error(`${cursor} was refused`)
    const names = namesOf(page)
    pages.push(names)
    cursor = page.nextCursor
    await between(names, pages.length)
  } while (cursor !== undefined)
  return pages
}

function write (root: string, name: string, body?: string): void {
  fs.mkdirSync(join(root, name), { recursive: true })
  fs.writeFileSync(join(root, name, 'SKILL.md'), skillText(name, body))
}

/** Skills that a search for 'instructions' finds. */
function headed (...names: string[]) {
  return Object.fromEntries(names.map((name) => [name, { 'SKILL.md': skillText(name, '# Instructions\n') }]))
}

t.test('K46: pages by name, the last one without a cursor', async (t) => {
  const manager = await startManager(t, [t.testdir(skills('a', 'b', 'c', 'd', 'e'))])
  const readPage = pagesOf(manager)
  t.same(await allPages(readPage, { limit: 2 }), [['a', 'b'], ['c', 'd'], ['e']])
  t.same(await allPages(readPage, { limit: 5 }), [['a', 'b', 'c', 'd', 'e']])
  t.equal((await readPage({ limit: 1 }))?.total, 5)
  t.same((await readPage({ limit: 1, query: '  \n' }))?.entries, (await readPage({ limit: 1 }))?.entries, 'a blank query is none')
})

t.test('K46: no skills, and nothing found', async (t) => {
  const readPage = pagesOf(await startManager(t, [t.testdir({})]))
  for (const query of ['', 'x', '???']) t.strictSame(await readPage({ limit: 5, query }), { entries: [], total: 0, end: 0, isPending: false, nextCursor: undefined })
})

t.test('K46: a search in pages, with scores', async (t) => {
  const root = t.testdir({ pdf: { 'SKILL.md': skillText('pdf') }, ...skills('other') })
  for (const name of ['x', 'y', 'z']) write(root, name, '# About pdf\n')
  const readPage = pagesOf(await startManager(t, [root]))
  t.same(await allPages(readPage, { limit: 2, query: 'pdf' }), [['pdf', 'x'], ['y', 'z']])
  const page = await readPage({ limit: 4, query: 'pdf' })
  t.equal(page?.total, 4)
  const scores = page?.entries.map((text) => (JSON.parse(text) as { score: number }).score) ?? []
  t.ok(scores.every((score, index) => score > 0 && score <= (scores[index - 1] ?? score)))
  t.notMatch(page?.entries.join(), /About pdf/, 'nothing of a body')
})

t.test('K46: valid ones only, or the others', async (t) => {
  const root = t.testdir({ ...skills('a', 'b', 'c'), bad: { 'SKILL.md': '# About skills' }, worse: {} })
  const manager = await startManager(t, [root])
  const readPage = pagesOf(manager)
  t.same(await allPages(readPage, { limit: 2, valid: true }), [['a', 'b'], ['c']])
  t.same(await allPages(readPage, { limit: 1, valid: false }), [['bad'], ['worse']])
  t.equal((await readPage({ limit: 1, valid: false }))?.total, 2)
  t.same(await allPages(readPage, { limit: 5, valid: false, query: 'skill' }), [['bad']])
  write(root, 'bad')
  t.same(await allPages(readPage, { limit: 5, valid: false }), [['worse']], 'never one that is valid now')
})

t.test('K46: a cursor of another question is none', async (t) => {
  const readPage = pagesOf(await startManager(t, [t.testdir(headed('a', 'b', 'c'))]))
  const plain = (await readPage({ limit: 1 }))?.nextCursor ?? ''
  const search = (await readPage({ limit: 1, query: 'instructions' }))?.nextCursor ?? ''
  t.ok(plain !== '' && search !== '')
  t.ok(await readPage({ limit: 3, cursor: plain }), 'the limit may change')
  for (const question of [{ cursor: search }, { cursor: plain, valid: true }, { cursor: plain, query: 'a' }, { cursor: search, query: 'a' }, { cursor: '' }, { cursor: 'x' }]) {
    t.equal(await readPage({ limit: 1, ...question }), undefined, JSON.stringify(question))
  }
})

t.test('K46: the same question has the same cursor everywhere', async (t) => {
  const root = t.testdir(headed('a', 'b', 'c'))
  const [one, other] = [pagesOf(await startManager(t, [root])), pagesOf(await startManager(t, [root]))]
  for (const query of ['', 'instructions']) t.strictSame(await one({ limit: 1, query }), await other({ limit: 1, query }))
})

t.test('K46: a search goes on after the last entry, whatever new skills do to the scores', async (t) => {
  const root = t.testdir(headed('a', 'b', 'c', 'd', 'e'))
  const manager = await startManager(t, [root], { watcher: false, tickMs: 20 })
  const query = 'instructions photosynthesis'
  const pages = await allPages(pagesOf(manager), { limit: 2, query }, async (_, number) => {
    if (number !== 1) return
    for (let index = 0; index < 9; index++) write(root, `x${index}`, '# About photosynthesis\n')
    await until(async () => (await manager.search('photosynthesis')).names.length === 9)
  })
  t.same(pages[0], ['a', 'b'])
  t.same(pages.flat().filter((name) => !name.startsWith('x')), ['a', 'b', 'c', 'd', 'e'])
})

t.test('K46: a page of very large entries is shorter', async (t) => {
  const root = t.testdir({})
  // In JSON each quote is two characters.
  const frontmatter = (name: string) => `---\nname: ${name}\ndescription: big\nmetadata: {x: '${'"'.repeat(7_000)}'}\n---\n`
  const count = 350
  for (let i = 0; i < count; i++) {
    fs.mkdirSync(join(root, `s${i}`))
    fs.writeFileSync(join(root, `s${i}`, 'SKILL.md'), frontmatter(`s${i}`))
  }
  const readPage = pagesOf(await startManager(t, [root]))
  const pages = await allPages(readPage, { limit: count })
  t.equal(pages.flat().length, count)
  t.equal(new Set(pages.flat()).size, count)
  t.ok(pages.length > 1)
  t.ok(((await readPage({ limit: count }))?.entries.join('').length ?? 0) < 1.1 * MAX_PAGE_CHARACTERS)
})

t.test('K46: whatever happens between two pages, who is there throughout comes exactly once; of a search, who has the same rank', async (t) => {
  const base = t.testdir({})
  let runs = 0
  const name = fc.integer({ min: 0, max: 30 }).map((number) => `skill-${number}`)
  const change = fc.record({ name, act: fc.constantFrom('remove', 'common', 'common common rare', 'nothing') }, { noNullPrototype: true })
  await fc.assert(fc.asyncProperty(
    fc.uniqueArray(name, { minLength: 1, maxLength: 20 }), fc.array(fc.array(change, { maxLength: 5 }), { maxLength: 8 }), fc.integer({ min: 1, max: 7 }), fc.boolean(),
    async (first, changes, limit, searching) => {
      const root = join(base, String(runs++))
      for (const each of first) write(root, each, '# Common\n')
      return await pageThrough(t, { root, first, changes, limit, searching })
    }), { numRuns: 30 })
})

interface Paging {
  readonly root: string
  readonly first: readonly string[]
  readonly changes: ReadonlyArray<ReadonlyArray<{ readonly name: string, readonly act: string }>>
  readonly limit: number
  readonly searching: boolean
}

async function pageThrough (t: Test, { root, first, changes, limit, searching }: Paging): Promise<boolean> {
  const manager = await startManager(t, [root])
  const throughout = new Set(first)
  const reranked = new Set<string>()
  const pages = await allPages(pagesOf(manager), { limit, ...searching && { query: 'common' } }, (_, number) => {
    for (const { name, act } of changes[number - 1] ?? []) {
      if (act === 'remove') {
        fs.rmSync(join(root, name), { recursive: true, force: true })
        throughout.delete(name)
      } else {
        write(root, name, `# ${act}\n`)
        if (searching) reranked.add(name)
      }
    }
  })
  await manager.close()
  // Against a last entry that is ranked anew, everybody's rank may have changed.
  if (pages.some((page) => reranked.has(page.at(-1) ?? ''))) return true
  const listed = pages.flat().filter((name) => !reranked.has(name))
  return new Set(listed).size === listed.length && [...throughout].every((name) => reranked.has(name) || listed.includes(name)) &&
    pages.every((page) => page.length <= limit)
}

/** Names of skills, and of files and folders in them, which may hold line ends. */
const names = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }).filter((name) => name.isWellFormed())
const scores = fc.nat().map((steps) => steps / 1_000)
const positions = fc.tuple(names, fc.option(scores)).map(([after, score]) => ({ after, ...score !== null && { score } }))

t.test('K46: a cursor is read as it was written, for the same question only', async () => {
  fc.assert(fc.property(fc.string(), fc.string(), positions, (scope, other, position) => {
    const cursor = formatCursor(scope, position)
    return /^[\w-]+$/.test(cursor) && isDeepStrictEqual(parseCursor(scope, cursor), position) &&
      (other === scope || parseCursor(other, cursor) === undefined)
  }))
})

t.test('K46: one changed character makes it none', async () => {
  fc.assert(fc.property(positions, fc.nat(), fc.constantFrom('A', 'z', '0', '-', '=', '+', ' ', 'é'), (position, at, character) => {
    const cursor = formatCursor('s', position)
    const place = at % (cursor.length + 1)
    const changed = cursor.slice(0, place) + character + cursor.slice(place + 1)
    return changed === cursor || parseCursor('s', changed) === undefined
  }))
})

t.test('K46: what is no cursor is none, and nothing throws', async (t) => {
  const cursor = formatCursor('s', { after: 'demo', score: 12.345 })
  const forge = (fields: string) => Buffer.from(sha256(`s\n${fields}`).slice('sha256:'.length, 'sha256:'.length + 8) + fields).toString('base64url')
  t.same(parseCursor('s', forge('1.5\ndemo')), { after: 'demo', score: 1.5 }, 'the next ones are forged as this one is')
  const rows = [
    '', 'x', '__proto__', Buffer.from('{"__proto__":1}').toString('base64url'), `${cursor}=`, ` ${cursor}`, cursor.slice(0, -2), cursor + cursor,
    'A'.repeat(MAX_CURSOR_CHARACTERS + 1), Buffer.from([0xff, 0xfe]).toString('base64url'),
    ...['', 'demo', 'x\ndemo', 'NaN\ndemo', 'Infinity\ndemo', '1e400\ndemo', '01\ndemo', ' 1\ndemo', '0x1\ndemo', '1.50\ndemo'].map(forge)
  ]
  for (const text of rows) t.equal(parseCursor('s', text), undefined, text.slice(0, 60))
  fc.assert(fc.property(fc.string({ unit: codePoint }), (text) => parseCursor('s', text) === undefined))
})

t.test('the longest name fits', async (t) => {
  t.ok(formatCursor('s', { after: '\u{1F600}'.repeat(63), score: 191.234 }).length < MAX_CURSOR_CHARACTERS)
})
