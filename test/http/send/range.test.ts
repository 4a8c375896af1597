import fc from 'fast-check'
import t from 'tap'
import { selectRange } from '../../../src/http/send/range.ts'
import { checkTime } from '../../helper/timing.ts'

const target = { size: 100, etag: '"abc"' }
const full = { kind: 'full' } as const
const unsatisfiable = { kind: 'unsatisfiable' } as const
const partial = (start: number, end: number) => ({ kind: 'partial', start, end }) as const

t.test('K44: a range selects the bytes that it names', (t) => {
  t.same(selectRange(undefined, undefined, target), full)
  for (const [range, expected] of [
    ['bytes=0-0', partial(0, 0)],
    ['bytes=0-9', partial(0, 9)],
    ['bytes=90-', partial(90, 99)],
    ['bytes=90-1000', partial(90, 99)],
    ['bytes=-1', partial(99, 99)],
    ['bytes=-100', partial(0, 99)],
    ['bytes=-1000', partial(0, 99)],
    ['BYTES= 1-2 ', partial(1, 2)],
    ['bytes=100-', unsatisfiable],
    ['bytes=100-200', unsatisfiable]
  ] as const) t.same(selectRange(range, undefined, target), expected, range)
  t.end()
})

t.test('odd ranges are ignored or unsatisfiable, and never more than one part', (t) => {
  for (const [range, expected] of [
    ['bytes=-0', unsatisfiable],
    ['bytes=5-1', full],
    ['bytes=0-99999999999999999999', partial(0, 99)],
    ['bytes=99999999999999999999-', unsatisfiable],
    [`bytes=${'9'.repeat(10_000)}-`, unsatisfiable],
    ['abc', full],
    ['bytes', full],
    ['bytes=', full],
    ['bytes=-', full],
    ['bytes=a-b', full],
    ['bytes=1-2-3', full],
    ['bytes=0x1-2', full],
    ['bytes=-1.5', full],
    ['lines=0-1', full],
    ['', full],
    ['bytes=0-1,2-3', full],
    [`bytes=${'0-,'.repeat(1000)}0-`, full]
  ] as const) t.same(selectRange(range, undefined, target), expected, range.slice(0, 40))
  t.end()
})

t.test('an empty file has no bytes to select', (t) => {
  const empty = { ...target, size: 0 }
  t.same(selectRange('bytes=0-', undefined, empty), unsatisfiable)
  t.same(selectRange('bytes=0-0', undefined, empty), unsatisfiable)
  t.same(selectRange('bytes=-5', undefined, empty), full)
  t.end()
})

t.test('If-Range compares strongly', (t) => {
  t.same(selectRange('bytes=0-1', '"abc"', target), partial(0, 1))
  for (const ifRange of ['"other"', 'W/"abc"', 'abc', '', 'Sat, 21 Nov 2026 10:00:00 GMT', '2026-11-21T10:00:00Z', '"abc", "other"']) {
    t.same(selectRange('bytes=0-1', ifRange, target), full, ifRange)
  }
  t.end()
})

t.test('no header throws, and a part lies inside the file', async (t) => {
  const header = fc.oneof(fc.string(), fc.tuple(fc.constantFrom('bytes=', 'bytes= ', 'x='), fc.nat(), fc.constantFrom('-', ',', ''), fc.nat()).map((parts) => parts.join('')))
  fc.assert(fc.property(header, fc.nat({ max: 1000 }), (range, size) => {
    const selected = selectRange(range, undefined, { ...target, size })
    return selected.kind !== 'partial' || (selected.start >= 0 && selected.start <= selected.end && selected.end < size)
  }))
  for (const range of [`bytes=${' '.repeat(100_000)}`, `bytes=${'1'.repeat(100_000)}`, `bytes=1-${' '.repeat(100_000)}x`, 'bytes=0-'.repeat(10_000)]) {
    await checkTime(t, 100, () => selectRange(range, undefined, target), range.slice(0, 20))
  }
})
