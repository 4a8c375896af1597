import fs from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { allWatched, deep, EDITS, eventText, follow, knownRevision, REPORTED_UNDER_LOAD_MS } from '../../helper/followed-feed.ts'
import { countKernelWatches } from '../../helper/kernel-watches.ts'
import { createFaultyDisk, saveAtomically, skill, skillText, until } from '../../helper/skills.ts'
import { startTurnWatch } from '../../helper/timing.ts'
import { numbered } from '../../helper/watched-index.ts'

/** The promised figure, for the median of all changes. */
const REPORTED_MS = 250

t.test('K52: an edit of any file of a skill is one event, with the revision of its manifest', async (t) => {
  const base = t.testdir({ skills: { a: deep('a'), b: deep('b') } })
  const root = join(base, 'skills')
  const before = countKernelWatches()
  const { skills, events, news, next } = await follow(t, root)
  const times: number[] = []
  for (const [title, edit] of EDITS) {
    edit(join(root, 'a'))
    const time = await next('a')
    t.ok(time < REPORTED_UNDER_LOAD_MS, `${title}: ${Math.round(time)} ms`)
    times.push(time)
    const { revision } = await skills.read('a', (skill) => skill.manifest())
    // A swap that is seen between its two renames is two events.
    await until(() => events.at(-1)?.type === 'changed')
    t.match(events.at(-1), { type: 'changed', name: 'a', revision }, title)
    await allWatched(before, root)
    fs.appendFileSync(join(root, 'b/references/more/y.md'), '!')
    await next('b')
    const latest = news()
    if (!title.includes('swap')) t.strictSame(latest, ['changed a', 'changed b'], `${title}: one event`)
  }
  const median = times.sort((a, b) => a - b)[times.length >> 1] ?? Infinity
  t.ok(median <= REPORTED_MS, `the median is ${Math.round(median)} ms`)
})

t.test('K52: skills that come and go', async (t) => {
  const base = t.testdir({ skills: { a: deep('a') }, outside: { b: deep('b') } })
  const root = join(base, 'skills')
  const { skills, feed, events, next } = await follow(t, root)
  fs.renameSync(join(base, 'outside/b'), join(root, 'b'))
  await next('b')
  t.match(events, [{ type: 'added', name: 'b', revision: (await skills.read('b', (skill) => skill.manifest())).revision }])
  fs.rmSync(join(root, 'a'), { recursive: true })
  await next('a')
  t.equal(events.at(-1)?.type, 'removed')
  t.strictSame(Object.keys(events.at(-1) ?? {}), ['id', 'type', 'name'])
  fs.mkdirSync(join(root, 'empty'))
  await next('empty')
  t.match(events.at(-1), { type: 'added', name: 'empty', revision: (await skills.read('empty', (skill) => skill.manifest())).revision })
  t.equal(events.at(-1)?.id, await knownRevision(feed), 'the id is the revision of the catalog')
  t.equal(new Set(events.map(({ id }) => id)).size, events.length)
})

t.test('K49 K52: a touch, a rewrite of the same bytes and what is never served are no events', async (t) => {
  const base = t.testdir({ skills: { a: deep('a'), z: skill('z') } })
  const root = join(base, 'skills')
  const { news, next } = await follow(t, root)
  const now = new Date()
  for (const file of ['SKILL.md', 'references/x.md', 'references/more/y.md', 'references']) fs.utimesSync(join(root, 'a', file), now, now)
  fs.writeFileSync(join(root, 'a/references/x.md'), 'x')
  saveAtomically(join(root, 'a/SKILL.md'), skillText('a'))
  fs.writeFileSync(join(root, 'a/.git/config'), 'other')
  fs.writeFileSync(join(root, 'a/.env'), 'secret')
  fs.mkdirSync(join(root, 'a/empty'))
  fs.appendFileSync(join(root, 'z/SKILL.md'), 'the next event')
  await next('z')
  t.strictSame(news(), ['changed z'])
})

t.test('the root removed, and made again', async (t) => {
  const base = t.testdir({ skills: { a: deep('a'), b: skill('b') } })
  const root = join(base, 'skills')
  const before = countKernelWatches()
  const { news, next } = await follow(t, root)
  fs.renameSync(root, join(base, 'away'))
  await next('b')
  t.strictSame(news().sort(), ['removed a', 'removed b'])
  fs.cpSync(join(base, 'away'), root, { recursive: true })
  await next('b')
  t.strictSame(news().sort(), ['added a', 'added b'])
  await allWatched(before, root)
  fs.appendFileSync(join(root, 'a/references/more/y.md'), '!')
  await next('a')
  t.strictSame(news(), ['changed a'])
})

t.test('K52 K53: hundreds of skills rewritten are at most one event each', async (t) => {
  const names = numbered(300)
  const root = t.testdir(Object.fromEntries(names.map((name) => [name, skill(name, { docs: { 'a.md': 'a', 'b.md': 'b' } })])))
  // The real disk: whether a state is settled is part of this.
  const { skills, events, news, next } = await follow(t, root, { disk: createFaultyDisk() })
  news()
  const first = events.length
  const longestTurn = startTurnWatch()
  const start = performance.now()
  for (const [index, name] of names.entries()) {
    for (const file of ['docs/a.md', 'docs/b.md']) fs.writeFileSync(join(root, name, file), 'rewritten')
    fs.writeFileSync(join(root, name, 'SKILL.md'), skillText(name, 'rewritten'))
    if (index % 50 === 0) await pause(1)
  }
  const written = performance.now()
  await until(() => events.length - first >= names.length, 120_000)
  const longest = longestTurn()
  t.comment(`written in ${Math.round(written - start)} ms, reported ${Math.round(performance.now() - written)} ms later, longest turn ${Math.round(longest)} ms`)
  const revisions = new Map(events.slice(first).map((event) => [eventText(event), event.type === 'changed' ? event.revision : undefined]))
  fs.appendFileSync(join(root, 'skill-7/docs/a.md'), '!')
  await next('skill-7')
  const all = news()
  t.equal(all.length, names.length + 1, 'one event each')
  t.strictSame(new Set(all), new Set(names.map((name) => `changed ${name}`)))
  for (const name of names.slice(10, 30)) t.equal(revisions.get(`changed ${name}`), (await skills.read(name, (skill) => skill.manifest())).revision, 'about the last state')
  t.ok(longest < 1_000, 'no turn of a second, on a machine that runs other tests')
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
