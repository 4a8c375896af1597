import t from 'tap'
import { startProcess } from '../helper/process.ts'
import { runChaos } from './chaos/chaos.ts'
import { World } from './chaos/world.ts'

// The long form is `npm run chaos`: any seed, for as long as you like.

const OPERATIONS = 80
const BOUND = process.getuid?.() !== 0

for (const [watcher, seed] of [['events', 1], ['polling', 2]] as const) {
  t.test(`K51 K52 K53: every answer while the folders change at random is right for one moment (seed ${seed}, ${watcher})`, async (t) => {
    const world = new World(t.testdir({}), seed)
    const service = await startProcess(t, {
      args: world.args,
      env: { WATCH_POLLING: String(watcher === 'polling') }
    })
    const { operations, answers, violations } =
      await runChaos({ world, url: service.url, seed, operations: OPERATIONS, bound: BOUND })
    t.strictSame(violations, [])
    t.ok(operations >= OPERATIONS)
    t.equal(answers.size, 11, 'every kind of question was asked')
    t.match(await service.stop(), { code: 0, stderr: '' })
  })
}
