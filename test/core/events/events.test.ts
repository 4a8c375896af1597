import { createHash } from 'node:crypto'
import fs from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import {
  type ChangeFeed, createChangeFeed, type FeedEvent, MAX_RECENT_EVENTS
} from '../../../src/core/events/change-feed.ts'
import { createFaultyDisk, saveAtomically, skill, skillText, startManager, until } from '../../helper/skills.ts'
import { eventText, follow, knownRevision, numbered } from '../../helper/watching.ts'

/** For a single change while other tests run on the same cores: far below the pause between two ticks. */
const REPORTED_UNDER_LOAD_MS = 5_000

/** A skill with folders inside. */
function deep (name: string) {
  return skill(name, { references: { 'x.md': 'x', more: { 'y.md': 'y' } }, '.git': { config: 'secret' } })
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
  const { skills, events, news, next } = await follow(t, root)
  for (const [title, edit] of EDITS) {
    edit(join(root, 'a'))
    const time = await next('a')
    t.ok(time < REPORTED_UNDER_LOAD_MS, `${title}: ${Math.round(time)} ms`)
    const { revision } = await skills.read('a', (skill) => skill.manifest())
    // A swap that is seen between its two renames is two events.
    await until(() => events.at(-1)?.type === 'changed')
    t.match(events.at(-1), { type: 'changed', name: 'a', revision }, title)
    fs.appendFileSync(join(root, 'b/references/more/y.md'), '!')
    await next('b')
    const latest = news()
    if (!title.includes('swap')) t.strictSame(latest, ['changed a', 'changed b'], `${title}: one event`)
  }
})

t.test('K52: skills that come and go', async (t) => {
  const base = t.testdir({ skills: { a: deep('a') }, outside: { b: deep('b') } })
  const root = join(base, 'skills')
  const { skills, feed, events, next } = await follow(t, root)
  fs.renameSync(join(base, 'outside/b'), join(root, 'b'))
  await next('b')
  t.match(events,
    [{ type: 'added', name: 'b', revision: (await skills.read('b', (skill) => skill.manifest())).revision }])
  fs.rmSync(join(root, 'a'), { recursive: true })
  await next('a')
  t.equal(events.at(-1)?.type, 'removed')
  t.strictSame(Object.keys(events.at(-1) ?? {}), ['id', 'type', 'name'])
  fs.mkdirSync(join(root, 'empty'))
  await next('empty')
  t.match(events.at(-1),
    { type: 'added', name: 'empty', revision: (await skills.read('empty', (skill) => skill.manifest())).revision })
  t.equal(events.at(-1)?.id, await knownRevision(feed), 'the id is the revision of the catalog')
  t.equal(new Set(events.map(({ id }) => id)).size, events.length)
})

t.test('K49 K52: a touch, a rewrite of the same bytes and what is never served are no events', async (t) => {
  const base = t.testdir({ skills: { a: deep('a'), z: skill('z') } })
  const root = join(base, 'skills')
  const { news, next } = await follow(t, root)
  const now = new Date()
  for (const file of ['SKILL.md', 'references/x.md', 'references/more/y.md',
    'references']) fs.utimesSync(join(root, 'a', file), now, now)
  fs.writeFileSync(join(root, 'a/references/x.md'), 'x')
  saveAtomically(join(root, 'a/SKILL.md'), skillText('a'))
  fs.writeFileSync(join(root, 'a/.git/config'), 'other')
  fs.writeFileSync(join(root, 'a/.env'), 'secret')
  fs.mkdirSync(join(root, 'a/empty'))
  fs.appendFileSync(join(root, 'z/SKILL.md'), 'the next event')
  await next('z')
  t.strictSame(news(), ['changed z'])
})

t.test('K52 K53: a hundred skills rewritten are at most one event each', async (t) => {
  const names = numbered(100)
  const root =
    t.testdir(Object.fromEntries(names.map((name) => [name, skill(name, { docs: { 'a.md': 'a', 'b.md': 'b' } })])))
  // The real disk: whether a state is settled is part of this.
  const { skills, events, news, next } = await follow(t, root, { disk: createFaultyDisk() })
  news()
  const first = events.length
  for (const [index, name] of names.entries()) {
    for (const file of ['docs/a.md', 'docs/b.md']) fs.writeFileSync(join(root, name, file), 'rewritten')
    fs.writeFileSync(join(root, name, 'SKILL.md'), skillText(name, 'rewritten'))
    if (index % 20 === 0) await pause(1)
  }
  await until(() => events.length - first >= names.length, 120_000)
  const revisions = new Map(
    events.slice(first).map((event) => [eventText(event), event.type === 'changed' ? event.revision : undefined]))
  fs.appendFileSync(join(root, 'skill-7/docs/a.md'), '!')
  await next('skill-7')
  const all = news()
  t.equal(all.length, names.length + 1, 'one event each')
  t.strictSame(new Set(all), new Set(names.map((name) => `changed ${name}`)))
  for (const name of names.slice(10, 30)) {
    t.equal(revisions.get(`changed ${name}`),
      (await skills.read(name, (skill) => skill.manifest())).revision, 'about the last state')
  }
})

t.test('K52: a skill that is written without a pause is reported again and again', async (t) => {
  const root = t.testdir({ a: deep('a') })
  const { events } = await follow(t, root, { disk: createFaultyDisk() })
  let count = 0
  const edits = setInterval(() => { fs.writeFileSync(join(root, 'a/references/x.md'), `edit ${++count}`) }, 5)
  t.teardown(() => { clearInterval(edits) })
  await until(() => events.length >= 3, 30_000)
  clearInterval(edits)
})

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
    const root =
      t.testdir(Object.fromEntries(Object.entries(first).map(([name, text]) => [name, { 'SKILL.md': text }])))
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

t.test('K52 K92: a skill that comes during the first reading is reported, and no id of that time is known', async (t) => {
  const root = t.testdir(Object.fromEntries(numbered(50).map((name) => [name, skill(name)])))
  const skills = await startManager(t, [root])
  const feed = createChangeFeed({ skills })
  t.teardown(() => { feed.close() })
  const events: FeedEvent[] = []
  feed.subscribe((event) => { events.push(event) })
  const start = feed.position
  t.same(resumed(feed, start).map(eventText), ['reset'])
  fs.mkdirSync(join(root, 'new'))
  await skills.list()
  t.equal(feed.revision, undefined)
  await knownRevision(feed)
  t.same(events.map(eventText).sort(), ['added new', 'position'])
  t.same(resumed(feed, start).map(eventText), ['reset'])
  t.same(resumed(feed, feed.position).map(eventText), [])
})

function resumed (feed: ChangeFeed, lastId?: string): FeedEvent[] {
  const got: FeedEvent[] = []
  feed.subscribe((event) => { got.push(event) }, lastId)()
  return got
}
