import fs from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createNetworkDisk } from '../../../../src/core/disk/disk.ts'
import { DiskGuard } from '../../../../src/core/disk/network/guard.ts'
import { guardDisk, type GuardedDisk } from '../../../../src/core/disk/network/guarded-disk.ts'
import { MAX_DISK_CALLS } from '../../../../src/core/shared/limits.ts'
import { countOpenBelow, createFaultyDisk, outcome, skills, until, type FaultyDisk } from '../../../helper/skills.ts'

const NO_ANSWER = 'Error: ETIMEDOUT: the disk does not answer'

/** Longer than a test lives; and no time at all, for what is known to hang. */
const NEVER_MS = 3_600_000

interface Held {
  /** What is being asked and not answered, in order. */
  readonly asked: string[]
  /** Lets everything go that is held, and holds nothing more. */
  release (): void
}

/** Holds every call below these paths. */
function hold (disk: FaultyDisk, ...paths: readonly string[]): Held {
  const asked: string[] = []
  let release = () => {}
  const released = new Promise<void>((resolve) => { release = resolve })
  disk.intercept = (operation, path) => {
    if (!paths.some((held) => path === held || path.startsWith(`${held}/`))) return undefined
    asked.push(`${operation} ${path}`)
    return released
  }
  return {
    asked,
    release: () => {
      disk.intercept = () => undefined
      release()
    }
  }
}

/** Around a disk that answers in the same turn, but for what is held: nothing else can be late. */
function createGuarded (t: Test, answerMs: number, ...names: readonly string[]) {
  const root = t.testdir(skills(...names))
  const disk = createFaultyDisk()
  const changes: string[] = []
  const guard = new DiskGuard(answerMs)
  guard.changed.subscribe(({ name, isAnswering }) => { changes.push(`${name} ${isAnswering ? 'answers' : 'hangs'}`) })
  return { root, disk, guard, changes, guarded: guardDisk(guard, disk, root) }
}

const namesOf = (guard: DiskGuard) => guard.hanging.map(({ name }) => name)

t.test('an area is asked one thing at a time, in order', async (t) => {
  const { root, disk, guarded } = createGuarded(t, NEVER_MS, 'a')
  const held = hold(disk, join(root, 'a'))
  const answers = [guarded.stat(join(root, 'a')), guarded.readdir(join(root, 'a')), guarded.lstat(join(root, 'a/SKILL.md'))]
  await nextTurn()
  t.strictSame(held.asked, [`stat ${root}/a`])
  held.release()
  const [folder, entries, file] = await Promise.all(answers) as [fs.BigIntStats, fs.Dirent[], fs.BigIntStats]
  t.ok(folder.isDirectory() && file.isFile())
  t.strictSame(entries.map(({ name }) => name), ['SKILL.md'])
})

t.test('all areas together leave a thread to the others', async (t) => {
  const names = ['a', 'b', 'c', 'd', 'e']
  const { root, disk, guarded } = createGuarded(t, NEVER_MS, ...names)
  const held = hold(disk, root)
  const answers = names.map((name) => guarded.stat(join(root, name)))
  await nextTurn()
  t.equal(held.asked.length, MAX_DISK_CALLS)
  held.release()
  for (const stats of await Promise.all(answers)) t.ok(stats?.isDirectory())
})

t.test('a call that takes too long fails, so does what waits behind it and what comes after, until it returns', async (t) => {
  const { root, disk, guard, guarded, changes } = createGuarded(t, 1, 'stuck', 'other')
  const held = hold(disk, join(root, 'stuck'))
  const questions = ['', '/SKILL.md', ''].map((file) => outcome(() => guarded.stat(`${root}/stuck${file}`)))
  t.strictSame(await Promise.all(questions), [NO_ANSWER, NO_ANSWER, NO_ANSWER])
  t.strictSame(namesOf(guard), ['stuck'])
  for (let turn = 0; turn < 100; turn++) t.equal(await outcome(() => guarded.readdir(join(root, 'stuck'))), NO_ANSWER)
  t.strictSame(held.asked, [`stat ${root}/stuck`], 'one call is under way, whoever asks')
  t.ok((await guarded.stat(join(root, 'other')))?.isDirectory(), 'the others answer')
  held.release()
  await until(() => guard.hanging.length === 0)
  t.ok((await guarded.stat(join(root, 'stuck')))?.isDirectory())
  t.strictSame(changes, ['stuck hangs', 'stuck answers'])
})

t.test('an answer that came while the whole process stood still is in time', async (t) => {
  const { root, guard, changes } = createGuarded(t, 10, 'a')
  const guarded = guardDisk(guard, createNetworkDisk(), root)
  // From here the timers come first.
  await nextTurn()
  const answer = guarded.stat(join(root, 'a'))
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200)
  t.ok((await answer)?.isDirectory())
  t.strictSame(changes, [])
})

t.test('a root that hangs is not asked for anything in it', async (t) => {
  const { root, disk, guard, guarded } = createGuarded(t, 1, 'a')
  const held = hold(disk, root)
  t.equal(await outcome(() => guarded.readdir(root)), NO_ANSWER)
  t.equal(await outcome(() => guarded.stat(join(root, 'a'))), NO_ANSWER)
  t.strictSame(held.asked, [`readdir ${root}`])
  t.strictSame(guard.hanging.map((area) => area.root), [root])
  held.release()
  await until(() => guard.hanging.length === 0)
  t.ok((await guarded.stat(join(root, 'a')))?.isDirectory())
})

t.test('when as many areas hang as may be asked at the same time, none is asked', async (t) => {
  const names = ['a', 'b', 'c', 'waiting', 'other']
  const { root, disk, guard, guarded } = createGuarded(t, 1, ...names)
  const stuck = names.slice(0, MAX_DISK_CALLS)
  const held = hold(disk, ...stuck.map((name) => join(root, name)))
  const questions = [...stuck, 'waiting'].map((name) => outcome(() => guarded.stat(join(root, name))))
  t.ok((await Promise.all(questions)).every((answer) => answer === NO_ANSWER))
  t.strictSame(namesOf(guard), stuck)
  t.equal(await outcome(() => guarded.stat(join(root, 'other'))), NO_ANSWER)
  held.release()
  await until(() => guard.hanging.length === 0)
  t.ok((await guarded.stat(join(root, 'other')))?.isDirectory())
})

t.test('the real path of a root leads to the same areas', async (t) => {
  const { root: base, disk, guard } = createGuarded(t, NEVER_MS, 'a')
  fs.symlinkSync(base, `${base}-link`)
  t.teardown(() => { fs.unlinkSync(`${base}-link`) })
  const guarded = guardDisk(guard, disk, `${base}-link`)
  t.equal(await guarded.realpath(`${base}-link`), base)
  const held = hold(disk, join(base, 'a'), `${base}-link/a`)
  const answers = [guarded.stat(join(base, 'a')), guarded.stat(`${base}-link/a`)]
  await nextTurn()
  t.equal(held.asked.length, 1)
  held.release()
  await Promise.all(answers)
})

t.test('of two links to one folder the other one keeps it when one leads elsewhere', async (t) => {
  const base = fs.realpathSync(t.testdir({ root: { a: t.fixture('symlink', '../x'), b: t.fixture('symlink', '../x') }, x: {}, y: {} }))
  const root = join(base, 'root')
  for (const moved of ['b', 'a']) {
    const disk = createFaultyDisk()
    const guard = new DiskGuard(1)
    const guarded = guardDisk(guard, disk, root)
    for (const path of [root, join(root, 'a'), join(root, 'b')]) await guarded.realpath(path)
    fs.unlinkSync(join(root, moved))
    fs.symlinkSync('../y', join(root, moved))
    await guarded.realpath(join(root, moved))
    const held = hold(disk, join(base, 'x'))
    t.equal(await outcome(() => guarded.stat(join(base, 'x/SKILL.md'))), NO_ANSWER)
    t.strictSame(namesOf(guard), [moved === 'a' ? 'b' : 'a'])
    t.ok((await guarded.stat(join(base, 'y')))?.isDirectory(), 'the others answer')
    held.release()
    await until(() => guard.hanging.length === 0)
    fs.unlinkSync(join(root, moved))
    fs.symlinkSync('../x', join(root, moved))
  }
})

t.test('links into one allowed folder hang together, with the folder, and hold up nothing else in the root', async (t) => {
  const base = fs.realpathSync(t.testdir({ root: { own: {} }, store: { a: {}, b: {}, c: {}, d: {} } }))
  const [root, store] = [join(base, 'root'), join(base, 'store')]
  for (const name of ['a', 'b', 'c', 'd']) fs.symlinkSync(`../store/${name}`, join(root, name))
  const disk = createFaultyDisk()
  const guard = new DiskGuard(1)
  const guarded = guardDisk(guard, disk, root, [store])
  await guarded.realpath(root)
  const held = hold(disk, store, ...['a', 'b', 'c', 'd'].map((name) => join(root, name)))
  t.equal(await outcome(() => guarded.realpath(store)), NO_ANSWER)
  for (const name of ['a', 'b', 'c', 'd']) t.equal(await outcome(() => guarded.stat(join(store, name))), NO_ANSWER)
  t.strictSame(held.asked, [`realpath ${store}`], 'one call is under way')
  t.ok((await guarded.stat(join(root, 'own')))?.isDirectory(), 'the root answers')
  t.strictSame(namesOf(guard).flatMap((area) => guarded.namesIn(area)), [], 'no link is known to lead there')
  held.release()
  await until(() => guard.hanging.length === 0)

  for (const name of ['a', 'b', 'c', 'd']) await guarded.readlink(join(root, name))
  const again = hold(disk, ...['a', 'b', 'c', 'd'].map((name) => join(root, name)))
  for (const name of ['a', 'b', 'c', 'd']) t.equal(await outcome(() => guarded.realpath(join(root, name))), NO_ANSWER)
  t.strictSame(again.asked, [`realpath ${root}/a`], 'the text of a link says where it leads')
  t.strictSame(namesOf(guard).flatMap((area) => guarded.namesIn(area)), ['a', 'b', 'c', 'd'])
  t.ok((await guarded.stat(join(root, 'own')))?.isDirectory())
  again.release()
  await until(() => guard.hanging.length === 0)
})

t.test('a link that is gone, or a folder by now, has nothing to do any more with what it led to', async (t) => {
  const base = fs.realpathSync(t.testdir({ root: { a: t.fixture('symlink', '../x'), b: t.fixture('symlink', '../x') }, x: {} }))
  const root = join(base, 'root')
  for (const leave of [
    (guarded: GuardedDisk) => { guarded.keepLinks(new Set(['b'])) },
    async (guarded: GuardedDisk) => {
      fs.unlinkSync(join(root, 'a'))
      fs.mkdirSync(join(root, 'a'))
      await guarded.realpath(join(root, 'a'))
    }
  ]) {
    const disk = createFaultyDisk()
    const guard = new DiskGuard(1)
    const guarded = guardDisk(guard, disk, root)
    for (const path of [root, join(root, 'a'), join(root, 'b')]) await guarded.realpath(path)
    await leave(guarded)
    const held = hold(disk, join(base, 'x'))
    t.equal(await outcome(() => guarded.stat(join(base, 'x'))), NO_ANSWER)
    t.strictSame(namesOf(guard), ['b'])
    held.release()
    await until(() => guard.hanging.length === 0)
  }
})

t.test('no descriptor stays open: not one that came too late, not one that was open when its disk began to hang', async (t) => {
  const { root, disk, guard, guarded } = createGuarded(t, 1, 'a', 'b')
  const file = await guarded.open(join(root, 'a/SKILL.md'), fs.constants.O_RDONLY)
  const held = hold(disk, join(root, 'a'), join(root, 'b'))
  t.equal(await outcome(() => guarded.open(join(root, 'b/SKILL.md'), fs.constants.O_RDONLY)), NO_ANSWER)
  t.equal(await outcome(() => guarded.read(file, Buffer.alloc(8), 0, 8, 0)), NO_ANSWER)
  await guarded.close(file)
  t.notOk(held.asked.some((call) => call.startsWith('close')), 'a disk that hangs is not asked to close')
  t.ok(countOpenBelow(root) > 0)
  held.release()
  await until(() => countOpenBelow(root) === 0)
  t.strictSame(namesOf(guard), [])
})

t.test('a disk that hangs at a close holds up nobody', async (t) => {
  const { root, disk, guard, guarded } = createGuarded(t, 1, 'a')
  const file = await guarded.open(join(root, 'a/SKILL.md'), fs.constants.O_RDONLY)
  const held = hold(disk, join(root, 'a'))
  t.equal(await outcome(() => guarded.close(file)), NO_ANSWER)
  t.strictSame(namesOf(guard), ['a'])
  held.release()
  await until(() => guard.hanging.length === 0)
})

t.test('a close that is under way when another call ends is known to hang when it does', async (t) => {
  const { root, disk, guard, guarded } = createGuarded(t, 1, 'a')
  const file = await guarded.open(join(root, 'a/SKILL.md'), fs.constants.O_RDONLY)
  const held = hold(disk, join(root, 'a/SKILL.md'))
  const closing = outcome(() => guarded.close(file))
  t.ok((await guarded.stat(join(root, 'a')))?.isDirectory())
  t.equal(await closing, NO_ANSWER)
  t.ok(guard.isHanging(root, 'a'))
  held.release()
  await until(() => guard.hanging.length === 0)
})

t.test('a failure of a disk comes back to whoever asked', async (t) => {
  const { root, guarded, disk } = createGuarded(t, NEVER_MS, 'a')
  await t.rejects(async () => { await guarded.readdir(join(root, 'nothing')) }, { code: 'ENOENT' })
  t.equal(guarded.hasProc, disk.hasProc)
})

t.test('a failure of a call that waited comes back to whoever asked', async (t) => {
  const { root, guard } = createGuarded(t, NEVER_MS, 'a')
  const guarded = guardDisk(guard, createNetworkDisk(), root)
  const answers = [outcome(() => guarded.stat(join(root, 'a'))), outcome(() => guarded.readdir(join(root, 'a/nothing')))]
  t.match((await Promise.all(answers))[1], /ENOENT/)
})
