import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import { coalesce, yieldIfNeeded } from '../../../src/core/shared/async.ts'

function deferred () {
  let resolve = () => {}
  let reject = (_error: Error) => {}
  const promise = new Promise<void>((_resolve, _reject) => { resolve = _resolve; reject = _reject })
  return { promise, resolve, reject }
}

/** A job whose runs are ended by hand. */
function manualJob () {
  const runs: Array<ReturnType<typeof deferred>> = []
  return { runs, run: coalesce(() => { const each = deferred(); runs.push(each); return each.promise }) }
}

t.test('calls during a run share one more run, which begins after it', async (t) => {
  const { runs, run } = manualJob()
  const first = run()
  const others = [run(), run(), run()]
  t.equal(runs.length, 1)
  runs[0]?.resolve()
  await first
  await nextTurn()
  t.equal(runs.length, 2)
  const late = run()
  runs[1]?.resolve()
  await Promise.all(others)
  await nextTurn()
  t.equal(runs.length, 3, 'a call during the second run gets a third')
  runs[2]?.resolve()
  await late
  const fresh = run()
  t.equal(runs.length, 4, 'a call while nothing runs starts at once')
  runs[3]?.resolve()
  await fresh
})

t.test('a run that fails fails for those who asked for it, not for the next', async (t) => {
  const { runs, run } = manualJob()
  const first = run()
  const second = run()
  runs[0]?.reject(new Error('first'))
  await t.rejects(first, { message: 'first' })
  await nextTurn()
  t.equal(runs.length, 2)
  runs[1]?.reject(new Error('second'))
  await t.rejects(second, { message: 'second' })
  const third = run()
  runs[2]?.resolve()
  await third
})

t.test('K53: never two runs at the same time, and each caller is answered by a run that began after the call', async () => {
  // Microtasks before each call and within each run: the turns between two runs are where a third could slip in.
  const calls = fc.array(fc.nat({ max: 12 }), { minLength: 1, maxLength: 20 })
  await fc.assert(fc.asyncProperty(calls, fc.nat({ max: 5 }), async (delays, work) => {
    let running = 0
    let begun = 0
    let ended = 0
    const run = coalesce(async () => {
      begun++
      if (++running > 1) throw new Error('two at the same time')
      for (let i = 0; i < work; i++) await undefined
      running--
      ended++
    })
    await Promise.all(delays.map(async (delay) => {
      for (let i = 0; i < delay; i++) await undefined
      const before = begun
      await run()
      if (ended <= before) throw new Error('answered by a run that had begun before')
    }))
  }), { numRuns: 150 })
})

t.test('long work gives way when all of it has had its slice of a turn, and each job gets its share', async (t) => {
  const pieces = { first: 0, second: 0 }
  let turns = 0
  const job = async (name: keyof typeof pieces): Promise<void> => {
    while (pieces.first < 100 && pieces.second < 100) {
      for (const end = performance.now() + 0.5; performance.now() < end;) { /* work */ }
      pieces[name]++
      const pause = yieldIfNeeded()
      if (pause !== undefined) turns++
      await pause
    }
  }
  await Promise.all([job('first'), job('second')])
  t.ok(pieces.first > 50 && pieces.second > 50, JSON.stringify(pieces))
  t.ok(turns >= 10, `${turns} turns`)
})
