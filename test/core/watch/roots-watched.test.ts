import fs from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createWatcher, type WatcherState } from '../../../src/core/watch/watcher.ts'
import { until } from '../../helper/skills.ts'
import { BESIDE_NETWORK_DISK, expectHint, expectWatched, watchRoot, type WatchedOptions } from '../../helper/watched-roots.ts'

/** Made anew each time: tap takes one object in two places for a cycle. */
function skill () {
  return { 'SKILL.md': 'text' }
}

t.test('K3: a root that comes and goes is followed', (t) => followRoot(t))

t.test('K3: a root that comes and goes is followed, beside a network disk', (t) => followRoot(t, BESIDE_NETWORK_DISK))

async function followRoot (t: Test, options: WatchedOptions = {}): Promise<void> {
  await t.test('missing at the start, then made', async (t) => {
    const root = join(t.testdir(), 'skills')
    const watched = await watchRoot(t, root, options)
    t.match(watched.watcher.state, { status: 'watching' })
    t.notOk(fs.existsSync(root), 'it is not created')
    await expectHint(watched, '', () => { fs.mkdirSync(root) })
    await expectWatched(watched, 'a', join(makeFolder(root, 'a'), 'SKILL.md'))
  })

  await t.test('never followed, since nothing was ever found: no reason to go on starting', async (t) => {
    const states: WatcherState[] = []
    const watcher = createWatcher({ root: join(t.testdir(), 'skills'), ...options })
    watcher.states.subscribe((state) => { states.push(state) })
    t.teardown(() => { watcher.close() })
    await until(() => states.length > 0)
    t.strictSame(states, [{ status: 'watching', mode: 'events', errors: 0 }])
  })

  await t.test('missing at the start, put in place with its content in one step', async (t) => {
    const folder = t.testdir({ prepared: { a: skill() } })
    const root = join(folder, 'skills')
    const watched = await watchRoot(t, root, options)
    await expectHint(watched, '', () => { fs.renameSync(join(folder, 'prepared'), root) })
    await expectWatched(watched, 'a', join(root, 'a/SKILL.md'))
  })

  await t.test('missing together with the folders above it', async (t) => {
    const root = join(t.testdir(), 'x/y/skills')
    const watched = await watchRoot(t, root, options)
    await expectHint(watched, '', () => { fs.mkdirSync(join(root, 'a'), { recursive: true }) })
    await expectWatched(watched, 'a', join(root, 'a/SKILL.md'))
  })

  await t.test('a file at first', async (t) => {
    const root = join(t.testdir({ skills: 'no folder' }), 'skills')
    const watched = await watchRoot(t, root, options)
    await expectHint(watched, '', () => {
      fs.rmSync(root)
      fs.mkdirSync(root)
    })
    await expectWatched(watched, 'a', join(makeFolder(root, 'a'), 'SKILL.md'))
  })

  await t.test('removed and made again, three times', async (t) => {
    const root = join(t.testdir({ skills: { a: skill() } }), 'skills')
    const watched = await watchRoot(t, root, options)
    for (let i = 0; i < 3; i++) {
      await expectHint(watched, '', () => { fs.rmSync(root, { recursive: true }) })
      await expectHint(watched, '', () => { fs.mkdirSync(join(root, 'a'), { recursive: true }) })
      await expectWatched(watched, 'a', join(root, 'a/SKILL.md'))
    }
  })

  await t.test('removed together with its parent, then made again', async (t) => {
    const folder = t.testdir({ x: { skills: { a: skill() } } })
    const root = join(folder, 'x/skills')
    const watched = await watchRoot(t, root, options)
    await expectHint(watched, '', () => { fs.rmSync(join(folder, 'x'), { recursive: true }) })
    await expectHint(watched, '', () => { fs.mkdirSync(join(root, 'a'), { recursive: true }) })
    await expectWatched(watched, 'a', join(root, 'a/SKILL.md'))
  })

  await t.test('missing while its parent goes and comes back', async (t) => {
    const folder = t.testdir({ x: {} })
    const root = join(folder, 'x/skills')
    const watched = await watchRoot(t, root, options)
    await expectHint(watched, '', () => { fs.rmdirSync(join(folder, 'x')) })
    await expectHint(watched, '', () => { fs.mkdirSync(join(root, 'a'), { recursive: true }) })
    await expectWatched(watched, 'a', join(root, 'a/SKILL.md'))
  })

  await t.test('replaced by rename', async (t) => {
    const folder = t.testdir({ skills: { a: skill() }, next: { a: skill(), b: skill() } })
    const root = join(folder, 'skills')
    const watched = await watchRoot(t, root, options)
    await expectHint(watched, '', () => {
      fs.renameSync(root, join(folder, 'previous'))
      fs.renameSync(join(folder, 'next'), root)
    })
    await expectWatched(watched, 'a', join(root, 'a/SKILL.md'))
    await expectWatched(watched, 'b', join(root, 'b/SKILL.md'))
  })

  await t.test('a link that is re-pointed', async (t) => {
    const folder = t.testdir({ one: { a: skill() }, two: { b: skill() }, skills: t.fixture('symlink', 'one') })
    const root = join(folder, 'skills')
    const watched = await watchRoot(t, root, options)
    await expectHint(watched, 'a', () => { fs.appendFileSync(join(folder, 'one/a/SKILL.md'), 'x') })
    await expectHint(watched, '', () => { repoint(root, 'two') })
    await expectWatched(watched, 'b', join(root, 'b/SKILL.md'))
  })

  await t.test('a link through a link that is re-pointed (..data)', async (t) => {
    const folder = t.testdir({
      '..v1': { skills: { a: skill() } },
      '..v2': { skills: { b: skill() } },
      '..data': t.fixture('symlink', '..v1'),
      skills: t.fixture('symlink', '..data/skills')
    })
    const root = join(folder, 'skills')
    const watched = await watchRoot(t, root, options)
    await expectHint(watched, '', () => { repoint(join(folder, '..data'), '..v2') })
    await expectWatched(watched, 'b', join(root, 'b/SKILL.md'))
  })

  await t.test('a link that goes up from where another link leads', async (t) => {
    const folder = t.testdir({
      other: { deep: {}, skills: t.fixture('symlink', 'one'), one: { a: skill() }, two: { b: skill() } },
      link: t.fixture('symlink', 'other/deep'),
      skills: t.fixture('symlink', 'link/../skills')
    })
    const watched = await watchRoot(t, join(folder, 'skills'), options)
    await expectHint(watched, '', () => { repoint(join(folder, 'other/skills'), 'two') })
    await expectWatched(watched, 'b', join(folder, 'other/two/b/SKILL.md'))
  })

  await t.test('a link that ends above another one', async (t) => {
    const folder = t.testdir({ other: { deep: {}, a: skill() }, link: t.fixture('symlink', 'other/deep'), skills: t.fixture('symlink', 'link/..') })
    const watched = await watchRoot(t, join(folder, 'skills'), options)
    await expectHint(watched, '', () => {
      fs.renameSync(join(folder, 'other'), join(folder, 'previous'))
      fs.mkdirSync(join(folder, 'other/deep'), { recursive: true })
    })
    await expectWatched(watched, 'b', join(makeFolder(join(folder, 'other'), 'b'), 'SKILL.md'))
  })

  await t.test('below a link that is re-pointed (a release folder)', async (t) => {
    const folder = t.testdir({ r1: { skills: { a: skill() } }, r2: { skills: { b: skill() } }, current: t.fixture('symlink', 'r1') })
    const root = join(folder, 'current/skills')
    const watched = await watchRoot(t, root, options)
    await expectHint(watched, '', () => { repoint(join(folder, 'current'), 'r2') })
    await expectWatched(watched, 'b', join(root, 'b/SKILL.md'))
  })

  await t.test('a link that points to itself until it is mended', async (t) => {
    const folder = t.testdir({ one: { a: skill() }, skills: t.fixture('symlink', 'skills') })
    const root = join(folder, 'skills')
    const watched = await watchRoot(t, root, options)
    t.match(watched.watcher.state, { status: 'watching', errors: 0 })
    await expectHint(watched, '', () => { repoint(root, 'one') })
    await expectWatched(watched, 'a', join(root, 'a/SKILL.md'))
  })
}

function makeFolder (root: string, name: string): string {
  const folder = join(root, name)
  fs.mkdirSync(folder)
  return folder
}

function repoint (link: string, target: string): void {
  fs.symlinkSync(target, `${link}.new`)
  fs.renameSync(`${link}.new`, link)
}
