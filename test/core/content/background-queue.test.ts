import t from 'tap'
import { BackgroundQueue } from '../../../src/core/content/background-queue.ts'
import { until } from '../../helper/skills.ts'

/** A queue whose work goes on until the test ends it. */
function heldQueue () {
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const queue = new BackgroundQueue((name) => {
    begun.push(name)
    return new Promise((resolve) => { ends.set(name, resolve) })
  })
  return { queue, begun, end: (name: string) => { ends.get(name)?.() } }
}

t.test('one name at a time, in the order they came in, each once', async (t) => {
  const { queue, begun, end } = heldQueue()
  for (const name of ['a', 'b', 'a']) queue.add(name)
  t.strictSame(begun, [], 'not before those who are here have had their turn')
  await until(() => begun.length === 1)
  queue.add('a')
  queue.add('c')
  t.ok(queue.has('a'), 'while it is worked on')
  end('a')
  await until(() => begun.length === 2)
  t.notOk(queue.has('a'))
  queue.add('a')
  for (const name of ['b', 'c', 'a']) {
    await until(() => begun.at(-1) === name)
    end(name)
  }
  await until(() => !queue.has('a'))
  t.strictSame(begun, ['a', 'b', 'c', 'a'])
  queue.add('d')
  await until(() => begun.at(-1) === 'd')
  end('d')
})

t.test('close waits for the work under way and begins no other', async (t) => {
  const { queue, begun, end } = heldQueue()
  queue.add('a')
  queue.add('b')
  await until(() => begun.length === 1)
  let isClosed = false
  const closed = queue.close().then(() => { isClosed = true })
  queue.add('c')
  t.notOk(queue.has('b') || queue.has('c'))
  t.notOk(isClosed)
  end('a')
  await closed
  t.strictSame(begun, ['a'])
})

t.test('what is added just before it closes is not begun', async (t) => {
  const { queue, begun } = heldQueue()
  queue.add('a')
  await queue.close()
  t.strictSame(begun, [])
})
