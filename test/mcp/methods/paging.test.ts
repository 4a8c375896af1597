import t from 'tap'
import type { SkillSource } from '../../../src/core/skill-source.ts'
import { readPage } from '../../../src/mcp/methods/paging.ts'
import { listSkillEntries } from '../../../src/mcp/methods/skill-entries.ts'

const NAMES = ['a', 'b', 'c', 'd']

async function read (cursor?: string, { names = NAMES, scope = '', without = [] as readonly string[] } = {}) {
  return await readPage(scope, names, cursor, async (name) => without.includes(name) ? undefined : name, (items) => items.length >= 2)
}

t.test('each item comes once, and the last page has no cursor, also when it is full', async (t) => {
  const first = await read()
  t.match(first, { items: ['a', 'b'], nextCursor: String })
  t.strictSame(await read(first.nextCursor), { items: ['c', 'd'] })
  t.strictSame((await read(undefined, { without: ['a', 'b'] })).items, ['c', 'd'], 'a page is of items, and not of names')
})

t.test('names that came and went since the page before shift nothing, and the end stays the end', async (t) => {
  const { nextCursor } = await read()
  t.strictSame((await read(nextCursor, { names: ['aa', 'c', 'd'] })).items, ['c', 'd'])
  t.strictSame(await read(nextCursor, { names: ['a'] }), { items: [] })
})

t.test('K64: a cursor is good for the skills that it was made for, and none but a cursor is one', async (t) => {
  const { nextCursor } = await read(undefined, { scope: 'docs' })
  t.strictSame((await read(nextCursor, { scope: 'docs' })).items, ['c', 'd'])
  for (const scope of ['', 'ops']) await t.rejects(read(nextCursor, { scope }), { code: -32602, message: /^Invalid cursor/ })
  for (const cursor of ['', 'b', 'x'.repeat(10_000)]) await t.rejects(read(cursor), { code: -32602 }, cursor.slice(0, 10))
})

t.test('a page of skills ends with the skill that makes it five thousand files', async (t) => {
  const skills = { scope: '', list: async () => NAMES, readListed: async () => ({ resources: Array(2_500) }) } as unknown as SkillSource
  const first = await listSkillEntries(skills, undefined)
  t.equal(first.items.length, 2)
  const second = await listSkillEntries(skills, first.nextCursor)
  t.match([second.items.length, second.nextCursor], [2, undefined])
})
