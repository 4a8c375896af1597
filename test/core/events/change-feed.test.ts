import { createHash } from 'node:crypto'
import fs from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { createChangeFeed, type FeedEvent } from '../../../src/core/events/change-feed.ts'
import { RecentEvents } from '../../../src/core/events/recent-events.ts'
import { CATALOG_REVISION, RevisionSum } from '../../../src/core/events/revision-sum.ts'
import type { SkillState } from '../../../src/core/revisions/state.ts'
import { MAX_RECENT_EVENTS } from '../../../src/core/shared/limits.ts'
import { createSkillManager, type SkillManager } from '../../../src/core/skill-manager.ts'
import { eventText, follow, knownRevision } from '../../helper/followed-feed.ts'
import { skill, until } from '../../helper/skills.ts'
import { numbered } from '../../helper/watched-index.ts'

/** Skills whose revisions are their names. */
function fakeSkills (names: readonly string[], revisionOf = (name: string): string => name) {
  const listeners = new Set<(names: readonly string[]) => void>()
  const skills = {
    compared: async () => {},
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

  const another = await follow(t, root)
  const again: FeedEvent[] = []
  another.feed.subscribe((event) => { again.push(event) }, since)
  await until(() => again.length > 0)
  t.match(again, [{ type: 'reset', id: await knownRevision(another.feed) }], 'another feed knows nothing of before')
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
  t.match(warnings, [{ err: /closed before the first index/ }])
})

t.test(`a client that missed more than ${MAX_RECENT_EVENTS} events has to read again`, async (t) => {
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

interface Numbered {
  readonly id: string
  readonly number: number
}

/** @param ids of the states after each event */
function fill (limit: number, ids: readonly string[]): RecentEvents<Numbered> {
  const recent = new RecentEvents<Numbered>(limit, 'base')
  for (const [index, id] of ids.entries()) recent.add({ id, number: index + 1 })
  return recent
}

function numbersAfter (recent: RecentEvents<Numbered>, id: string): number[] | undefined {
  return recent.after(id)?.map(({ number }) => number)
}

t.test('whoever knows an id gets exactly what came after it, or nothing when that is no longer there', (t) => {
  fc.assert(fc.property(fc.integer({ min: 1, max: 20 }), fc.nat(60), fc.nat(60), (limit, count, place) => {
    fc.pre(place <= count)
    const ids = Array.from({ length: count }, (_, index) => `id ${index + 1}`)
    const recent = fill(limit, ids)
    const expected = count - place > limit ? undefined : Array.from({ length: count - place }, (_, index) => place + index + 1)
    t.strictSame(numbersAfter(recent, ids[place - 1] ?? 'base'), expected)
    t.equal(recent.position, ids.at(-1) ?? 'base')
  }))
  t.end()
})

t.test('whoever resumes again and again gets every event once, in order', (t) => {
  fc.assert(fc.property(fc.array(fc.nat(8), { maxLength: 20 }), (bursts) => {
    const recent = new RecentEvents<Numbered>(8, 'base')
    const received: number[] = []
    let last = recent.position
    let count = 0
    for (const burst of bursts) {
      for (let index = 0; index < burst; index++) recent.add({ id: `id ${++count}`, number: count })
      for (const { id, number } of recent.after(last) ?? []) {
        received.push(number)
        last = id
      }
    }
    t.strictSame(received, Array.from({ length: count }, (_, index) => index + 1))
  }))
  t.end()
})

t.test('a state that came back is known from its last time on', (t) => {
  t.strictSame(numbersAfter(fill(9, ['a', 'b', 'a', 'c']), 'a'), [4])
  t.strictSame(numbersAfter(fill(9, ['a', 'base']), 'base'), [])
  t.end()
})

t.test('of events that leave the id as it is none is missed', (t) => {
  t.strictSame(numbersAfter(fill(9, ['a', 'a', 'a', 'b']), 'a'), [2, 3, 4])
  t.strictSame(numbersAfter(fill(9, ['base', 'base']), 'base'), [1, 2])
  t.strictSame(numbersAfter(fill(2, ['a', 'a', 'a', 'a']), 'a'), [3, 4])
  t.end()
})

t.test('ids of another sequence and nonsense are not known', (t) => {
  const recent = fill(4, ['a', 'b', 'c', 'd', 'e', 'f'])
  t.strictSame(numbersAfter(recent, 'b'), [3, 4, 5, 6])
  for (const id of ['', 'x', 'base', 'a', 'B', ' b', 'b\n', '__proto__', 'f0']) t.equal(recent.after(id), undefined, JSON.stringify(id))
  t.end()
})

type Skills = ReadonlyArray<readonly [name: string, revision: string | undefined]>

function sumOf (skills: Skills): string {
  const sum = new RevisionSum()
  for (const [name, revision] of skills) sum.add(name, revision)
  return sum.text
}

const SKILLS = fc.uniqueArray(fc.tuple(fc.string(), fc.option(fc.string(), { nil: undefined })), { selector: ([name]) => name, maxLength: 12 })

t.test('K92: equal skills have an equal sum, in any order and with any history', (t) => {
  fc.assert(fc.property(SKILLS, SKILLS, (skills, others) => {
    const sum = new RevisionSum()
    for (const [name, revision] of others) sum.add(name, revision)
    for (const [name, revision] of skills.toReversed()) sum.add(name, revision)
    for (const [name, revision] of others.toReversed()) sum.remove(name, revision)
    t.equal(sum.text, sumOf(skills))
    t.match(sum.text, CATALOG_REVISION)
  }))
  t.end()
})

t.test('K92: any other name, revision or number of skills is another sum', (t) => {
  const sums = ([[], [['a', 'r']], [['a', 's']], [['b', 'r']], [['a', undefined]], [['a', 'r'], ['b', 'r']], [['a', 'r'], ['b', 's']], [['a', 's'], ['b', 'r']]] as const)
    .map((skills) => sumOf(skills))
  t.equal(new Set(sums).size, sums.length)
  t.equal(sumOf([]), '0'.repeat(64))
  t.end()
})

t.test('K92: anybody can work it out', (t) => {
  const skills = [['weather', 'sha256:1'], ['calculator', 'sha256:2']] as const
  const sum = skills.map(([name, revision]) => BigInt(`0x${createHash('sha256').update(`${name}\0${revision}`).digest('hex')}`)).reduce((a, b) => a + b) % 2n ** 256n
  t.equal(sumOf(skills), sum.toString(16).padStart(64, '0'))
  t.end()
})
