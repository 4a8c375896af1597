import t from 'tap'
import { fitHeap } from '../../../src/core/shared/heap.ts'
import { Garbage, v8Heap } from '../../../src/http/overload/garbage.ts'
import { until } from '../../helper/skills.ts'

const MEBIBYTE = 1_048_576

t.test('bounds of what is held are as they say for a heap of 1 GiB and more, and shrink with a smaller one', async (t) => {
  for (const [heapMebibytes, share] of [[128, 1 / 8], [256, 1 / 4], [384, 3 / 8], [1_024, 1], [4_096, 1]] as const) {
    t.equal(fitHeap(20_000, heapMebibytes * MEBIBYTE), 20_000 * share, `${heapMebibytes} MiB`)
  }
})

t.test('large answers may add 96 MiB to the heap before garbage is collected', async (t) => {
  let used = 100
  let collections = 0
  const garbage = new Garbage({
    used: () => used * MEBIBYTE,
    collect () {
      used -= 120
      collections++
    }
  }, 96 * MEBIBYTE)
  const collectionsAfter = [100, 150, 195, 196, 90, 171, 172, 40, 135, 136].map((now) => {
    used = now
    garbage.add(4 * MEBIBYTE)
    return collections
  })
  t.strictSame(collectionsAfter, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3])
})

t.test('the heap is measured once for 4 MiB of answers', async (t) => {
  let measured = 0
  const garbage = new Garbage({ used: () => measured++, collect () {} })
  for (let index = 0; index < 64; index++) garbage.add(MEBIBYTE / 8)
  t.equal(measured, 2)
})

t.test('V8 collects when it is told', async (t) => {
  const heap = v8Heap()
  const unneeded = new WeakRef({})
  await until(() => {
    heap.collect()
    return unneeded.deref() === undefined
  })
  t.ok(heap.used() > 0)
})
