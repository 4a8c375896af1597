import fc from 'fast-check'
import t from 'tap'
import { Buckets } from '../../src/limits/buckets.ts'

function setUp (options: { readonly rate?: number, readonly burst?: number, readonly maxKeys?: number } = {}) {
  let time = 1_000_000
  const { rate = 10, burst = 5, maxKeys } = options
  const buckets = new Buckets({ rate, burst: () => burst, now: () => time, ...maxKeys !== undefined && { maxKeys } })
  return { buckets, pass: (ms: number) => { time += ms } }
}

t.test('K67: a bucket gives its burst at once, then its rate, and says exactly when to come back', async (t) => {
  const { buckets, pass } = setUp()
  const bucket = buckets.of('a')
  for (let i = 0; i < 5; i++) t.equal(buckets.take(bucket, 1), 0)
  t.equal(buckets.take(bucket, 1), 100)
  t.equal(buckets.wait(bucket, 3), 300)
  t.equal(buckets.take(buckets.of('b'), 1), 0, 'another caller notices nothing')
  pass(99)
  t.equal(buckets.take(bucket, 1), 1)
  pass(1)
  t.equal(buckets.take(bucket, 1), 0)
  t.equal(buckets.take(bucket, 1), 100)
  pass(10_000)
  for (let i = 0; i < 5; i++) t.equal(buckets.take(bucket, 1), 0)
  t.equal(buckets.take(bucket, 1), 100, 'no more than the burst collects')
})

t.test('K67: work that is charged afterwards is owed, at most two bursts of it', async (t) => {
  const { buckets, pass } = setUp()
  const bucket = buckets.of('a')
  buckets.charge(bucket, 1_000_000)
  t.equal(buckets.take(bucket, 1), 600)
  pass(600)
  t.equal(buckets.take(bucket, 1), 0)
})

t.test('K67: a store that replicas share hears of no more than is owed', async (t) => {
  const { buckets, pass } = setUp()
  buckets.share()
  const bucket = buckets.of('a')
  buckets.take(bucket, 2)
  buckets.charge(bucket, 1_000_000)
  t.same([...buckets.takeUsed()], [['a', 10]], 'two bursts')
  pass(100)
  buckets.charge(bucket, 1_000_000)
  t.same([...buckets.takeUsed()], [['a', 1]], 'what has come back meanwhile')
  buckets.addUsedElsewhere('a', 3_000)
  buckets.charge(bucket, 1)
  t.equal(buckets.wait(bucket, 5), 3_000, 'a charge takes nothing off the debt that other replicas know')
})

t.test('K67: no more than burst and rate are given, however requests come', async () => {
  fc.assert(fc.property(fc.array(fc.record({ pause: fc.nat(300), cost: fc.integer({ min: 1, max: 3 }) }), { maxLength: 200 }), (steps) => {
    const { buckets, pass } = setUp()
    let given = 0
    let elapsed = 0
    for (const { pause, cost } of steps) {
      pass(pause)
      elapsed += pause
      if (buckets.take(buckets.of('a'), cost) === 0) given += cost
    }
    return given <= 5 + elapsed / 100
  }))
})

t.test('K67: ten thousand new callers clear no bucket that is in use, while there is room for both', async (t) => {
  const { buckets } = setUp({ maxKeys: 100, burst: 2 })
  const victim = buckets.of('victim')
  buckets.take(victim, 2)
  for (let i = 0; i < 10_000; i++) buckets.of(`full-${i}`)
  t.ok(buckets.size <= 100)
  t.ok(buckets.take(buckets.of('victim'), 1) > 0)
})

t.test('K67: however many callers use units at once, no more are remembered, and those that a shared store hears of are as few', async (t) => {
  const { buckets } = setUp({ maxKeys: 100 })
  buckets.share()
  for (let i = 0; i < 1_000; i++) buckets.take(buckets.of(`used-${i}`), 5)
  t.equal(buckets.size, 100)
  t.ok(buckets.take(buckets.of('used-999'), 1) > 0, 'the latest are')
  t.equal(buckets.takeUsed().size, 100)
})

t.test('K67: what other replicas have used counts here, and what was used meanwhile is added', async (t) => {
  const { buckets } = setUp()
  buckets.share()
  const bucket = buckets.of('a')
  buckets.take(bucket, 2)
  t.strictSame([...buckets.takeUsed()], [['a', 2]])
  t.strictSame([...buckets.takeUsed()], [])
  buckets.take(bucket, 1)
  buckets.addUsedElsewhere('a', 400)
  t.equal(buckets.take(bucket, 1), 100, 'four of the others and one of ours')
  buckets.addUsedElsewhere('a', 0)
  buckets.addUsedElsewhere('a', 10)
  t.equal(buckets.take(bucket, 1), 100, 'a store that has forgotten gives nothing back')
})
