import fs from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { formatCursor, parseCursor } from '../../../src/core/listing/cursor.ts'
import { type CatalogEntry, describeState, type EntryState } from '../../../src/core/listing/entry.ts'
import { type CatalogPage, type CatalogQuestion, MAX_PAGE_CHARACTERS, readCatalogPage } from '../../../src/core/listing/pages.ts'
import { MAX_MAIN_FILE_BYTES } from '../../../src/core/shared/limits.ts'
import type { Finding } from '../../../src/core/shared/skill.ts'
import type { SkillManager } from '../../../src/core/skill-manager.ts'
import {
  createFaultyDisk, failing, ownFindings, skill, skills, skillText, startManager, until
} from '../../helper/skills.ts'

type ReadPage = (question: CatalogQuestion) => Promise<CatalogPage | undefined>

async function entryOf (manager: SkillManager, name: string): Promise<CatalogEntry> {
  return await manager.read(name, (state) => describeState(state, ownFindings))
}

function pagesOf (manager: SkillManager): ReadPage {
  return (question) => readCatalogPage({ skills: manager, validate: ownFindings }, question)
}

function entriesOf (page: CatalogPage | undefined): Array<CatalogEntry & { readonly score?: number }> {
  return (page?.entries ?? []).map((text) => JSON.parse(text) as CatalogEntry)
}

/** The names on each page, `between` being done after each. */
async function allPages (
  readPage: ReadPage, question: CatalogQuestion,
  between: (page: readonly string[], number: number) => void | Promise<void> = () => {}
): Promise<string[][]> {
  const pages: string[][] = []
  let cursor: string | undefined
  do {
    const page: CatalogPage | undefined = await readPage({ ...question, cursor })
    if (page === undefined) throw new Error(`${cursor} was refused`)
    const names = entriesOf(page).map(({ name }) => name)
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

t.test('K46: what an entry says', async (t) => {
  const root = t.testdir({ demo: skill('demo', { docs: { 'a.md': '12345' }, '.env': 'secret' }) })
  const manager = await startManager(t, [root])
  t.strictSame(await entryOf(manager, 'demo'), {
    name: 'demo',
    description: 'What demo is for',
    type: 'project',
    frontmatter: { name: 'demo', description: 'What demo is for' },
    revision: (await manager.manifest('demo')).revision,
    size_bytes: Buffer.byteLength(skillText('demo')) + 5,
    file_count: 2,
    valid: true,
    findings: []
  })
  await t.rejects(entryOf(manager, 'nope'), { code: 'skill_not_found' })
  await t.rejects(entryOf(manager, '../demo'), { code: 'invalid_skill_name' })
})

t.test('K46, K9: a broken skill has an entry with its findings, and so has one whose files cannot be listed', async (t) => {
  const root = t.testdir({
    empty: {},
    'Bad Name': { 'SKILL.md': '---\nname: other\n---\nx' },
    large: { 'SKILL.md': 'x'.repeat(MAX_MAIN_FILE_BYTES + 1) },
    latin: { 'SKILL.md': Buffer.from([0xe9]) },
    unread: skill('unread', { 'notes.md': 'x' })
  })
  const disk = createFaultyDisk()
  const manager = await startManager(t, [root], { disk })
  for (const [name, code, count] of [
    ['empty', 'main_file_missing', 0], ['Bad Name', 'name_folder_mismatch', 1], ['large', 'main_file_too_large', 1],
    ['latin', 'main_file_not_utf8', 1]
  ] as const) {
    const entry = await entryOf(manager, name)
    t.match(entry, { name, valid: false, file_count: count, revision: /^sha256:/ })
    t.ok(entry.findings.some((finding) => finding.code === code && finding.fix !== ''), code)
  }
  disk.intercept = failing('open', 'notes.md', 'EIO')
  t.match(await entryOf(manager, 'unread'), { revision: null, size_bytes: null, file_count: null, valid: true })
})

t.test('K7: a skill that hides others names their roots', async (t) => {
  const folder = t.testdir({ one: { a: skill('a') }, two: { a: skill('a') }, three: { a: skill('a') } })
  const manager = await startManager(t, ['one', 'two', 'three'].map((name) => join(folder, name)))
  const findings = async () => (await entryOf(manager, 'a')).findings
  t.match(await findings(), [{ code: 'shadowed', message: /: 'two', 'three'$/ }])
  fs.rmSync(join(folder, 'two/a'), { recursive: true })
  await manager.list()
  t.match(await findings(), [{ code: 'shadowed', message: /: 'three'$/ }])
  fs.rmSync(join(folder, 'three/a'), { recursive: true })
  await manager.list()
  t.strictSame(await findings(), [])
})

t.test('K53: an entry is of one state, or does without the files', async (t) => {
  const root = t.testdir({ demo: skill('demo', { a: 'a' }) })
  const disk = createFaultyDisk()
  const manager = await startManager(t, [root], { disk })
  const validate = async ({ manifest, mainFile }: EntryState) => {
    const listed = manifest?.files.find(({ path }) => path === 'SKILL.md')?.digest
    return { findings: [], isSame: listed === mainFile?.digest }
  }
  let edits = 0
  disk.intercept = (operation) => {
    if (operation === 'close' && edits++ < 2) fs.writeFileSync(join(root, 'demo/SKILL.md'), skillText('demo', `${edits}`))
  }
  t.match(await manager.read('demo', (state) => describeState(state, validate)), { revision: /^sha256:/, isSame: true })
  // What is known from before says nothing about this. Each write has another size: a change within one tick of the clock shows too.
  fs.appendFileSync(join(root, 'demo/a'), 'another')
  disk.intercept = (operation) => {
    if (operation === 'close') fs.writeFileSync(join(root, 'demo/a'), 'a'.repeat(++edits % 100))
  }
  const pending = { revision: null, valid: true, findings: [{ code: 'revision_pending' }] }
  t.match(entriesOf(await pagesOf(manager)({ limit: 1 })), [pending])
})

t.test('K80: a validate makes the findings, adds what it likes, and changes nothing about validity', async (t) => {
  const manager = await startManager(t, [t.testdir({ demo: skill('demo'), empty: {} })])
  const seen: Finding = { code: 'seen', severity: 'error', message: 'seen', fix: 'None' }
  const validate = async ({ manifest }: EntryState) => ({ findings: [seen], files: manifest?.files.length })
  const described = (name: string) => manager.read(name, (state) => describeState(state, validate))
  t.match(await described('demo'), { valid: true, findings: [seen], files: 1 })
  t.match(await described('empty'), { valid: false, findings: [seen], files: 0 })
})

t.test('K46: pages by name or by a search, of all skills or the valid ones', async (t) => {
  const root = t.testdir({ ...skills('a', 'b', 'c'), bad: { 'SKILL.md': '# Rare topics' }, worse: {} })
  write(root, 'z', '# Rare topics')
  const manager = await startManager(t, [root])
  const readPage = pagesOf(manager)
  for (const [question, pages] of [
    [{ limit: 4 }, [['a', 'b', 'bad', 'c'], ['worse', 'z']]],
    [{ limit: 6, query: '  \n' }, [['a', 'b', 'bad', 'c', 'worse', 'z']]],
    [{ limit: 3, valid: true }, [['a', 'b', 'c'], ['z']]],
    [{ limit: 1, valid: false }, [['bad'], ['worse']]],
    [{ limit: 1, query: 'rare' }, [['bad'], ['z']]],
    [{ limit: 5, query: 'rare', valid: false }, [['bad']]],
    [{ limit: 5, query: 'nothing' }, [[]]]
  ] as const) t.same(await allPages(readPage, question), pages, JSON.stringify(question))
  t.match(await readPage({ limit: 1, valid: false }), { total: 2, end: 1 })
  const found = entriesOf(await readPage({ limit: 2, query: 'rare' }))
  t.ok((found[0]?.score ?? 0) > (found[1]?.score ?? 0))
  t.notMatch(JSON.stringify(found), /Rare topics/, 'nothing of a body')
  write(root, 'bad')
  t.same(await allPages(readPage, { limit: 5, valid: false }), [['worse']], 'never one that is valid now')
})

t.test('K46: a page of very large entries is shorter', async (t) => {
  const root = t.testdir({})
  // In JSON each quote is two characters.
  const metadata = `metadata: {x: '${'"'.repeat(7_000)}'}`
  const count = 350
  for (let i = 0; i < count; i++) {
    fs.mkdirSync(join(root, `s${i}`))
    fs.writeFileSync(join(root, `s${i}`, 'SKILL.md'), `---\nname: s${i}\ndescription: big\n${metadata}\n---\n`)
  }
  const readPage = pagesOf(await startManager(t, [root]))
  const pages = await allPages(readPage, { limit: count })
  t.equal(new Set(pages.flat()).size, count)
  t.equal(pages.flat().length, count)
  const length = (await readPage({ limit: count }))?.entries.join('').length ?? 0
  t.ok(length > MAX_PAGE_CHARACTERS && length < MAX_PAGE_CHARACTERS * 1.1, `${length}`)
})

t.test('K46 K64: a cursor is for the same question, and the same everywhere', async (t) => {
  const root = t.testdir({})
  for (const name of ['a', 'b', 'c']) write(root, name, '# Instructions\n')
  const [one, other] = [pagesOf(await startManager(t, [root])), pagesOf(await startManager(t, [root]))]
  const [plain = '', search = ''] = await Promise.all(['', 'instructions'].map(async (query) => {
    const page = await one({ limit: 1, query })
    t.strictSame(page, await other({ limit: 1, query }))
    return page?.nextCursor
  }))
  t.ok(await one({ limit: 3, cursor: plain }), 'the limit may change')
  for (const question of [
    { cursor: search }, { cursor: plain, valid: true }, { cursor: plain, query: 'a' }, { cursor: search, query: 'a' },
    { cursor: '' }, { cursor: 'x' }, { cursor: plain.slice(0, -2) }
  ]) t.equal(await one({ limit: 1, ...question }), undefined, JSON.stringify(question))
  fc.assert(fc.property(fc.string(), fc.string(), fc.string(), fc.nat(), (scope, different, after, index) => {
    const cursor = formatCursor(scope, { after, index })
    return parseCursor(scope, cursor)?.after === after && parseCursor(`${scope}${different}.`, cursor) === undefined
  }))
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => parseCursor('s', text) === undefined))
})

t.test('K46: a search goes on after the last entry, whatever new skills do to the ranks', async (t) => {
  const root = t.testdir({})
  for (const name of ['a', 'b', 'c', 'd', 'e']) write(root, name, '# Instructions\n')
  const manager = await startManager(t, [root], { watcher: false, tickMs: 20 })
  const query = 'instructions photosynthesis'
  const pages = await allPages(pagesOf(manager), { limit: 2, query }, async (_, number) => {
    if (number !== 1) return
    for (let index = 0; index < 9; index++) write(root, `x${index}`, '# About photosynthesis\n')
    await until(async () => (await manager.search('photosynthesis')).length === 9)
  })
  t.same(pages.flat().filter((name) => !name.startsWith('x')), ['a', 'b', 'c', 'd', 'e'])
})

t.test('K46: a skill that is there throughout is on exactly one page, whatever happens in between', async (t) => {
  const base = t.testdir({})
  const name = fc.constantFrom(...'abcdefghijklmnop')
  const change = fc.record({ name, act: fc.constantFrom('remove', 'common', 'rare') }, { noNullPrototype: true })
  const changes = fc.array(fc.array(change, { maxLength: 5 }), { maxLength: 8 })
  let runs = 0
  await fc.assert(fc.asyncProperty(
    fc.uniqueArray(name, { minLength: 1, maxLength: 20 }), changes, fc.integer({ min: 1, max: 7 }), fc.boolean(),
    async (first, changes, limit, isSearch) => {
      const root = join(base, String(runs++))
      for (const each of first) write(root, each, '# Common\n')
      return await isCompleteInPages(t, root, first, changes, { limit, query: isSearch ? 'common' : '' })
    }), { numRuns: 30 })
})

async function isCompleteInPages (
  t: Test, root: string, first: readonly string[],
  changes: ReadonlyArray<ReadonlyArray<{ readonly name: string, readonly act: string }>>, question: CatalogQuestion
): Promise<boolean> {
  const manager = await startManager(t, [root])
  const throughout = new Set(first)
  const pages = await allPages(pagesOf(manager), question, (_, number) => {
    for (const { name, act } of changes[number - 1] ?? []) {
      if (act === 'remove') fs.rmSync(join(root, name), { recursive: true, force: true })
      else write(root, name, `# ${act}\n`)
      // The rank of a skill that has changed may have changed, and so may everybody's against it.
      if (act === 'remove' || question.query !== '') throughout.delete(name)
    }
  })
  await manager.close()
  if (question.query !== '' && pages.some((page) => !throughout.has(page.at(-1) ?? ''))) return true
  const listed = pages.flat().filter((name) => throughout.has(name))
  return listed.length === throughout.size && new Set(listed).size === listed.length &&
    pages.every((page) => page.length <= question.limit)
}
