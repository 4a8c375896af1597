import { execFile } from 'node:child_process'
import fs from 'node:fs'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { promisify } from 'node:util'
import t from 'tap'
import type { CoreLog } from '../../../src/core/log.ts'
import { createWatcher } from '../../../src/core/watch/watcher.ts'
import { until } from '../../helper/skills.ts'
import { checkOut, followed, inIndex, numbered, skill, skillText, startWatching, writeSkill } from '../../helper/watched-index.ts'
import { BLIND, failWith } from '../../helper/watched-roots.ts'

const DEADLINE_MS = 60_000
const HOUR_MS = 3_600_000

const run = promisify(execFile)

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
    t.equal(warnings()[0]?.message, 'the watcher does not work; the folders are compared with the index at intervals')
  })

  await t.test('heals by itself, and then follows events', async (t) => {
    watchFolder = (folder, onEvent) => fs.watch(folder, onEvent)
    await until(() => manager.status.watcher.status === 'watching')
    t.match(manager.status.watcher, { errors: 0, lastError: undefined })
    t.equal(lines.at(-1)?.message, 'watching the skills folders')
    writeSkill(join(root, 'b'), 'b', 'followed')
    await followed(manager, root)
    t.equal(warnings().length, 1)
  })
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

t.test('K53: a checkout over a thousand skills by another process', async (t) => {
  const names = numbered(1_000)
  const root = t.testdir(Object.fromEntries(names.map((name) => [name, { ...skill(name), 'a.md': '', 'b.md': '', 'c.md': '' }])))
  const manager = await startWatching(t, root)
  const delay = monitorEventLoopDelay({ resolution: 5 })
  let smallest = Infinity
  manager.subscribe(() => { smallest = Math.min(smallest, manager.availableNow().length) })

  delay.enable()
  await run(process.execPath, ['-e', `
    const fs = require('node:fs')
    const { join } = require('node:path')
    const skillText = ${skillText.toString()}
    for (let round = 0; round < 3; round++) {
      for (const name of fs.readdirSync(process.argv[1])) (${checkOut.toString()})(join(process.argv[1], name), name, 'round ' + round)
    }`, root], { timeout: DEADLINE_MS })
  await followed(manager, root)
  delay.disable()

  t.strictSame(inIndex(manager), names.map((name) => `${name}: round 2`).sort())
  t.strictSame(await manager.list(), [...names].sort())
  t.ok(smallest > 0, `no reader saw an empty catalog, the smallest had ${smallest}`)
  const longest = delay.max / 1e6
  t.comment(`event loop: longest stall ${longest.toFixed(0)} ms, 99 % below ${(delay.percentile(99) / 1e6).toFixed(0)} ms`)
  t.ok(longest < 1_000, 'no stall of a second, on a machine that runs other tests')
})
