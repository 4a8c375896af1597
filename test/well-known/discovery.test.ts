import fs from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { sha256 } from '../../src/core/shared/digest.ts'
import type { SkillManager } from '../../src/core/skill-manager.ts'
import { Discovery, indexText } from '../../src/well-known/discovery.ts'
import { type Installable, readInstallable } from '../../src/well-known/installable.ts'
import { createFaultyDisk, failing, osError, passTick, skill, skills, skillText, startManager, until } from '../helper/skills.ts'

const HOUR_MS = 3_600_000

/** Without a watcher the regular comparison finds what changed. */
async function createDiscovery (t: Test, files: NonNullable<Parameters<Test['testdir']>[0]>, options: Parameters<typeof startManager>[2] = {}) {
  const base = t.testdir(files)
  const disk = createFaultyDisk({ ageMs: HOUR_MS })
  const manager = await startManager(t, [base], { disk, times: { reconcileDegraded: 20 }, ...options })
  const discovery = new Discovery(manager)
  t.teardown(() => { discovery.close() })
  const names = async () => (await discovery.indexes())['0.2.0'].skills.map(({ name }) => name)
  return { base, disk, manager, discovery, names }
}

async function requireInstallable (manager: SkillManager, name: string): Promise<Installable> {
  const installable = await readInstallable(manager, name)
  if (installable === undefined) throw new Error(`${name} is not listed`)
  return installable
}

t.test('one SKILL.md is listed as that, more files as an archive, both with the digest in the address', async (t) => {
  const { manager, discovery } = await createDiscovery(t, { one: skill('one', { '.env': 'x' }), two: skill('two', { 'a.md': 'a' }), none: { 'a.md': 'a' } })
  const { '0.2.0': index, '0.1.0': legacy } = await discovery.indexes()
  const { archive, digest } = await discovery.archive(await requireInstallable(manager, 'two'))
  t.equal(digest, await archive.digest())
  const hex = sha256(skillText('one')).slice(7)
  t.same(index, {
    $schema: 'https://schemas.agentskills.io/discovery/0.2.0/schema.json',
    skills: [
      { name: 'one', type: 'skill-md', description: 'What one is for', url: `one/${hex}/SKILL.md`, digest: `sha256:${hex}` },
      { name: 'two', type: 'archive', description: 'What two is for', url: `two/${digest.slice(7)}/archive.zip`, digest }
    ]
  })
  const revisionOf = async (name: string) => (await manager.manifest(name)).revision
  t.same(legacy, {
    skills: [
      { name: 'one', description: 'What one is for', version: await revisionOf('one'), files: ['SKILL.md'] },
      { name: 'two', description: 'What two is for', version: await revisionOf('two'), files: ['SKILL.md', 'a.md'] }
    ]
  })
})

t.test('a long index is made into text in slices, and is the text of the whole', async (t) => {
  const index = { $schema: 'x', skills: Array.from({ length: 50_000 }, (_, index) => ({ name: `skill-${index}`, description: 'What a skill is for. '.repeat(10) })) }
  let turns = 0
  const count = (): void => { turns++; counting = setImmediate(count) }
  let counting = setImmediate(count)
  const text = await indexText(index)
  clearImmediate(counting)
  t.ok(turns > 1, `${turns} turns`)
  t.ok(text === JSON.stringify(index))
  t.equal(await indexText({ skills: [] }), '{"skills":[]}')
})

t.test('a comparison of unchanged skills opens nothing, and the indexes stay the same objects', async (t) => {
  const { disk, discovery } = await createDiscovery(t, { ...skills('a', 'b'), c: skill('c', { docs: { 'x.md': 'x' }, link: t.fixture('symlink', 'docs/x.md') }) })
  const first = await discovery.indexes()
  const opened = disk.calls.get('open')
  const looked = disk.calls.get('stat') ?? 0
  await until(async () => {
    t.equal(await discovery.indexes(), first)
    return (disk.calls.get('stat') ?? 0) > looked
  })
  t.equal(disk.calls.get('open'), opened)
})

t.test('K52: whatever changes in a skill is soon in the index', async (t) => {
  const { base, discovery } = await createDiscovery(t, { demo: skill('demo', { docs: { 'a.md': 'a', 'b.md': 'b' }, link: t.fixture('symlink', 'docs/a.md') }), other: skill('other') })
  const changes: Readonly<Record<string, () => void>> = {
    'a file deep inside': () => { fs.writeFileSync(join(base, 'demo/docs/a.md'), 'changed') },
    'a new file': () => { fs.writeFileSync(join(base, 'demo/docs/c.md'), 'c') },
    'a file that went away': () => { fs.rmSync(join(base, 'demo/docs/b.md')) },
    'another target of a link': () => {
      fs.rmSync(join(base, 'demo/link'))
      fs.symlinkSync('docs/c.md', join(base, 'demo/link'))
    },
    'the main file': () => { fs.writeFileSync(join(base, 'demo/SKILL.md'), skillText('demo', 'other text')) },
    'a skill that became invalid': () => { fs.writeFileSync(join(base, 'demo/SKILL.md'), 'no frontmatter') },
    'a skill that became valid again': () => { fs.writeFileSync(join(base, 'demo/SKILL.md'), skillText('demo')) },
    'a new skill': () => { fs.cpSync(join(base, 'other'), join(base, 'other-copy'), { recursive: true }) },
    'a skill that went away': () => { fs.rmSync(join(base, 'demo'), { recursive: true }) }
  }
  let before = JSON.stringify((await discovery.indexes())['0.2.0'])
  for (const [what, change] of Object.entries(changes)) {
    passTick(base)
    change()
    if (what === 'a new skill') fs.writeFileSync(join(base, 'other-copy/SKILL.md'), skillText('other-copy'))
    await until(async () => JSON.stringify((await discovery.indexes())['0.2.0']) !== before)
    before = JSON.stringify((await discovery.indexes())['0.2.0'])
    t.pass(what)
  }
  t.match(before, /"other".*"other-copy"/)
  t.notMatch(before, '"demo"')
  t.strictSame(await Promise.all(['demo', 'other'].map((name) => discovery.listsFile(name, 'SKILL.md'))), [false, true])
})

t.test('K52: what another reader has found, or what changed while nobody asked, is in the next index', async (t) => {
  const { base, manager, discovery } = await createDiscovery(t, { a: skill('a', { x: 'x' }), b: skill('b') }, { times: { reconcileDegraded: HOUR_MS } })
  let followers = 0
  const counted = <Listener>(follow: (listener: Listener) => () => void) => (listener: Listener) => {
    const stop = follow(listener)
    followers++
    return () => {
      followers--
      stop()
    }
  }
  manager.subscribe = counted(manager.subscribe.bind(manager))
  manager.observe = counted(manager.observe.bind(manager))
  const compared: string[] = []
  const inspect = manager.inspect.bind(manager)
  manager.inspect = async (name, known) => {
    compared.push(name)
    return await inspect(name, known)
  }
  const digests = async () => (await discovery.indexes())['0.2.0'].skills.map(({ digest }) => digest)
  const edit = (path: string, text: string): void => {
    passTick(base)
    fs.writeFileSync(join(base, path), text)
  }
  const first = await digests()

  edit('b/SKILL.md', skillText('b', 'other text'))
  await manager.find('b')
  const second = await digests()
  t.strictSame([second[0] === first[0], second[1] === first[1]], [true, false], 'found by another reader')
  compared.length = 0
  await digests()
  t.strictSame(compared, [], 'nothing may have changed since')

  t.equal(followers, 2, 'however often it is asked')
  discovery.close()
  t.equal(followers, 0)
  edit('a/x', 'y')
  t.not((await digests())[0], second[0], 'after a pause everything is compared')

  // An edit after the entries were made: they are not those of the state that is compared from then on.
  edit('a/x', 'z')
  let edits = 0
  manager.inspect = async (name, known) => {
    if (known === undefined && edits++ === 0) edit('a/x', 'last')
    return await inspect(name, known)
  }
  discovery.close()
  await digests()
  t.equal(edits, 1)
  t.equal((await digests())[0], await (await manager.archive('a')).digest())
})

t.test('a thousand questions at once read each skill once', async (t) => {
  const { disk, names } = await createDiscovery(t, skills('a', 'b', 'c'))
  const before = disk.calls.get('readdir') ?? 0
  const answers = await Promise.all(Array.from({ length: 1_000 }, names))
  t.ok(answers.every((answer) => answer.join() === 'a,b,c'), 'nobody sees an empty index')
  t.ok((disk.calls.get('readdir') ?? 0) - before <= 3 * 3, 'the manifest and its comparison, for each skill')
})

t.test('K9, K53: a skill that cannot be read is as it was, or left out; the others are there', async (t) => {
  const { base, disk, discovery, names } = await createDiscovery(t, { a: skill('a', { x: 'x' }), b: skill('b', { x: 'x' }) })
  disk.intercept = failing('read', '', 'EIO')
  t.same(await names(), [], 'no skill can be read')
  await t.rejects(discovery.findInstallable('a', () => true), { code: 'file_io_error' }, 'which is not the same as a skill that is not there')
  disk.intercept = () => {}
  await until(async () => (await names()).join() === 'a,b')
  const [entry] = (await discovery.indexes())['0.2.0'].skills

  passTick(base)
  fs.writeFileSync(join(base, 'a/x'), 'changed')
  const looked = disk.calls.get('stat') ?? 0
  disk.intercept = failing('read', '', 'EIO')
  await until(async () => {
    await names()
    return (disk.calls.get('stat') ?? 0) > looked
  })
  t.same((await discovery.indexes())['0.2.0'].skills[0], entry, 'what was known stands')
  disk.intercept = () => {}
  await until(async () => (await discovery.indexes())['0.2.0'].skills[0]?.digest !== entry?.digest)
  t.same(await names(), ['a', 'b'])
})

t.test('K9: a skill whose archive could not be read once is listed as soon as it can be', async (t) => {
  // Without a memory for revisions the archive reads the files again.
  const { disk, names } = await createDiscovery(t, { a: skill('a', { x: 'x' }) }, { keep: { keepMs: 0 } })
  let reads = 0
  disk.intercept = (call, _path, file) => { if (call === 'read' && file.endsWith('a/x') && ++reads === 2) throw osError('EIO') }
  t.same(await names(), [])
  t.same(await names(), ['a'])
})

t.test('K52: a change that could not be read once is in the next index after that', async (t) => {
  const { base, disk, manager, discovery } = await createDiscovery(t, { a: skill('a', { x: 'x' }) }, { times: { reconcileDegraded: HOUR_MS } })
  const digest = async () => (await discovery.indexes())['0.2.0'].skills[0]?.digest
  const first = await digest()
  passTick(base)
  for (const file of ['a/SKILL.md', 'a/x']) fs.appendFileSync(join(base, file), 'more')
  await manager.readMainFile('a', 'SKILL.md')
  disk.intercept = failing('read', '', 'EIO')
  t.equal(await digest(), first, 'what was known stands')
  disk.intercept = () => {}
  t.equal(await digest(), await (await manager.archive('a')).digest())
})

t.test('K53: description, files and digest of an entry are of one state', async (t) => {
  const { base, disk, manager, discovery } = await createDiscovery(t, { demo: skill('demo', { x: 'one' }) })
  let turn = 0
  disk.intercept = (operation, path) => {
    if (operation !== 'open' || !path.endsWith('demo/x') || turn++ > 0) return
    fs.writeFileSync(join(base, 'demo/SKILL.md'), '---\nname: demo\ndescription: Another one\n---\nText\n')
    fs.writeFileSync(join(base, 'demo/y'), 'y')
  }
  await until(async () => (await discovery.indexes())['0.1.0'].skills[0]?.files.length === 3)
  const { '0.2.0': index, '0.1.0': legacy } = await discovery.indexes()
  t.equal(legacy.skills[0]?.description, 'Another one')
  t.equal(index.skills[0]?.description, 'Another one')
  t.equal(index.skills[0]?.digest, await (await manager.archive('demo')).digest())

  const installable = await requireInstallable(manager, 'demo')
  const { digest } = await discovery.archive(installable)
  passTick(base)
  fs.writeFileSync(join(base, 'demo/x'), 'two')
  t.equal((await discovery.archive(installable)).digest, digest, 'K59: the archive of an installable is of its revision')
  const find = () => discovery.findInstallable('demo', async (each) => (await discovery.archive(each)).digest === digest)
  t.match(await find(), { manifest: { revision: installable.manifest.revision } })
  passTick(base)
  fs.writeFileSync(join(base, 'demo/x'), 'six')
  disk.intercept = failing('open', 'demo/x', 'EIO')
  await t.rejects(readInstallable(manager, 'demo'), { code: 'file_io_error' })
  t.match(await find(), { manifest: { revision: installable.manifest.revision } }, 'K59: also while the present one cannot be read')
})

t.test('without a root there is no index', async (t) => {
  const { base, discovery } = await createDiscovery(t, skills('a'))
  fs.rmSync(base, { recursive: true })
  await t.rejects(discovery.indexes(), { code: 'skills_folder_not_found' })
})
