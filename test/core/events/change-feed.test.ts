import { createHash } from 'node:crypto'
import fs from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { type ChangeFeed, createChangeFeed, type FeedEvent, MAX_RECENT_EVENTS } from '../../../src/core/events/change-feed.ts'
import { skill, startManager, until } from '../../helper/skills.ts'
import { eventText, follow, knownRevision, numbered } from '../../helper/watching.ts'

t.test(`K92: a client that missed more than ${MAX_RECENT_EVENTS} events has to read again`, async (t) => {
  const root = t.testdir({})
  const { feed, events } = await follow(t, root)
  const since = feed.position
  for (const name of numbered(MAX_RECENT_EVENTS + 1)) fs.mkdirSync(join(root, name))
  await until(() => events.length === MAX_RECENT_EVENTS + 1)
  t.strictSame(resumed(feed, since).map(eventText), ['reset'])
  t.equal(resumed(feed, events[0]?.id).length, MAX_RECENT_EVENTS)
})

t.test('K92: equal skills have an equal revision, with any history, which anybody can work out', async (t) => {
  const name = fc.constantFrom('a', 'b', 'ab', 'é', 'A b')
  const texts = fc.dictionary(name, fc.string(), { maxKeys: 4 })
  await fc.assert(fc.asyncProperty(texts, texts, async (first, later) => {
    const root = t.testdir(Object.fromEntries(Object.entries(first).map(([name, text]) => [name, { 'SKILL.md': text }])))
    const { skills, feed } = await follow(t, root, { watcher: false })
    for (const name of Object.keys(first)) fs.rmSync(join(root, name), { recursive: true })
    for (const [name, text] of Object.entries(later)) {
      fs.mkdirSync(join(root, name))
      fs.writeFileSync(join(root, name, 'SKILL.md'), text)
    }
    await skills.list()
    let sum = 0n
    for (const name of Object.keys(later)) {
      const { revision } = await skills.read(name, (skill) => skill.manifest())
      sum += BigInt(`0x${createHash('sha256').update(`${name}\0${revision}`).digest('hex')}`)
    }
    const expected = (sum % 2n ** 256n).toString(16).padStart(64, '0')
    await until(() => feed.revision === expected)
  }), { numRuns: 10 })
})

t.test('K52: a skill that comes while everything is read for the first time is reported, and can be resumed from', async (t) => {
  const root = t.testdir(Object.fromEntries(numbered(50).map((name) => [name, skill(name)])))
  const skills = await startManager(t, [root])
  const feed = createChangeFeed({ skills })
  t.teardown(() => { feed.close() })
  const events: FeedEvent[] = []
  feed.subscribe((event) => { events.push(event) })
  const start = feed.position
  fs.mkdirSync(join(root, 'new'))
  await skills.list()
  t.equal(feed.revision, undefined)
  await knownRevision(feed)
  t.same(events.map(eventText).sort(), ['added new', 'position'])
  t.equal(events.at(-1)?.type, 'position')
  t.same(resumed(feed, start), events)
  t.same(resumed(feed, events[0]?.id), events.slice(1))
})

function resumed (feed: ChangeFeed, lastId?: string): FeedEvent[] {
  const got: FeedEvent[] = []
  feed.subscribe((event) => { got.push(event) }, lastId)()
  return got
}
