import { EventEmitter, once } from 'node:events'
import fs from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createChangeFeed } from '../../src/core/events/change-feed.ts'
import { formatLock, type Lock, parseLock } from '../../src/trust/lock-file.ts'
import { OriginPolicy } from '../../src/trust/origin-policy.ts'
import { createSkillManager } from '../../src/core/skill-manager.ts'
import { AGE_MS } from '../helper/followed-feed.ts'
import { createFaultyDisk, createManager, passTick, skill, skillText, skills, startManager, textOf, until } from '../helper/skills.ts'

/** A lock that a test changes. */
function lockOf (pins: Readonly<Record<string, readonly string[]>> = {}) {
  const lock = Object.assign(new EventEmitter(), { value: toLock(pins) })
  return {
    policy: new OriginPolicy({ lock }),
    pin (pins: Readonly<Record<string, readonly string[]>>) {
      lock.value = toLock(pins)
      lock.emit('changed')
    }
  }
}

function toLock (pins: Readonly<Record<string, readonly string[]>>): Lock {
  return new Map(Object.entries(pins).map(([name, revisions]) => [name, new Set(revisions)]))
}

async function revisionOf (t: Test, base: string, name: string): Promise<string> {
  const manager = createManager(t, [base])
  await manager.initialize()
  return (await manager.manifest(name)).revision
}

t.test('K95: with a lock, only the named revisions are served, by every question', async (t) => {
  const base = t.testdir({ ...skills('good', 'other', 'changed') })
  const good = await revisionOf(t, base, 'good')
  const changed = await revisionOf(t, base, 'changed')
  passTick(base)
  fs.writeFileSync(join(base, 'changed/SKILL.md'), skillText('changed', 'canary'))
  const manager = await startManager(t, [base], { policy: lockOf({ good: [good], changed: [changed] }).policy })
  t.strictSame(await manager.list(), ['good'])
  t.match(await textOf(() => manager.readMainFile('good', 'SKILL.md')), /Instructions of good/)
  for (const name of ['other', 'changed']) {
    t.match(await textOf(() => manager.readMainFile(name, 'SKILL.md')), /^skill_not_found/)
    t.match(await textOf(() => manager.readFile(name, 'SKILL.md')), /^skill_not_found/)
    t.match(await textOf(() => manager.openFile(name, 'SKILL.md')), /^skill_not_found/)
    await t.rejects(manager.manifest(name), { code: 'skill_not_found' })
    await t.rejects(manager.archive(name), { code: 'skill_not_found' })
    await t.rejects(async () => await manager.at('current').readFile(name, 'SKILL.md'), { code: 'skill_not_found' })
    t.equal(await manager.find(name), undefined)
    t.equal(await manager.inspect(name), undefined)
  }
  t.strictSame((await manager.available()).map(({ name }) => name), ['good'])
  t.strictSame((await manager.search('instructions canary')).names, ['good'])
  t.match(await manager.freshStatus(), { skills: 1, roots: [{ skills: 1 }], quarantined: 2 })
})

t.test('K95: a change of any file takes a skill away at the next request, and its return brings it back', async (t) => {
  const base = t.testdir({ demo: skill('demo', { scripts: { 'run.sh': 'echo 1' } }) })
  const { policy } = lockOf({ demo: [await revisionOf(t, base, 'demo')] })
  const manager = await startManager(t, [base], { policy })
  const script = join(base, 'demo/scripts/run.sh')
  t.equal(await textOf(() => manager.readFile('demo', 'scripts/run.sh')), 'echo 1')
  fs.writeFileSync(script, 'echo 2')
  t.match(await textOf(() => manager.readFile('demo', 'scripts/run.sh')), /^skill_not_found/)
  t.match(await textOf(() => manager.readFile('demo', 'SKILL.md')), /^skill_not_found/, 'a file that is as it was')
  t.strictSame(await manager.list(), [])
  fs.writeFileSync(script, 'echo 1')
  t.equal(await textOf(() => manager.readFile('demo', 'scripts/run.sh')), 'echo 1')
  t.strictSame(await manager.list(), ['demo'])
  fs.writeFileSync(join(base, 'demo/added.md'), 'canary')
  t.match(await textOf(() => manager.readFile('demo', 'added.md')), /^skill_not_found/)
  fs.rmSync(join(base, 'demo/added.md'))
  t.equal(await textOf(() => manager.readFile('demo', 'scripts/run.sh')), 'echo 1')
})

t.test('K95: a new lock is in force at once, for kept revisions too', async (t) => {
  const base = t.testdir({ demo: skill('demo'), more: skill('more') })
  const [demo, more] = [await revisionOf(t, base, 'demo'), await revisionOf(t, base, 'more')]
  const { policy, pin } = lockOf({ demo: [demo] })
  const manager = await startManager(t, [base], { policy })
  await manager.manifest('demo')
  passTick(base)
  fs.writeFileSync(join(base, 'demo/SKILL.md'), skillText('demo', 'second'))
  const second = await revisionOf(t, base, 'demo')
  t.match(await textOf(() => manager.readMainFile('demo', 'SKILL.md')), /^skill_not_found/)
  t.match(await textOf(() => manager.at(demo).readMainFile('demo', 'SKILL.md')), /Instructions of demo/, 'a caller finishes with the revision that was handed out')
  pin({ demo: [second], more: [more] })
  t.match(await textOf(() => manager.readMainFile('demo', 'SKILL.md')), /second/)
  t.match(await textOf(() => manager.at(demo).readMainFile('demo', 'SKILL.md')), /^revision_changed/)
  t.match(await textOf(() => manager.readMainFile('more', 'SKILL.md')), /Instructions of more/)
  await until(async () => (await manager.list()).join() === 'demo,more')
  pin({})
  t.match(await textOf(() => manager.readMainFile('demo', 'SKILL.md')), /^skill_not_found/)
  t.strictSame(await manager.list(), [])
})

t.test('K95: a skill that a new lock names can be read while others are still being checked', async (t) => {
  const base = t.testdir(skills('demo', 'more'))
  const pins = { demo: [await revisionOf(t, base, 'demo')], more: [await revisionOf(t, base, 'more')] }
  const { policy, pin } = lockOf()
  const events = new EventEmitter()
  let isHeld = false
  const disk = createFaultyDisk({
    intercept: async (_, path) => {
      if (!isHeld || !path.startsWith(join(base, 'more'))) return
      events.emit('held')
      await once(events, 'released')
    }
  })
  const manager = await startManager(t, [base], { policy, disk })
  t.strictSame(await manager.list(), [])
  isHeld = true
  const held = once(events, 'held')
  pin(pins)
  await held
  t.match(await textOf(() => manager.readMainFile('demo', 'SKILL.md')), /Instructions of demo/)
  isHeld = false
  events.emit('released')
  t.strictSame(await manager.list(), ['demo', 'more'])
})

t.test('K95: a list that is asked for after a change of the lock has no skill that the lock no longer names', async (t) => {
  const base = t.testdir(skills('a', 'b', 'c'))
  const pins = Object.fromEntries(await Promise.all(['a', 'b', 'c'].map(async (name) => [name, [await revisionOf(t, base, name)]] as const)))
  const { policy, pin } = lockOf(pins)
  const manager = await startManager(t, [base], { policy })
  t.strictSame(await manager.list(), ['a', 'b', 'c'])
  pin({})
  t.strictSame(await manager.list(), [])
  pin(pins)
  t.strictSame(await manager.list(), ['a', 'b', 'c'])
})

t.test('K95: a check that began before a change of the lock does not bring back what the new lock refuses', async (t) => {
  const folders = t.testdir({ now: { demo: skill('demo') }, later: { demo: { 'SKILL.md': skillText('demo', 'second') } } })
  const base = join(folders, 'now')
  const { policy, pin } = lockOf({ demo: await Promise.all(['now', 'later'].map((folder) => revisionOf(t, join(folders, folder), 'demo'))) })
  const manager = await startManager(t, [base], { policy })
  passTick(base)
  const steps = new EventEmitter()
  const [begun, released] = [once(steps, 'begun'), once(steps, 'released')]
  const judge = policy.judge.bind(policy)
  policy.judge = async (subject) => {
    const verdict = await judge(subject)
    policy.judge = judge
    steps.emit('begun')
    await released
    return verdict
  }
  fs.writeFileSync(join(base, 'demo/SKILL.md'), skillText('demo', 'second'))
  const verifying = manager.verifyDisplayNames()
  await begun
  pin({})
  t.strictSame(await manager.list(), [])
  steps.emit('released')
  await verifying
  t.strictSame(await manager.list(), [])
  t.strictSame((await manager.available()).map(({ name }) => name), [])
})

t.test('K95: a refused folder does not hide one of the same name in a later root', async (t) => {
  const folder = t.testdir({ first: { demo: { 'SKILL.md': skillText('demo', 'canary') } }, second: { demo: { 'SKILL.md': skillText('demo', 'reviewed') } } })
  const revision = await revisionOf(t, join(folder, 'second'), 'demo')
  const manager = await startManager(t, [join(folder, 'first'), join(folder, 'second')], { policy: lockOf({ demo: [revision] }).policy })
  t.match(await textOf(() => manager.readMainFile('demo', 'SKILL.md')), /reviewed/)
  t.strictSame(await manager.list(), ['demo'])
  fs.writeFileSync(join(folder, 'first/demo/SKILL.md'), skillText('demo', 'reviewed'))
  fs.writeFileSync(join(folder, 'second/demo/SKILL.md'), skillText('demo', 'canary'))
  t.match(await textOf(() => manager.readMainFile('demo', 'SKILL.md')), /reviewed/, 'the first one was mended')
})

t.test('K95: whoever follows events is told that a changed skill is gone, and sees no event for one that is refused', async (t) => {
  const base = t.testdir({ demo: skill('demo', { inner: { 'a.txt': 'a' } }), other: skill('other') })
  const { policy } = lockOf({ demo: [await revisionOf(t, base, 'demo')] })
  const manager = createSkillManager({ projectRoots: [base], policy })
  t.teardown(() => manager.close())
  await manager.initialize()
  await until(() => manager.status.watcher.status === 'watching')
  const feed = createChangeFeed({ skills: manager })
  t.teardown(() => { feed.close() })
  const events: string[] = []
  feed.subscribe(({ type, ...event }) => { if (type !== 'position') events.push(`${type} ${'name' in event ? event.name : ''}`) })
  await until(async () => (await manager.list()).length === 1)
  passTick(base)
  fs.writeFileSync(join(base, 'demo/inner/a.txt'), 'b')
  await until(() => events.length > 0)
  t.strictSame(events, ['removed demo'])
  t.strictSame(await manager.list(), [])
  fs.writeFileSync(join(base, 'other/b.txt'), 'b')
  fs.writeFileSync(join(base, 'demo/inner/a.txt'), 'a')
  await until(() => events.length > 1)
  t.strictSame(events, ['removed demo', 'added demo'])
})

t.test('K92: after a start with a lock, what is served is no news, and a stream goes on where it was', async (t) => {
  const base = t.testdir(skills('one', 'two'))
  const { policy } = lockOf({ one: [await revisionOf(t, base, 'one')], two: [await revisionOf(t, base, 'two')] })
  let lastId: string | undefined
  for (const start of ['first', 'second']) {
    const manager = createManager(t, [base], { policy, disk: createFaultyDisk({ ageMs: AGE_MS }) })
    await manager.start()
    const feed = createChangeFeed({ skills: manager })
    t.teardown(() => { feed.close() })
    const events: string[] = []
    feed.subscribe(({ type }) => { if (type !== 'position') events.push(type) }, lastId)
    await until(() => feed.revision !== undefined && manager.namesNow().length === 2)
    await until(() => feed.revision !== undefined)
    t.strictSame(events, [], start)
    lastId = feed.position
  }
})

t.test('K95: a lock is read with notes and several revisions, and written in one order', async (t) => {
  const a = `sha256:${'a'.repeat(64)}`
  const b = `sha256:${'b'.repeat(64)}`
  t.strictSame(parseLock('l', `one: ${a}\ntwo: [${a}, ${b}]\n"a: b": { revision: "${b}", reviewed_by: anna }\n`),
    new Map([['one', new Set([a])], ['two', new Set([a, b])], ['a: b', new Set([b])]]))
  t.throws(() => parseLock('l', `one: ${a}\ntwo: latest\n`), { message: /^l:2: two must be a revision/ })
  t.throws(() => parseLock('l', ''), { message: /^l:1: / })
  const text = formatLock(new Map([['b', new Set([b, a])], ['a: "x"', new Set([a])]]))
  t.equal(text, formatLock(new Map([['a: "x"', new Set([a])], ['b', new Set([a, b])]])))
  t.strictSame(parseLock('l', text), new Map([['a: "x"', new Set([a])], ['b', new Set([a, b])]]))
  t.strictSame(parseLock('l', formatLock(new Map())), new Map())
})
