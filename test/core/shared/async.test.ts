import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import { coalesce, createQueue, createSlicer, forEachInSlices } from '../../../src/core/shared/async.ts'
import { SLICE_MS } from '../../../src/core/shared/limits.ts'

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
  }), { numRuns: 500 })
})

t.test('long work gives way when its slice is over', async (t) => {
  const always = createSlicer(0)
  let turned = false
  setImmediate(() => { turned = true })
  await always()
  t.ok(turned, 'everybody else had a turn')
  t.equal(createSlicer(60_000)(), undefined, 'within the slice it goes on at once')
})

t.test('each piece that takes a slice gives way, the one after a pause too', async (t) => {
  const yieldIfNeeded = createSlicer(1)
  for (let piece = 0; piece < 4; piece++) {
    for (const end = performance.now() + 1; performance.now() <= end;) { /* work */ }
    const pause = yieldIfNeeded()
    t.ok(pause, `piece ${piece}`)
    await pause
  }
})

t.test('visits in slices come one after the other, give way, and end with the first that fails', async (t) => {
  const steps: string[] = []
  setImmediate(() => steps.push('other'))
  await forEachInSlices(['a', 'b'], (item) => {
    steps.push(item)
    for (const end = performance.now() + SLICE_MS; performance.now() <= end;) { /* work */ }
  })
  t.strictSame(steps, ['a', 'other', 'b'])
  const visited: number[] = []
  const visits = forEachInSlices([1, 2, 3], async (item) => {
    await nextTurn()
    visited.push(item)
    if (item === 2) throw new Error('two')
  })
  await t.rejects(visits, /^two$/)
  t.strictSame(visited, [1, 2])
})

t.test('of two long jobs none gets more than its share', async (t) => {
  const pieces = { first: 0, second: 0 }
  const job = async (name: keyof typeof pieces): Promise<void> => {
    const yieldIfNeeded = createSlicer()
    while (pieces.first < 200 && pieces.second < 200) {
      for (const end = performance.now() + 0.5; performance.now() < end;) { /* work */ }
      pieces[name]++
      await yieldIfNeeded()
    }
  }
  await Promise.all([job('first'), job('second')])
  t.ok(pieces.first > 100 && pieces.second > 100, JSON.stringify(pieces))
})

t.test('jobs in a queue begin in order, each when the one before has ended, however it ended', async (t) => {
  const queue = createQueue()
  const events: string[] = []
  const job = (name: string) => queue(async () => {
    events.push(`${name} begins`)
    await nextTurn()
    events.push(`${name} ends`)
    if (name === 'b') throw new Error(name)
    return name
  })
  t.same(await Promise.allSettled([job('a'), job('b'), job('c')]), [
    { status: 'fulfilled', value: 'a' }, { status: 'rejected', reason: new Error('b') }, { status: 'fulfilled', value: 'c' }
  ])
  t.same(events, ['a', 'b', 'c'].flatMap((name) => [`${name} begins`, `${name} ends`]))
})

t.test('of a wide queue so many jobs run at the same time, and one that takes long holds back none but itself', async (t) => {
  const queue = createQueue(2)
  const events: string[] = []
  let endSlow = (): void => {}
  const slow = new Promise<void>((resolve) => { endSlow = resolve })
  const job = (name: string, work?: Promise<void>) => queue(async () => {
    events.push(`${name} begins`)
    await (work ?? nextTurn())
    events.push(`${name} ends`)
    if (name === 'b') throw new Error(name)
  })
  const first = job('a', slow)
  t.same((await Promise.allSettled([job('b'), job('c'), job('d')])).map(({ status }) => status), ['rejected', 'fulfilled', 'fulfilled'])
  endSlow()
  await first
  t.same(events, ['a begins', 'b begins', 'b ends', 'c begins', 'c ends', 'd begins', 'd ends', 'a ends'])
})
