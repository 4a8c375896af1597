import { existsSync, mkdirSync, renameSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { FileContent } from '../../../src/core/files/file-content.ts'
import { MAX_ATTEMPTS, MAX_SKILL_BYTES } from '../../../src/core/shared/limits.ts'
import { RootSkills } from '../../../src/core/root-skills.ts'
import { createFaultyDisk, skill, skillText, skills, startManager, textOf } from '../../helper/skills.ts'

type Manager = Awaited<ReturnType<typeof startManager>>

t.test('K5: a name that no skill can have becomes no path, in a root that has changed either', async (t) => {
  const dir = t.testdir({ root: skills('alpha'), secret: 'bytes' })
  const paths: string[] = []
  const manager = await startManager(t, [join(dir, 'root')], { disk: createFaultyDisk({ intercept: (_operation, path) => { paths.push(path) } }) })
  for (const [index, name] of ['../secret', '.hidden', 'al\0pha'].entries()) {
    mkdirSync(join(dir, `root/new-${index}`))
    await manager.find(name)
    t.match(await textOf(() => manager.readByDisplayName(name, (state) => state.mainFile())), /^skill_not_found/)
    t.notOk(paths.some((path) => path.endsWith(name)), JSON.stringify(name))
  }
})

t.test('K75: a skill of a later root costs no look at the links of an earlier one', async (t) => {
  const dir = t.testdir({
    links: { one: t.fixture('symlink', '../targets/one'), two: t.fixture('symlink', '../targets/two') },
    targets: skills('one', 'two'),
    plain: skills('alpha')
  })
  const paths: string[] = []
  const disk = createFaultyDisk({ ageMs: 60_000, intercept: (_operation, path) => { paths.push(path) } })
  const manager = await startManager(t, [join(dir, 'links'), join(dir, 'plain')], { disk, linkTargets: [join(dir, 'targets')] })
  // On a busy machine a comparison from the start still goes on: this waits for it.
  await manager.list()
  paths.length = 0
  t.equal(await textOf(() => manager.read('alpha', (state) => state.mainFile())), skillText('alpha'))
  t.strictSame(paths.filter((path) => path.includes('links/')), [])
  t.equal(await manager.find('unknown'), undefined)
  t.strictSame(paths.filter((path) => path.includes('links/')), [])
})

t.test('K51: a skill that its frontmatter calls otherwise is found without a look at all skills', async (t) => {
  const dir = t.testdir({ first: skills('alpha', 'beta', 'gamma', 'delta'), second: { folder: skill('other') } })
  const manager = await startManager(t, [join(dir, 'first'), join(dir, 'second')])
  const findNow = t.capture(RootSkills.prototype, 'findNow', RootSkills.prototype.findNow)
  const read = () => textOf(() => manager.readByDisplayName('other', (state) => state.mainFile()))
  t.equal(await read(), skillText('other'))
  t.ok(findNow().length <= 1)
})

t.test('K58: the revisions that are kept of a skill that moves between roots are each there once, the latest first', async (t) => {
  const dir = t.testdir({ first: skills('alpha'), second: {} })
  const manager = await startManager(t, [join(dir, 'first'), join(dir, 'second')])
  const revisionNow = async () => (await manager.manifest('alpha')).revision
  const before = await revisionNow()
  renameSync(join(dir, 'first/alpha'), join(dir, 'second/alpha'))
  writeFileSync(join(dir, 'second/alpha/SKILL.md'), skillText('alpha', 'Other instructions.'))
  const after = await revisionNow()
  t.strictSame(manager.keptRevisions('alpha'), [after, before])
  renameSync(join(dir, 'second/alpha'), join(dir, 'first/alpha'))
  t.equal(await revisionNow(), after)
  t.strictSame(manager.keptRevisions('alpha'), [after, before])
})

t.test('K3: a manager without a root is not ready', async (t) => {
  const manager = await startManager(t, [])
  t.equal(manager.status.ready, false)
})

t.test('K59: what the present skill hides is not read from a revision that another root keeps', async (t) => {
  const dir = t.testdir({ first: { alpha: skill('alpha', { 'private.txt': 'secret' }), beta: skill('beta') }, second: {} })
  const manager = await startManager(t, [join(dir, 'first'), join(dir, 'second')])
  const { revision } = await manager.manifest('alpha')
  const read = () => textOf(() => manager.at(revision).readFile('alpha', 'private.txt'))
  renameSync(join(dir, 'first/alpha'), join(dir, 'second/alpha'))
  t.equal(await read(), 'secret', 'nothing is hidden')
  writeFileSync(join(dir, 'second/alpha/.skillignore'), 'private.txt\n')
  await manager.manifest('alpha')
  t.match(await read(), /^revision_changed/)
  t.match(await textOf(() => manager.at(revision).readMainFile('alpha', 'SKILL.md')), /^revision_changed/)
})

t.test('K59: a revision that a later root keeps is read while the skill that hides it has none', async (t) => {
  const dir = t.testdir({ first: {}, second: { alpha: skill('alpha', { 'data.txt': 'data' }) }, new: { alpha: skill('alpha') } })
  const manager = await startManager(t, [join(dir, 'first'), join(dir, 'second')])
  const { revision } = await manager.manifest('alpha')
  const read = (path: string, of = revision) => textOf(() => manager.at(of).readFile('alpha', path))
  writeFileSync(join(dir, 'new/alpha/large.bin'), '')
  truncateSync(join(dir, 'new/alpha/large.bin'), MAX_SKILL_BYTES + 1)
  renameSync(join(dir, 'new/alpha'), join(dir, 'first/alpha'))
  t.equal(await read('data.txt'), 'data')
  t.match(await read('nosuch.txt'), /^file_not_found/)
  t.match(await read('data.txt', `sha256:${'0'.repeat(64)}`), /^skill_too_large/)
})

t.test('K59: what the present skill hides is not read from a skill that it hides, and the revision that is named is its own', async (t) => {
  const dir = t.testdir({ first: {}, second: { alpha: skill('alpha', { 'private.txt': 'secret' }) }, new: { alpha: skill('alpha', { '.skillignore': 'private.txt\n' }) } })
  const manager = await startManager(t, [join(dir, 'first'), join(dir, 'second')])
  const { revision } = await manager.manifest('alpha')
  const read = () => textOf(() => manager.at(revision).readFile('alpha', 'private.txt'))
  renameSync(join(dir, 'new/alpha'), join(dir, 'first/alpha'))
  const present = (await manager.manifest('alpha')).revision
  t.equal(await read(), `revision_changed: The skill has changed: its revision is ${present} now`)
  writeFileSync(join(dir, 'second/alpha/other.txt'), 'other')
  t.equal(await read(), `revision_changed: The skill has changed: its revision is ${present} now`)
})

t.test('K53: a skill that moves to an earlier root while it is asked for is not answered from one behind both', async (t) => {
  const dir = t.testdir({ first: skills('other'), second: { alpha: { 'SKILL.md': skillText('alpha', 'meant') } }, third: { alpha: { 'SKILL.md': skillText('alpha', 'hidden') } } })
  const ask = [
    (manager: Manager) => textOf(() => manager.readMainFile('alpha', 'SKILL.md')),
    (manager: Manager) => textOf(async () => (await manager.openFile('alpha', 'SKILL.md') as { readonly content: FileContent }).content),
    async (manager: Manager) => (await manager.find('alpha'))?.digest,
    async (manager: Manager) => {
      const inspected = await manager.inspect('alpha')
      return inspected && 'revision' in inspected ? inspected.revision : undefined
    }
  ]
  const disk = createFaultyDisk()
  const manager = await startManager(t, ['first', 'second', 'third'].map((root) => join(dir, root)), { disk })
  for (const [index, question] of ask.entries()) {
    const right = await question(manager)
    t.ok(right)
    let isMoved = false
    disk.intercept = (operation, path) => {
      if (isMoved || operation !== 'stat' || !path.endsWith('second/alpha')) return
      isMoved = true
      renameSync(join(dir, 'second/alpha'), join(dir, 'first/alpha'))
    }
    manager.beginRequest({})
    t.equal(await question(manager), right, `question ${index}`)
    t.ok(isMoved)
    disk.intercept = () => undefined
    renameSync(join(dir, 'first/alpha'), join(dir, 'second/alpha'))
    await manager.list()
  }
})

t.test('K53: a skill that moves between two roots while they are compared is in one of them', async (t) => {
  const dir = t.testdir({ first: skills('other'), second: skills('alpha') })
  const ask = {
    status: async (manager: Manager) => (await manager.freshStatus()).skills,
    inspect: async (manager: Manager) => (await manager.inspect('alpha')) !== undefined
  }
  const disk = createFaultyDisk({ ageMs: 60_000 })
  const manager = await startManager(t, [join(dir, 'first'), join(dir, 'second')], { disk })
  for (const [label, question] of Object.entries(ask)) {
    const right = await question(manager)
    let asked = false
    let isMoved = false
    disk.intercept = (_operation, path) => {
      asked ||= path.startsWith(join(dir, 'first'))
      if (isMoved || !asked || !path.startsWith(join(dir, 'second'))) return
      isMoved = true
      renameSync(join(dir, 'second/alpha'), join(dir, 'first/alpha'))
    }
    manager.beginRequest({})
    t.equal(await question(manager), right, label)
    t.ok(isMoved)
    disk.intercept = () => undefined
    renameSync(join(dir, 'first/alpha'), join(dir, 'second/alpha'))
    await manager.list()
  }
})

t.test('K48, K53: a skill that is always in one of two roots is never called missing: it is changing', async (t) => {
  const dir = t.testdir({ first: {}, second: skills('alpha') })
  const [first, second] = [join(dir, 'first'), join(dir, 'second')]
  const disk = createFaultyDisk({ ageMs: 60_000 })
  const manager = await startManager(t, [first, second], { disk })
  const ask = {
    find: async () => (await manager.find('alpha'))?.name,
    main: () => manager.readMainFile('alpha', 'SKILL.md'),
    file: () => manager.readFile('alpha', 'SKILL.md')
  }
  for (const [label, question] of Object.entries(ask)) {
    disk.intercept = () => undefined
    t.strictSame(await manager.list(), ['alpha'])
    let moves = 0
    disk.intercept = (_operation, path) => {
      const [from, to] = path.startsWith(first) ? [first, second] : [second, first]
      if (!existsSync(join(from, 'alpha'))) return
      renameSync(join(from, 'alpha'), join(to, 'alpha'))
      moves++
    }
    manager.beginRequest({})
    t.match(await textOf(question), /^skill_changing/, label)
    t.ok(moves > MAX_ATTEMPTS, `${moves} moves`)
    t.match(await textOf(() => manager.readFile('unknown', 'SKILL.md')), /^skill_not_found/)
  }
})

t.test('K53: a skill that has moved to another root is found and available, before anything else has read it there', async (t) => {
  const dir = t.testdir({ first: skills('alpha'), second: skills('other') })
  const manager = await startManager(t, [join(dir, 'first'), join(dir, 'second')])
  const ask = {
    search: async () => (await manager.search('alpha')).names,
    available: async () => (await manager.available()).map(({ name }) => name).filter((name) => name === 'alpha')
  }
  for (const [label, question] of Object.entries(ask)) {
    t.strictSame(await question(), ['alpha'], label)
    renameSync(join(dir, 'first/alpha'), join(dir, 'second/alpha'))
    t.strictSame(await question(), ['alpha'], label)
    renameSync(join(dir, 'second/alpha'), join(dir, 'first/alpha'))
  }
})
