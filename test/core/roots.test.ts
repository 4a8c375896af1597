import { createHook } from 'node:async_hooks'
import { execFileSync, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import fs from 'node:fs'
import { basename, dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { createNetworkDisk, type Disk } from '../../src/core/read/disk.ts'
import { walkSkill } from '../../src/core/read/walk.ts'
import type { Listing } from '../../src/core/roots/list-root.ts'
import { createSkillManager } from '../../src/core/skill-manager.ts'
import { statusOf } from '../../src/http/readiness.ts'
import type { Interceptor } from '../helper/disk.ts'
import { createFaultyDisk, failing, skill, skills, skillText, startManager, textOf, until } from '../helper/skills.ts'
import { followed, freshStatusOf, inIndex, numbered, startWatching, writeSkill } from '../helper/watching.ts'

const HOUR_MS = 3_600_000
const CANARY = 'CANARY'

interface Line {
  readonly message: string
  readonly name?: string
  readonly target?: string
  readonly setting?: string
}

/** Skills that an installer keeps elsewhere, with links to them in the root. */
function createInstalled (t: Test): { readonly base: string, readonly root: string, readonly store: string } {
  const base = fs.realpathSync(t.testdir({
    store: { one: skill('one', { 'a.md': 'one' }), two: skill('two'), 'file.md': 'x', '.git': { hooks: {} } },
    secret: skill('secret', { 'a.md': CANARY, docs: {} }),
    root: { own: skill('own') }
  }))
  for (const name of ['one', 'two']) fs.symlinkSync(`../store/${name}`, join(base, 'root', name))
  return { base, root: join(base, 'root'), store: join(base, 'store') }
}

function relink (path: string, target: string): void {
  // Hidden until it has its name: nobody lists it.
  const next = join(dirname(path), `.${basename(path)}`)
  fs.symlinkSync(target, next)
  fs.renameSync(next, path)
}

function createLog () {
  const lines: Line[] = []
  const write = (details: object, message: string) => { lines.push({ message, ...details }) }
  return {
    log: { info: () => {}, warn: write }, skips: () => lines.filter(({ message }) => message.includes('skipped'))
  }
}

for (const [kind, options] of [['a local disk', {}], ['a network disk', { disk: createNetworkDisk() }]] as const) {
  t.test(`K4: skills are the folders with a safe name, on ${kind}`, async (t) => {
    const root = t.testdir({ 'a file': '', 'SKILL.md': '' })
    const safe = ['C:', '__proto__', 'constructor', 'demo', "quote'\"", 'toString', 'trailing. ', 'x'.repeat(255),
      'é', '\uFFFD']
    for (const name of [...safe, '.hidden', '..data', 'a..b', 'a\\b', 'new\nline', 'delete\x7f',
      'c1\x85']) fs.mkdirSync(join(root, name))
    fs.mkdirSync(Buffer.concat([Buffer.from(`${root}/not-utf8-`), Buffer.from([0xff])]))
    execFileSync('mkfifo', [join(root, 'fifo')])
    t.strictSame(await (await startManager(t, [root], options)).list(), safe)
  })
}

t.test('K14: the states of a root', async (t) => {
  const base = t.testdir({
    file: '',
    root: {},
    dangling: t.fixture('symlink', 'nothing'),
    loop: t.fixture('symlink', 'loop'),
    'to-file': t.fixture('symlink', 'file')
  })
  const stateOf = async (name: string, intercept: Interceptor = () => {}) => {
    const manager = await startManager(t, [join(base, name)], { disk: createFaultyDisk({ intercept }) })
    return (await freshStatusOf(manager)).roots[0]?.state
  }
  t.equal(await stateOf('root'), 'ok')
  for (const name of ['nothing', 'nothing/below', 'file', 'file/below', 'dangling', 'loop', 'to-file',
    'x'.repeat(300)]) t.equal(await stateOf(name), 'missing', name.slice(0, 20))
  for (const operation of ['stat', 'realpath', 'readdir'] as const) {
    for (const [code, state] of [['EACCES', 'unreadable'], ['EPERM', 'unreadable'], ['ENOENT', 'missing'],
      ['EIO', 'failed'], ['EMFILE', 'failed'], ['ESTALE', 'failed']] as const) {
      t.equal(await stateOf('root', failing(operation, '', code)), state, `${operation}: ${code}`)
    }
  }
})

t.test('K4: what a link in a root means', async (t) => {
  const { base, root, store } = createInstalled(t)
  const links = {
    file: '../store/file.md',
    store: '../store',
    hooks: '../store/.git/hooks',
    none: '../nothing',
    loop: 'loop',
    self: '.',
    beside: '../storeroom',
    secret: '../secret',
    chain: 'one'
  }
  fs.mkdirSync(join(base, 'storeroom'))
  for (const [name, target] of Object.entries(links)) fs.symlinkSync(target, join(root, name))
  fs.symlinkSync('store', join(base, 'alias'))
  for (const [linkTargets, names] of [
    [[], ['own']],
    // The folder itself may be a skill, and nothing in its .git.
    [[store], ['chain', 'one', 'own', 'store', 'two']],
    [[join(base, 'absent'), store], ['chain', 'one', 'own', 'store', 'two']],
    [[join(base, 'alias')], ['chain', 'one', 'own', 'store', 'two']]
  ] as const) t.strictSame(await (await startManager(t, [root], { linkTargets })).list(), names, linkTargets.join())
})

t.test('K4: links are followed into the folders that are allowed, and nowhere else', async (t) => {
  const { root, store } = createInstalled(t)
  fs.symlinkSync('../secret', join(root, 'secret'))
  const manager = await startManager(t, [root], { linkTargets: [store] })
  t.strictSame(await manager.list(), ['one', 'own', 'two'])
  t.match(statusOf(manager).roots, [{ skills: 3, skipped: 1 }])
  t.equal(await textOf(() => manager.read('one', (skill) => skill.mainFile('SKILL.md'))), skillText('one'))
  t.equal(await textOf(() => manager.read('one', (skill) => skill.file('a.md'))), 'one')
  t.strictSame((await manager.read('one', (skill) => skill.manifest())).files.map(({ path }) => path),
    ['SKILL.md', 'a.md'])
  t.match(await textOf(() => manager.read('secret', (skill) => skill.file('a.md'))), /^skill_not_found|^file_not_found/)
  t.match(await textOf(() => manager.read('one', (skill) => skill.file('../two/SKILL.md'))), 'path_traversal')
  fs.symlinkSync('../two/SKILL.md', join(store, 'one/neighbour.md'))
  t.match(await textOf(() => manager.read('one', (skill) => skill.file('neighbour.md'))), 'path_traversal',
    'a skill ends at its own folder')
})

t.test('K4: what is skipped is told once, with its target and the setting that would allow it', async (t) => {
  const { root, store } = createInstalled(t)
  for (const name of ['.hidden', 'a..b', 'new\nline', 'draft']) fs.mkdirSync(join(root, name))
  fs.writeFileSync(join(root, '.skillignore'), 'draft\n')
  fs.symlinkSync('nothing', join(root, 'dangling'))
  fs.symlinkSync('own/SKILL.md', join(root, 'a-file'))
  const { log, skips } = createLog()
  const manager = await startManager(t, [root], { log })
  for (let question = 0; question < 3; question++) await manager.list()
  const byName = Object.fromEntries(skips().map((line) => [line.name, line]))
  t.strictSame(Object.keys(byName).sort(), ['a..b', 'dangling', 'draft', 'new\nline', 'one', 'two'])
  t.equal(skips().length, 6, 'once')
  t.match(byName['one'], { target: join(store, 'one'), setting: `--allow-links ${join(store, 'one')}` })
  t.match(byName['dangling'], { message: /leads to nothing/, target: 'nothing', setting: undefined })
  t.match((await freshStatusOf(manager)).roots, [{ skills: 1, skipped: 6 }])

  relink(join(root, 'one'), '../secret')
  await manager.list()
  t.match(skips().at(-1), { name: 'one', target: /secret$/ }, 'another target is news')
  fs.rmSync(join(root, 'dangling'))
  t.match((await freshStatusOf(manager)).roots, [{ skipped: 5 }])
  t.equal(skips().length, 7)
})

t.test('K4: a thousand links are twenty lines, and one with the number of the rest and their settings', async (t) => {
  const { root } = createInstalled(t)
  for (let index = 0; index < 998; index++) fs.symlinkSync('../store/one', join(root, `link-${index}`))
  const { log, skips } = createLog()
  await startManager(t, [root], { log })
  t.equal(skips().length, 21)
  t.match(skips().at(-1), { entries: 980 })
})

t.test('K51: a link that is turned to another target is what it is now, at the next question', async (t) => {
  const { base, root, store } = createInstalled(t)
  const manager = await startManager(t, [root], { linkTargets: [store] })
  const read = () => textOf(() => manager.read('one', (skill) => skill.file('a.md')))
  t.equal(await read(), 'one')
  relink(join(root, 'one'), '../secret')
  t.match(await read(), /not_found/)
  t.strictSame(await manager.list(), ['own', 'two'])
  relink(join(root, 'one'), '../store/two')
  t.match(await read(), 'file_not_found', 'the other skill has no such file')
  fs.writeFileSync(join(store, 'two/a.md'), 'two')
  t.equal(await read(), 'two')

  fs.renameSync(join(store, 'two'), join(base, 'moved'))
  t.match(await read(), /not_found/)
  t.strictSame(await manager.list(), ['own'])
  fs.symlinkSync('../secret', join(store, 'two'))
  t.match(await read(), /not_found/, 'a link in the allowed folder that leaves it')
  t.strictSame(await manager.list(), ['own'])
  fs.rmSync(join(store, 'two'))
  fs.renameSync(join(base, 'moved'), join(store, 'two'))
  t.equal(await read(), 'two', 'back again')
})

t.test('K4: a link target that is exchanged at any moment of a question gives the secret to nobody', async (t) => {
  const { base, root, store } = createInstalled(t)
  for (const name of ['own', 'two']) fs.rmSync(join(root, name), { recursive: true })
  const secret = join(base, 'secret')
  const swaps: Readonly<Record<string, readonly [act: () => void, undo: () => void]>> = {
    'the link': [() => { relink(join(root, 'one'), '../secret') }, () => { relink(join(root, 'one'), '../store/one') }],
    'its target': [
      () => { fs.renameSync(join(store, 'one'), join(base, 'away')); fs.symlinkSync(secret, join(store, 'one')) },
      () => { fs.rmSync(join(store, 'one')); fs.renameSync(join(base, 'away'), join(store, 'one')) }
    ],
    'a file in its target': [
      () => { fs.rmSync(join(store, 'one/a.md')); fs.symlinkSync(join(secret, 'a.md'), join(store, 'one/a.md')) },
      () => { fs.rmSync(join(store, 'one/a.md')); fs.writeFileSync(join(store, 'one/a.md'), 'one') }
    ]
  }
  for (const hasProc of [true, false]) {
    for (const [what, [act, undo]] of Object.entries(swaps)) {
      let moments = 0
      for (let isOver = false; !isOver;) {
        const moment = moments += hasProc ? 1 : 3
        const disk = createFaultyDisk({ hasProc })
        const manager = await startManager(t, [root], { disk, linkTargets: [store] })
        let operations = 0
        disk.intercept = () => { if (++operations === moment) act() }
        const answers = [await textOf(() => manager.read('one', (skill) => skill.file('a.md'))),
          await textOf(() =>
            manager.read('one', (skill) => skill.manifest()).then(({ files }) =>
              ({ bytes: Buffer.from(JSON.stringify(files)) })))]
        isOver = operations < moment
        disk.intercept = () => {}
        if (answers.some((answer) => String(answer).includes(CANARY))) {
          t.fail(`leaked when ${what} was swapped before operation ${moment}`)
        }
        await manager.close()
        if (!isOver) undo()
      }
      t.ok(moments > 5, `${what}, ${moments} moments, ${hasProc ? 'with' : 'without'} /proc`)
    }
  }
})

t.test('K51: a root whose place is a link to it now gives the files of its skills, and links in them', async (t) => {
  const dir = t.testdir({
    data: { root: { alpha: skill('alpha', { 'notes.txt': 'notes', 'link.md': t.fixture('symlink', 'SKILL.md') }) } }
  })
  const manager = await startManager(t, [join(dir, 'data/root')], { disk: createFaultyDisk({ ageMs: HOUR_MS }) })
  await manager.read('alpha', (skill) => skill.manifest())
  fs.renameSync(join(dir, 'data'), join(dir, 'disk'))
  fs.symlinkSync('disk', join(dir, 'data'))
  t.strictSame((await manager.read('alpha', (skill) => skill.manifest())).files.map(({ path }) => path),
    ['SKILL.md', 'link.md', 'notes.txt'])
  t.equal(await textOf(() => manager.read('alpha', (skill) => skill.file('notes.txt'))), 'notes')
})

const ANSWER_MS = 200

t.test('K54: a disk that hangs keeps one thread; those that have answered go on', async (t) => {
  const fifos = ['1', '2', '3'].map((name) => join(t.testdirName, name))
  t.testdir({ file: '' })
  execFileSync('mkfifo', fifos)
  // Opening a FIFO hangs until somebody opens its other end.
  const opened: Array<Promise<unknown>> = []
  const disks = fifos.map(() => createNetworkDisk(ANSWER_MS))
  const asked = (disk: Disk | undefined, path: string) => Promise.resolve(disk?.open(path, fs.constants.O_RDONLY))
  const proven = createNetworkDisk(ANSWER_MS)
  t.ok(await proven.stat(t.testdirName))

  for (const [index, fifo] of fifos.entries()) {
    // Of those behind the first call none has started, and none hangs.
    for (let call = 0; call < 5; call++) opened.push(t.rejects(asked(disks[index], fifo), { code: 'ETIMEDOUT' }))
  }
  await Promise.all(opened)
  for (const disk of disks) await t.rejects(Promise.resolve(disk.stat(t.testdirName)), { code: 'ETIMEDOUT' })
  t.ok(await proven.stat(t.testdirName), 'a disk that has answered before')
  await fs.promises.access(t.testdirName)
  t.pass('other work has a thread')

  // The first two ask, the third found no thread for a disk that has never answered.
  for (const fifo of fifos.slice(0, 2)) fs.closeSync(fs.openSync(fifo, fs.constants.O_RDWR))
  for (const fifo of fifos.slice(0, 2)) fs.closeSync(fs.openSync(fifo, fs.constants.O_WRONLY | fs.constants.O_NONBLOCK))
  for (const disk of disks) {
    await until(async () => await Promise.resolve(disk.stat(t.testdirName)).then(() => true, () => false))
  }
})

t.test('K53: a disk that lists its folders in another order each time has one state', async (t) => {
  const files = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`${index}.md`, `${index}`]))
  const folder = fs.realpathSync(t.testdir({ a: skill('a', files) }))
  const disk = createFaultyDisk()
  const { readdir } = disk
  disk.readdir = async (path) => (await readdir(path)).sort(() => Math.random() - 0.5)
  const walks = await Promise.all(Array.from({ length: 5 }, () => walkSkill(disk, join(folder, 'a'), undefined)))
  t.equal(new Set(walks.map(({ fingerprint }) => fingerprint)).size, 1)
})

t.test('K52 K54: a root on a disk that does not answer delays nothing of another root', async (t) => {
  const base = fs.realpathSync(t.testdir({ slow: skills('s'), fast: skills('f') }))
  let release = () => {}
  const released = new Promise<void>((resolve) => { release = resolve })
  const disk = createFaultyDisk({
    intercept: (_operation, path) => path.startsWith(join(base, 'slow')) ? released : undefined
  })
  const projectRoots = [join(base, 'slow'), join(base, 'fast')]
  const manager = createSkillManager({ projectRoots, disk, tickMs: 3_600_000 })
  t.teardown(() => manager.close())
  // A call to a real disk keeps the process running.
  const running = setInterval(() => {}, 1_000)
  t.teardown(() => { clearInterval(running) })
  await manager.start()
  await until(() => statusOf(manager).ready)
  t.match(statusOf(manager), { indexed: false, roots: [{ state: 'indexing' }, { state: 'ok' }] })
  await until(() => manager.parts.catalog.roots.some((root) => manager.parts.refresher.isWatching(root)))
  writeSkill(join(base, 'fast/f'), 'f', 'edited')
  await until(() => inIndex(manager).includes('f: edited'))
  t.match(await manager.available(), [{ name: 'f' }], 'a list waits some seconds for the slow root')
  release()
  await manager.indexed()
  t.match(statusOf(manager), { indexed: true, roots: [{ state: 'ok' }, { state: 'ok' }] })
  await until(() => inIndex(manager).length === 2)
})

t.test('K54: the first index and the comparisons of a root reject nothing, whatever a listener throws', async (t) => {
  const root = t.testdir(skills('a'))
  const warnings: string[] = []
  const log = { info: () => {}, warn: (_details: object, message: string) => { warnings.push(message) } }
  const manager = createSkillManager({ projectRoots: [root], watcher: false, tickMs: 5, log })
  t.teardown(() => manager.close())
  await manager.start()
  manager.parts.catalog.on('changed', () => { throw new Error('a listener') })
  await manager.indexed()
  writeSkill(join(root, 'a'), 'a', 'edited')
  await until(() => warnings.filter((line) => line.startsWith('rescan of a skills folder failed')).length > 1)
})

t.test('K54: logs that are written next to a root are no flood', async (t) => {
  const base = t.testdir({ skills: skills('a') })
  const root = join(base, 'skills')
  const manager = await startWatching(t, root)
  const program = `const fs = require('node:fs'); process.stdout.write('.')
    while (process.ppid === ${process.pid}) for (const log of ['a.log', 'b.log']) fs.appendFileSync(log, '')`
  const writer = spawn(process.execPath, ['-e', program], { cwd: base, stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => { writer.kill('SIGKILL') })
  await once(writer.stdout, 'data')
  for (let round = 0; round < 5; round++) {
    writeSkill(join(root, 'a'), 'a', `edit ${round}`)
    await followed(manager, root)
    t.match(statusOf(manager).watcher, { status: 'watching', errors: 0 })
  }
})

t.test('K54: a hundred roots that come and go leave no timers, listeners and watches', async (t) => {
  const names = numbered(100)
  const base = t.testdir(Object.fromEntries(names.map((name) => [name, { a: skill('a') }])))
  const listing = { folders: undefined, isFixed: false, isDirect: true }
  const source = Object.assign(new EventEmitter<{ changed: [] }>(), listing)
  const roots = names.map((name) => ({ path: join(base, name), listed: source satisfies Listing }))
  const timers = new Set<number>()
  const hook = createHook({
    init (id, type) { if (type === 'Timeout') timers.add(id) },
    destroy (id) { timers.delete(id) }
  })
  source.setMaxListeners(0)
  const manager = await startWatching(t, join(base, 'skill-0'))
  hook.enable()
  t.teardown(() => { hook.disable() })
  const first = manager.parts.catalog.roots[0]?.options
  const kept = typeof first === 'string' ? [{ path: first }] : []
  await manager.setRoots(kept)
  // Its own folder, and that of its skill.
  await until(() => countWatches() === 2)
  const listeners = manager.parts.catalog.listenerCount('stale')
  for (let round = 0; round < 2; round++) {
    await manager.setRoots([...kept, ...roots])
    await until(() => manager.parts.catalog.roots.every((root) => manager.parts.refresher.isWatching(root)))
    t.equal(source.listenerCount('changed'), 100)
    await manager.setRoots(kept)
  }
  await until(() => source.listenerCount('changed') === 0)
  t.equal(manager.parts.catalog.listenerCount('stale'), listeners)
  await until(() => countWatches() === 2)
  await manager.close()
  await until(() => timers.size < 5)
})

/** Watches of inotify that this process has. */
function countWatches (): number {
  return fs.readdirSync('/proc/self/fdinfo').flatMap((descriptor) => {
    try {
      return fs.readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8').match(/^inotify wd:/gm) ?? []
    } catch {
      return [] // Closed meanwhile, as the one that lists them is.
    }
  }).length
}
