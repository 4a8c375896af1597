import { createHash } from 'node:crypto'
import fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { SkillArchive } from '../../../src/core/content/archive.ts'
import { KeptRevisions } from '../../../src/core/content/kept/kept-revisions.ts'
import { RevisionMemory } from '../../../src/core/content/kept/revision-memory.ts'
import { sha256 } from '../../../src/core/shared/digest.ts'
import { FileContent } from '../../../src/core/files/file-content.ts'
import { MAX_MAIN_FILE_BYTES, MAX_SKILL_BYTES } from '../../../src/core/shared/limits.ts'
import { createFaultyDisk, failing, outcome, skill, skillText, startManager, until } from '../../helper/skills.ts'

const MINUTE_MS = 60_000

async function digestOf (archive: SkillArchive): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of archive.chunks()) hash.update(chunk)
  return hash.digest('hex')
}

t.test('K59: a revision that was handed out is readable after each kind of change', async (t) => {
  for (const [what, change] of Object.entries<(folder: string) => void>({
    'edit of the main file': (folder) => fs.writeFileSync(join(folder, 'SKILL.md'), skillText('other', 'new')),
    'edit of another file': (folder) => fs.writeFileSync(join(folder, 'docs/a.md'), 'new'),
    'removal of a file': (folder) => fs.rmSync(join(folder, 'docs'), { recursive: true }),
    'new file': (folder) => fs.writeFileSync(join(folder, 'new'), ''),
    'removal of the skill': (folder) => fs.rmSync(folder, { recursive: true })
  })) {
    await t.test(what, async (t) => {
      const base = t.testdir({ demo: skill('demo', { docs: { 'a.md': 'a' } }) })
      const manager = await startManager(t, [base])
      const before = await manager.manifest('demo')
      const archive = await digestOf(await manager.archive('demo'))
      change(join(base, 'demo'))
      const at = () => manager.at(before.revision)
      t.same(await at().manifest('demo'), before)
      t.equal((await at().readMainFile('demo', 'SKILL.MD')).utf8, skillText('demo'))
      t.equal((await at().readFile('demo', 'docs/a.md')).utf8, 'a')
      t.equal((await at().readFile('demo', './docs/../SKILL.MD')).utf8, skillText('demo'))
      t.match(await at().openFile('demo', 'docs/a.md'), { kind: 'content' })
      t.match(await at().find('demo'), { name: 'demo', valid: true, metadata: { name: 'demo', description: 'What demo is for' } })
      t.equal(await digestOf(await at().archive('demo')), archive)
      t.same(manager.keptRevisions('demo').includes(before.revision), true)
      t.equal(await outcome(() => at().readFile('demo', 'nope')), "SkillError: File 'nope' not found in skill 'demo'")
      for (const path of ['docs', 'docs/', '.']) t.equal(await outcome(() => at().readFile('demo', path)), `SkillError: Cannot read file '${path}': is a directory`)
      t.equal(await outcome(() => at().readFile('demo', '../demo/SKILL.md')), 'SkillError: Path traversal detected: cannot access files outside skill folder')
    })
  }
})

t.test('K59: a revision stays readable when the skill has become too large, or its disk fails', async (t) => {
  const base = t.testdir({ demo: skill('demo', { docs: { 'a.md': 'a' } }) })
  const disk = createFaultyDisk()
  const manager = await startManager(t, [base], { disk })
  const { revision } = await manager.manifest('demo')
  const read = () => outcome(async () => (await manager.at(revision, true).readFile('demo', 'docs/a.md')).utf8)
  fs.writeFileSync(join(base, 'demo/huge'), '')
  fs.truncateSync(join(base, 'demo/huge'), MAX_SKILL_BYTES + 1)
  await t.rejects(manager.manifest('demo'), { code: 'skill_too_large' })
  t.equal(await read(), 'a')
  fs.rmSync(join(base, 'demo/huge'))
  fs.writeFileSync(join(base, 'demo/docs/a.md'), 'new')
  disk.intercept = failing('readdir', '/docs', 'EIO')
  t.equal(await read(), 'a')
})

t.test('K59: a revision that a list names is kept, also when it was only compared before', async (t) => {
  const base = t.testdir({ demo: skill('demo', { 'a.md': 'one' }) })
  const manager = await startManager(t, [base], { disk: createFaultyDisk({ ageMs: MINUTE_MS }) })
  const first = await manager.manifest('demo')
  fs.writeFileSync(join(base, 'demo/a.md'), 'two')
  t.equal((await manager.at(first.revision).readFile('demo', 'a.md')).utf8, 'one')
  const second = await manager.readListed('demo', (state) => state.manifest())
  fs.writeFileSync(join(base, 'demo/a.md'), 'three')
  t.equal(await outcome(async () => (await manager.at(second.revision).readFile('demo', 'a.md')).utf8), 'two')
})

t.test('K59: what was not handed out is not kept, and nothing is kept when keeping is off', async (t) => {
  const base = t.testdir({ demo: skill('demo') })
  const first = sha256(`${sha256(skillText('demo'))} SKILL.md\0`)
  for (const [keep, handOut, readable] of [[{}, false, false], [{}, true, true], [{ keepMs: 0 }, true, false], [{ maxBytes: 0 }, true, false], [{ maxBytes: 1_000 }, true, false]] as const) {
    fs.writeFileSync(join(base, 'demo/SKILL.md'), skillText('demo'))
    const manager = await startManager(t, [base], { keep })
    await manager.readMainFile('demo', 'SKILL.md')
    if (handOut) t.equal((await manager.manifest('demo')).revision, first)
    fs.writeFileSync(join(base, 'demo/SKILL.md'), skillText('demo', 'new'))
    const found = await outcome(() => manager.at(first).manifest('demo'))
    if (readable) t.match(found, { revision: first }, JSON.stringify({ keep, handOut }))
    else t.match(found, /The skill has changed/, JSON.stringify({ keep, handOut }))
  }
})

t.test('K59: the time of a revision runs from the change; the present one has no end', async (t) => {
  const base = t.testdir({ demo: skill('demo') })
  const manager = await startManager(t, [base], { keep: { keepMs: 50 } })
  const { revision } = await manager.manifest('demo')
  const start = performance.now()
  await until(() => performance.now() - start > 150)
  t.match(await manager.at(revision).manifest('demo'), { revision }, 'unchanged for longer than that')
  fs.writeFileSync(join(base, 'demo/SKILL.md'), skillText('demo', 'new'))
  t.match(await manager.at(revision).manifest('demo'), { revision })
  await until(async () => typeof await outcome(() => manager.at(revision).manifest('demo')) === 'string')
})

t.test('K59: the time of a revision that an earlier root hides runs from then on, in each view that has both roots', async (t) => {
  const dir = t.testdir({ first: {}, new: skill('alpha', { a: 'other' }), second: { alpha: skill('alpha') } })
  const manager = await startManager(t, [join(dir, 'first'), join(dir, 'second')], { keep: { keepMs: 500 } })
  const { revision } = await manager.manifest('alpha')
  fs.renameSync(join(dir, 'new'), join(dir, 'first/alpha'))
  const read = (view: Pick<typeof manager, 'at'> = manager) => outcome(() => view.at(revision).manifest('alpha'))
  t.match(await read(), { revision })
  await until(async () => typeof await read() === 'string')
  t.notOk(manager.keptRevisions('alpha').includes(revision))
  t.match(await read(manager.createView('second', new Map([['second', 'all']]))), { revision }, 'where nothing hides it')
  t.match(await read(), /The skill has changed/, 'however often it is read there')
  fs.rmSync(join(dir, 'first/alpha'), { recursive: true })
  t.match(await read(), { revision }, 'it is the present one again')
  fs.writeFileSync(join(dir, 'second/alpha/a'), '')
  t.match(await read(), { revision }, 'and has its time')
})

t.test('K59: bounded in bytes, the oldest go first', (t) => {
  const kept = new KeptRevisions(new RevisionMemory({ keepMs: MINUTE_MS, maxBytes: 10_000 }))
  const revisions = Array.from({ length: 10 }, (_, index) => {
    const name = `skill-${index}`
    const content = new FileContent(Buffer.alloc(2_000, `${index}`))
    const folder = { name, type: 'project', path: `/${name}`, realPath: `/${name}`, linked: false } as const
    const manifest = { skill_name: name, revision: content.digest, files: [{ path: 'SKILL.md', size_bytes: 2_000, media_type: '', digest: content.digest }] }
    const collected = kept.collect(folder, undefined, 0n)
    collected?.add(content)
    kept.keep({ folder, filter: undefined }, { manifest, crc32s: Uint32Array.of(0) }, collected)
    return { name, revision: content.digest }
  })
  const readable = revisions.filter(({ name, revision }) => kept.get(name, revision) !== undefined)
  t.same(readable, revisions.slice(-readable.length))
  t.ok(readable.length >= 2 && readable.length < 5, `${readable.length}`)
  t.same([...kept.revisionsOf('skill-0').keys()], [])
  t.same([...kept.revisionsOf('skill-9').keys()], [revisions[9]?.revision])
  kept.clear()
  t.end()
})

t.test('K59: equal files of several revisions and skills are kept once and count once', async (t) => {
  const asset = 'x'.repeat(40_000)
  const base = t.testdir({ a: skill('a', { asset, copy: asset, b: '0' }), other: skill('other', { asset }) })
  const manager = await startManager(t, [base], { keep: { maxBytes: 60_000 } })
  const revisions = new Set<string>()
  const other = await manager.manifest('other')
  for (let edit = 0; edit < 4; edit++) {
    fs.writeFileSync(join(base, 'a/b'), `${edit}`)
    revisions.add((await manager.manifest('a')).revision)
  }
  t.equal(revisions.size, 4)
  fs.rmSync(join(base, 'other/asset'))
  for (const revision of revisions) t.equal((await manager.at(revision).readFile('a', 'copy')).utf8, asset)
  t.equal((await manager.at(other.revision).readFile('other', 'asset')).utf8, asset)
})

t.test('K59: no bytes stay in memory when the revisions that have them are gone, and none go before', (t) => {
  const memory = new RevisionMemory({ keepMs: MINUTE_MS, maxBytes: 100_000 })
  const kept = new KeptRevisions(memory)
  const add = (name: string, ...contents: readonly FileContent[]): string => {
    const revision = sha256(contents.map(({ digest }) => digest).join())
    const folder = { name, type: 'project', path: `/${name}`, realPath: `/${name}`, linked: false } as const
    const files = contents.map(({ digest, bytes }, index) => ({ path: `${index}`, size_bytes: bytes.length, media_type: '', digest }))
    const collected = kept.collect(folder, undefined, 0n)
    for (const content of contents) collected?.add(content)
    kept.keep({ folder, filter: undefined }, { manifest: { skill_name: name, revision, files }, crc32s: Uint32Array.of(0) }, collected)
    return revision
  }
  const contentOf = (size: number, text: string) => new FileContent(Buffer.alloc(size, text))
  const [large, small, huge] = [contentOf(40_000, 'l'), contentOf(10, 's'), contentOf(90_000, 'h')]
  const first = add('a', large, large, small)
  const second = add('b', large)
  t.ok(memory.weight < 50_000, `${memory.weight}`)
  add('a', large, large, small)
  t.ok(memory.weight < 50_000, 'again')
  kept.expire('a')
  const third = add('a', small)
  t.strictSame([kept.get('a', first)?.contents.size, kept.get('b', second)?.contents.size], [2, 1])
  add('c', huge)
  t.strictSame([...'ab'].map((name) => kept.revisionsOf(name).size), [1, 0], 'those that made room are not among the kept ones')
  t.strictSame([kept.get('a', first), kept.get('b', second), kept.get('a', third)?.contents.size], [undefined, undefined, 1])
  t.ok(memory.weight < 100_000, `${memory.weight}`)
  kept.clear()
  t.equal(memory.weight, 0)
  t.end()
})

t.test('K59: a revision that the skill has again has no end, also where a comparison has found that', async (t) => {
  const kept = new KeptRevisions(new RevisionMemory({ keepMs: 1, maxBytes: 100_000 }))
  const folder = { name: 'a', type: 'project', path: '/a', realPath: '/a', linked: false } as const
  const keep = (revision: string, collected = kept.collect(folder, undefined, 0n)) => {
    kept.keep({ folder, filter: undefined }, { manifest: { skill_name: 'a', revision, files: [] }, crc32s: Uint32Array.of() }, collected)
  }
  keep('first')
  keep('second')
  keep('first', undefined)
  await until(() => !kept.revisionsOf('a').has('second'))
  t.strictSame([...kept.revisionsOf('a').keys()], ['first'])
  kept.leave('a')
  kept.stay({ skill_name: 'a', revision: 'first', files: [] })
  keep('third')
  keep('fourth')
  kept.stay({ skill_name: 'a', revision: 'first', files: [] })
  await until(() => !kept.revisionsOf('a').has('third'))
  t.strictSame([...kept.revisionsOf('a').keys()], ['first', 'fourth'])
})

t.test('K59: a revision that is handed out again stays, also while it is compared with rules that hid some of it', async (t) => {
  const kept = new KeptRevisions(new RevisionMemory({ keepMs: MINUTE_MS, maxBytes: 100_000 }))
  t.teardown(() => { kept.clear() })
  const folder = { name: 'a', type: 'project', path: '/a', realPath: '/a', linked: false } as const
  const content = new FileContent(Buffer.from('x'))
  const manifest = { skill_name: 'a', revision: 'first', files: ['a', 'b'].map((path) => ({ path, size_bytes: 1, media_type: '', digest: content.digest })) }
  const keep = () => {
    const collected = kept.collect(folder, undefined, 0n)
    collected?.add(content)
    kept.keep({ folder, filter: undefined }, { manifest, crc32s: Uint32Array.of(0, 0) }, collected)
  }
  keep()
  for (const handOut of [() => kept.renew(manifest), keep]) {
    kept.hide('a', () => ({ id: 'rules', hides: (path) => path === 'b' }), true)
    const found = kept.find('a', 'first')
    handOut()
    t.equal(await found, undefined)
    t.ok(await kept.find('a', 'first'))
  }
})

t.test('an answer from a kept revision leaves no text or rendering in memory', async (t) => {
  const base = t.testdir({ demo: skill('demo') })
  const manager = await startManager(t, [base])
  const { revision } = await manager.manifest('demo')
  fs.writeFileSync(join(base, 'demo/SKILL.md'), skillText('demo', 'new'))
  const read = () => manager.at(revision).readFile('demo', 'SKILL.md')
  t.equal((await read()).utf8, skillText('demo'))
  t.not(await read(), await read())
})

t.test('K59: a skill that was too large to be kept is kept from when it is not', async (t) => {
  const base = t.testdir({ demo: skill('demo', { a: 'x'.repeat(30_000) }) })
  const manager = await startManager(t, [base], { keep: { maxBytes: 20_000 } })
  const large = await manager.manifest('demo')
  fs.writeFileSync(join(base, 'demo/a'), 'small')
  const small = await manager.manifest('demo')
  fs.writeFileSync(join(base, 'demo/a'), 'other')
  t.match(await outcome(() => manager.at(small.revision).manifest('demo')), { revision: small.revision })
  t.match(await outcome(() => manager.at(large.revision).manifest('demo')), /The skill has changed/)
})

t.test('K59: a request for a kept revision keeps no other one in its place; an answer that names the present one does', async (t) => {
  const base = t.testdir({ demo: skill('demo', { a: 'a'.repeat(12_000) }) })
  const manager = await startManager(t, [base], { keep: { maxBytes: 20_000 } })
  const { revision } = await manager.manifest('demo')
  fs.writeFileSync(join(base, 'demo/a'), 'b'.repeat(12_000))
  for (let count = 0; count < 2; count++) t.equal((await manager.at(revision).readFile('demo', 'a')).utf8, 'a'.repeat(12_000))
  const wrong = await outcome(() => manager.at(`sha256:${'0'.repeat(64)}`).manifest('demo'))
  const [present = ''] = /sha256:\w+/.exec(String(wrong)) ?? []
  fs.writeFileSync(join(base, 'demo/a'), 'c'.repeat(12_000))
  t.match(await manager.at(present).manifest('demo'), { revision: present }, 'a refusal names it too')
  t.match(await outcome(() => manager.at(revision).manifest('demo')), /The skill has changed/, 'the oldest goes first')
})

t.test('K59: a revision that is handed out again is kept again, and is no longer the oldest', async (t) => {
  const textOf = (name: string) => name.repeat(9_000)
  const base = t.testdir({ a: skill('a', { text: textOf('a') }), b: skill('b', { text: textOf('b') }), c: skill('c', { text: textOf('c') }) })
  const disk = createFaultyDisk({ ageMs: MINUTE_MS })
  const manager = await startManager(t, [base], { disk, keep: { maxBytes: 30_000 } })
  const handOut = async (...names: readonly string[]): Promise<void> => { for (const name of names) revisions.set(name, (await manager.manifest(name)).revision) }
  const revisions = new Map<string, string>()
  const isKept = (name: string) => manager.keptRevisions(name).includes(revisions.get(name) ?? '')
  await handOut('a', 'b', 'c', 'a')
  t.strictSame([isKept('a'), isKept('b'), isKept('c')], [true, false, true], 'it had made room')
  await handOut('c', 'a', 'c', 'b')
  t.strictSame([isKept('a'), isKept('b'), isKept('c')], [false, true, true], 'the one that was handed out longest ago goes')
  fs.writeFileSync(join(base, 'b/text'), 'edited')
  t.equal((await manager.at(revisions.get('b') ?? '').readFile('b', 'text')).utf8, textOf('b'))
  disk.calls.clear()
  await handOut('c')
  t.equal(disk.calls.get('read'), undefined, 'one that is kept is not read again')
})

t.test('K59: a skill that goes back and forth between two revisions keeps both', async (t) => {
  const base = t.testdir({ demo: skill('demo', { a: 'one' }) })
  const manager = await startManager(t, [base])
  const revisions = new Set<string>()
  for (let count = 0; count < 6; count++) {
    fs.writeFileSync(join(base, 'demo/a'), count % 2 === 0 ? 'one' : 'two')
    revisions.add((await manager.manifest('demo')).revision)
    for (const revision of revisions) t.equal((await manager.at(revision).manifest('demo')).revision, revision)
  }
  t.equal(revisions.size, 2)
})

t.test('K58: the entry of a skill whose main file is too large is the same of the present and of a kept revision', async (t) => {
  const base = t.testdir({ demo: { 'SKILL.md': `${skillText('demo')}${'x'.repeat(MAX_MAIN_FILE_BYTES)}` } })
  const manager = await startManager(t, [base])
  const { revision } = await manager.manifest('demo')
  const entry = async () => {
    const found = await manager.at(revision).find('demo')
    return { valid: found?.valid, findings: found?.findings, metadata: found?.metadata, frontmatter: found?.frontmatter }
  }
  const present = await entry()
  t.match(present, { valid: false, findings: [{ code: 'main_file_too_large' }], metadata: { description: '' } })
  fs.writeFileSync(join(base, 'demo/a'), 'new')
  t.strictSame(await entry(), present)
})

t.test('K59 K29: a skill is found by the name that it has in the wanted revision, whatever it is called by now', async (t) => {
  const base = t.testdir({ s: { 'SKILL.md': skillText('foo') }, other: skill('other') })
  const manager = await startManager(t, [base])
  const { revision } = await manager.manifest('s')
  const find = (displayName: string, wanted = revision) => outcome(() => manager.at(wanted).readByDisplayName(displayName, async ({ skill }) => `${skill.name} ${skill.metadata.name}`))
  t.strictSame([await find('foo'), await find('s')], ['s foo', 's foo'])
  const missing = (name: string) => `SkillError: Skill '${name}' not found in skills folder`

  fs.writeFileSync(join(base, 's/SKILL.md'), skillText('bar'))
  t.strictSame([await find('foo'), await find('s'), await find('bar')], ['s foo', 's foo', missing('bar')])
  t.strictSame([await find('bar', 'current'), await find('foo', 'current')], ['s bar', missing('foo')])
  t.match(await find('other'), /The skill has changed/)
  t.equal(await find('nope'), missing('nope'))

  fs.rmSync(join(base, 's'), { recursive: true })
  t.strictSame([await find('foo'), await find('s'), await find('bar')], ['s foo', 's foo', missing('bar')])
  fs.mkdirSync(join(base, 'foo'))
  fs.writeFileSync(join(base, 'foo/SKILL.md'), skillText('foo', 'new'))
  t.equal(await find('foo'), 's foo', 'another skill that has the name by now is not meant')
})
