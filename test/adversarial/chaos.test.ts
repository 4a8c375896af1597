import t, { type Test } from 'tap'
import { createNetworkDisk } from '../../src/core/read/disk.ts'
import { createWatcher } from '../../src/core/watch/watcher.ts'
import { buildService } from '../helper/build.ts'
import { startProcess } from '../helper/process.ts'
import { type ChaosReport, runChaos } from './chaos/chaos.ts'
import { World } from './chaos/world.ts'

// The long form is `npm run chaos`: any seed, for as long as you like.

const OPERATIONS = 80
const BOUND = process.getuid?.() !== 0

function checkReport (t: Test, { operations, answers, violations }: ChaosReport): void {
  t.strictSame(violations, [])
  t.ok(operations >= OPERATIONS)
  t.equal(answers.size, 11, 'every kind of question was asked')
}

for (const [watcher, seed] of [['events', 1], ['polling', 2]] as const) {
  t.test(`K51 K53: every answer while the folders change at random is right for one moment (seed ${seed}, ${watcher})`, async (t) => {
    const world = new World(t.testdir({}), seed)
    const service = await startProcess(t, {
      args: [...world.projectRoots, '--personal', world.personalRoot, '--allow-links', world.linkTarget],
      env: { WATCH_POLLING: String(watcher === 'polling') }
    })
    checkReport(t, await runChaos({ world, url: service.url, seed, operations: OPERATIONS, bound: BOUND }))
    t.match(await service.stop(), { code: 0, stderr: '' })
  })
}

t.test('K51 K53: likewise on a network disk, whose every call takes a turn (seed 3)', async (t) => {
  const service = await buildService(t, {
    files: null,
    options: { roots: ['a', 'b'], personalRoot: 'personal', linkTargets: ['linked'], disk: createNetworkDisk(), watcher: createWatcher }
  })
  const world = new World(service.folder, 3)
  checkReport(t, await runChaos({ world, url: service.url, seed: 3, operations: OPERATIONS, bound: BOUND }))
})
