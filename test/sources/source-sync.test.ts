import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { mock } from 'node:test'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import pLimit from 'p-limit'
import type { CoreLog } from '../../src/core/shared/log.ts'
import { FetchedOrigin, type FetchedOptions } from '../../src/sources/fetched-origin.ts'
import type { Fetched } from '../../src/sources/address/source-kind.ts'
import type { SourceFiles } from '../../src/sources/publish/source-tree.ts'
import { SourceError } from '../../src/sources/source-error.ts'
import { SourceSync } from '../../src/sources/source-sync.ts'
import { skillText } from '../helper/skills.ts'
import { type LogLine, sourceAt } from '../helper/sources.ts'

const HOUR_MS = 3_600_000

/** A source that a test answers for. */
async function openSync (t: Test, fetch: () => Promise<Fetched | undefined>,
  { folder = join(t.testdir(), 'source'), ...more }: Partial<FetchedOptions> = {}) {
  const log: LogLine[] = []
  mkdirSync(folder, { recursive: true })
  const logger: CoreLog = {
    info: (details, message) => { log.push({ level: 'info', details, message }) },
    warn: (details, message) => { log.push({ level: 'warn', details, message }) }
  }
  const origin = new FetchedOrigin({
    source: sourceAt('git+https://git.example/team/skills.git'),
    kind: { intervalMs: 60_000, load: async () => ({ fetch }) },
    folder,
    env: {},
    approve: async () => {},
    inTurn: pLimit(9),
    log: logger,
    ...more
  })
  const sync = new SourceSync(origin, logger)
  t.teardown(() => sync.close())
  await origin.open()
  return { sync, origin, log, folder }
}

function stateOf (number: number, read?: SourceFiles['read']): Fetched {
  const text = skillText('a', `Number ${number}.\n`)
  return {
    revision: `main@sha1:${String(number).repeat(40)}`,
    memory: { number: String(number) },
    path: '',
    files: {
      entries: [{ path: 'skills/a/SKILL.md', kind: 'file', id: String(number), size: text.length }],
      read: read ?? (async (files, use) => { for (const file of files) await use(file, Buffer.from(text)) })
    }
  }
}

/** Files of skills with these names. */
function filesOf (names: readonly string[]): SourceFiles {
  return {
    entries: names.map((name) => ({ path: `skills/${name}/SKILL.md`, kind: 'file', id: name, size: 100 })),
    read: async (files, use) => { for (const file of files) await use(file, Buffer.from(skillText(file.entry.id))) }
  }
}

t.test('K85: a host that is away for a day costs a question each quarter of an hour and one line, and is ' +
  'back within that', async (t) => {
  let isAway = false
  let asked = 0
  const { sync, log } = await openSync(t, async () => {
    asked++
    if (isAway) throw new SourceError('unreachable', 'the host cannot be reached, or breaks off')
    return stateOf(isAway ? 1 : 2)
  })
  await sync.checkNow()
  t.match(sync.status, { state: 'ok', skills: 1 })

  mock.timers.enable({ apis: ['Date', 'setTimeout'], now: Date.now() })
  t.teardown(() => { mock.timers.reset() })
  isAway = true
  asked = 0
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 1_000) {
      mock.timers.tick(1_000)
      // The check that is due now takes real time: it makes a folder.
      while (!(Date.parse(sync.status.next_at ?? '') > Date.now())) await nextTurn()
    }
  }
  await sync.checkNow()
  const lines = log.length
  const since = sync.status.failing_since
  await pass(24 * HOUR_MS)
  t.match(sync.status, {
    state: 'stale', skills: 1, revision: /^main@/, failing_since: since, error: { code: 'unreachable' }
  })
  t.equal(log.length, lines, 'one line for all of it')
  t.ok(asked > 90 && asked < 140, `${asked} questions`)
  isAway = false
  await pass(HOUR_MS / 4 * 1.1)
  t.match(sync.status, { state: 'ok', failing_since: undefined })
  t.equal(log.filter(({ message }) => message.endsWith(' is reachable again')).length, 1)
})

t.test('K85: a disk that is full or fails while a state is written leaves the state before it, and nothing ' +
  'of the new one', async (t) => {
  let next = stateOf(1)
  const { sync, log, folder } = await openSync(t, async () => next)
  await sync.checkNow()
  const before = readdirSync(join(folder, 'skills'))
  for (const code of ['EIO', 'ENOSPC']) {
    next = stateOf(2, async (files, use) => {
      for (const file of files) await use(file, Buffer.from('half'))
      throw Object.assign(new Error(`${code}: a reason of the system, write`), { code })
    })
    await sync.checkNow()
    t.match(sync.status, {
      state: 'stale',
      skills: 1,
      revision: /1$/,
      error: { code: 'disk', message: `the state folder cannot be written (${code}: a reason of the system)` }
    })
  }
  t.strictSame(readdirSync(join(folder, 'skills')), before)
  t.strictSame(readdirSync(join(folder, 'tmp')), [])
  t.match(log.at(-1), { level: 'warn', message: /still serving / })
  next = stateOf(3)
  await sync.checkNow()
  t.match(sync.status, { state: 'ok', revision: /3$/ })
})

t.test('K85: the folders of a state stay while the next one is served, and are used again', async (t) => {
  let names = ['a', 'b', 'gone']
  const { sync, origin } = await openSync(t,
    async () => ({ ...stateOf(1), revision: names.join(), files: filesOf(names) }))
  await sync.checkNow()
  const places = origin.root.listed.folders
  const areThere = () => ['a', 'b', 'gone'].map((name) => existsSync(places?.get(name)?.path ?? ''))
  names = ['b']
  await sync.checkNow()
  t.strictSame(areThere(), [true, true, true])
  names = ['a', 'b']
  await sync.checkNow()
  t.match(sync.status, { state: 'ok', skills: 2 })
  t.equal(origin.root.listed.folders?.get('a')?.path, places?.get('a')?.path)
  t.strictSame(areThere(), [true, true, false])
})

t.test('K84: hooks that come during a check are followed by one more, as soon as hooks may be', async (t) => {
  let asked = 0
  const { sync } = await openSync(t, async () => {
    if (++asked > 1) return undefined
    for (let hook = 0; hook < 40; hook++) sync.checkSoon()
    return stateOf(1)
  })
  mock.timers.enable({ apis: ['Date', 'setTimeout'], now: Date.now() })
  t.teardown(() => { mock.timers.reset() })
  await sync.checkNow()
  const pause = Date.parse(sync.status.next_at ?? '') - Date.now()
  if (!t.ok(pause <= 5_000, `a check in ${pause} ms`)) return
  mock.timers.tick(5_000)
  const isAskedAgain = (): boolean => asked === 2
  while (!isAskedAgain()) await nextTurn()
  await sync.checkNow()
  t.equal(asked, 3)
  t.notOk(Date.parse(sync.status.next_at ?? '') - Date.now() <= 5_000, 'and by no more than one')
})
