import fs from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { createNetworkDisk } from '../../../src/core/disk/disk.ts'
import { RACY_WINDOW_MS } from '../../../src/core/shared/limits.ts'
import { createFaultyDisk, failing, findByDisplayName, osError, outcome, skill, skills, skillText, startManager, textOf, until } from '../../helper/skills.ts'

const HOUR_MS = 3_600_000

t.test('K53: a scan that fails keeps what was there, says so once, and heals', async (t) => {
  const base = t.testdir({ root: skills('a', 'b') })
  const root = join(base, 'root')
  const disk = createFaultyDisk()
  const warnings: Array<readonly [object, string]> = []
  const log = { info () {}, warn: (details: object, message: string) => { warnings.push([details, message]) } }
  const manager = await startManager(t, [root], { disk, log })
  disk.intercept = failing('readdir', '/root', 'EIO')
  fs.mkdirSync(join(root, 'c'))
  for (let question = 0; question < 10; question++) t.strictSame(await manager.list(), ['a', 'b'])
  t.equal((await manager.readMainFile('a', 'SKILL.md')).utf8, skillText('a'))
  t.match(await manager.freshStatus(), { ready: true, failures: ['EIO'], roots: [{ state: 'failed', skills: 2 }] })
  t.equal(warnings.length, 1, 'told once')
  t.match(warnings, [[{ root, err: { code: 'EIO' } }, /could not be listed/]])
  disk.intercept = failing('readdir', '/root', 'EMFILE')
  await manager.list()
  t.equal(warnings.length, 2, 'another failure is news')
  disk.intercept = () => {}
  t.strictSame(await manager.list(), ['a', 'b', 'c'])
  t.match(await manager.freshStatus(), { failures: [], roots: [{ state: 'ok' }] })
})

t.test('K53: a disk that fails under the skills takes none of them out of the catalog', async (t) => {
  const base = t.testdir({ root: skills('a', 'b') })
  const disk = createFaultyDisk({ ageMs: -HOUR_MS })
  const manager = await startManager(t, [join(base, 'root')], { disk })
  for (const operation of ['stat', 'realpath', 'readdir', 'open', 'read'] as const) {
    disk.intercept = (asked, path) => { if (asked === operation && !path.endsWith('/root')) throw osError('EIO') }
    t.match((await manager.find('a'))?.findings, [{ code: 'main_file_unreadable' }], 'who asks is told')
    t.equal((await findByDisplayName(manager, 'nothing')), undefined)
    t.strictSame(manager.getAvailableSkills().map(({ name }) => name), ['a', 'b'], operation)
  }
  disk.intercept = () => {}
  t.match(await manager.find('a'), { valid: true, findings: [] })
})

for (const [kind, createDisk, count] of [['local', () => undefined, 300], ['network', createNetworkDisk, 100]] as const) {
  t.test(`K53: readers during the exchange of ${count} skills on a ${kind} disk see all of one state, never an empty catalog`, async (t) => {
    const base = t.testdir({ v1: {}, v2: {}, root: t.fixture('symlink', 'v1') })
    for (const version of ['v1', 'v2']) {
      for (let index = 0; index < count; index++) {
        fs.mkdirSync(join(base, version, `${version}-${index}`))
        fs.writeFileSync(join(base, version, `${version}-${index}`, 'SKILL.md'), skillText(`${version}-${index}`))
      }
      fs.mkdirSync(join(base, version, 'same'))
      fs.writeFileSync(join(base, version, 'same/SKILL.md'), skillText('same', version))
    }
    const disk = createDisk()
    const manager = await startManager(t, [join(base, 'root')], { times: { debounce: 0, maxDebounce: 0 }, ...disk && { disk } })
    const seen = new Set<readonly string[]>()
    const end = new AbortController()
    const readers = Array.from({ length: 4 }, async () => {
      while (!end.signal.aborted) {
        seen.add(await manager.list())
        if (!manager.getAvailableSkills().some(({ name }) => name === 'same')) t.fail('a skill of both versions is gone')
        const body = (await manager.loadSkill('same'))?.content.split('---\n').at(-1)
        if (body !== 'v1' && body !== 'v2') t.fail(`a document of neither version: ${body}`)
        await nextTurn()
      }
    })
    for (const version of ['v2', 'v1']) {
      fs.symlinkSync(version, join(base, 'tmp'))
      fs.renameSync(join(base, 'tmp'), join(base, 'root'))
      await manager.list()
      await until(() => manager.getAvailableSkills().length === count + 1)
    }
    end.abort()
    await Promise.all(readers)
    t.strictSame(new Set([...seen].map((names) => names.join())), new Set(['v1', 'v2'].map((version) => fs.readdirSync(join(base, version)).sort().join())))
  })
}

t.test('K53: a slow load never replaces a later one', async (t) => {
  const base = t.testdir({ root: skills('demo') })
  const disk = createFaultyDisk({ disk: createNetworkDisk(), ageMs: -HOUR_MS })
  const manager = await startManager(t, [join(base, 'root')], { disk })
  const file = join(base, 'root/demo/SKILL.md')
  let release = () => {}
  const held = new Promise<void>((resolve) => { release = resolve })
  let waiting = false
  disk.intercept = (operation, path) => {
    if (operation !== 'close' || waiting || path.startsWith('/proc/') === false) return
    waiting = true
    return held
  }
  fs.writeFileSync(file, skillText('demo', 'first'))
  const slow = manager.find('demo')
  await until(() => waiting)
  fs.writeFileSync(file, skillText('second'))
  t.equal((await manager.find('demo'))?.metadata.name, 'second')
  release()
  t.equal((await slow)?.metadata.name, 'demo', 'what was there when it was asked for')
  t.strictSame(manager.getSkills().map(({ name }) => name), ['second'])
})

t.test('K53: a skill is given with the content that its metadata was read from', async (t) => {
  const base = t.testdir({ root: skills('demo') })
  const disk = createFaultyDisk()
  const manager = await startManager(t, [join(base, 'root')], { disk })
  for (let moment = 1; ; moment++) {
    fs.writeFileSync(join(base, 'root/demo/SKILL.md'), skillText('demo'))
    let operations = 0
    disk.intercept = () => { if (++operations === moment) fs.writeFileSync(join(base, 'root/demo/SKILL.md'), skillText('changed')) }
    const loaded = await manager.loadSkill('demo')
    if (!loaded?.content.includes(`name: ${loaded.metadata.name}`)) t.fail(`a mixture when changed before operation ${moment}`)
    if (operations < moment) break
  }
  let edits = 0
  const edit = () => { fs.writeFileSync(join(base, 'root/demo/SKILL.md'), skillText('demo', 'x'.repeat(++edits % 2))) }
  disk.intercept = (operation) => { if (operation === 'fstat') edit() }
  // What was read long enough ago is not read again.
  edit()
  t.equal(await outcome(() => manager.loadSkill('demo')), "SkillError: Error reading SKILL.MD for skill 'demo'", 'one that never holds still')
})

t.test('a skill that comes and goes with every scan is not found', async (t) => {
  const base = t.testdir({ root: skills('demo') })
  const disk = createFaultyDisk({ ageMs: -HOUR_MS })
  const manager = await startManager(t, [join(base, 'root')], { disk })
  disk.intercept = (operation, path) => {
    if (operation === 'realpath' && path.endsWith('/demo')) fs.renameSync(join(base, 'root/demo'), join(base, 'away'))
    if (operation === 'realpath' && path.endsWith('/root') && fs.existsSync(join(base, 'away'))) fs.renameSync(join(base, 'away'), join(base, 'root/demo'))
  }
  t.equal(await manager.find('demo'), undefined)
})

t.test('K51: while one question scans a root that became another folder, the next one does not get the old skills', async (t) => {
  const base = t.testdir({ v1: skills('old'), v2: skills('new'), root: t.fixture('symlink', 'v1') })
  const manager = await startManager(t, [join(base, 'root')])
  const { ctimeMs } = fs.statSync(join(base, 'v2'))
  await until(() => Date.now() - ctimeMs > 2 * RACY_WINDOW_MS)
  fs.symlinkSync('v2', join(base, 'next'))
  fs.renameSync(join(base, 'next'), join(base, 'root'))
  // What kind of disk the new folder lies on is asked through the thread pool: all of these come before it is known.
  const lists: Array<ReturnType<typeof manager.list>> = []
  for (let moment = 0; moment < 50; moment++) {
    lists.push(manager.list())
    await Promise.resolve()
  }
  t.strictSame(new Set((await Promise.all(lists)).map((names) => names.join())), new Set(['new']))
})

t.test('K53: a skill that moves from one root to another is in the answer, whenever it moves', async (t) => {
  const base = t.testdir({ one: skills('other'), two: { demo: skill('demo', { docs: { 'a.md': 'text' } }) } })
  const disk = createFaultyDisk({ ageMs: HOUR_MS })
  const manager = await startManager(t, [join(base, 'one'), join(base, 'two')], { disk })
  const questions: Readonly<Record<string, () => unknown>> = {
    list: async () => (await manager.list()).includes('demo'),
    find: async () => (await manager.find('demo'))?.name === 'demo',
    document: async () => (await manager.readMainFile('demo', 'SKILL.MD')).bytes.length > 0,
    file: async () => (await manager.readFile('demo', 'docs/a.md')).text?.content === 'text',
    opened: async () => (await manager.openFile('demo', 'docs/a.md')).kind === 'content',
    manifest: async () => (await manager.manifest('demo')).files.length === 2
  }
  for (const [what, ask, isSecond] of Object.entries(questions).flatMap(([what, ask]) => [[what, ask, false], [what, ask, true]] as const)) {
    for (const [from, to] of [['two', 'one'], ['one', 'two']] as const) {
      for (let moment = 1; ; moment++) {
        let operations = 0
        // As for the second of two requests that one turn of the event loop delivers: the roots have been seen before the move.
        await nextTurn()
        manager.beginRequest({})
        if (isSecond) await manager.list()
        disk.intercept = () => { if (++operations === moment) fs.renameSync(join(base, from, 'demo'), join(base, to, 'demo')) }
        const answer = await outcome(ask)
        disk.intercept = () => {}
        if (answer !== true) t.fail(`${what}${isSecond ? ', second in a turn' : ''}: ${String(answer)} when moved from ${from} to ${to} before operation ${moment}`)
        if (operations < moment) break
        fs.renameSync(join(base, to, 'demo'), join(base, from, 'demo'))
        await manager.list()
      }
      fs.renameSync(join(base, from, 'demo'), join(base, to, 'demo'))
    }
  }
})

t.test('K53: a skill that moved on while another question scanned its old root is searched for in all of them', async (t) => {
  const base = t.testdir({ one: {}, two: skills('demo'), three: {} })
  const disk = createFaultyDisk({ disk: createNetworkDisk(), ageMs: HOUR_MS })
  const manager = await startManager(t, ['one', 'two', 'three'].map((root) => join(base, root)), { disk })
  const releases: Array<() => void> = []
  const waitAt = (place: string) => {
    disk.intercept = (operation, path) => operation === 'stat' && path.endsWith(place) ? new Promise((resolve) => { releases.push(resolve) }) : undefined
  }
  fs.renameSync(join(base, 'two/demo'), join(base, 'three/demo'))
  // The other question waits before the old root, and the first one before it has read anything. Then both wait between the old
  // root and the new one.
  waitAt('/two')
  const other = manager.list()
  await until(() => releases.length === 1)
  waitAt('/one')
  const first = manager.find('demo')
  await until(() => releases.length === 2)
  waitAt('/three')
  releases[0]?.()
  await until(() => releases.length === 3)
  releases[1]?.()
  for (let turn = 0; turn < 20; turn++) await nextTurn()
  disk.intercept = () => undefined
  releases[2]?.()
  t.equal((await first)?.metadata.skillPath, join(base, 'three/demo'))
  t.strictSame(await other, ['demo'])
})

t.test('K53: a skill that moves while all are compared is found by a question of the same poll phase', async (t) => {
  const base = t.testdir({ one: skills('demo'), two: skills('other') })
  const disk = createFaultyDisk({ ageMs: HOUR_MS })
  const manager = await startManager(t, [join(base, 'one'), join(base, 'two')], { disk })
  let isMoved = false
  disk.intercept = (operation, path) => {
    if (isMoved || operation !== 'stat' || !path.endsWith('one/demo/SKILL.md')) return
    isMoved = true
    fs.renameSync(join(base, 'one/demo'), join(base, 'two/demo'))
  }
  const questions: Array<Promise<unknown>> = []
  const stop = manager.subscribe(({ removed }) => {
    if (removed.includes('demo')) questions.push(Promise.resolve(manager.find('demo')))
  })
  manager.beginRequest({})
  await manager.verifyDisplayNames()
  stop()
  t.match(await Promise.all(questions), [{ name: 'demo' }])
})

t.test('K53: of two main files that go away while one is looked for, the other is not given from before', async (t) => {
  const base = t.testdir({ demo: { 'SKILL.MD': 'preferred', 'SKILL.md': 'other' } })
  const disk = createFaultyDisk()
  const manager = await startManager(t, [base], { disk })
  fs.writeFileSync(join(base, 'demo/new.txt'), '')
  disk.intercept = (operation, path) => {
    if (operation !== 'open' || !path.endsWith('SKILL.MD')) return
    for (const name of ['SKILL.md', 'SKILL.MD']) fs.rmSync(join(base, 'demo', name), { force: true })
  }
  t.equal(await textOf(() => manager.readMainFile('demo', 'SKILL.MD')), "main_file_not_found: SKILL.MD not found for skill 'demo'")
})

t.test('K53: on a slow disk an answer is of the main file that was preferred while it was read', async (t) => {
  const base = t.testdir({ root: { demo: { 'SKILL.md': 'one' } } })
  const disk = createFaultyDisk({ disk: createNetworkDisk(), ageMs: HOUR_MS })
  const manager = await startManager(t, [join(base, 'root')], { disk })
  fs.writeFileSync(join(base, 'root/demo/SKILL.md'), 'three')
  disk.intercept = async (operation, path) => {
    if (operation !== 'open' || !path.endsWith('/SKILL.md')) return
    disk.intercept = () => {}
    manager.beginRequest({})
    fs.writeFileSync(join(base, 'root/demo/SKILL.MD'), 'preferred')
    fs.writeFileSync(join(base, 'root/demo/SKILL.md'), 'changed')
    await nextTurn()
    await nextTurn()
  }
  t.equal((await manager.readMainFile('demo', 'SKILL.MD')).utf8, 'preferred')
})

t.test('K53: a root that goes away and comes back under a question does not make it fail', async (t) => {
  const base = t.testdir({ root: { demo: skill('demo', { docs: { 'a.md': 'text' } }) } })
  const disk = createFaultyDisk({ ageMs: HOUR_MS })
  const manager = await startManager(t, [join(base, 'root')], { disk })
  const questions: Readonly<Record<string, () => unknown>> = {
    document: () => manager.readMainFile('demo', 'SKILL.MD'),
    file: () => manager.readFile('demo', 'docs/a.md'),
    manifest: () => manager.manifest('demo')
  }
  for (const [what, ask] of Object.entries(questions)) {
    for (const operation of ['open', 'readlink'] as const) {
      let away = false
      disk.intercept = (asked, path) => {
        if (away) fs.renameSync(join(base, 'away'), join(base, 'root'))
        away = !away && asked === operation && (operation === 'readlink' || path.startsWith(base))
        if (!away) return
        fs.renameSync(join(base, 'root'), join(base, 'away'))
        if (operation === 'open') disk.intercept = () => { fs.renameSync(join(base, 'away'), join(base, 'root')); disk.intercept = () => {} }
      }
      const answer = await outcome(ask)
      disk.intercept = () => {}
      t.type(answer, 'object', `${what}, away before ${operation}`)
    }
  }
})

t.test('K53: a folder that goes away and comes back while it is read is not one whose main file cannot be read', async (t) => {
  const base = t.testdir({ root: skills('a') })
  const [folder, away] = [join(base, 'root/a'), join(base, 'away')]
  const disk = createFaultyDisk()
  const manager = await startManager(t, [join(base, 'root')], { disk })
  fs.appendFileSync(join(folder, 'SKILL.md'), 'more')
  let isAway = false
  disk.intercept = (operation, path) => {
    if (isAway) {
      fs.renameSync(away, folder)
      disk.intercept = () => {}
    } else if (path === folder && ['readdir', 'opendir', 'readdirBytes'].includes(operation)) {
      fs.renameSync(folder, away)
      isAway = true
    }
  }
  t.match(await manager.find('a'), { valid: true, findings: [] })
  t.ok(isAway)
})
