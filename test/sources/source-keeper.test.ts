import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { mock } from 'node:test'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import pLimit from 'p-limit'
import type { Fetched, FetchOptions } from '../../src/sources/fetcher.ts'
import type { SourceFiles } from '../../src/sources/publish/source-tree.ts'
import { Schedule } from '../../src/sources/schedule.ts'
import { SourceError } from '../../src/sources/source-error.ts'
import { SourceKeeper, type SourceOptions } from '../../src/sources/source-keeper.ts'
import { skillText } from '../helper/skills.ts'
import { type LogLine, sourceAt } from '../helper/sources.ts'

const HOUR_MS = 3_600_000

/** A source that a test answers for. */
async function openKeeper (t: Test, fetch: (options: FetchOptions) => Promise<Fetched | undefined>, { folder = join(t.testdir(), 'source'), ...more }: Partial<SourceOptions> = {}) {
  const log: LogLine[] = []
  mkdirSync(folder, { recursive: true })
  const keeper = new SourceKeeper({
    source: sourceAt('git+https://git.example/team/skills.git'),
    fetcher: { intervalMs: 60_000, fetch },
    folder,
    approval: {},
    state: { confirm: async () => {} },
    inTurn: pLimit(9),
    log: {
      info: (details, message) => { log.push({ level: 'info', details, message }) },
      warn: (details, message) => { log.push({ level: 'warn', details, message }) }
    },
    ...more
  })
  t.teardown(() => keeper.close())
  await keeper.open()
  return { keeper, log, folder }
}

function stateOf (number: number, write?: SourceFiles['write']): Fetched {
  const text = skillText('a', `Number ${number}.\n`)
  return {
    revision: `main@sha1:${String(number).repeat(40)}`,
    memory: { number: String(number) },
    path: '',
    files: {
      entries: [{ path: 'skills/a/SKILL.md', kind: 'file', id: String(number), size: text.length }],
      read: async () => Buffer.from(text),
      write: write ?? (async (files) => { for (const { path } of files) writeFileSync(path, text, { flag: 'wx' }) })
    }
  }
}

/** Files of skills with these names. */
function filesOf (names: readonly string[]): SourceFiles {
  return {
    entries: names.map((name) => ({ path: `skills/${name}/SKILL.md`, kind: 'file', id: name, size: 100 })),
    read: async ({ id }) => Buffer.from(skillText(id)),
    write: async (files) => { for (const { path, entry } of files) writeFileSync(path, skillText(entry.id), { flag: 'wx' }) }
  }
}

t.test('K85: a host that is away for a day costs a question each quarter of an hour and one line, and is back within that', async (t) => {
  let isAway = false
  let asked = 0
  const { keeper, log } = await openKeeper(t, async () => {
    asked++
    if (isAway) throw new SourceError('unreachable', 'the host cannot be reached, or breaks off')
    return stateOf(isAway ? 1 : 2)
  })
  await keeper.sync()
  t.match(keeper.status, { state: 'ok', skills: 1 })

  mock.timers.enable({ apis: ['Date', 'setTimeout'], now: Date.now() })
  t.teardown(() => { mock.timers.reset() })
  isAway = true
  asked = 0
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 1_000) {
      mock.timers.tick(1_000)
      // The check that is due now takes real time: it makes a folder.
      while (!(Date.parse(keeper.status.next_at ?? '') > Date.now())) await nextTurn()
    }
  }
  await keeper.sync()
  const lines = log.length
  const since = keeper.status.failing_since
  await pass(24 * HOUR_MS)
  t.match(keeper.status, { state: 'stale', skills: 1, revision: /^main@/, failing_since: since, error: { code: 'unreachable' } })
  t.equal(log.length, lines, 'one line for all of it')
  t.ok(asked > 90 && asked < 140, `${asked} questions`)
  isAway = false
  await pass(HOUR_MS / 4 * 1.1)
  t.match(keeper.status, { state: 'ok', failing_since: undefined })
  t.equal(log.filter(({ message }) => message === 'the source delivers again').length, 1)
})

t.test('K85: pauses double up to a quarter of an hour, keep what a host asks for, and differ between replicas', async (t) => {
  const schedule = new Schedule({ intervalMs: 60_000, random: () => 0.5 })
  t.strictSame(Array.from({ length: 11 }, () => schedule.pauseAfterFailure() / 1_000), [2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900])
  t.equal(schedule.pauseAfterFailure(1_200_000), 900_000, 'no host sends anybody away for longer')
  t.equal(schedule.pauseAfterSuccess(), 60_000)
  t.equal(schedule.pauseAfterFailure(120_000), 120_000)
  t.strictSame([0, 1].map((value) => new Schedule({ intervalMs: 60_000, random: () => value }).pauseAfterSuccess()), [54_000, 66_000])
  schedule.started(1_000)
  t.strictSame([schedule.pauseBeforeHook(2_000), schedule.pauseBeforeHook(9_000)], [4_000, 0])
})

t.test('K85: a disk that is full or fails while a state is written leaves the state before it, and nothing of the new one', async (t) => {
  let next = stateOf(1)
  const { keeper, log, folder } = await openKeeper(t, async () => next)
  await keeper.sync()
  const before = readdirSync(join(folder, 'skills'))
  for (const [code, reason] of [['EIO', 'EIO'], ['ENOSPC', 'ENOSPC, its disk is full']] as const) {
    next = stateOf(2, async (files) => {
      for (const { path } of files) writeFileSync(path, 'half')
      throw Object.assign(new Error(`${code}: a reason of the system, write`), { code })
    })
    await keeper.sync()
    t.match(keeper.status, { state: 'stale', skills: 1, revision: /1$/, error: { code: 'disk', message: `the state folder cannot be written (${reason})` } })
  }
  t.strictSame(readdirSync(join(folder, 'skills')), before)
  t.strictSame(readdirSync(join(folder, 'tmp')), [])
  t.match(log.at(-1), { level: 'warn', message: /what was published before is served/ })
  next = stateOf(3)
  await keeper.sync()
  t.match(keeper.status, { state: 'ok', revision: /3$/ })
})

t.test('K85: a skill that goes and comes back within minutes is still there when the folders of others are swept', async (t) => {
  let names = ['a', 'b', 'gone']
  const { keeper } = await openKeeper(t, async () => ({ ...stateOf(1), revision: names.join(), files: filesOf(names) }))
  mock.timers.enable({ apis: ['Date', 'setTimeout'], now: Date.now() })
  t.teardown(() => { mock.timers.reset() })
  await keeper.sync()
  const places = keeper.root.listed?.folders
  const isThere = (name: string): boolean => existsSync(places?.get(name)?.path ?? '')
  names = ['b']
  await keeper.sync()
  mock.timers.tick(5_000)
  names = ['a', 'b']
  await keeper.sync()
  mock.timers.tick(130_000)
  while (isThere('gone')) await nextTurn()
  t.match(keeper.status, { state: 'ok', skills: 2 })
  t.equal(keeper.root.listed?.folders?.get('a')?.path, places?.get('a')?.path, 'the folder is used again')
  t.ok(isThere('a'))
  await keeper.close()
})

t.test('K84: a hook that comes during a check is followed by another one, as soon as hooks may be', async (t) => {
  let asked = 0
  const { keeper } = await openKeeper(t, async () => {
    if (++asked > 1) return undefined
    keeper.hint()
    return stateOf(1)
  })
  mock.timers.enable({ apis: ['Date', 'setTimeout'], now: Date.now() })
  t.teardown(() => { mock.timers.reset() })
  await keeper.sync()
  const pause = Date.parse(keeper.status.next_at ?? '') - Date.now()
  if (!t.ok(pause <= 5_000, `a check in ${pause} ms`)) return
  mock.timers.tick(5_000)
  const isAskedAgain = (): boolean => asked === 2
  while (!isAskedAgain()) await nextTurn()
  await keeper.sync()
  t.equal(asked, 3)
  t.notOk(Date.parse(keeper.status.next_at ?? '') - Date.now() <= 5_000, 'and by no more than one')
})

t.test('K85: a process that was killed between two files of its state serves what the source has after the next check', async (t) => {
  let next = stateOf(1)
  const fetch = async ({ known }: FetchOptions): Promise<Fetched | undefined> => known?.['number'] === next.memory['number'] ? undefined : next
  const { keeper, folder } = await openKeeper(t, fetch)
  await keeper.sync()
  const before = join(t.testdirName, 'before')
  cpSync(folder, before, { recursive: true })
  next = stateOf(2)
  await keeper.sync()
  await keeper.close()
  // The branch is forced back, and any of the files may not have been written.
  next = stateOf(1)
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile()).map(({ name }) => name)
  t.not(files.length, 0)
  for (const name of files) {
    const killed = join(t.testdirName, `killed-${name}`)
    cpSync(folder, killed, { recursive: true })
    cpSync(join(before, name), join(killed, name))
    const { keeper: again } = await openKeeper(t, fetch, { folder: killed })
    await again.sync()
    const place = again.root.listed?.folders?.get('a')?.path ?? ''
    t.match(again.status, { state: 'ok', revision: /1$/ }, name)
    t.equal(readFileSync(join(place, 'SKILL.md'), 'utf8'), skillText('a', 'Number 1.\n'), name)
  }
})

t.test('K85: what was written of a state that is refused afterwards goes when what was replaced goes, and no file is left', async (t) => {
  let next = stateOf(1)
  let isRefused = false
  const { keeper, folder } = await openKeeper(t, async () => next, { approval: { approve: async () => { if (isRefused) throw new SourceError('verification_failed', 'not signed') } } })
  mock.timers.enable({ apis: ['Date', 'setTimeout'], now: Date.now() })
  t.teardown(() => { mock.timers.reset() })
  await keeper.sync()
  const skills = readdirSync(join(folder, 'skills'))
  isRefused = true
  for (const number of [2, 3, 2]) {
    next = stateOf(number)
    await keeper.sync()
    t.match(keeper.status, { state: 'stale', error: { code: 'verification_failed' } })
  }
  isRefused = false
  rmSync(join(folder, 'skills.json'))
  mkdirSync(join(folder, 'skills.json'))
  await keeper.sync()
  t.match(keeper.status, { state: 'stale', error: { code: 'internal' } })
  t.strictSame(readdirSync(join(folder, 'tmp')), [])
  mock.timers.tick(130_000)
  for (const deadline = performance.now() + 10_000; performance.now() < deadline && readdirSync(join(folder, 'skills')).length > 1;) await nextTurn()
  t.strictSame(readdirSync(join(folder, 'skills')), skills)
  await keeper.close()
})

t.test('K85: the end of a source waits for the check that somebody asked for', async (t) => {
  let isOver = false
  let begin = (): void => {}
  const begun = new Promise<void>((resolve) => { begin = resolve })
  const { keeper } = await openKeeper(t, async ({ signal }) => {
    begin()
    await once(signal, 'abort')
    await nextTurn()
    isOver = true
    throw new SourceError('unreachable', 'it is over')
  })
  const check = keeper.sync()
  await begun
  await keeper.close()
  t.ok(isOver)
  await check
})
