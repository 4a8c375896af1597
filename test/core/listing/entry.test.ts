import fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type EntryState, findCatalogEntry, type Judge, type JudgedEntry, readCatalogEntry } from '../../../src/core/listing/entry.ts'
import { MAX_MAIN_FILE_BYTES } from '../../../src/core/shared/limits.ts'
import type { SkillManager } from '../../../src/core/skill-manager.ts'
import { createFaultyDisk, failing, ownFindings, skill, skillText, startManager, until } from '../../helper/skills.ts'

const NONE = { judge: ownFindings }

function entryOf (skills: SkillManager, name: string) {
  return findCatalogEntry({ skills, ...NONE }, name)
}

t.test('K46: what an entry says', async (t) => {
  const root = t.testdir({ demo: skill('demo', { docs: { 'a.md': '12345' }, '.env': 'secret' }) })
  const skills = await startManager(t, [root])
  const manifest = await skills.manifest('demo')
  t.strictSame(await entryOf(skills, 'demo'), {
    name: 'demo',
    description: 'What demo is for',
    type: 'project',
    frontmatter: { name: 'demo', description: 'What demo is for' },
    revision: manifest.revision,
    size_bytes: Buffer.byteLength(skillText('demo')) + 5,
    file_count: 2,
    valid: true,
    findings: []
  })
})

t.test('K46: a judge gets the same values for the same state, and need not judge it twice', async (t) => {
  const skills = await startManager(t, [t.testdir({ demo: skill('demo') })])
  const states: EntryState[] = []
  const judge: Judge<JudgedEntry> = async (state) => {
    states.push(state)
    return { findings: [] }
  }
  // A state that is too young to be trusted is read anew.
  await t.resolves(until(async () => {
    await readCatalogEntry({ skills, judge }, 'demo')
    const [before, now] = states.slice(-2)
    return now !== undefined && before?.fileFindings === now.fileFindings && before.manifest === now.manifest
  }))
})

t.test('K46, K9: a broken skill has an entry with its findings', async (t) => {
  const root = t.testdir({
    empty: {},
    'Bad Name': { 'SKILL.md': '---\nname: other\n---\nx' },
    large: { 'SKILL.md': 'x'.repeat(MAX_MAIN_FILE_BYTES + 1) },
    latin: { 'SKILL.md': Buffer.from([0xe9]) }
  })
  const skills = await startManager(t, [root])
  for (const [name, code, count] of [['empty', 'main_file_missing', 0], ['Bad Name', 'name_folder_mismatch', 1], ['large', 'main_file_too_large', 1], ['latin', 'main_file_not_utf8', 1]] as const) {
    const entry = await entryOf(skills, name)
    t.match(entry, { name, valid: false, file_count: count, revision: /^sha256:/ })
    t.ok(entry?.findings.some((finding) => finding.code === code && finding.fix !== ''), code)
  }
})

t.test('K7: a skill that hides another one says so', async (t) => {
  const folder = t.testdir({ one: { a: skill('a') }, two: { a: skill('a') } })
  const skills = await startManager(t, [join(folder, 'one'), join(folder, 'two')])
  t.match(await entryOf(skills, 'a'), { valid: true, findings: [{ code: 'shadowed', severity: 'warning', message: "a skill of the same name in the root 'two' is hidden by this one" }] })
})

t.test('K7: of several skills that one hides, each root is named, and a change among them shows', async (t) => {
  const folder = t.testdir({ one: { a: skill('a') }, two: { a: skill('a') }, three: { a: skill('a') } })
  const skills = await startManager(t, ['one', 'two', 'three'].map((name) => join(folder, name)))
  t.match((await entryOf(skills, 'a'))?.findings, [{ code: 'shadowed', message: "skills of the same name in the roots 'two' and 'three' are hidden by this one" }])
  fs.rmSync(join(folder, 'two/a'), { recursive: true })
  await skills.list()
  t.match((await entryOf(skills, 'a'))?.findings, [{ code: 'shadowed', message: "a skill of the same name in the root 'three' is hidden by this one" }])
  fs.rmSync(join(folder, 'three/a'), { recursive: true })
  await skills.list()
  t.strictSame((await entryOf(skills, 'a'))?.findings, [])
})

t.test('K46: where the files cannot be listed there is an entry all the same', async (t) => {
  const root = t.testdir({ demo: skill('demo', { 'notes.md': 'x' }) })
  const disk = createFaultyDisk()
  const skills = await startManager(t, [root], { disk })
  disk.intercept = failing('open', 'notes.md', 'EIO')
  t.match(await entryOf(skills, 'demo'), { name: 'demo', description: 'What demo is for', revision: null, size_bytes: null, file_count: null, valid: true })
})

t.test('K53: an entry is of one state, or does without the files', async (t) => {
  const root = t.testdir({ demo: skill('demo', { a: 'a' }) })
  const disk = createFaultyDisk()
  const skills = await startManager(t, [root], { disk })
  const document: Judge<JudgedEntry> = async ({ manifest, mainFile }) =>
    ({ findings: [{ code: 'read', severity: 'info', message: `${manifest?.files.find(({ path }) => path === 'SKILL.md')?.digest === mainFile?.digest}`, fix: '' }] })
  let edits = 0
  disk.intercept = (operation) => { if (operation === 'close' && edits++ < 2) fs.writeFileSync(join(root, 'demo/SKILL.md'), skillText('demo', `edit ${edits}\n`)) }
  // On a machine that stalls, the time that an entry waits for its files may be over.
  const entries: unknown[] = []
  await until(async () => {
    edits = 0
    const entry = await findCatalogEntry({ skills, judge: document }, 'demo')
    entries.push(entry)
    return entry?.revision !== null
  })
  t.match(entries.at(-1), { revision: (await skills.manifest('demo')).revision, findings: [{ message: 'true' }] })
  // What is known from before says nothing about this. Each write has another size: a change within one tick of the clock shows too.
  fs.appendFileSync(join(root, 'demo/a'), 'another')
  disk.intercept = (operation) => { if (operation === 'close') fs.writeFileSync(join(root, 'demo/a'), 'a'.repeat(++edits % 100)) }
  t.match(await findCatalogEntry({ skills, ...NONE }, 'demo'), { revision: null, valid: true, findings: [{ code: 'revision_pending' }] })
})

t.test('a judge makes the findings, adds what it likes, and changes nothing about validity', async (t) => {
  const root = t.testdir({ demo: skill('demo'), empty: {} })
  const skills = await startManager(t, [root])
  const judge = async ({ skill: { name, findings }, manifest, mainFile }: EntryState) => ({
    verdict: 'good',
    findings: [...findings, { code: 'seen', severity: 'error' as const, message: `${name} ${manifest?.files.length} ${mainFile?.utf8?.length}`, fix: 'None' }]
  })
  t.match(await findCatalogEntry({ skills, judge }, 'demo'), { valid: true, verdict: 'good', findings: [{ code: 'seen', message: `demo 1 ${skillText('demo').length}` }] })
  t.match(await findCatalogEntry({ skills, judge }, 'empty'), { findings: [{ code: 'main_file_missing' }, { message: 'empty 0 undefined' }] })
})

t.test('K16: names that nobody has, and unsafe ones', async (t) => {
  const skills = await startManager(t, [t.testdir({ demo: skill('demo') })])
  const options = { skills, ...NONE }
  t.equal(await findCatalogEntry(options, 'nope'), undefined)
  await t.rejects(readCatalogEntry(options, 'nope'), { code: 'skill_not_found', message: "Skill 'nope' not found in skills folder" })
  for (const name of ['', '../demo', 'a/b', 'a\\b']) {
    await t.rejects(readCatalogEntry(options, name), { code: 'invalid_skill_name', message: `Invalid skill name: '${name}'. Skill names must not contain '/', '\\', or '..'` })
  }
})
