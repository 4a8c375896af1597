import fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createChangeFeed } from '../../../src/core/events/change-feed.ts'
import type { CoreLog } from '../../../src/core/shared/log.ts'
import { createWatcher } from '../../../src/core/watch/watcher.ts'
import { osError, until } from '../../helper/skills.ts'
import { followed, skill, startWatching, writeSkill } from '../../helper/watched-index.ts'
import { BLIND, failWith } from '../../helper/watched-roots.ts'

const HOUR_MS = 3_600_000

interface LogLine {
  readonly level: 'info' | 'warn'
  readonly message: string
}

function createLog (): { readonly log: CoreLog, readonly lines: LogLine[] } {
  const lines: LogLine[] = []
  return {
    lines,
    log: {
      info: (_object, message) => { lines.push({ level: 'info', message }) },
      warn: (_object, message) => { lines.push({ level: 'warn', message }) }
    }
  }
}

t.test('K54: a watcher that cannot be set up', async (t) => {
  const root = t.testdir({ a: skill('a') })
  const { log, lines } = createLog()
  let watchFolder = failWith('ENOSPC')
  const manager = await startWatching(t, root, {
    log,
    times: { reconcileDegraded: 20, reconcileHealthy: HOUR_MS },
    watcher: (options) => createWatcher({ ...options, watchFolder: (folder, onEvent) => watchFolder(folder, onEvent) })
  })
  const warnings = () => lines.filter(({ level }) => level === 'warn')

  await t.test('shows, without a path, and the process is ready', async (t) => {
    t.match(manager.status, { ready: true, watcher: { status: 'degraded', lastError: 'ENOSPC' } })
    t.notMatch(JSON.stringify(manager.status.watcher), root)
  })

  await t.test('is made up for by the ticks', async () => {
    for (const description of ['second', 'third']) {
      writeSkill(join(root, 'a'), 'a', description)
      await followed(manager, root)
    }
    fs.mkdirSync(join(root, 'b'))
    writeSkill(join(root, 'b'), 'b', 'new')
    await followed(manager, root)
  })

  await t.test('is logged once, however often it is tried again', async (t) => {
    t.equal(warnings().length, 1)
    t.equal(warnings()[0]?.message, 'the watcher does not work; the folder is compared with the index at intervals; raise fs.inotify.max_user_watches')
  })

  await t.test('heals by itself, and then follows events', async (t) => {
    watchFolder = (folder, onEvent) => fs.watch(folder, onEvent)
    await until(() => manager.status.watcher.status === 'watching')
    t.match(manager.status.watcher, { errors: 0, lastError: undefined })
    t.equal(lines.at(-1)?.message, 'watching a skills folder')
    writeSkill(join(root, 'b'), 'b', 'followed')
    await followed(manager, root)
    t.equal(warnings().length, 1)
  })
})

t.test('K54: folders inside of skills that cannot be watched are one error too, until they can', async (t) => {
  const inside = () => ({ ...skill('a'), docs: { 'a.md': 'a' } })
  const root = t.testdir({ a: inside(), b: inside(), c: inside() })
  const { log, lines } = createLog()
  let isFull = true
  let attempts = 0
  const manager = await startWatching(t, root, {
    log,
    times: { reconcileDegraded: 5, reconcileHealthy: HOUR_MS },
    watcher: (options) => createWatcher({
      ...options,
      watchFolder: (folder, onEvent) => {
        if (folder === join(root, 'a/docs')) attempts++
        if (isFull && folder.endsWith('/docs')) throw osError('ENOSPC')
        return fs.watch(folder, onEvent)
      }
    })
  })
  const reports = () => lines.filter(({ message }) => message.includes('watch')).map(({ level }) => level)
  const feed = createChangeFeed({ skills: manager })
  t.teardown(() => { feed.close() })
  const changed: string[] = []
  feed.subscribe((event) => { if ('name' in event) changed.push(event.name) })
  await until(() => attempts >= 6)
  t.strictSame(reports(), ['info', 'warn'])
  await until(() => manager.status.watcher.status === 'degraded')
  t.match(manager.status.watcher, { lastError: 'ENOSPC' })

  isFull = false
  await until(() => manager.status.watcher.status === 'watching')
  t.strictSame(reports(), ['info', 'warn', 'info'])
  const before = changed.length
  fs.writeFileSync(join(root, 'b/docs/a.md'), 'edited')
  await until(() => changed.length > before)
  t.equal(changed.at(-1), 'b')
})

t.test('K54: a watcher that is blind and does not know it is made up for by the ticks', async (t) => {
  const root = t.testdir({ a: skill('a') })
  const manager = await startWatching(t, root, {
    times: { reconcileHealthy: 20 },
    watcher: (options) => createWatcher({ ...options, watchFolder: BLIND })
  })
  t.match(manager.status.watcher, { status: 'watching' })
  writeSkill(join(root, 'a'), 'a', 'edited')
  await followed(manager, root)
})

t.test('K54: polling follows too', async (t) => {
  const root = t.testdir({ a: skill('a') })
  const manager = await startWatching(t, root, { polling: true, times: { poll: 20 } })
  t.match(manager.status.watcher, { status: 'watching', mode: 'polling' })
  writeSkill(join(root, 'a'), 'a', 'edited')
  await followed(manager, root)
  fs.rmSync(join(root, 'a'), { recursive: true })
  fs.mkdirSync(join(root, 'b'))
  writeSkill(join(root, 'b'), 'b', 'new')
  await followed(manager, root)
})
