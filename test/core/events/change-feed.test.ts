import fs from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { createChangeFeed, type FeedEvent } from '../../../src/core/events/change-feed.ts'
import { MAX_RECENT_EVENTS } from '../../../src/core/shared/limits.ts'
import { createSkillManager } from '../../../src/core/skill-manager.ts'
import { AGE_MS, deep, eventText, follow, knownRevision } from '../../helper/followed-feed.ts'
import { countKernelWatches } from '../../helper/kernel-watches.ts'
import { createFaultyDisk, skill, until } from '../../helper/skills.ts'
import { NO_TICKS, numbered } from '../../helper/watched-index.ts'

const manifestOf = async (name: string) => ({ skill_name: name, revision: name, files: [] })

t.test('who comes back resumes, or learns that events were missed', async (t) => {
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
  t.equal(feed.position, await knownRevision(feed))
  for (const id of ['nonsense', '', '0123456789ab-1']) t.strictSame(resumed(id), [{ type: 'reset', id: feed.position }], id)

  stop()
  stop()
  fs.appendFileSync(join(root, 'a/SKILL.md'), '!')
  await until(() => feed.position !== events.at(-1)?.id)
  const later: FeedEvent[] = []
  const end = feed.subscribe((event) => { later.push(event) }, events.at(-1)?.id)
  await until(() => later.length > 0)
  end()
  t.strictSame(later.map(eventText), ['changed a'], 'it goes on for those who come back soon')
  feed.close()
  t.equal(feed.position, undefined)

  const again: FeedEvent[] = []
  feed.subscribe((event) => { again.push(event) }, since)
  await until(() => again.length > 0)
  t.match(again, [{ type: 'reset', id: await knownRevision(feed) }], 'a feed that began anew knows nothing of before')
})

t.test('a skill with much to be read that cannot be read is not read without end', async (t) => {
  let reads = 0
  const feed = createChangeFeed({
    skills: {
      available: async () => [],
      namesNow: () => ['a', 'b'],
      subscribe: () => () => {},
      observe: () => () => {},
      inspect: async (name) => name === 'a' ? { revision: name, fingerprint: name, changedAt: 0 } : { ended: nextTurn().then(() => { reads++ }) },
      manifest: manifestOf,
      keptRevisions: (name) => [name]
    }
  })
  await until(() => feed.revision !== undefined)
  t.equal(reads, 5)
  feed.close()
})

t.test(`whoever missed more than ${MAX_RECENT_EVENTS} events has to read again`, (t) => {
  let onTouch: (names?: Iterable<string>) => void = () => {}
  const feed = createChangeFeed({
    skills: { available: async () => [], namesNow: () => [], subscribe: () => () => {}, observe: (listener) => { onTouch = listener; return () => {} }, inspect: async (name) => ({ revision: name, fingerprint: name, changedAt: 0 }), manifest: manifestOf, keptRevisions: (name) => [name] }
  })
  const events: FeedEvent[] = []
  feed.subscribe((event) => { if ('name' in event) events.push(event) })
  const since = feed.position
  onTouch(numbered(MAX_RECENT_EVENTS + 1))
  return until(() => events.length === MAX_RECENT_EVENTS + 1).then(() => {
    const got: FeedEvent[] = []
    feed.subscribe((event) => { got.push(event) }, since)
    t.strictSame(got.map(eventText), ['reset'])
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
  const skills = createSkillManager({ projectRoots: [root], times: NO_TICKS, disk: createFaultyDisk({ ageMs: AGE_MS }) })
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

t.test('skills that are closed before their start end no process that follows them', async (t) => {
  const rejections: unknown[] = []
  const onRejection = (reason: unknown): void => { rejections.push(reason) }
  process.on('unhandledRejection', onRejection)
  t.teardown(() => process.off('unhandledRejection', onRejection))
  const warnings: object[] = []
  const skills = createSkillManager({ projectRoots: [t.testdir({ a: skill('a') })] })
  const feeds = ['closed', 'open'].map(() => createChangeFeed({ skills, log: { info () {}, warn: (details) => { warnings.push(details) } } }))
  for (const feed of feeds) feed.subscribe(() => {})
  feeds[0]?.close()
  await skills.close()
  await until(() => rejections.length + warnings.length > 0)
  feeds[1]?.close()
  t.strictSame(rejections, [])
  t.match(warnings, [{ err: /closed before the start/ }])
})

t.test('an error that nobody expects is logged, and the others are reported', async (t) => {
  const warnings: object[] = []
  let onTouch: (names?: Iterable<string>) => void = () => {}
  const feed = createChangeFeed({
    log: { info () {}, warn: (details) => { warnings.push(details) } },
    skills: {
      available: async () => [],
      namesNow: () => [],
      subscribe: () => () => {},
      observe: (listener) => { onTouch = listener; return () => {} },
      inspect: async (name) => {
        if (name === 'bad') throw new TypeError('a bug')
        return { revision: name, fingerprint: name, changedAt: 0 }
      },
      manifest: manifestOf,
      keptRevisions: (name) => [name]
    }
  })
  const events: FeedEvent[] = []
  feed.subscribe((event) => { if ('name' in event) events.push(event) })
  onTouch(['bad', 'good'])
  await until(() => events.length === 1)
  t.match(warnings, [{ err: TypeError, skill: 'bad' }])
  feed.close()
})

t.test('K92: the first question for the revision reads all of 10,000 skills, once', async (t) => {
  const names = numbered(10_000)
  let inspected = 0
  const feed = createChangeFeed({
    graceMs: 10_000,
    skills: {
      available: async () => [],
      namesNow: () => names,
      subscribe: () => () => {},
      observe: () => () => {},
      inspect: async (name) => { inspected++; return { revision: name, fingerprint: name, changedAt: 0 } },
      manifest: async () => await Promise.reject(new Error('nobody is told of a revision of a skill')),
      keptRevisions: () => []
    }
  })
  t.equal(feed.revision, undefined)
  await until(() => feed.revision !== undefined)
  t.equal(inspected, names.length)
  feed.close()
})

t.test('a feed goes on for a listener that comes back, and for as long as somebody asks for the revision', async (t) => {
  const ended: string[] = []
  const createFeed = (name: string) => createChangeFeed({
    graceMs: 20,
    skills: {
      available: async () => [],
      namesNow: () => [],
      subscribe: () => () => { ended.push(name) },
      observe: () => () => {},
      inspect: async () => undefined,
      manifest: manifestOf,
      keptRevisions: () => []
    }
  })
  const [heard, asked, left] = [createFeed('heard'), createFeed('asked'), createFeed('left')] as const
  heard.subscribe(() => {})()
  heard.subscribe(() => {})
  heard.subscribe(() => {})()
  t.equal(asked.revision, undefined)
  left.subscribe(() => {})()
  await until(() => ended.length >= 2)
  t.strictSame(ended, ['left', 'asked'])
  t.not(heard.position, undefined)
  heard.close()
})
