import fs from 'node:fs'
import { dirname, join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { FSWatcher } from 'chokidar'
import t, { type Test } from 'tap'
import { type ChangeFeed, createChangeFeed, type FeedEvent } from '../../../src/core/events/change-feed.ts'
import type { CreateFsWatcher } from '../../../src/core/watch/folder-watcher.ts'
import { MAX_RECENT_EVENTS } from '../../../src/core/limits.ts'
import { createSkillManager, type SkillManager, type SkillManagerOptions } from '../../../src/core/skill-manager.ts'
import { createWatcher } from '../../../src/core/watch/watcher.ts'
import { countKernelWatches } from '../../helper/kernel-watches.ts'
import { createFaultyDisk, osError, skill, skillText, until } from '../../helper/skills.ts'

/** K52's figure, for the median of all changes. */
const TOLD_MS = 250

/** For a single change while other tests run on the same cores: far below the pauses of the reconciling walks. */
const TOLD_UNDER_LOAD_MS = 5_000

const HOUR_MS = 3_600_000

/** Nothing but the watcher tells of changes. */
const NO_WALKS = { reconcileHealthy: HOUR_MS, reconcileDegraded: HOUR_MS }

/** Older than any step of a timestamp: skills that a test has just made count as made long ago. */
const AGE_MS = 60_000

interface Followed {
  readonly skills: SkillManager
  readonly feed: ChangeFeed
  readonly events: FeedEvent[]
  /** `type name` of each event since the last call. */
  told (): string[]
  /** Milliseconds until the next event about a skill, from now on. */
  next (name: string): Promise<number>
  stop (): void
}

/** A skill manager with the real watcher, and a feed that has seen all skills once and watches what is inside of them. */
async function follow (t: Test, root: string, options: Partial<SkillManagerOptions> = {}): Promise<Followed> {
  const skills = createSkillManager({ projectRoots: [root], times: NO_WALKS, disk: createFaultyDisk({ ageMs: AGE_MS }), ...options })
  await skills.initialize()
  await until(() => options.watcher === false || !['off', 'starting'].includes(skills.status.watcher.status))
  const looks = new Map<string, number>()
  const feed = createChangeFeed({ skills: countInspections(skills, looks) })
  const events: FeedEvent[] = []
  let taken = 0
  const stop = feed.subscribe((event) => { events.push(event) })
  t.teardown(async () => {
    feed.close()
    await skills.close()
  })
  const isWatching = skills.status.watcher.status === 'watching' && options.polling !== true
  // Once to know the skill, and once more when the folders inside are under watch.
  await until(() => skills.namesNow().every((name) => (looks.get(name) ?? 0) >= (isWatching && hasFolder(join(root, name)) ? 2 : 1)), 120_000)
  return {
    skills,
    feed,
    events,
    stop,
    told () {
      const news = events.slice(taken).map(describe)
      taken = events.length
      return news
    },
    async next (name) {
      const start = performance.now()
      const count = events.length
      await until(() => events.slice(count).some((event) => 'name' in event && event.name === name), 60_000)
      return performance.now() - start
    }
  }
}

function countInspections (skills: SkillManager, looks: Map<string, number>) {
  return {
    available: () => skills.available(),
    namesNow: () => skills.namesNow(),
    subscribe: skills.subscribe.bind(skills),
    observe: skills.observe.bind(skills),
    inspect: async (...[name, known]: Parameters<SkillManager['inspect']>) => {
      const state = await skills.inspect(name, known)
      looks.set(name, (looks.get(name) ?? 0) + 1)
      return state
    }
  }
}

/** Waits until every folder that is there is under watch. */
async function watched (before: number, root: string): Promise<void> {
  await until(() => process.platform !== 'linux' || countKernelWatches() - before === 2 + countFolders(root))
}

function countFolders (folder: string): number {
  const folders = fs.readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory() && entry.name !== '.git')
  return folders.reduce((sum, { name }) => sum + 1 + countFolders(join(folder, name)), 0)
}

function hasFolder (folder: string): boolean {
  return fs.readdirSync(folder, { withFileTypes: true }).some((entry) => entry.isDirectory())
}

function describe (event: FeedEvent): string {
  return event.type === 'reset' ? 'reset' : `${event.type} ${event.name}`
}

function numbered (count: number): string[] {
  return Array.from({ length: count }, (_, i) => `skill-${i}`)
}

/** A skill with folders inside. */
function deep (name: string) {
  return skill(name, { references: { 'x.md': 'x', more: { 'y.md': 'y' } }, '.git': { config: 'secret' } })
}

function saveAtomically (file: string, text: string): void {
  fs.writeFileSync(`${file}.tmp`, text)
  fs.renameSync(`${file}.tmp`, file)
}

function write (file: string, text: string): void {
  fs.mkdirSync(dirname(file), { recursive: true })
  fs.writeFileSync(file, text)
}

/** Each makes one event about the skill; the next begins when that has come. */
const EDITS: ReadonlyArray<readonly [title: string, edit: (folder: string) => void]> = [
  ['the main file', (folder) => { fs.writeFileSync(join(folder, 'SKILL.md'), skillText('a', 'edited')) }],
  ['a file in a folder', (folder) => { fs.appendFileSync(join(folder, 'references/x.md'), '!') }],
  ['a file two folders deep', (folder) => { fs.appendFileSync(join(folder, 'references/more/y.md'), '!') }],
  ['an atomic save two folders deep', (folder) => { saveAtomically(join(folder, 'references/more/y.md'), 'saved') }],
  ['a new file', (folder) => { fs.writeFileSync(join(folder, 'references/new.md'), 'new') }],
  ['a file removed', (folder) => { fs.rmSync(join(folder, 'references/new.md')) }],
  ['new folders with a file', (folder) => { write(join(folder, 'a/b/c/d.md'), 'deep') }],
  ['an edit in those', (folder) => { fs.appendFileSync(join(folder, 'a/b/c/d.md'), '!') }],
  ['a folder renamed', (folder) => { fs.renameSync(join(folder, 'a'), join(folder, 'z')) }],
  ['an edit below its new name', (folder) => { fs.appendFileSync(join(folder, 'z/b/c/d.md'), '!') }],
  ['a folder removed and made again', (folder) => {
    fs.rmSync(join(folder, 'z/b'), { recursive: true })
    write(join(folder, 'z/b/c/d.md'), 'again')
  }],
  ['an edit in that', (folder) => { fs.appendFileSync(join(folder, 'z/b/c/d.md'), '!') }],
  ['a folder swapped by two renames', (folder) => {
    write(join(folder, '../../next/c/d.md'), 'swapped')
    fs.renameSync(join(folder, 'z/b'), join(folder, '../../previous'))
    fs.renameSync(join(folder, '../../next'), join(folder, 'z/b'))
  }],
  ['an edit in the other one', (folder) => { fs.appendFileSync(join(folder, 'z/b/c/d.md'), '!') }],
  ['the skill swapped by two renames', (folder) => {
    fs.cpSync(folder, join(folder, '../../copy'), { recursive: true })
    fs.appendFileSync(join(folder, '../../copy/references/x.md'), '!')
    fs.renameSync(folder, join(folder, '../../old'))
    fs.renameSync(join(folder, '../../copy'), folder)
  }],
  ['an edit inside of that', (folder) => { fs.appendFileSync(join(folder, 'references/more/y.md'), '!') }]
]

t.test('K52: an edit of any file of a skill is one event, with the revision of its manifest', async (t) => {
  const base = t.testdir({ skills: { a: deep('a'), b: deep('b') } })
  const root = join(base, 'skills')
  const before = countKernelWatches()
  const { skills, events, told, next } = await follow(t, root)
  const times: number[] = []
  for (const [title, edit] of EDITS) {
    edit(join(root, 'a'))
    const time = await next('a')
    t.ok(time < TOLD_UNDER_LOAD_MS, `${title}: ${Math.round(time)} ms`)
    times.push(time)
    const { revision } = await skills.manifest('a')
    // A swap that is seen between its two renames is two events.
    await until(() => events.at(-1)?.type === 'changed')
    t.match(events.at(-1), { type: 'changed', name: 'a', revision }, title)
    await watched(before, root)
    fs.appendFileSync(join(root, 'b/references/more/y.md'), '!')
    await next('b')
    const news = told()
    if (!title.includes('swap')) t.strictSame(news, ['changed a', 'changed b'], `${title}: one event`)
  }
  const median = times.sort((a, b) => a - b)[times.length >> 1] ?? Infinity
  t.ok(median <= TOLD_MS, `the median is ${Math.round(median)} ms`)
})

t.test('K52: skills that come and go', async (t) => {
  const base = t.testdir({ skills: { a: deep('a') }, outside: { b: deep('b') } })
  const root = join(base, 'skills')
  const { skills, events, next } = await follow(t, root)
  fs.renameSync(join(base, 'outside/b'), join(root, 'b'))
  await next('b')
  t.match(events, [{ type: 'added', name: 'b', revision: (await skills.manifest('b')).revision }])
  fs.rmSync(join(root, 'a'), { recursive: true })
  await next('a')
  t.equal(events.at(-1)?.type, 'removed')
  t.strictSame(Object.keys(events.at(-1) ?? {}), ['id', 'type', 'name'])
  fs.mkdirSync(join(root, 'empty'))
  await next('empty')
  t.match(events.at(-1), { type: 'added', name: 'empty', revision: (await skills.manifest('empty')).revision })
  const sequences = events.map(({ id }) => Number(id.split('-')[1]))
  t.strictSame(sequences, sequences.map((_, index) => index + 1))
})

t.test('K49 K52: a touch, a rewrite of the same bytes and what is never served tell nothing', async (t) => {
  const base = t.testdir({ skills: { a: deep('a'), z: skill('z') } })
  const root = join(base, 'skills')
  const { told, next } = await follow(t, root)
  const now = new Date()
  for (const file of ['SKILL.md', 'references/x.md', 'references/more/y.md', 'references']) fs.utimesSync(join(root, 'a', file), now, now)
  fs.writeFileSync(join(root, 'a/references/x.md'), 'x')
  saveAtomically(join(root, 'a/SKILL.md'), skillText('a'))
  fs.writeFileSync(join(root, 'a/.git/config'), 'other')
  fs.writeFileSync(join(root, 'a/.env'), 'secret')
  fs.mkdirSync(join(root, 'a/empty'))
  fs.appendFileSync(join(root, 'z/SKILL.md'), 'the next one that is told')
  await next('z')
  t.strictSame(told(), ['changed z'])
})

t.test('a skill that is added and removed at once is told as both or not at all', async (t) => {
  const root = t.testdir({ z: skill('z') })
  const { told, next } = await follow(t, root)
  for (let round = 0; round < 20; round++) {
    write(join(root, 'brief/SKILL.md'), skillText('brief'))
    await pause(round * 6)
    fs.rmSync(join(root, 'brief'), { recursive: true })
  }
  for (let round = 0; round < 2; round++) {
    fs.appendFileSync(join(root, 'z/SKILL.md'), '!')
    await next('z')
  }
  const brief = told().filter((text) => text !== 'changed z' && text !== 'changed brief')
  t.strictSame(brief, brief.map((_, index) => index % 2 === 0 ? 'added brief' : 'removed brief'))
  t.equal(brief.length % 2, 0)
})

t.test('K52: what changes before a skill has been inspected is told too', async (t) => {
  const root = t.testdir(Object.fromEntries(numbered(6).map((name) => [name, deep(name)])))
  const skills = createSkillManager({ projectRoots: [root], times: { ...NO_WALKS, debounce: 1 } })
  await skills.initialize()
  await until(() => skills.status.watcher.status === 'watching')
  let release = () => {}
  const held = new Promise<void>((resolve) => { release = resolve })
  const feed = createChangeFeed({ skills: { ...countInspections(skills, new Map()), available: async () => { await held; return [] } } })
  t.teardown(() => {
    feed.close()
    return skills.close()
  })
  const told = new Map<string, string>()
  feed.subscribe((event) => { if (event.type !== 'reset') told.set(event.name, event.type) })
  fs.appendFileSync(join(root, 'skill-0/references/more/y.md'), '!')
  fs.rmSync(join(root, 'skill-1/references'), { recursive: true })
  fs.rmSync(join(root, 'skill-2'), { recursive: true })
  fs.appendFileSync(join(root, 'skill-3/SKILL.md'), '!')
  write(join(root, 'new/SKILL.md'), 'new')
  await until(() => skills.namesNow().includes('new') && !skills.namesNow().includes('skill-2'))
  release()
  await until(() => told.has('new') && ['skill-0', 'skill-1', 'skill-2', 'skill-3'].every((name) => told.has(name)))
  t.match(Object.fromEntries(told), { 'skill-0': 'changed', 'skill-1': 'changed', 'skill-2': 'removed', 'skill-3': 'changed', new: 'added' })
})

t.test('K52: a skill changed during the inspection is told, whatever the clocks of the disk say', async (t) => {
  const root = t.testdir({ a: skill('a') })
  const skills = createSkillManager({ projectRoots: [root], watcher: false, disk: createFaultyDisk({ ageMs: AGE_MS }) })
  await skills.initialize()
  let release = () => {}
  const held = new Promise<void>((resolve) => { release = resolve })
  const feed = createChangeFeed({ skills: { ...countInspections(skills, new Map()), available: async () => { await held; return [] } } })
  t.teardown(() => {
    feed.close()
    return skills.close()
  })
  const events: FeedEvent[] = []
  feed.subscribe((event) => { events.push(event) })
  fs.appendFileSync(join(root, 'a/SKILL.md'), '!')
  await skills.find('a')
  release()
  await until(() => events.length > 0)
  t.match(events, [{ type: 'changed', name: 'a', revision: (await skills.manifest('a')).revision }])
})

t.test('K52 K53: a thousand skills rewritten are at most one event each', async (t) => {
  const names = numbered(1_000)
  const root = t.testdir(Object.fromEntries(names.map((name) => [name, skill(name, { docs: { 'a.md': 'a', 'b.md': 'b' } })])))
  // The real disk: whether a state is settled is part of this.
  const { skills, events, told, next } = await follow(t, root, { disk: createFaultyDisk() })
  told()
  const first = events.length
  const delay = monitorEventLoopDelay({ resolution: 5 })
  delay.enable()
  const start = performance.now()
  for (const [index, name] of names.entries()) {
    for (const file of ['docs/a.md', 'docs/b.md']) fs.writeFileSync(join(root, name, file), 'rewritten')
    fs.writeFileSync(join(root, name, 'SKILL.md'), skillText(name, 'rewritten'))
    if (index % 50 === 0) await pause(1)
  }
  const written = performance.now()
  await until(() => events.length - first >= names.length, 120_000)
  t.comment(`written in ${Math.round(written - start)} ms, told ${Math.round(performance.now() - written)} ms later, longest stall ${Math.round(delay.max / 1e6)} ms`)
  delay.disable()
  const revisions = new Map(events.slice(first).map((event) => [describe(event), event.type === 'changed' ? event.revision : undefined]))
  fs.appendFileSync(join(root, 'skill-7/docs/a.md'), '!')
  await next('skill-7')
  const all = told()
  t.equal(all.length, names.length + 1, 'one event each')
  t.strictSame(new Set(all), new Set(names.map((name) => `changed ${name}`)))
  for (const name of names.slice(10, 30)) t.equal(revisions.get(`changed ${name}`), (await skills.manifest(name)).revision, 'about the last state')
  t.ok(delay.max / 1e6 < 1_000, 'no stall of a second, on a machine that runs other tests')
})

t.test('K52: a skill that is written without a pause is told again and again', async (t) => {
  const root = t.testdir({ a: deep('a') })
  const { events } = await follow(t, root, { disk: createFaultyDisk() })
  let count = 0
  const edits = setInterval(() => { fs.writeFileSync(join(root, 'a/references/x.md'), `edit ${++count}`) }, 5)
  t.teardown(() => { clearInterval(edits) })
  await until(() => events.length >= 3, 30_000)
  clearInterval(edits)
})

t.test('K52 K54: without a watcher that works the walks find the same', async (t) => {
  const broken: CreateFsWatcher = (options) => {
    const watcher = new FSWatcher(options)
    watcher.add = () => {
      process.nextTick(() => {
        watcher.emit('error', Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' }))
        watcher.emit('ready')
      })
      return watcher
    }
    return watcher
  }
  let create = broken
  const cases: Readonly<Record<string, Partial<SkillManagerOptions>>> = {
    'no watcher': { watcher: false, times: { reconcileDegraded: 20 } },
    'a broken one': { watcher: (options) => createWatcher({ ...options, createFsWatcher: broken }), times: { reconcileDegraded: 20 } },
    'a blind one': { watcher: (options) => createWatcher({ ...options, onHint () {} }), times: { reconcileHealthy: 20 } },
    polling: { polling: true, times: { reconcileHealthy: HOUR_MS, reconcileDegraded: 20 } }
  }
  for (const [title, options] of Object.entries(cases)) {
    await t.test(title, async (t) => {
      const root = t.testdir({ a: deep('a'), b: skill('b') })
      const { told, next } = await follow(t, root, options)
      fs.appendFileSync(join(root, 'a/references/more/y.md'), '!')
      await next('a')
      fs.rmSync(join(root, 'b'), { recursive: true })
      await next('b')
      fs.utimesSync(join(root, 'a/references/x.md'), 1, 1)
      fs.cpSync(join(root, 'a'), join(root, 'c'), { recursive: true })
      await next('c')
      t.strictSame(told(), ['changed a', 'removed b', 'added c'])
    })
  }

  await t.test('and one that heals watches the insides again', async (t) => {
    const root = t.testdir({ a: deep('a') })
    const { skills, next } = await follow(t, root, {
      watcher: (options) => createWatcher({ ...options, createFsWatcher: (settings) => create(settings) }),
      times: { reconcileDegraded: 20, reconcileHealthy: HOUR_MS }
    })
    create = (options) => new FSWatcher(options)
    await until(() => skills.status.watcher.status === 'watching')
    // Until the folders are under watch: no walk comes any more.
    const edits = setInterval(() => { fs.appendFileSync(join(root, 'a/references/more/y.md'), '!') }, 100)
    t.teardown(() => { clearInterval(edits) })
    await next('a')
    clearInterval(edits)
  })
})

t.test('the root removed, and made again', async (t) => {
  const base = t.testdir({ skills: { a: deep('a'), b: skill('b') } })
  const root = join(base, 'skills')
  const before = countKernelWatches()
  const { told, next } = await follow(t, root)
  fs.renameSync(root, join(base, 'away'))
  await next('b')
  t.strictSame(told().sort(), ['removed a', 'removed b'])
  fs.cpSync(join(base, 'away'), root, { recursive: true })
  await next('b')
  t.strictSame(told().sort(), ['added a', 'added b'])
  await watched(before, root)
  fs.appendFileSync(join(root, 'a/references/more/y.md'), '!')
  await next('a')
  t.strictSame(told(), ['changed a'])
})

t.test('a skill that may not be read any more is changed, without a revision', async (t) => {
  const root = t.testdir({ a: skill('a'), b: skill('b') })
  const disk = createFaultyDisk({ ageMs: AGE_MS })
  const { events, next } = await follow(t, root, { disk, watcher: false, times: { reconcileDegraded: 20 } })
  disk.intercept = (operation, path) => { if (operation === 'readdir' && path === join(root, 'a')) throw osError('EACCES') }
  fs.appendFileSync(join(root, 'a/SKILL.md'), '!')
  await next('a')
  t.strictSame(events.map(({ id, ...event }) => event), [{ type: 'changed', name: 'a' }])
  disk.intercept = () => {}
  fs.appendFileSync(join(root, 'a/SKILL.md'), '!')
  await next('a')
  t.match(events.at(-1), { type: 'changed', name: 'a', revision: /^sha256:/ })
})

t.test('K53: while the disk fails nothing is told, and afterwards what changed', async (t) => {
  const root = t.testdir({ a: deep('a') })
  const disk = createFaultyDisk({ ageMs: AGE_MS })
  const { told, next } = await follow(t, root, { disk, watcher: false, times: { reconcileDegraded: 20 } })
  let failures = 0
  disk.intercept = () => { failures++; throw osError('EIO') }
  fs.appendFileSync(join(root, 'a/references/x.md'), '!')
  await until(() => failures > 50)
  t.strictSame(told(), [])
  disk.intercept = () => {}
  await next('a')
  t.strictSame(told(), ['changed a'])
})

t.test('who comes back resumes, or is told that events were missed', async (t) => {
  const root = t.testdir({ a: skill('a') })
  const { feed, events, next, stop } = await follow(t, root)
  const since = feed.position ?? ''
  for (let round = 0; round < 3; round++) {
    fs.appendFileSync(join(root, 'a/SKILL.md'), '!')
    await next('a')
  }
  const resumed = (lastId?: string): FeedEvent[] => {
    const got: FeedEvent[] = []
    feed.subscribe((event) => { got.push(event) }, lastId)()
    return got
  }
  t.strictSame(resumed(), [], 'nothing of the past without an id')
  t.strictSame(resumed(since), events)
  t.strictSame(resumed(events[0]?.id), events.slice(1))
  t.strictSame(resumed(feed.position), [])
  for (const id of ['nonsense', '', '0123456789ab-1']) t.strictSame(resumed(id), [{ type: 'reset', id: feed.position }], id)

  stop()
  stop()
  fs.appendFileSync(join(root, 'a/SKILL.md'), '!')
  await until(() => feed.position !== events.at(-1)?.id)
  t.strictSame(resumed(events.at(-1)?.id).map(describe), ['changed a'], 'it goes on for those who come back soon')
  feed.close()
  t.equal(feed.position, undefined)
  t.strictSame(resumed(since).map(describe), ['reset'], 'a feed that began anew knows nothing of before')
})

t.test(`whoever missed more than ${MAX_RECENT_EVENTS} events is told to read again`, (t) => {
  let onLook: (names?: Iterable<string>) => void = () => {}
  const feed = createChangeFeed({
    skills: { available: async () => [], namesNow: () => [], subscribe: () => () => {}, observe: (listener) => { onLook = listener; return () => {} }, inspect: async (name) => ({ revision: name, fingerprint: name, changedAt: 0 }) }
  })
  const events: FeedEvent[] = []
  feed.subscribe((event) => { events.push(event) })
  const since = feed.position
  onLook(numbered(MAX_RECENT_EVENTS + 1))
  return until(() => events.length === MAX_RECENT_EVENTS + 1).then(() => {
    const got: FeedEvent[] = []
    feed.subscribe((event) => { got.push(event) }, since)
    t.strictSame(got.map(describe), ['reset'])
    feed.subscribe((event) => { got.push(event) }, events[0]?.id)
    t.equal(got.length, 1 + MAX_RECENT_EVENTS)
    feed.close()
  })
})

t.test('folders inside of skills are watched while somebody listens, and no longer', async (t) => {
  if (process.platform !== 'linux') {
    t.comment('skipped: only Linux lists the watches of a process')
    return
  }
  const before = countKernelWatches()
  const root = t.testdir({ a: deep('a'), b: deep('b'), c: skill('c') })
  const skills = createSkillManager({ projectRoots: [root], times: NO_WALKS, disk: createFaultyDisk({ ageMs: AGE_MS }) })
  await skills.initialize()
  await until(() => skills.status.watcher.status === 'watching')
  const quiet = countKernelWatches() - before
  t.equal(quiet, 5, 'the folder above, the root, three skills')
  const feed = createChangeFeed({ skills, graceMs: 20 })
  for (let round = 0; round < 2; round++) {
    const stops = [feed.subscribe(() => {}), feed.subscribe(() => {})]
    await until(() => countKernelWatches() - before === quiet + 4)
    stops[0]?.()
    fs.rmSync(join(root, 'b/references/more'), { recursive: true })
    await until(() => countKernelWatches() - before === quiet + 3)
    stops[1]?.()
    await until(() => countKernelWatches() - before === quiet)
    t.equal(feed.position, undefined)
    fs.mkdirSync(join(root, 'b/references/more'))
  }
  feed.subscribe(() => {})
  await until(() => countKernelWatches() - before === quiet + 4)
  await skills.close()
  feed.close()
  t.equal(countKernelWatches(), before)
})

t.test('an error that nobody expects is logged, and the others are told', async (t) => {
  const warnings: object[] = []
  let onLook: (names?: Iterable<string>) => void = () => {}
  const feed = createChangeFeed({
    log: { info () {}, warn: (details) => { warnings.push(details) } },
    skills: {
      available: async () => [],
      namesNow: () => [],
      subscribe: () => () => {},
      observe: (listener) => { onLook = listener; return () => {} },
      inspect: async (name) => {
        if (name === 'bad') throw new TypeError('a bug')
        return { revision: name, fingerprint: name, changedAt: 0 }
      }
    }
  })
  const events: FeedEvent[] = []
  feed.subscribe((event) => { events.push(event) })
  onLook(['bad', 'good'])
  await until(() => events.length === 1)
  t.match(warnings, [{ err: TypeError, skill: 'bad' }])
  feed.close()
})
