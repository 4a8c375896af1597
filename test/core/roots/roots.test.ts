import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { basename, dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { createNetworkDisk } from '../../../src/core/read/disk.ts'
import type { Interceptor } from '../../helper/disk.ts'
import { createFaultyDisk, failing, skill, skillText, startManager, textOf } from '../../helper/skills.ts'
import { followed, startWatching } from '../../helper/watching.ts'
import { statusOf } from '../../../src/http/readiness.ts'
import { freshStatusOf } from '../../helper/watching.ts'

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
  const without = await startManager(t, [root])
  t.strictSame(await without.list(), ['own'])
  t.match(statusOf(without).roots, [{ skills: 1, skipped: 3 }])

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
  t.match(byName['dangling'], { message: /no folder/, target: 'nothing', setting: undefined })
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

t.test('K52: the index follows what links lead to outside of the root', async (t) => {
  const { root, store } = createInstalled(t)
  const manager = await startWatching(t, root, { linkTargets: [store] })
  await followed(manager, root)
  fs.writeFileSync(join(store, 'one/SKILL.md'), skillText('one').replace('What', 'How'))
  await followed(manager, root)
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
