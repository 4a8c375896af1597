import fs from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { SkillChange } from '../../../src/core/events/change-feed.ts'
import type { SkillManager } from '../../../src/core/skill-manager.ts'
import type { View } from '../../../src/core/view.ts'
import { createFaultyDisk, skill, until } from '../../helper/skills.ts'
import { usedMemory } from '../../helper/timing.ts'
import { numbered, startWatching } from '../../helper/watching.ts'

const files = () => ({ docs: { 'a.md': 'a', 'b.md': 'b' } })

/** A manager whose changes are found when the test refreshes, and whose skills have all been read. */
async function startFilled (t: Test, root: string) {
  const disk = createFaultyDisk({ ageMs: 60_000 })
  const skills = await startWatching(t, root, { disk, watcher: false })
  skills.parts.ledger.start()
  await until(() => skills.feed.revision !== undefined)
  return { skills, disk, refresh: () => refreshAll(skills) }
}

async function refreshAll ({ catalog, feed }: SkillManager): Promise<void> {
  for (const root of catalog.roots) await catalog.refresh(root)
  await until(() => feed.revision !== undefined)
}

function collect (skills: View): string[] {
  const heard: string[] = []
  skills.feed.onChange(({ type, name }: SkillChange) => { heard.push(`${type} ${name}`) })
  return heard
}

t.test('K52: an edit costs one walk and one reading of the changed file, for a hundred views', async (t) => {
  const root = t.testdir({ a: skill('a', files()), b: skill('b', files()) })
  const { skills, disk, refresh } = await startFilled(t, root)
  const views = numbered(100).map((scope) => skills.createView(scope, () => (name) => name === 'a'))
  const heard = views.map(collect)
  for (const view of views) t.ok(view.feed.revision)
  await refresh()
  const read = new Set<string>()
  const listed: string[] = []
  disk.intercept = (operation, path, file) => {
    if (operation === 'read') read.add(file.slice(root.length))
    if (operation === 'readdir' && path.includes('/a')) listed.push(path.slice(root.length))
  }
  fs.appendFileSync(join(root, 'a/docs/a.md'), '!')
  await refresh()
  const revisions = new Set(views.map(({ feed }) => feed.revision))
  t.equal(revisions.size, 1)
  t.strictSame(heard, views.map(() => ['changed a']))
  t.strictSame([[...read], listed], [['/a/docs/a.md'], ['/a', '/a/docs']])
})

t.test('K92: lists and probes read no file, and know no revision before the ledger is started', async (t) => {
  const root = t.testdir({ a: skill('a', files()) })
  const disk = createFaultyDisk({ ageMs: 60_000 })
  const skills = await startWatching(t, root, { disk, watcher: false })
  disk.calls.clear()
  await skills.list()
  t.equal(skills.feed.revision, undefined)
  t.notOk(disk.calls.get('open'))
})

t.test('K52: nothing is announced that has not changed', async (t) => {
  const folders = t.testdir({ one: { a: skill('a', files()), b: skill('b') }, two: { c: skill('c') } })
  const one = { path: join(folders, 'one') }
  const two = { path: join(folders, 'two') }
  const { skills, refresh } = await startFilled(t, one.path)
  const heard = collect(skills)
  await skills.setRoots([one])
  await refresh()
  t.strictSame(heard, [], 'a root that is replaced by one with the same skills')
  await skills.setRoots([one, two])
  await refresh()
  t.strictSame(heard.splice(0), ['added c'], 'a root that is added')
  fs.mkdirSync(join(two.path, 'short'))
  t.strictSame(await skills.list(), ['a', 'b', 'c', 'short'])
  fs.rmdirSync(join(two.path, 'short'))
  await refresh()
  t.strictSame(heard.splice(0), ['removed short'], 'a skill that goes before it was read')
  const now = new Date()
  fs.utimesSync(join(one.path, 'a/docs/a.md'), now, now)
  fs.writeFileSync(join(one.path, 'a/docs/b.md'), 'b')
  await refresh()
  t.strictSame(heard, [], 'a touch, and the same bytes')
  await skills.setRoots([two, one])
  await skills.setRoots([two])
  await refresh()
  t.strictSame(heard.splice(0).sort(), ['removed a', 'removed b'], 'a root that is removed')
})

t.test('K64: a view hears of what a name means for it, and resumes over changes that it does not see', async (t) => {
  const folders = t.testdir({ one: { a: skill('a') }, two: { a: skill('a', files()), b: skill('b') } })
  const [one, two] = ['one', 'two'].map((name) => ({ path: join(folders, name) }))
  const { skills, refresh } = await startFilled(t, folders)
  await skills.setRoots([one, two].flatMap((root) => root ?? []))
  await refresh()
  const second = skills.createView('second', (root) => root === 'two' ? 'all' : undefined)
  const [all, ofSecond] = [collect(skills), collect(second)]
  const { position } = second.feed
  for (let round = 0; round < 3; round++) {
    fs.appendFileSync(join(folders, 'one/a/SKILL.md'), '!')
    await refresh()
  }
  t.strictSame([all.splice(0), ofSecond.splice(0)], [Array(3).fill('changed a'), []])
  t.equal(second.feed.position, position)
  fs.appendFileSync(join(folders, 'two/a/SKILL.md'), '!')
  fs.appendFileSync(join(folders, 'two/b/SKILL.md'), '!')
  await refresh()
  t.strictSame([all.splice(0), ofSecond.splice(0).sort()], [['changed b'], ['changed a', 'changed b']])
  fs.rmSync(join(folders, 'one/a'), { recursive: true })
  await refresh()
  t.strictSame([all, ofSecond], [['changed a'], []], 'a namesake that is no longer hidden')
  const resumed: string[] = []
  second.feed.subscribe((event) => { resumed.push('name' in event ? event.name : event.type) }, position)()
  t.strictSame(resumed.sort(), ['a', 'b'])
})

t.test('K53: roots are refreshed at the same time, and replaced meanwhile', async (t) => {
  const folders = t.testdir({ one: { a: skill('a') }, two: { b: skill('b') }, three: { c: skill('c') } })
  const [one, two, three] = ['one', 'two', 'three'].map((name) => ({ path: join(folders, name) }))
  const roots = (...given: Array<typeof one>) => given.flatMap((root) => root ?? [])
  const { skills, refresh } = await startFilled(t, folders)
  await skills.setRoots(roots(one, two))
  const seen = new Set<string>()
  const stop = new AbortController()
  const looking = (async () => {
    while (!stop.signal.aborted) {
      seen.add((await skills.list()).join())
      await nextTurn()
    }
  })()
  for (let round = 0; round < 20; round++) {
    fs.appendFileSync(join(folders, 'one/a/SKILL.md'), '!')
    await Promise.all([
      ...skills.catalog.roots.map((root) => skills.catalog.refresh(root)),
      skills.setRoots(roots(one, ...round % 2 === 0 ? [three] : [two]))
    ])
  }
  stop.abort()
  await looking
  await refresh()
  t.strictSame(await skills.list(), ['a', 'b'])
  t.ok(seen.size > 0)
  t.ok([...seen].every((names) => ['a,b', 'a,c'].includes(names)), [...seen].join(' '))
})

t.test('a thousand views that are made, used and dropped leave nothing behind', async (t) => {
  const root = t.testdir(Object.fromEntries(numbered(100).map((name) => [name, skill(name)])))
  const { skills, refresh } = await startFilled(t, root)
  const { ledger, catalog } = skills.parts
  const listeners = () => [ledger, catalog].flatMap((emitter) =>
    emitter.eventNames().map((name) => emitter.listenerCount(name)))
  const use = async (scope: string): Promise<void> => {
    const view = skills.createView(scope, () => 'all')
    await view.list()
    t.ok(view.feed.revision)
    view.feed.subscribe(() => {}, view.feed.position)()
    view.feed.onChange(() => {})()
  }
  for (const scope of numbered(50)) await use(scope)
  await refresh()
  const before = { listeners: listeners(), memory: usedMemory() }
  for (const scope of numbered(1_000)) await use(scope)
  await refresh()
  t.strictSame(listeners(), before.listeners)
  t.equal(ledger.readers, 0)
  t.ok(usedMemory() - before.memory < 2_000_000, `${usedMemory() - before.memory} bytes`)
})
