import fs from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { RECONCILE_MS } from '../../src/core/shared/limits.ts'
import type { CoreLog } from '../../src/core/shared/log.ts'
import { Refresher, type RefresherOptions } from '../../src/core/refresher.ts'
import { Signal } from '../../src/core/shared/signal.ts'
import type { RefreshHints, WatcherFactory, WatcherState } from '../../src/core/watch/watcher.ts'
import { createFaultyDisk, osError, skill, skills, skillText, startManager, until } from '../helper/skills.ts'

/** No pause at all; and one that a test does not live to see. */
const AT_ONCE = { debounce: 0, maxDebounce: 0 }
const NEVER_MS = 3_600_000

/** A watcher that emits what a test makes it emit. */
function createFakeWatcher (initial: WatcherState['status'] = 'watching') {
  const hints = new Signal<string>()
  const missed = new Signal<void>()
  const states = new Signal<WatcherState>()
  const calls = { restart: 0, close: 0, followed: 0, inside: new Map<string, readonly string[]>() }
  let state: WatcherState = { status: 'starting', mode: 'events', errors: 0 }
  const fake = {
    calls,
    become: (status: WatcherState['status'], more: Partial<WatcherState> = {}) => {
      state = { status, mode: 'events', errors: 0, ...more }
      states.emit(state)
    },
    hint: (name = '') => { hints.emit(name) },
    miss: () => { missed.emit() },
    onRestart: () => {},
    factory: (() => {
      state = { ...state, status: initial }
      return {
        hints,
        missed,
        states,
        get state () { return state },
        follow () { calls.followed++ },
        followInside (skillFolder, folders) { calls.inside.set(skillFolder, folders) },
        leaveInside () { calls.inside.clear() },
        restart () { calls.restart++; fake.onRestart() },
        close () { calls.close++; state = { ...state, status: 'off' } }
      }
    }) satisfies WatcherFactory
  }
  return fake
}

function collectLog () {
  const lines: string[] = []
  const log: CoreLog = { info: (_details, message) => { lines.push(`info ${message}`) }, warn: (_details, message) => { lines.push(`warn ${message}`) } }
  return { log, lines }
}

interface FakeOptions extends Partial<Omit<RefresherOptions, 'index'>> {
  readonly onRefresh?: (hints: RefreshHints) => Promise<void>
}

/** A refresher of nothing, that notes what it refreshes: names, or `all`. */
function createRefresher (t: Test, { onRefresh = async () => {}, ...options }: FakeOptions = {}) {
  const refreshes: string[] = []
  const { log, lines } = collectLog()
  const refresher = new Refresher({
    root: '/root',
    polling: false,
    log,
    index: {
      async refresh (hints) {
        refreshes.push(hints.everything ? 'all' : [...hints.names].join())
        await onRefresh(hints)
      }
    },
    times: AT_ONCE,
    ...options
  })
  t.teardown(() => refresher.close())
  return { refresher, refreshes, lines }
}

t.test('K52: hints are collected until it is quiet, by name', async (t) => {
  const watcher = createFakeWatcher()
  const { refresher, refreshes } = createRefresher(t, { watcher: watcher.factory })
  refresher.start()
  watcher.hint('a')
  watcher.hint('b')
  watcher.hint('a')
  watcher.hint()
  refresher.hintAt(['c'])
  await until(() => refreshes.length === 1)
  t.strictSame(refreshes, ['a,b,c'])
  watcher.hint()
  await until(() => refreshes.length === 2)
  t.strictSame(refreshes.slice(1), [''], 'the root itself')
})

t.test('K52: a storm of hints does not put the refresh off for ever', async (t) => {
  const watcher = createFakeWatcher()
  const { refresher, refreshes } = createRefresher(t, { watcher: watcher.factory, times: { debounce: 30, maxDebounce: 60 } })
  refresher.start()
  const start = performance.now()
  await until(() => {
    watcher.hint('a')
    return refreshes.length > 0
  })
  t.ok(performance.now() - start >= 25, 'it waits for quiet')
})

t.test('K53: one refresh runs at a time, and what comes meanwhile is one more', async (t) => {
  const watcher = createFakeWatcher()
  let release = () => {}
  const held = new Promise<void>((resolve) => { release = resolve })
  let running = 0
  let most = 0
  const { refresher, refreshes } = createRefresher(t, {
    watcher: watcher.factory,
    onRefresh: async () => {
      most = Math.max(most, ++running)
      await held
      running--
    }
  })
  refresher.start()
  watcher.hint('a')
  await until(() => refreshes.length === 1)
  for (const name of ['b', 'c', 'd']) {
    watcher.hint(name)
    await nextTurn()
  }
  release()
  await until(() => refreshes.length === 2)
  t.strictSame(refreshes, ['a', 'b,c,d'])
  t.equal(most, 1)
})

t.test('K53: a refresh that fails is logged, and the next one runs', async (t) => {
  const watcher = createFakeWatcher()
  const { refresher, refreshes, lines } = createRefresher(t, {
    watcher: watcher.factory,
    onRefresh: async ({ names }) => { if (names.has('bad')) throw new Error('failed') }
  })
  refresher.start()
  watcher.hint('bad')
  await until(() => lines.length === 1)
  t.match(lines, ['warn a refresh failed; what was there before is served'])
  watcher.hint('good')
  await until(() => refreshes.length === 2)
})

t.test('K52: what a refresh that failed was to compare is compared before the next tick is due', async (t) => {
  const watcher = createFakeWatcher()
  const { refresher, refreshes } = createRefresher(t, {
    watcher: watcher.factory,
    times: { ...AT_ONCE, poll: 10, reconcileHealthy: NEVER_MS },
    onRefresh: async ({ everything }) => { if (!everything) throw new Error('failed') }
  })
  refresher.start()
  watcher.hint('a')
  await until(() => refreshes.length === 2)
  t.strictSame(refreshes, ['a', 'all'])
})

t.test('K52: lost events compare everything, with a pause as long as that takes', async (t) => {
  const watcher = createFakeWatcher()
  const at: number[] = []
  const { refresher, refreshes } = createRefresher(t, {
    watcher: watcher.factory,
    onRefresh: async () => {
      at.push(performance.now())
      await pause(10)
      at.push(performance.now())
      watcher.miss()
    }
  })
  refresher.start()
  watcher.hint('a')
  watcher.miss()
  await until(() => refreshes.length === 2)
  t.strictSame(refreshes, ['all', 'all'])
  const [start = 0, end = 0, again = 0] = at
  // A stall of the machine may make the refresh so long that its pause is at its limit.
  t.ok(again - end >= Math.min(9 * (end - start), RECONCILE_MS), `${again - end} ms after one of ${end - start} ms`)
})

t.test('K54: a watcher that works is followed by one comparison of everything', async (t) => {
  const watcher = createFakeWatcher('starting')
  const { refresher, refreshes, lines } = createRefresher(t, { watcher: watcher.factory })
  refresher.start()
  t.match(refresher.watcher, { status: 'starting' })
  watcher.become('watching')
  await until(() => refreshes.length === 1)
  t.strictSame(refreshes, ['all'])
  t.strictSame(lines, ['info watching a skills folder'])
})

t.test('K54: a watcher that breaks is logged, and everything is compared at intervals', async (t) => {
  const watcher = createFakeWatcher()
  const { refresher, refreshes, lines } = createRefresher(t, {
    watcher: watcher.factory, times: { ...AT_ONCE, reconcileDegraded: 1, reconcileHealthy: NEVER_MS }
  })
  refresher.start()
  watcher.become('degraded', { errors: 1, lastError: 'ENOSPC' })
  t.match(refresher.watcher, { status: 'degraded', lastError: 'ENOSPC' })
  await until(() => refreshes.length >= 5)
  t.ok(refreshes.every((refresh) => refresh === 'all'))
  t.equal(lines.length, 1)
  t.match(lines[0], /^warn the watcher does not work/)
})

t.test('K54: the watcher is tried again with growing pauses, and healed', async (t) => {
  const watcher = createFakeWatcher()
  const { refresher, refreshes } = createRefresher(t, { watcher: watcher.factory, times: { ...AT_ONCE, reconcileDegraded: 1, reconcileHealthy: NEVER_MS } })
  const at: number[] = []
  watcher.onRestart = () => {
    at.push(refreshes.length)
    if (at.length === 7) watcher.become('watching')
  }
  refresher.start()
  watcher.become('degraded', { errors: 1, lastError: 'EMFILE' })
  await until(() => at.length === 7)
  const walks = at.map((count) => count - (at[0] ?? 0) + 1)
  t.strictSame(walks, [1, 2, 4, 8, 16, 32, 48])
  await until(() => refreshes.length === (at[6] ?? 0) + 1)
  t.match(refresher.watcher, { status: 'watching' })
  watcher.miss()
  await until(() => refreshes.length === (at[6] ?? 0) + 2)
  watcher.onRestart = () => { at.push(refreshes.length) }
  watcher.become('degraded', { errors: 1, lastError: 'EMFILE' })
  await until(() => at.length >= 9)
  t.ok((at[8] ?? 0) - (at[7] ?? 0) <= 2, 'from the beginning, when it breaks again')
})

t.test('K54: a watcher that breaks again after each comparison is tried with the same growing pauses', async (t) => {
  const watcher = createFakeWatcher()
  const { refresher, refreshes } = createRefresher(t, { watcher: watcher.factory, times: { ...AT_ONCE, reconcileDegraded: 1, reconcileHealthy: NEVER_MS } })
  const breaks = () => { watcher.become('degraded', { errors: 1, lastError: 'ENOSPC' }) }
  const at: number[] = []
  watcher.onRestart = () => {
    at.push(refreshes.length)
    watcher.become('watching')
  }
  refresher.refreshed.subscribe(() => { if (refresher.watcher.status === 'watching') setImmediate(breaks) })
  refresher.start()
  breaks()
  await until(() => at.length >= 5)
  t.strictSame(at.slice(0, 5), [1, 3, 6, 11, 20], 'the 1st, 2nd, 4th, 8th and 16th tick that finds it broken, and one comparison after each restart')
})

t.test('K52: with a working watcher everything is compared too, now and then', async (t) => {
  const watcher = createFakeWatcher()
  const { refresher, refreshes } = createRefresher(t, { watcher: watcher.factory, times: { ...AT_ONCE, reconcileDegraded: NEVER_MS, reconcileHealthy: 1 } })
  refresher.start()
  watcher.become('watching')
  await until(() => refreshes.length >= 3)
  t.equal(watcher.calls.restart, 0)
  t.ok(1.5 * RECONCILE_MS <= 30_000, 'in time for a watcher that is blind without a sign of it')
})

t.test('without a watcher everything is compared at intervals', async (t) => {
  const { refresher, refreshes } = createRefresher(t, { watcher: false, times: { ...AT_ONCE, reconcileDegraded: 1, reconcileHealthy: NEVER_MS } })
  refresher.start()
  t.match(refresher.watcher, { status: 'off', mode: 'events' })
  await until(() => refreshes.length >= 2)
})

t.test('K54: polling is the same at shorter intervals, also for a watcher that cannot watch all', async (t) => {
  const watcher = createFakeWatcher()
  const times = { ...AT_ONCE, poll: 1, reconcileDegraded: NEVER_MS, reconcileHealthy: NEVER_MS }
  const { refresher, refreshes, lines } = createRefresher(t, { watcher: watcher.factory, polling: true, times })
  t.match(refresher.watcher, { status: 'off', mode: 'polling' })
  refresher.start()
  t.strictSame(refresher.watcher, { status: 'watching', mode: 'polling', errors: 0 })
  await until(() => refreshes.length >= 2)
  t.strictSame(lines, ['info polling a skills folder'])
  await refresher.close()

  const partly = createRefresher(t, { watcher: watcher.factory, times })
  partly.refresher.start()
  watcher.become('watching', { mode: 'polling' })
  await until(() => partly.refreshes.length >= 3)
})

t.test('nothing happens after the end', async (t) => {
  const watcher = createFakeWatcher()
  const { refresher, refreshes } = createRefresher(t, { watcher: watcher.factory, times: { ...AT_ONCE, reconcileDegraded: 1, reconcileHealthy: 1 } })
  refresher.start()
  watcher.hint('a')
  await refresher.close()
  watcher.hint('b')
  watcher.become('degraded')
  refresher.start()
  for (let turn = 0; turn < 20; turn++) await nextTurn()
  t.strictSame(refreshes, [])
  t.equal(watcher.calls.close, 1)
})

t.test('K52: the index follows the hints of a watcher', async (t) => {
  const base = t.testdir({ root: skills('a', 'b') })
  const root = join(base, 'root')
  const watcher = createFakeWatcher()
  const manager = await startManager(t, [root], { watcher: watcher.factory, times: { ...AT_ONCE, reconcileDegraded: NEVER_MS, reconcileHealthy: NEVER_MS } })
  const labels = () => manager.getAvailableSkills().map(({ description }) => description).join()
  fs.writeFileSync(join(root, 'a/SKILL.md'), '---\nname: a\ndescription: changed\n---\ntext')
  watcher.hint('a')
  await until(() => labels() === 'changed,What b is for')
  fs.mkdirSync(join(root, 'c'))
  fs.writeFileSync(join(root, 'c/SKILL.md'), skillText('c'))
  watcher.hint('c')
  await until(() => labels() === 'changed,What b is for,What c is for')
  fs.rmSync(join(root, 'b'), { recursive: true })
  watcher.hint()
  await until(() => labels() === 'changed,What c is for')
  watcher.hint('no such skill')
  t.equal(manager.status.watcher.status, 'watching')
})

t.test('K52: a linked skill that is re-pointed is found by a hint at the root', async (t) => {
  const base = t.testdir({ root: { '..v1': skill('x'), '..v2': skill('y'), linked: t.fixture('symlink', '..data'), '..data': t.fixture('symlink', '..v1') } })
  const root = join(base, 'root')
  const watcher = createFakeWatcher()
  const manager = await startManager(t, [root], { watcher: watcher.factory, times: { ...AT_ONCE, reconcileDegraded: NEVER_MS, reconcileHealthy: NEVER_MS } })
  t.match(manager.getSkills(), [{ name: 'x' }])
  fs.symlinkSync('..v2', join(root, '..tmp'))
  fs.renameSync(join(root, '..tmp'), join(root, '..data'))
  watcher.hint()
  await until(() => manager.getSkills()[0]?.name === 'y')
})

t.test('K52 K54: without events the index follows at the next comparison', async (t) => {
  const base = t.testdir({ root: skills('a', 'b') })
  const root = join(base, 'root')
  const watcher = createFakeWatcher('degraded')
  const manager = await startManager(t, [root], { watcher: watcher.factory, times: { ...AT_ONCE, reconcileDegraded: 1 } })
  fs.writeFileSync(join(root, 'a/SKILL.md'), '---\nname: a\ndescription: changed\n---\ntext')
  fs.rmSync(join(root, 'b'), { recursive: true })
  await until(() => manager.getAvailableSkills().map(({ description }) => description).join() === 'changed')
  t.match(manager.status, { watcher: { status: 'degraded' }, skills: 1 })
})

t.test('K7 K52: a skill that begins or ceases to hide another one says so without a question', async (t) => {
  const base = t.testdir({ root: skills('a'), personal: skills('b') })
  const manager = await startManager(t, [join(base, 'root')], { personalRoot: join(base, 'personal'), times: AT_ONCE })
  const told: string[] = []
  manager.subscribe(({ changed }) => { told.push(...changed) })
  fs.cpSync(join(base, 'root/a'), join(base, 'personal/a'), { recursive: true })
  await manager.list()
  await until(() => told.length === 1)
  fs.rmSync(join(base, 'personal/a'), { recursive: true })
  await manager.list()
  await until(() => told.length === 2)
  t.strictSame(told, ['a', 'a'])
})

t.test('K53: a comparison on a failing disk keeps the index', async (t) => {
  const base = t.testdir({ root: skills('a', 'b') })
  const disk = createFaultyDisk()
  const manager = await startManager(t, [join(base, 'root')], { disk, times: { ...AT_ONCE, reconcileDegraded: 1 } })
  let failures = 0
  disk.intercept = () => { failures++; throw osError('EIO') }
  await until(() => failures > 20)
  t.strictSame(manager.getAvailableSkills().map(({ name }) => name), ['a', 'b'])
  t.match(manager.status, { failures: ['EIO'], skills: 2 })
  disk.intercept = () => {}
  await until(() => manager.status.failures.length === 0)
})

t.test('K3: a root that is another folder than before is watched anew', async (t) => {
  const base = t.testdir({ root: skills('a') })
  const root = join(base, 'root')
  const watcher = createFakeWatcher()
  const manager = await startManager(t, [root], { watcher: watcher.factory, times: AT_ONCE })
  const before = watcher.calls.followed
  t.ok(before > 0, 'told when the watcher is made')
  fs.renameSync(root, join(base, 'away'))
  await manager.freshStatus()
  fs.cpSync(join(base, 'away'), root, { recursive: true })
  await manager.list()
  t.equal(watcher.calls.followed, before + 2, 'when it is gone, and when it is back')
})
