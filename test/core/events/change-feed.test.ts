import { createHash } from 'node:crypto'
import fs from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { createChangeFeed, type FeedEvent, MAX_RECENT_EVENTS } from '../../../src/core/events/change-feed.ts'
import type { SkillState } from '../../../src/core/revisions/state.ts'
import { mainFileError } from '../../../src/core/shared/errors.ts'
import type { SkillManager } from '../../../src/core/skill-manager.ts'
import { eventText, follow, knownRevision } from '../../helper/followed-feed.ts'
import { skill, until } from '../../helper/skills.ts'
import { numbered } from '../../helper/watched-index.ts'

/** Skills whose revisions are their names. */
function fakeSkills (names: readonly string[], revisionOf = (name: string): string => name) {
  const listeners = new Set<(names: readonly string[]) => void>()
  const skills = {
    indexed: async () => {},
    namesNow: () => names,
    subscribe: (listener: (names: readonly string[]) => void) => {
      listeners.add(listener)
      return () => { listeners.delete(listener) }
    },
    read: (async (name: string, answer: (state: SkillState) => Promise<unknown>) =>
      await answer({ manifest: async () => ({ skill_name: name, revision: revisionOf(name), files: [] }) } as Partial<SkillState> as SkillState)) as SkillManager['read']
  }
  return { skills, listeners, touch: (touched: readonly string[]) => { for (const listener of listeners) listener(touched) } }
}

t.test('K92: who comes back resumes, or learns that events were missed', async (t) => {
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

  const another = await follow(t, root)
  const again: FeedEvent[] = []
  another.feed.subscribe((event) => { again.push(event) }, since)
  await until(() => again.length > 0)
  t.match(again, [{ type: 'reset', id: await knownRevision(another.feed) }], 'another feed knows nothing of before')
})

t.test(`K92: a client that missed more than ${MAX_RECENT_EVENTS} events has to read again`, async (t) => {
  const { skills, touch } = fakeSkills([])
  const feed = createChangeFeed({ skills })
  const events: FeedEvent[] = []
  feed.subscribe((event) => { if ('name' in event) events.push(event) })
  await until(() => feed.revision !== undefined)
  const since = feed.position
  touch(numbered(MAX_RECENT_EVENTS + 1))
  await until(() => events.length === MAX_RECENT_EVENTS + 1)
  const got: FeedEvent[] = []
  feed.subscribe((event) => { got.push(event) }, since)
  t.strictSame(got.map(eventText), ['reset'])
  feed.subscribe((event) => { got.push(event) }, events[0]?.id)
  t.equal(got.length, 1 + MAX_RECENT_EVENTS)
  feed.close()
})

t.test('an unexpected error is logged, and the other skills are reported', async (t) => {
  const warnings: object[] = []
  const { skills, touch } = fakeSkills([], (name) => {
    if (name === 'bad') throw new TypeError('a bug')
    return name
  })
  const feed = createChangeFeed({ skills, log: { info () {}, warn: (details) => { warnings.push(details) } } })
  const events: FeedEvent[] = []
  feed.subscribe((event) => { if ('name' in event) events.push(event) })
  await until(() => feed.revision !== undefined)
  touch(['bad', 'good'])
  await until(() => events.some((event) => eventText(event) === 'added good'))
  t.match(warnings, [{ err: TypeError, skill: 'bad' }])
  feed.close()
})

t.test('K92: equal skills have an equal revision, in any order and with any history, which anybody can work out', async (t) => {
  const revisions = fc.dictionary(fc.string(), fc.string(), { maxKeys: 8 })
  await fc.assert(fc.asyncProperty(revisions, revisions, async (first, later) => {
    const now = new Map(Object.entries(first))
    const { skills, touch } = fakeSkills([...now.keys()], (name) => {
      const revision = now.get(name)
      if (revision === undefined) throw mainFileError.skillNotFound(name)
      return revision
    })
    const feed = createChangeFeed({ skills })
    await knownRevision(feed)
    for (const [name, revision] of Object.entries(later)) now.set(name, revision)
    for (const name of Object.keys(first)) if (!Object.hasOwn(later, name)) now.delete(name)
    touch([...Object.keys(first), ...Object.keys(later)])
    const sum = [...now].map(([name, revision]) => createHash('sha256').update(`${name}\0${revision}`).digest('hex'))
      .reduce((sum, digest) => sum + BigInt(`0x${digest}`), 0n) % 2n ** 256n
    t.equal(await knownRevision(feed), sum.toString(16).padStart(64, '0'))
    feed.close()
  }), { numRuns: 30 })
})

t.test('K52: a change while everything is read for the first time is reported, and can be resumed from', async (t) => {
  const { skills, touch } = fakeSkills(['a', 'b', 'c'])
  const feed = createChangeFeed({ skills })
  const events: FeedEvent[] = []
  feed.subscribe((event) => { events.push(event) })
  const start = feed.position
  touch(['b', 'new'])
  await knownRevision(feed)
  t.same(events.map(eventText), ['changed b', 'added new', 'position'])
  const got: FeedEvent[] = []
  feed.subscribe((event) => { got.push(event) }, start)
  feed.subscribe((event) => { got.push(event) }, events[0]?.id)
  t.same(got, [...events, ...events.slice(1)])
  feed.close()
})
