import { spawn } from 'node:child_process'
import { createHook } from 'node:async_hooks'
import { EventEmitter, once } from 'node:events'
import fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Listing } from '../../../src/core/roots/list-root.ts'
import { createSkillManager } from '../../../src/core/skill-manager.ts'
import { statusOf } from '../../../src/http/readiness.ts'
import { createFaultyDisk, skill, skills, until } from '../../helper/skills.ts'
import { followed, inIndex, numbered, startWatching, writeSkill } from '../../helper/watching.ts'

t.test('K52 K54: a root on a disk that does not answer delays nothing of another root', async (t) => {
  const base = fs.realpathSync(t.testdir({ slow: skills('s'), fast: skills('f') }))
  let release = () => {}
  const released = new Promise<void>((resolve) => { release = resolve })
  const disk = createFaultyDisk({
    intercept: (_operation, path) => path.startsWith(join(base, 'slow')) ? released : undefined
  })
  const projectRoots = [join(base, 'slow'), join(base, 'fast')]
  const manager = createSkillManager({ projectRoots, disk, tickMs: 3_600_000 })
  t.teardown(() => manager.close())
  // A call to a real disk keeps the process running.
  const running = setInterval(() => {}, 1_000)
  t.teardown(() => { clearInterval(running) })
  await manager.start()
  await until(() => statusOf(manager).ready)
  t.match(statusOf(manager), { indexed: false, roots: [{ state: 'indexing' }, { state: 'ok' }] })
  await until(() => manager.catalog.roots.some((root) => manager.refresher.isWatching(root)))
  writeSkill(join(base, 'fast/f'), 'f', 'edited')
  await until(() => inIndex(manager).includes('f: edited'))
  t.match(await manager.available(), [{ name: 'f' }], 'a list waits some seconds for the slow root')
  release()
  await manager.indexed()
  t.match(statusOf(manager), { indexed: true, roots: [{ state: 'ok' }, { state: 'ok' }] })
  await until(() => inIndex(manager).length === 2)
})

t.test('K54: the first index and the comparisons of a root reject nothing, whatever a listener throws', async (t) => {
  const root = t.testdir(skills('a'))
  const warnings: string[] = []
  const log = { info: () => {}, warn: (_details: object, message: string) => { warnings.push(message) } }
  const manager = createSkillManager({ projectRoots: [root], watcher: false, tickMs: 5, log })
  t.teardown(() => manager.close())
  await manager.start()
  manager.catalog.on('changed', () => { throw new Error('a listener') })
  await manager.indexed()
  writeSkill(join(root, 'a'), 'a', 'edited')
  await until(() => warnings.filter((line) => line.startsWith('rescan of a skills folder failed')).length > 1)
})

t.test('K54: logs that are written next to a root are no flood', async (t) => {
  const base = t.testdir({ skills: skills('a') })
  const root = join(base, 'skills')
  const manager = await startWatching(t, root)
  const program = `const fs = require('node:fs'); process.stdout.write('.')
    while (process.ppid === ${process.pid}) for (const log of ['a.log', 'b.log']) fs.appendFileSync(log, '')`
  const writer = spawn(process.execPath, ['-e', program], { cwd: base, stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => { writer.kill('SIGKILL') })
  await once(writer.stdout, 'data')
  for (let round = 0; round < 5; round++) {
    writeSkill(join(root, 'a'), 'a', `edit ${round}`)
    await followed(manager, root)
    t.match(statusOf(manager).watcher, { status: 'watching', errors: 0 })
  }
})

t.test('K54: a hundred roots that come and go leave no timers, listeners and watches', async (t) => {
  const names = numbered(100)
  const base = t.testdir(Object.fromEntries(names.map((name) => [name, { a: skill('a') }])))
  const listing = { folders: undefined, isFixed: false, isDirect: true }
  const source = Object.assign(new EventEmitter<{ changed: [] }>(), listing)
  const roots = names.map((name) => ({ path: join(base, name), listed: source satisfies Listing }))
  const timers = new Set<number>()
  const hook = createHook({
    init (id, type) { if (type === 'Timeout') timers.add(id) },
    destroy (id) { timers.delete(id) }
  })
  source.setMaxListeners(0)
  const manager = await startWatching(t, join(base, 'skill-0'))
  hook.enable()
  t.teardown(() => { hook.disable() })
  const first = manager.catalog.roots[0]?.options
  const kept = typeof first === 'string' ? [{ path: first }] : []
  await manager.setRoots(kept)
  // Its own folder, and that of its skill.
  await until(() => countWatches() === 2)
  const listeners = manager.catalog.listenerCount('listed')
  for (let round = 0; round < 2; round++) {
    await manager.setRoots([...kept, ...roots])
    await until(() => manager.catalog.roots.every((root) => manager.refresher.isWatching(root)))
    t.equal(source.listenerCount('changed'), 100)
    await manager.setRoots(kept)
  }
  await until(() => source.listenerCount('changed') === 0)
  t.equal(manager.catalog.listenerCount('listed'), listeners)
  await until(() => countWatches() === 2)
  await manager.close()
  await until(() => timers.size < 5)
})

/** Watches of inotify that this process has. */
function countWatches (): number {
  return fs.readdirSync('/proc/self/fdinfo').flatMap((descriptor) => {
    try {
      return fs.readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8').match(/^inotify wd:/gm) ?? []
    } catch {
      return [] // Closed meanwhile, as the one that lists them is.
    }
  }).length
}
