import fc from 'fast-check'
import t from 'tap'
import { RecentEvents } from '../../../src/core/events/recent-events.ts'

function fill (limit: number, count: number) {
  const recent = new RecentEvents<{ readonly id: string, readonly number: number }>(limit)
  const positions = [recent.position]
  for (let number = 1; number <= count; number++) {
    recent.add((id) => ({ id, number }))
    positions.push(recent.position)
  }
  return { recent, positions }
}

t.test('whoever knows an id gets exactly what came after it, or nothing when that is no longer there', (t) => {
  fc.assert(fc.property(fc.integer({ min: 1, max: 20 }), fc.nat(60), fc.nat(60), (limit, count, place) => {
    fc.pre(place <= count)
    const { recent, positions } = fill(limit, count)
    const missed = recent.after(positions[place] ?? '')
    const expected = count - place > limit ? undefined : Array.from({ length: count - place }, (_, index) => place + index + 1)
    t.strictSame(missed?.map(({ number }) => number), expected)
    missed?.forEach(({ id, number }) => { t.equal(id, positions[number]) })
  }))
  t.end()
})

t.test('whoever resumes again and again sees every event once, in order', (t) => {
  fc.assert(fc.property(fc.array(fc.nat(8), { maxLength: 20 }), (bursts) => {
    const recent = new RecentEvents<{ readonly id: string, readonly number: number }>(8)
    const seen: number[] = []
    let last = recent.position
    let count = 0
    for (const burst of bursts) {
      for (let i = 0; i < burst; i++) recent.add((id) => ({ id, number: ++count }))
      for (const { id, number } of recent.after(last) ?? []) {
        seen.push(number)
        last = id
      }
    }
    t.strictSame(seen, Array.from({ length: count }, (_, index) => index + 1))
  }))
  t.end()
})

t.test('ids of another sequence, of the future and nonsense are not known', (t) => {
  const { recent } = fill(4, 10)
  const other = fill(4, 10).recent
  const [sequence] = recent.position.split('-')
  t.not(sequence, other.position.split('-')[0])
  for (const id of ['', 'x', '10', '-', `${sequence}`, `${sequence}-`, `${sequence}-11`, `${sequence}--1`, `${sequence}-010`, `${sequence}-1e1`, `${sequence}-10 `,
    ` ${sequence}-10`, `${sequence}-10\n`, `${sequence}-99999999999999999999`, `${sequence}-5`, other.position, recent.position.toUpperCase() + 'Z', '__proto__-1']) {
    t.equal(recent.after(id), undefined, JSON.stringify(id))
  }
  fc.assert(fc.property(fc.string(), (id) => { t.equal(recent.after(id), undefined) }))
  fc.assert(fc.property(fc.integer(), (number) => {
    t.equal(recent.after(`${sequence}-${number}`) !== undefined, number >= 6 && number <= 10, String(number))
  }))
  t.end()
})
