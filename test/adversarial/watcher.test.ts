import fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createWatcher } from '../../src/core/watch/watcher.ts'
import { buildService, type Service } from '../helper/build.ts'
import { osError, skills, skillText, until } from '../helper/skills.ts'
import { runChaos } from './chaos/chaos.ts'
import { World } from './chaos/world.ts'

const BOUND = process.getuid?.() !== 0
const HOUR_MS = 3_600_000
const OPERATIONS = 80

/** A service whose watches are ours to break. */
async function buildWatched (t: Parameters<typeof buildService>[0], files: Parameters<typeof buildService>[1]): Promise<Service & { readonly breakAll: (code: string) => number }> {
  const watches = new Set<fs.FSWatcher>()
  const service = await buildService(t, {
    ...files,
    options: {
      ...files?.options,
      watcher: (options) => createWatcher({
        ...options,
        watchFolder: (folder, onEvent) => {
          const watch = fs.watch(folder, onEvent)
          watches.add(watch)
          watch.once('close', () => { watches.delete(watch) })
          return watch
        }
      }),
      times: { reconcileDegraded: 50, reconcileHealthy: HOUR_MS }
    }
  })
  return Object.assign(service, {
    breakAll: (code: string) => {
      const broken = [...watches]
      for (const watch of broken) {
        watch.emit('error', osError(code))
        watch.close()
      }
      return broken.length
    }
  })
}

async function watcherOf (service: Service): Promise<{ readonly status: string, readonly lastError?: string }> {
  const { watcher } = (await service.fetch('/readyz')).json() as { readonly watcher?: { readonly status: string } }
  return watcher ?? { status: 'starting' }
}

t.test('K51 K54: watchers that die at work show in /readyz, are logged, and heal; every answer is right meanwhile', async (t) => {
  const service = await buildWatched(t, { files: skills('one', 'two') })
  await until(async () => (await watcherOf(service)).status === 'watching')
  for (const [round, code] of ['EMFILE', 'ENOSPC', 'EIO'].entries()) {
    const warned = service.logged('the watcher does not work')
    service.breakAll(code)
    await warned
    fs.writeFileSync(join(service.root, 'one/SKILL.md'), skillText('one', `round ${round}`))
    t.match((await service.fetch('/skills/one')).json(), { documentation: skillText('one', `round ${round}`) })
    await until(async () => (await watcherOf(service)).status === 'watching')
    t.match(await watcherOf(service), { errors: 0 })
  }
  t.notMatch(service.logText().split('\n').filter((line) => line.includes('the watcher does not work')).join('\n'), `${service.root}/`, 'no path inside of the root')
})

t.test('K51 K53 K54: every answer is right while watchers die and folders change at random (seed 4)', async (t) => {
  const service = await buildWatched(t, { files: null, options: { roots: ['a', 'b'], personalRoot: 'personal' } })
  const world = new World(service.folder, 4)
  await until(async () => (await watcherOf(service)).status === 'watching')
  let kills = 0
  const killer = setInterval(() => { kills += service.breakAll('EMFILE') }, 200)
  t.teardown(() => { clearInterval(killer) })
  const report = await runChaos({ world, url: service.url, seed: 4, operations: OPERATIONS, bound: BOUND })
  t.strictSame(report.violations, [])
  t.ok(kills > 0, `${kills} watchers killed`)
})
