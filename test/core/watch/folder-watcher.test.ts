import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { MAX_EVENTS_PER_ITERATION, FolderWatcher, type WatchFolder } from '../../../src/core/watch/folder-watcher.ts'
import { until } from '../../helper/skills.ts'
import { createFakeKernel } from '../../helper/watched-roots.ts'

/** Folders that are watched, and what was reported since. */
async function watch (t: Test, folders: readonly string[], watchFolder?: WatchFolder) {
  const changes: string[] = []
  const reports = { idle: 0, missed: 0, errors: 0 }
  const watcher = new FolderWatcher({
    onChange: (folder, entry) => { changes.push(`${folder} ${entry}`) },
    onError: () => { reports.errors++ },
    onIdle: () => { reports.idle++ },
    onMissed: () => { reports.missed++ }
  }, watchFolder)
  t.teardown(() => { watcher.close() })
  for (const folder of folders) watcher.add(folder)
  await until(() => reports.idle === 1)
  t.strictSame(changes.splice(0), folders.map((folder) => `${folder} `), 'a new watch stands for what happened before')
  return { watcher, changes, reports }
}

t.test('folders that change faster than their events are read do not block the event loop', async (t) => {
  const kernel = createFakeKernel()
  const names = Array.from({ length: 500 }, (_, index) => `/root/s${index}`)
  const { changes, reports } = await watch(t, [...names, '/quiet'], kernel.watchFolder)
  for (let event = 0; event < 100_000; event++) kernel.change(names[event % names.length] ?? '', 'SKILL.md')
  t.equal(changes.length, MAX_EVENTS_PER_ITERATION + names.length, 'one more event of each, then none')
  t.strictSame(kernel.folders, ['/quiet'], 'the others are left alone')
  changes.length = 0
  await until(() => reports.idle === 2)
  t.strictSame(changes, names.map((name) => `${name} `), 'what came meanwhile is made up for')
  t.equal(reports.missed, 1, 'for folders that are not known to have changed, too')
  kernel.change('/root/s7', 'SKILL.md')
  t.equal(changes.at(-1), '/root/s7 SKILL.md')
})

t.test('the events of many iterations are no storm', async (t) => {
  const kernel = createFakeKernel()
  const { changes } = await watch(t, ['/a'], kernel.watchFolder)
  for (let iteration = 0; iteration < 4; iteration++) {
    for (let event = 0; event < MAX_EVENTS_PER_ITERATION; event++) kernel.change('/a', 'x')
    await new Promise(setImmediate)
  }
  t.equal(changes.length, 4 * MAX_EVENTS_PER_ITERATION)
  t.strictSame(kernel.folders, ['/a'])
})

t.test('a folder that rests can be removed, and the watcher closed', async (t) => {
  const kernel = createFakeKernel()
  const { watcher, changes } = await watch(t, ['/a', '/b', '/c'], kernel.watchFolder)
  for (const folder of ['/a', '/b']) for (let event = 0; event <= MAX_EVENTS_PER_ITERATION; event++) kernel.change(folder, 'x')
  watcher.remove('/a')
  watcher.renew('/b')
  await until(() => changes.at(-1) === '/b ')
  t.strictSame(kernel.folders.sort(), ['/b', '/c'])
  for (let event = 0; event <= MAX_EVENTS_PER_ITERATION; event++) kernel.change('/c', 'x')
  watcher.close()
  t.strictSame(kernel.folders, [])
})

t.test('events that the kernel dropped are made up for', async (t) => {
  if (process.platform !== 'linux') {
    t.comment('skipped: other kernels drop nothing')
    return
  }
  const limit = Number(fs.readFileSync('/proc/sys/fs/inotify/max_queued_events', 'utf8'))
  const root = t.testdir({ busy: { 0: '', 1: '' }, quiet: {} })
  const { changes, reports } = await watch(t, [join(root, 'busy'), join(root, 'quiet')])
  // Nothing is read meanwhile: this process waits.
  execFileSync(process.execPath, ['-e', `
    const fs = require('node:fs')
    for (let event = 0; event <= ${limit}; event++) fs.chmodSync('busy/' + event % 2, 0o600)
    fs.writeFileSync('quiet/lost', '')`], { cwd: root })
  await until(() => reports.missed > 0)
  t.notOk(changes.includes(`${join(root, 'quiet')} lost`), 'it was dropped')
})

t.test('a folder that is missing is watched when it is added again', async (t) => {
  const root = t.testdir()
  const folder = join(root, 'a')
  const { watcher, changes, reports } = await watch(t, [folder])
  t.equal(reports.errors, 1)
  t.ok(watcher.has(folder))
  t.ok(watcher.isMissing(folder))
  fs.mkdirSync(folder)
  watcher.add(folder)
  await until(() => changes.length > 0)
  t.notOk(watcher.isMissing(folder))
  fs.writeFileSync(join(folder, 'x'), '')
  await until(() => changes.includes(`${folder} x`))
})
