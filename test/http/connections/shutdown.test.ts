import t from 'tap'
import { Shutdown } from '../../../src/http/connections/shutdown.ts'

t.test('K91: while the process leaves, what is open ends one after the other, and before the draining', async (t) => {
  const shutdown = new Shutdown()
  const ended: string[] = []
  const elapsed: number[] = []
  const begun = performance.now()
  shutdown.endWhileLeaving(() => ['first', 'second', 'third'], (name) => {
    ended.push(name)
    elapsed.push(performance.now() - begun)
  })
  await shutdown.begin(30)
  t.strictSame(ended, ['first', 'second', 'third'])
  // A timer may be a millisecond early.
  t.ok(elapsed.every((milliseconds, index) => milliseconds >= 10 * index - 1), elapsed.join())
})

t.test('K91: nothing ends without a delay, nor for who has stopped', async (t) => {
  const ended: string[] = []
  const end = (name: string) => { ended.push(name) }
  const atOnce = new Shutdown()
  atOnce.endWhileLeaving(() => ['one'], end)
  await atOnce.begin()
  const stopped = new Shutdown()
  stopped.endWhileLeaving(() => ['two'], end)()
  await stopped.begin(1)
  t.strictSame(ended, [])
})
