import fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { CatalogChange } from '../../../src/core/catalog/catalog.ts'
import { createChangeFeed, type FeedEvent } from '../../../src/core/events/change-feed.ts'
import { Signal } from '../../../src/core/shared/signal.ts'
import { createSkillManager, type SkillManagerOptions } from '../../../src/core/skill-manager.ts'
import { createWatcher } from '../../../src/core/watch/watcher.ts'
import { AGE_MS, countInspections, deep, EDITS, eventText, follow, knownRevision, REPORTED_UNDER_LOAD_MS, write } from '../../helper/followed-feed.ts'
import { createFaultyDisk, osError, passTick, skill, skillText, until } from '../../helper/skills.ts'
import { NO_TICKS, numbered } from '../../helper/watched-index.ts'
import { BLIND, failWith } from '../../helper/watched-roots.ts'

const HOUR_MS = 3_600_000

t.test('K52: what changes before a skill has been inspected is reported too', async (t) => {
  const root = t.testdir(Object.fromEntries(numbered(6).map((name) => [name, deep(name)])))
  const skills = createSkillManager({ projectRoots: [root], times: { ...NO_TICKS, debounce: 1 } })
  await skills.initialize()
  await until(() => skills.status.watcher.status === 'watching')
  let release = () => {}
  const held = new Promise<void>((resolve) => { release = resolve })
  const feed = createChangeFeed({ skills: { ...countInspections(skills, new Map()), available: async () => { await held; return [] } } })
  t.teardown(() => {
    feed.close()
    return skills.close()
  })
  const types = new Map<string, string>()
  feed.subscribe((event) => { if ('name' in event) types.set(event.name, event.type) })
  fs.appendFileSync(join(root, 'skill-0/references/more/y.md'), '!')
  fs.rmSync(join(root, 'skill-1/references'), { recursive: true })
  fs.rmSync(join(root, 'skill-2'), { recursive: true })
  fs.appendFileSync(join(root, 'skill-3/SKILL.md'), '!')
  write(join(root, 'new/SKILL.md'), 'new')
  await until(() => skills.namesNow().includes('new') && !skills.namesNow().includes('skill-2'))
  release()
  await until(() => types.has('new') && ['skill-0', 'skill-1', 'skill-2', 'skill-3'].every((name) => types.has(name)))
  t.match(Object.fromEntries(types), { 'skill-0': 'changed', 'skill-1': 'changed', 'skill-2': 'removed', 'skill-3': 'changed', new: 'added' })
})

t.test('K52: a skill changed during the inspection is reported, whatever the clocks of the disk say', async (t) => {
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
  feed.subscribe((event) => { if ('name' in event) events.push(event) })
  fs.appendFileSync(join(root, 'a/SKILL.md'), '!')
  await skills.find('a')
  release()
  await until(() => events.length > 0)
  t.match(events, [{ type: 'changed', name: 'a', revision: (await skills.manifest('a')).revision }])
})

t.test('K52 K54: without a watcher that works every edit is found by the ticks', async (t) => {
  const cases: Readonly<Record<string, Partial<SkillManagerOptions>>> = {
    'no watcher': { watcher: false, times: { reconcileDegraded: 20 } },
    'a broken one': { watcher: (options) => createWatcher({ ...options, watchFolder: failWith('ENOSPC') }), times: { reconcileDegraded: 20 } },
    // Of a comparison that the machine holds up, the rest is as long as a degraded watcher's pause at most.
    'a blind one': { watcher: (options) => createWatcher({ ...options, watchFolder: BLIND }), times: { reconcileDegraded: 20, reconcileHealthy: 20 } },
    polling: { polling: true, times: { reconcileDegraded: 20, poll: 20 } }
  }
  for (const [title, options] of Object.entries(cases)) {
    await t.test(title, async (t) => {
      const base = t.testdir({ skills: { a: deep('a'), b: skill('b') } })
      const root = join(base, 'skills')
      const { skills, events, news, next } = await follow(t, root, options)
      for (const [title, edit] of EDITS) {
        edit(join(root, 'a'))
        const time = await next('a')
        t.ok(time < REPORTED_UNDER_LOAD_MS, `${title}: ${Math.round(time)} ms`)
        const { revision } = await skills.manifest('a')
        await until(() => events.some((event) => event.type === 'changed' && event.revision === revision))
      }
      news()
      // In one step: a tick that came between the steps of a removal would see a skill without its file.
      fs.renameSync(join(root, 'b'), join(base, 'b'))
      await next('b')
      fs.utimesSync(join(root, 'a/references/x.md'), 1, 1)
      fs.cpSync(join(root, 'a'), join(root, 'c'), { recursive: true })
      await next('c')
      t.strictSame(news(), ['removed b', 'added c'])
    })
  }

  await t.test('and one that heals watches the insides again', async (t) => {
    const root = t.testdir({ a: deep('a') })
    let watchFolder = failWith('ENOSPC')
    const { skills, next } = await follow(t, root, {
      watcher: (options) => createWatcher({ ...options, watchFolder: (folder, onEvent) => watchFolder(folder, onEvent) }),
      times: { reconcileDegraded: 20, reconcileHealthy: HOUR_MS }
    })
    watchFolder = (folder, onEvent) => fs.watch(folder, onEvent)
    await until(() => skills.status.watcher.status === 'watching')
    // Until the folders are under watch: no tick comes any more.
    const edits = setInterval(() => { fs.appendFileSync(join(root, 'a/references/more/y.md'), '!') }, 100)
    t.teardown(() => { clearInterval(edits) })
    await next('a')
    clearInterval(edits)
  })
})

t.test('K53, K92: while the index has other names than it is of, there is no revision of the catalog', async (t) => {
  const root = t.testdir({ a: skill('a'), b: skill('b') })
  const skills = createSkillManager({ projectRoots: [root], watcher: false, disk: createFaultyDisk({ ageMs: AGE_MS }) })
  await skills.initialize()
  let names: readonly string[] = ['a', 'b']
  const feed = createChangeFeed({ skills: { ...countInspections(skills, new Map()), namesNow: () => names } })
  t.teardown(() => {
    feed.close()
    return skills.close()
  })
  await until(() => feed.revision !== undefined)
  const { revision } = feed
  for (names of [['a', 'b', 'new'], ['a'], ['a', 'renamed'], []]) t.equal(feed.revision, undefined, names.join())
  names = ['a', 'b']
  t.equal(feed.revision, revision)
})

t.test('K92: the revision of the catalog stays known while the timestamps of a skill lie in the future', async (t) => {
  const root = t.testdir({ a: deep('a') })
  const { skills, feed } = await follow(t, root, { disk: createFaultyDisk({ ageMs: -HOUR_MS }), watcher: false, times: { reconcileDegraded: 20 } })
  await until(() => feed.revision !== undefined)
  let refreshes = 0
  let gaps = 0
  skills.refreshed.subscribe(() => { refreshes++ })
  await until(() => {
    if (feed.revision === undefined) gaps++
    return refreshes > 5
  })
  t.equal(gaps, 0)
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

t.test('K53: while the disk fails there are no events, and afterwards those of what changed', async (t) => {
  const root = t.testdir({ a: deep('a') })
  const disk = createFaultyDisk({ ageMs: AGE_MS })
  const { news, next } = await follow(t, root, { disk, watcher: false, times: { reconcileDegraded: 20 } })
  let failures = 0
  disk.intercept = () => { failures++; throw osError('EIO') }
  fs.appendFileSync(join(root, 'a/references/x.md'), '!')
  await until(() => failures > 50)
  t.strictSame(news(), [])
  disk.intercept = () => {}
  await next('a')
  t.strictSame(news(), ['changed a'])
})

t.test('K59: the revision of an event stays readable after the next edit, while somebody listens', async (t) => {
  const root = t.testdir({ a: deep('a'), b: deep('b') })
  const { skills, events, feed, next, stop } = await follow(t, root)
  t.strictSame(['a', 'b'].flatMap((name) => skills.keptRevisions(name)), [], 'a first reading of all skills keeps nothing')
  const file = join(root, 'a/references/x.md')
  for (const text of ['one', 'two', 'three']) {
    passTick(root)
    fs.writeFileSync(file, text)
    await next('a')
    const event = events.at(-1)
    const revision = event !== undefined && 'revision' in event ? event.revision ?? '' : ''
    passTick(root)
    fs.writeFileSync(file, `${text}, edited`)
    const reported = next('a')
    t.equal((await skills.at(revision).readFile('a', 'references/x.md')).utf8, text)
    await reported
  }
  write(join(root, 'c/SKILL.md'), skillText('c'))
  await next('c')
  t.equal(skills.keptRevisions('c').length, 1, 'a new skill too')
  t.strictSame(skills.keptRevisions('b'), [])

  stop()
  const before = feed.position
  fs.appendFileSync(join(root, 'b/references/x.md'), '!')
  await until(() => feed.position !== before)
  t.strictSame(skills.keptRevisions('b'), [], 'who asks for the revision of the catalog alone is told of no other')
})

t.test('K59: the revision of an event that a stream gets later, by the last id that it knows, stays readable after the next edit', async (t) => {
  const root = t.testdir({ a: deep('a'), b: deep('b') })
  const { skills, feed, stop } = await follow(t, root)
  await knownRevision(feed)
  const since = feed.position ?? ''
  stop()
  const edit = async (name: string, text: string): Promise<void> => {
    const before = feed.position
    passTick(root)
    fs.writeFileSync(join(root, name, 'references/x.md'), text)
    await until(() => feed.position !== before)
  }
  await edit('a', 'one')
  await edit('b', 'one')
  await edit('a', 'two')
  t.strictSame(['a', 'b'].flatMap((name) => skills.keptRevisions(name)), [], 'nobody was told of them')

  const events: FeedEvent[] = []
  t.teardown(feed.subscribe((event) => { events.push(event) }, since))
  // A stream that has gone by then gets nothing, and one that comes later gets the same.
  feed.subscribe(() => { t.fail('an event for a stream that is closed') }, since)()
  await until(() => events.length >= 3)
  t.strictSame(events.map((event) => 'name' in event ? `${event.type} ${event.name}` : event.type), ['changed a', 'changed b', 'changed a'])
  const revisions = events.flatMap((event) => 'revision' in event ? event.revision ?? [] : [])
  passTick(root)
  for (const name of ['a', 'b']) fs.writeFileSync(join(root, name, 'references/x.md'), 'later')
  t.equal((await skills.at(String(revisions[2])).readFile('a', 'references/x.md')).utf8, 'two')
  t.equal((await skills.at(String(revisions[1])).readFile('b', 'references/x.md')).utf8, 'one')
  await t.rejects(skills.at(String(revisions[0])).readFile('a', 'references/x.md'), { code: 'revision_changed' }, 'one that was gone before')
})

t.test('K59: the revision of an event that made room for others is kept again when a later stream gets the event', async (t) => {
  const root = t.testdir({ a: deep('a'), big: skill('big', { x: 'x'.repeat(20_000) }) })
  const { skills, feed, next } = await follow(t, root, { keep: { maxBytes: 23_000 } })
  await knownRevision(feed)
  const since = feed.position ?? ''
  passTick(root)
  fs.writeFileSync(join(root, 'a/references/x.md'), 'one')
  await next('a')
  const [revision = ''] = skills.keptRevisions('a')
  await skills.manifest('big')
  t.strictSame(skills.keptRevisions('a'), [], 'others took its room')
  await new Promise<void>((resolve) => { t.teardown(feed.subscribe((event) => { if ('name' in event && event.name === 'a') resolve() }, since)) })
  passTick(root)
  fs.writeFileSync(join(root, 'a/references/x.md'), 'two')
  t.equal((await skills.at(revision).readFile('a', 'references/x.md')).utf8, 'one')
})

/** Skills that change when the test says so. */
function createStub (revisions: Map<string, string>) {
  const changes = new Signal<CatalogChange>()
  const touches = new Signal<Iterable<string> | undefined>()
  const inspected: string[] = []
  const stub = {
    inspected,
    changes,
    touches,
    names: undefined as readonly string[] | undefined,
    /** What an inspection waits for, after it has seen the state. */
    held: Promise.resolve(),
    indexed: Promise.resolve(),
    skills: {
      available: async () => { await stub.indexed; return [] },
      namesNow: () => stub.names ?? [...revisions.keys()],
      subscribe: (listener: (change: CatalogChange) => void) => changes.subscribe(listener),
      observe: (listener: (names?: Iterable<string>) => void) => touches.subscribe(listener),
      inspect: async (name: string) => {
        inspected.push(name)
        const revision = revisions.get(name)
        await stub.held
        return revision === undefined ? undefined : { revision, fingerprint: revision, changedAt: 0 }
      },
      manifest: async (name: string) => ({ skill_name: name, revision: revisions.get(name) ?? '', files: [] }),
      keptRevisions: (name: string) => [revisions.get(name) ?? '']
    }
  }
  return stub
}

t.test('K92: while a skill may have changed there is no revision of the catalog, and then it is that of a feed that begins now', async (t) => {
  const revisions = new Map([['a', '1'], ['b', '1'], ['c', '1']])
  const stub = createStub(revisions)
  const feed = createChangeFeed({ skills: stub.skills })
  const events: string[] = []
  feed.subscribe((event) => { if ('name' in event) events.push(eventText(event)) })
  const revision = await knownRevision(feed)
  const change = (type: 'added' | 'changed' | 'removed', name: string) => { stub.changes.emit({ generation: 0, added: [], changed: [], removed: [], [type]: [name] }) }
  for (const [text, act] of [
    ['changed a', () => { revisions.set('a', '2'); change('changed', 'a') }],
    ['changed a', () => { revisions.set('a', '3'); stub.touches.emit(['a']) }],
    ['added d', () => { revisions.set('d', '1'); change('added', 'd') }],
    ['removed b', () => { revisions.delete('b'); change('removed', 'b') }],
    ['changed c', () => { revisions.set('c', '2'); stub.touches.emit(undefined) }],
    ['removed d', () => { revisions.delete('d'); stub.touches.emit(undefined) }],
    ['added e', () => { revisions.set('e', '1'); stub.touches.emit(undefined) }]
  ] as const) {
    const count = events.length
    act()
    if (!text.endsWith('c')) t.equal(feed.revision, undefined, text)
    await until(() => events.length > count && feed.revision !== undefined)
    t.strictSame(events.slice(count), [text])
    const other = createChangeFeed({ skills: stub.skills })
    t.equal(feed.revision, await knownRevision(other), text)
    t.not(feed.revision, revision)
    other.close()
  }

  let release = () => {}
  const hold = () => { stub.held = new Promise((resolve) => { release = resolve }) }
  hold()
  revisions.set('a', '4')
  stub.touches.emit(['a'])
  await until(() => stub.inspected.at(-1) === 'a')
  stub.touches.emit(['a'])
  const first = release
  hold()
  const count = events.length
  first()
  await until(() => events.length > count)
  t.equal(feed.revision, undefined, 'it was touched while it was compared')
  release()
  await knownRevision(feed)

  stub.inspected.length = 0
  feed.close()
  t.notOk(stub.changes.hasListeners || stub.touches.hasListeners)
})

t.test('K52: skills that a policy lets in with the first index are news if they came after the beginning', async (t) => {
  const revisions = new Map([['old', '1'], ['new', '1']])
  const stub = createStub(revisions)
  let admit = () => {}
  stub.indexed = new Promise((resolve) => { admit = resolve })
  stub.names = []
  const changedAt = Date.now() + HOUR_MS
  const inspect = async (name: string) => {
    const state = await stub.skills.inspect(name)
    return state && { ...state, ...name === 'new' && { changedAt } }
  }
  const feed = createChangeFeed({ skills: { ...stub.skills, inspect } })
  t.teardown(() => { feed.close() })
  const events: string[] = []
  feed.subscribe((event) => { events.push(eventText(event)) })
  stub.names = undefined
  let release = () => {}
  stub.held = new Promise((resolve) => { release = resolve })
  admit()
  await until(() => stub.inspected.length > 0)
  t.equal(feed.revision, undefined)
  t.strictSame(events, [])
  release()
  await knownRevision(feed)
  t.strictSame(events, ['added new', 'position'])
})
