import { execFile } from 'node:child_process'
import fs from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import type { WatchFolder } from '../../../src/core/watch/folder-watcher.ts'
import { createWatcher, type WatcherState } from '../../../src/core/watch/watcher.ts'
import { countKernelWatches } from '../../helper/kernel-watches.ts'
import { until } from '../../helper/skills.ts'
import { createFakeKernel, DEADLINE_MS, expectHint, failWith, targetsIn, watchRoot } from '../../helper/watched-roots.ts'

/** As the runner has translated it: a process that does so itself takes more time than its test. */
const WATCHER = import.meta.resolve('../../../src/core/watch/watcher.js')
const run = promisify(execFile)

/** Made anew each time: tap takes one object in two places for a cycle. */
function skill () {
  return { 'SKILL.md': 'text' }
}

t.test('K54: errors degrade the watcher, are reported once and heal', async (t) => {
  await t.test('thousands of errors at the set-up are one report, without a path', async (t) => {
    const root = t.testdir(Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`s${i}`, {}])))
    const watched = await watchRoot(t, root, { watchFolder: failWith('ENOSPC') })
    await until(() => watched.watcher.state.errors >= 1_000)
    t.strictSame(watched.states, [{ status: 'degraded', mode: 'events', errors: 1, lastError: 'ENOSPC' }])
    t.notMatch(JSON.stringify(watched.watcher.state), root)
  })

  await t.test('errors later on, of two kinds, are two reports', async (t) => {
    const kernel = createFakeKernel()
    const watched = await watchRoot(t, t.testdir({ a: skill() }), { watchFolder: kernel.watchFolder })
    for (let i = 0; i < 7_000; i++) kernel.fail('ENOSPC')
    kernel.fail('EMFILE')
    t.strictSame(watched.states, [
      { status: 'watching', mode: 'events', errors: 0 },
      { status: 'degraded', mode: 'events', errors: 1, lastError: 'ENOSPC' },
      { status: 'degraded', mode: 'events', errors: 7_000 * 3 + 1, lastError: 'EMFILE' }
    ])
  })

  await t.test('a restart that fails again reports nothing, one that succeeds watches', async (t) => {
    const root = t.testdir({ a: skill() })
    let watchFolder = failWith('EMFILE')
    const watched = await watchRoot(t, root, { watchFolder: (folder, onEvent) => watchFolder(folder, onEvent) })
    watched.watcher.restart()
    await until(() => watched.watcher.state.status === 'degraded')
    t.equal(watched.states.length, 1)

    watchFolder = (folder, onEvent) => fs.watch(folder, onEvent)
    watched.watcher.restart()
    await until(() => watched.watcher.state.status === 'watching')
    t.strictSame(watched.states.slice(1), [{ status: 'watching', mode: 'events', errors: 0 }])
    await expectHint(watched, 'a', () => { fs.appendFileSync(join(root, 'a/SKILL.md'), 'x') })

    watchFolder = failWith('EMFILE')
    watched.watcher.restart()
    await until(() => watched.watcher.state.status === 'degraded')
    t.strictSame(watched.states.slice(2), [{ status: 'degraded', mode: 'events', errors: 1, lastError: 'EMFILE' }], 'the same error after that is another report')
  })

  await t.test('a folder inside of a skill that waits to be watched is found out before the report that all is well', async (t) => {
    for (const code of [undefined, 'ENOSPC']) {
      const root = t.testdir({ a: { ...skill(), docs: {} } })
      const kernel = createFakeKernel()
      const states: WatcherState[] = []
      const watcher = createWatcher({
        root,
        watchFolder: (folder, onEvent) => {
          // In the middle of the set-up of all others.
          if (folder === join(root, 'a')) watcher.followInside(folder, [join(folder, 'docs')])
          if (folder === join(root, 'a/docs') && code !== undefined) failWith(code)(folder, onEvent)
          return kernel.watchFolder(folder, onEvent)
        }
      })
      t.teardown(() => { watcher.close() })
      watcher.states.subscribe((state) => { states.push(state) })
      watcher.follow(targetsIn(root))
      await until(() => states.length > 0)
      t.match(states, [{ status: code === undefined ? 'watching' : 'degraded' }])
      t.equal(kernel.folders.includes(join(root, 'a/docs')), code === undefined)
    }
  })

  await t.test('a folder that is gone, or may not be read, is no error', async (t) => {
    for (const code of ['ENOENT', 'EACCES']) {
      const watched = await watchRoot(t, t.testdir({ a: skill() }), { watchFolder: failWith(code) })
      t.match(watched.watcher.state, { status: 'watching', errors: 0 }, code)
    }
  })

  await t.test('an error without a code has a name too', async (t) => {
    const watched = await watchRoot(t, t.testdir(), { watchFolder: () => { throw new Error('failed') } })
    t.match(watched.watcher.state, { status: 'degraded', lastError: 'UNKNOWN' })
  })

  for (const [limit, value, code] of [['max_inotify_watches', 20, 'ENOSPC'], ['max_inotify_instances', 0, 'EMFILE']] as const) {
    await t.test(`the kernel's ${limit}: degraded by ${code}, healed when it is raised`, async (t) => {
      const setLimit = `/proc/sys/user/${limit}`
      if (!await canLimit(setLimit)) {
        t.comment('skipped: this machine gives no user namespaces')
        return
      }
      const names = Array.from({ length: 50 }, (_, i) => `s${i}`)
      const root = t.testdir(Object.fromEntries(names.map((name) => [name, skill()])))
      const { stdout } = await run('unshare', ['-Ur', 'sh', '-c', `echo ${value} > ${setLimit} && exec "$0" --input-type=module -e "$1"`,
        process.execPath, program(root, `
          fs.writeFileSync('${setLimit}', '1000')
          watcher.restart()
          await nextState()
          watcher.close()`)], { timeout: DEADLINE_MS })
      t.equal(stdout, `degraded ${code}\nwatching undefined\noff undefined\n`)
    })
  }
})

t.test('network disks are not watched, since a call may never return: the mode is polling', async (t) => {
  const base = t.testdir({ far: { a: skill() }, near: { b: skill(), mounted: skill() } })
  const mount = (path: string) => `40 22 0:40 / ${path} rw,relatime - nfs4 server:/share rw\n`
  const kernel = createFakeKernel()
  let mounts = `22 1 0:21 / / rw - ext4 /dev/root rw\n${mount(join(base, 'far'))}${mount(join(base, 'near/mounted'))}`
  const watchFolder: WatchFolder = (folder, onEvent) => kernel.watchFolder(fs.realpathSync(folder), onEvent)
  const options = { watchFolder, readMountInfo: () => mounts }
  const far = await watchRoot(t, join(base, 'far/skills'), options)
  t.strictSame(far.states, [{ status: 'watching', mode: 'polling', errors: 0 }])
  t.strictSame(kernel.folders, [base])
  far.watcher.close()
  const near = await watchRoot(t, join(base, 'near'), options)
  t.strictSame(near.states, [{ status: 'watching', mode: 'polling', errors: 0 }], 'a skill in it is on such a disk')
  t.strictSame(kernel.folders.sort(), [base, join(base, 'near'), join(base, 'near/b')])
  near.watcher.followInside(join(base, 'near/mounted'), [join(base, 'near/mounted/docs')])
  await expectHint(near, 'b', () => { kernel.change(join(base, 'near/b'), 'SKILL.md') })
  t.equal(kernel.folders.length, 3)
  mounts = ''
  near.watcher.follow(targetsIn(join(base, 'near')))
  await until(() => near.states.length === 2)
  t.strictSame(near.states[1], { status: 'watching', mode: 'events', errors: 0 })
  t.ok(kernel.folders.includes(join(base, 'near/mounted')))
})

t.test('K54: what is no longer followed gives its watches back', async (t) => {
  const base = t.testdir({ shared: {}, skills: { a: { docs: {} }, b: {} } })
  const [root, shared] = [join(base, 'skills'), join(base, 'shared')]
  const [a, b] = [join(root, 'a'), join(root, 'b')]
  const kernel = createFakeKernel()
  const { watcher, hints } = await watchRoot(t, root, { watchFolder: kernel.watchFolder, following: false })
  watcher.followInside(a, [join(a, 'docs'), shared])
  watcher.followInside(b, [shared])
  watcher.followInside(join(root, 'unknown'), [join(root, 'unknown/docs')])
  await until(() => kernel.folders.length === 6)
  t.strictSame(kernel.folders.sort(), [base, shared, root, a, join(a, 'docs'), b])
  kernel.change(shared, 'x')
  t.strictSame(hints.splice(0), ['a', 'a', 'b', 'a', 'b'], 'each new watch is a hint, and a change of what both have is one for both')

  kernel.change(root, 'b')
  await until(() => hints.length === 2)
  t.strictSame(hints.splice(0), ['b', 'b'], 'what happens until an exchanged folder is watched gives no event: the watch is a hint')

  const { realPath, folders } = targetsIn(root)
  watcher.follow({ realPath, folders: new Map([...folders].filter(([name]) => name === 'b')) })
  await until(() => kernel.folders.length === 4)
  t.strictSame(kernel.folders.sort(), [base, shared, root, b])
  kernel.change(shared, 'x')
  t.strictSame(hints, ['b'])
})

t.test('closing', async (t) => {
  await t.test('is silent afterwards, and harmless when repeated', async (t) => {
    const root = t.testdir({ a: skill() })
    const kernel = createFakeKernel()
    const listeners: Array<Parameters<WatchFolder>[1]> = []
    const watched = await watchRoot(t, root, {
      watchFolder: (folder, onEvent) => {
        listeners.push(onEvent)
        return kernel.watchFolder(folder, onEvent)
      }
    })
    const { watcher } = watched
    watcher.close()
    watcher.close()
    watcher.restart()
    watcher.follow(targetsIn(root))
    watcher.followInside(join(root, 'a'), [join(root, 'a/docs')])
    t.ok(listeners.length > 0)
    for (const onEvent of listeners) onEvent('rename', 'SKILL.md')
    await new Promise(setImmediate)
    t.strictSame(kernel.folders, [], 'every watch is given back')
    t.strictSame(watched.hints, [])
    t.strictSame(watched.states.map(({ status }) => status), ['watching', 'off'])
    t.match(watcher.state, { status: 'off' })
  })

  await t.test('in the middle of the set-up leaves nothing open', async (t) => {
    const root = t.testdir({ a: skill(), b: skill() })
    for (const turns of [0, 1, 2, 4]) {
      const kernel = createFakeKernel()
      const states: WatcherState[] = []
      const watcher = createWatcher({ root, watchFolder: kernel.watchFolder })
      watcher.states.subscribe((state) => { states.push(state) })
      watcher.follow(targetsIn(root))
      for (let i = 0; i < turns; i++) await new Promise(setImmediate)
      watcher.close()
      await new Promise(setImmediate)
      t.strictSame(kernel.folders, [], `closed after ${turns} turns`)
      t.equal(states.at(-1)?.status, 'off')
    }
  })

  await t.test('gives back every watch of the kernel', async (t) => {
    if (process.platform !== 'linux') {
      t.comment('skipped: only Linux lists the watches of a process')
      return
    }
    const before = countKernelWatches()
    const watched = await watchRoot(t, t.testdir({ a: skill(), b: skill() }))
    t.equal(countKernelWatches() - before, 4, 'the folder above, the root, two skills')
    watched.watcher.close()
    t.equal(countKernelWatches(), before)
  })

  await t.test('lets the process end, and a process that forgets it ends too', async (t) => {
    for (const [rest, last] of [['watcher.close()', 'off undefined\n'], ['', '']]) {
      const code = program(t.testdir({ a: skill() }), rest ?? '')
      const { stdout } = await run(process.execPath, ['--input-type=module', '-e', code], { timeout: DEADLINE_MS })
      t.equal(stdout, `watching undefined\n${last}`)
    }
  })
})

/** A program with a `watcher` that has been set up. */
function program (root: string, rest: string): string {
  const names = fs.readdirSync(root)
  return `
    import fs from 'node:fs'
    import { once } from 'node:events'
    const { createWatcher } = await import(${JSON.stringify(WATCHER)})
    const root = ${JSON.stringify(root)}
    const news = new EventTarget()
    const watcher = createWatcher({ root })
    watcher.states.subscribe(({ status, lastError }) => {
      console.log(status, lastError)
      news.dispatchEvent(new Event('state'))
    })
    const nextState = () => {
      const alive = setInterval(() => {}, 1000)
      return once(news, 'state').finally(() => clearInterval(alive))
    }
    watcher.follow({ realPath: root, folders: new Map(${JSON.stringify(names)}.map((name) => [name, { realPath: root + '/' + name }])) })
    await nextState()
    ${rest}`
}

async function canLimit (file: string): Promise<boolean> {
  try {
    await run('unshare', ['-Ur', 'sh', '-c', `echo 100 > ${file}`])
    return true
  } catch {
    return false
  }
}
