import fs, { mkdirSync, renameSync, symlinkSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { localDisk } from '../../../src/core/read/disk.ts'
import { linkContainers, resolveLink } from '../../../src/core/roots/links.ts'
import { describeSkipped } from '../../../src/core/roots/skipped.ts'
import { createFaultyDisk, osError, skill, skillText, startManager, textOf } from '../../helper/skills.ts'
import { followed, startWatching } from '../../helper/watched-index.ts'

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
    secret: skill('secret', { 'a.md': CANARY }),
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
  return { log: { info: () => {}, warn: write }, lines, skips: () => lines.filter(({ message }) => message.includes('skipped')) }
}

t.test('K4: what a link in a root means', async (t) => {
  const { base, root, store } = createInstalled(t)
  const links = {
    file: '../store/file.md', store: '../store', hooks: '../store/.git/hooks', none: '../nothing', loop: 'loop', self: '.', beside: '../storeroom', secret: '../secret', chain: 'one'
  }
  fs.mkdirSync(join(base, 'storeroom'))
  for (const [name, target] of Object.entries(links)) fs.symlinkSync(target, join(root, name))
  const disk = localDisk
  const kinds = async (allowed: readonly string[]) => {
    const containers = await linkContainers(disk, root, allowed)
    const meanings = await Promise.all(['one', ...Object.keys(links)].map(async (name) => [name, (await resolveLink(disk, containers, join(root, name))).kind] as const))
    return Object.fromEntries(meanings)
  }
  const always = { file: 'file', none: 'nothing', loop: 'nothing', self: 'nothing', beside: 'outside', secret: 'outside' }
  t.strictSame(await kinds([]), { ...always, one: 'outside', store: 'outside', hooks: 'outside', chain: 'outside' })
  t.strictSame(await kinds([store]), { ...always, one: 'skill', store: 'skill', hooks: 'nothing', chain: 'skill' }, 'the folder itself may be a skill, and nothing in its .git')
  t.strictSame(await kinds([join(base, 'absent'), store]), await kinds([store]), 'a missing folder allows nothing')
  fs.symlinkSync('store', join(base, 'alias'))
  t.strictSame(await kinds([join(base, 'alias')]), await kinds([store]), 'a link to the folder is that folder')
  t.strictSame((await kinds(['/'])).secret, 'skill')
})

t.test('K4: links are followed into the folders that are allowed, and nowhere else', async (t) => {
  const { root, store } = createInstalled(t)
  fs.symlinkSync('../secret', join(root, 'secret'))
  const without = await startManager(t, [root])
  t.strictSame(await without.list(), ['own'])
  t.match(without.status.roots, [{ skills: 1, skipped: 3 }])

  const manager = await startManager(t, [root], { linkTargets: [store] })
  t.strictSame(await manager.list(), ['one', 'own', 'two'])
  t.match(manager.status.roots, [{ skills: 3, skipped: 1 }])
  t.equal(await textOf(() => manager.readMainFile('one', 'SKILL.md')), skillText('one'))
  t.equal(await textOf(() => manager.readFile('one', 'a.md')), 'one')
  t.strictSame((await manager.manifest('one')).files.map(({ path }) => path), ['SKILL.md', 'a.md'])
  t.match(await textOf(() => manager.readFile('secret', 'a.md')), /^skill_not_found|^file_not_found/)
  t.match(await textOf(() => manager.readFile('one', '../two/SKILL.md')), 'path_traversal')
  fs.symlinkSync('../two/SKILL.md', join(store, 'one/neighbour.md'))
  t.match(await textOf(() => manager.readFile('one', 'neighbour.md')), 'path_traversal', 'a skill ends at its own folder')
  t.match((await manager.read('one', (state) => state.snapshot())).findings, [{ code: 'link_outside', message: /'neighbour.md'/ }])
})

t.test('K4: what is skipped is told once, with its target and the setting that would allow it', async (t) => {
  const { root, store } = createInstalled(t)
  for (const name of ['.hidden', 'a..b', 'new\nline']) fs.mkdirSync(join(root, name))
  fs.symlinkSync('nothing', join(root, 'dangling'))
  fs.symlinkSync('own/SKILL.md', join(root, 'a-file'))
  const { log, skips } = createLog()
  const manager = await startManager(t, [root], { log })
  for (let question = 0; question < 3; question++) await manager.list()
  const byName = Object.fromEntries(skips().map((line) => [line.name, line]))
  t.strictSame(Object.keys(byName).sort(), ['a..b', 'dangling', 'new\nline', 'one', 'two'])
  t.equal(skips().length, 5, 'once')
  t.match(byName['one'], { target: join(store, 'one'), setting: `--allow-links ${join(store, 'one')}` })
  t.match(byName['dangling'], { message: /no folder/, target: 'nothing', setting: undefined })
  t.match((await manager.freshStatus()).roots, [{ skills: 1, skipped: 5 }])

  relink(join(root, 'one'), '../secret')
  await manager.list()
  t.match(skips().at(-1), { name: 'one', target: /secret$/ }, 'another target is news')
  fs.rmSync(join(root, 'dangling'))
  t.match((await manager.freshStatus()).roots, [{ skipped: 4 }])
  t.equal(skips().length, 6)
})

t.test('K4: what is suggested allows the target of the link, and nothing else', async (t) => {
  const sentences = (target: string) => describeSkipped({ name: 'one', reason: 'outside', target })
  t.strictSame(sentences('/usr'), ["'one' is left out, since the link leads out of the folder: --allow-links /usr allows it"])
  t.strictSame(sentences('/'), ["'one' is left out, since the link leads out of the folder: let it lead to a folder below, and allow that one"])
  t.strictSame(sentences("/srv/it's here/odd"), ["'one' is left out, since the link leads out of the folder: --allow-links '/srv/it'\\''s here/odd' allows it"], 'for a shell')
})

t.test('K4: a thousand links are twenty lines, and one with the number of the rest and their settings', async (t) => {
  const { root } = createInstalled(t)
  for (let index = 0; index < 998; index++) fs.symlinkSync('../store/one', join(root, `link-${index}`))
  const { log, skips } = createLog()
  await startManager(t, [root], { log })
  const lines = [...skips()]
  t.equal(lines.length, 21)
  t.match(lines.at(-1), { entries: 980 })
})

t.test('K51: a link that is turned to another target is what it is now, at the next question', async (t) => {
  const { base, root, store } = createInstalled(t)
  const manager = await startManager(t, [root], { linkTargets: [store] })
  const read = () => textOf(() => manager.readFile('one', 'a.md'))
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

  fs.renameSync(store, `${store}-away`)
  fs.symlinkSync('secret', store)
  fs.mkdirSync(join(base, 'secret/two'))
  fs.writeFileSync(join(base, 'secret/two/a.md'), CANARY)
  t.equal(await read(), CANARY, 'an allowed folder that is itself a link means its target: its owner chose it')
})

t.test('K4: a link target that is exchanged at any moment of a question gives the secret to nobody', async (t) => {
  const { base, root, store } = createInstalled(t)
  fs.mkdirSync(join(base, 'secret/docs'))
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
        const answers = [await textOf(() => manager.readFile('one', 'a.md')), await textOf(() => manager.manifest('one').then(({ files }) => ({ bytes: Buffer.from(JSON.stringify(files)) })))]
        isOver = operations < moment
        disk.intercept = () => {}
        const secretDigest = fs.readFileSync(join(secret, 'a.md'), 'utf8')
        if (answers.some((answer) => String(answer).includes(secretDigest))) t.fail(`leaked when ${what} was swapped before operation ${moment}`)
        await manager.close()
        if (!isOver) undo()
      }
      t.ok(moments > 5, `${what}, ${moments} moments, ${hasProc ? 'with' : 'without'} /proc`)
    }
  }
})

t.test('K4: a link whose disk does not answer at the start is told as one, and followed when the disk answers', async (t) => {
  const { root, store } = createInstalled(t)
  fs.rmSync(join(root, 'two'))
  fs.symlinkSync('../nothing', join(root, 'none'))
  const { log, lines, skips } = createLog()
  const disk = createFaultyDisk()
  disk.intercept = (operation, path) => { if (operation === 'realpath' && path === join(root, 'one')) throw osError('ETIMEDOUT') }
  const manager = await startManager(t, [root], { disk, linkTargets: [store], log })
  t.strictSame(await manager.list(), ['own'])
  t.strictSame(Object.fromEntries(skips().map(({ name, message }) => [name, message])), {
    none: 'a link in a skills folder is skipped, since it leads to no folder that may be a skill',
    one: 'a link in a skills folder is skipped, since the disk that it leads to does not answer, or fails'
  })
  const before = lines.length
  disk.intercept = () => {}
  t.strictSame(await manager.list(), ['one', 'own'])
  t.equal(lines.length, before)
})

t.test('K53: a skill behind a link whose disk fails stays listed, as one without a link does', async (t) => {
  const { base, root, store } = createInstalled(t)
  const disk = createFaultyDisk({ ageMs: 60_000 })
  const manager = await startManager(t, [root], { disk, linkTargets: [store] })
  for (const code of ['EIO', 'ESTALE', 'EMFILE']) {
    for (const failing of [['store', 'root/one', 'root/two'], ['root/own']]) {
      disk.intercept = (_operation, path) => {
        if (failing.some((name) => `${path}/`.startsWith(`${join(base, name)}/`))) throw osError(code)
      }
      t.strictSame(await manager.list(), ['one', 'own', 'two'], `${code} ${failing.join()}`)
      t.strictSame(manager.availableNow().map(({ name }) => name), ['one', 'own', 'two'])
      for (const name of failing.includes('root/own') ? ['own'] : ['one', 'two']) {
        t.match(await textOf(() => manager.readMainFile(name, 'SKILL.md')), /^main_file_unreadable/)
        t.match(await textOf(() => manager.readFile(name, 'SKILL.md')), /^file_io_error/)
      }
    }
  }
  disk.intercept = () => {}
  t.equal(await textOf(() => manager.readFile('one', 'a.md')), 'one')
})

t.test('K52: the index follows what links lead to outside of the root', async (t) => {
  const { root, store } = createInstalled(t)
  const manager = await startWatching(t, root, { linkTargets: [store] })
  await followed(manager, root)
  fs.writeFileSync(join(store, 'one/SKILL.md'), skillText('one').replace('What', 'How'))
  await followed(manager, root)
})

const HOUR_MS = 3_600_000

t.test('K51: a root whose place is a link to it now gives the files of its skills, and links in them', async (t) => {
  for (const [moved, to, isKnown] of [['data/root', 'data/elsewhere', false], ['data', 'disk', false], ['data', 'disk', true]] as const) {
    const dir = t.testdir({ data: { root: { alpha: skill('alpha', { 'notes.txt': 'notes', sub: {}, 'link.md': t.fixture('symlink', 'SKILL.md') }) } } })
    const manager = await startManager(t, [join(dir, 'data/root')], { disk: createFaultyDisk({ ageMs: HOUR_MS }) })
    // The next manifest opens no file whose digest is known, but links.
    if (isKnown) await manager.manifest('alpha')
    mkdirSync(join(dir, 'data/root/alpha/sub/new'))
    renameSync(join(dir, moved), join(dir, to))
    symlinkSync(join(dir, to), join(dir, moved))
    t.strictSame((await manager.manifest('alpha')).files.map(({ path }) => path), ['SKILL.md', 'link.md', 'notes.txt'], moved)
    t.equal(await textOf(() => manager.readFile('alpha', 'notes.txt')), 'notes', moved)
  }
  const dir = t.testdir({ data: { root: { alpha: skill('alpha', { 'notes.txt': 'notes' }) } } })
  const manager = await startManager(t, [join(dir, 'data/root')], { disk: createFaultyDisk({ ageMs: HOUR_MS }) })
  mkdirSync(join(dir, 'disk'))
  renameSync(join(dir, 'data'), join(dir, 'disk/data'))
  symlinkSync('disk/data', join(dir, 'data'))
  t.equal(await textOf(() => manager.readFile('alpha', 'notes.txt')), 'notes')
  t.equal(await textOf(() => manager.readMainFile('alpha', 'SKILL.md')), skillText('alpha'))
})
