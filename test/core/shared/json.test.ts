import fc from 'fast-check'
import t from 'tap'
import { isJsonObject, jsonDepthExceeds, own, toJsonValue } from '../../../src/core/shared/json.ts'
import { checkTime } from '../../helper/timing.ts'

t.test('counts arrays and objects alike', (t) => {
  t.equal(jsonDepthExceeds('[{"a":[]}]', 3), false)
  t.equal(jsonDepthExceeds('[{"a":[]}]', 2), true)
  t.equal(jsonDepthExceeds('[[],[],[],[]]', 2), false, 'siblings do not add up')
  t.equal(jsonDepthExceeds('"a long enough string"', 0), false)
  t.end()
})

t.test('brackets inside strings do not count, whatever is escaped there', (t) => {
  for (const text of ['"[[[["', '["\\"[[[", "[["]', '["\\\\", "[["]', '{"[[[":"]]]"}', '["\\u005b[["]']) {
    t.equal(jsonDepthExceeds(text, 1), false, text)
  }
  t.equal(jsonDepthExceeds('["\\\\", []]', 1), true, 'an escaped backslash does not escape the quote')
  t.end()
})

t.test('K57: 64 levels are accepted and 65 are not', (t) => {
  t.equal(jsonDepthExceeds('['.repeat(64) + ']'.repeat(64), 64), false)
  t.equal(jsonDepthExceeds('['.repeat(65) + ']'.repeat(65), 64), true)
  t.equal(jsonDepthExceeds('{"a":'.repeat(200_000), 64), true)
  t.end()
})

t.test('says of any JSON exactly what its value shows', (t) => {
  fc.assert(fc.property(fc.jsonValue({ maxDepth: 8 }), fc.integer({ min: 0, max: 8 }), (value, max) => {
    return jsonDepthExceeds(JSON.stringify(value, null, 1), max) === (depthOf(value) > max)
  }))
  t.end()
})

t.test('takes any text in linear time', async (t) => {
  fc.assert(fc.property(fc.string(), (text) => typeof jsonDepthExceeds(text, 3) === 'boolean'))
  for (const text of ['"'.repeat(1_000_000), '\\'.repeat(1_000_000), '"\\'.repeat(500_000), '[]'.repeat(500_000)]) {
    await checkTime(t, 500, () => jsonDepthExceeds(text, 64))
  }
})

function depthOf (value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(depthOf))
}

t.test('K46: any value is plain JSON data', async (t) => {
  const cycle: unknown[] = []
  cycle.push(cycle)
  const rows: ReadonlyArray<readonly [value: unknown, json: string]> = [
    [{ a: [1, 'x', true, null], b: {} }, '{"a":[1,"x",true,null],"b":{}}'],
    [[Number.NaN, -Infinity, 10n ** 30n, -0], '["NaN","-Infinity","1000000000000000000000000000000",0]'],
    [[new Date(0), new Date(Number.NaN)], '["1970-01-01T00:00:00.000Z","Invalid Date"]'],
    [[undefined, () => 1, Symbol('x')], '[null,null,null]'],
    [JSON.parse('{"__proto__":{"x":1},"toJSON":1}'), '{"__proto__":{"x":1},"toJSON":1}'],
    [{ toJSON: () => 'no' }, '{"toJSON":null}'],
    [cycle, '[[[null]]]']
  ]
  for (const [value, json] of rows) t.equal(JSON.stringify(toJsonValue(value, 3)), json)
})

t.test('an object is neither null nor an array', (t) => {
  for (const value of [{}, { a: 1 }, Object.create(null)]) t.equal(isJsonObject(value), true)
  for (const value of [null, undefined, [], [{}], '', 'a', 0, true]) t.equal(isJsonObject(value), false, JSON.stringify(value))
  t.end()
})

t.test('only own properties are read, whatever their names', (t) => {
  t.equal(own({ a: 1 }, 'a'), 1)
  t.same(own(JSON.parse('{"__proto__":{"a":1}}'), '__proto__'), { a: 1 })
  for (const [value, key] of [[{}, 'a'], [{}, '__proto__'], [{}, 'constructor'], [[1], '0'], [[1], 'length'], ['text', 'length'], [null, 'a'], [undefined, 'a']] as const) {
    t.equal(own(value, key), undefined, `${JSON.stringify(value)} ${key}`)
  }
  t.end()
})
