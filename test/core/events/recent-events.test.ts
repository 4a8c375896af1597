import fc from 'fast-check'
import t from 'tap'
import { RecentEvents } from '../../../src/core/events/recent-events.ts'

interface Numbered {
  readonly id: string
  readonly number: number
}

/** @param ids of the states after each event */
function fill (limit: number, ids: readonly string[]): RecentEvents<Numbered> {
  const recent = new RecentEvents<Numbered>(limit, 'base')
  for (const [index, id] of ids.entries()) recent.add({ id, number: index + 1 })
  return recent
}

function numbersAfter (recent: RecentEvents<Numbered>, id: string): number[] | undefined {
  return recent.after(id)?.map(({ number }) => number)
}

t.test('whoever knows an id gets exactly what came after it, or nothing when that is no longer there', (t) => {
  fc.assert(fc.property(fc.integer({ min: 1, max: 20 }), fc.nat(60), fc.nat(60), (limit, count, place) => {
    fc.pre(place <= count)
    const ids = Array.from({ length: count }, (_, index) => `id ${index + 1}`)
    const recent = fill(limit, ids)
    const expected = count - place > limit ? undefined : Array.from({ length: count - place }, (_, index) => place + index + 1)
    t.strictSame(numbersAfter(recent, ids[place - 1] ?? 'base'), expected)
    t.equal(recent.position, ids.at(-1) ?? 'base')
  }))
  t.end()
})

t.test('whoever resumes again and again gets every event once, in order', (t) => {
  fc.assert(fc.property(fc.array(fc.nat(8), { maxLength: 20 }), (bursts) => {
    const recent = new RecentEvents<Numbered>(8, 'base')
    const received: number[] = []
    let last = recent.position
    let count = 0
    for (const burst of bursts) {
      for (let index = 0; index < burst; index++) recent.add({ id: `id ${++count}`, number: count })
      for (const { id, number } of recent.after(last) ?? []) {
        received.push(number)
        last = id
      }
    }
    t.strictSame(received, Array.from({ length: count }, (_, index) => index + 1))
  }))
  t.end()
})

t.test('a state that came back is known from its last time on', (t) => {
  t.strictSame(numbersAfter(fill(9, ['a', 'b', 'a', 'c']), 'a'), [4])
  t.strictSame(numbersAfter(fill(9, ['a', 'base']), 'base'), [])
  t.end()
})

t.test('of events that leave the id as it is none is missed', (t) => {
  t.strictSame(numbersAfter(fill(9, ['a', 'a', 'a', 'b']), 'a'), [2, 3, 4])
  t.strictSame(numbersAfter(fill(9, ['base', 'base']), 'base'), [1, 2])
  t.strictSame(numbersAfter(fill(2, ['a', 'a', 'a', 'a']), 'a'), [3, 4])
  t.end()
})

t.test('ids of another sequence and nonsense are not known', (t) => {
  const recent = fill(4, ['a', 'b', 'c', 'd', 'e', 'f'])
  t.strictSame(numbersAfter(recent, 'b'), [3, 4, 5, 6])
  for (const id of ['', 'x', 'base', 'a', 'B', ' b', 'b\n', '__proto__', 'f0']) t.equal(recent.after(id), undefined, JSON.stringify(id))
  t.end()
})
