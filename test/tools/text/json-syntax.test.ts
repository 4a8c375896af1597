import t from 'tap'
import fc from 'fast-check'
import { findJsonSyntaxError } from '../../../src/tools/text/json-syntax.ts'
import { checkTime } from '../../helper/timing.ts'

const BROKEN: ReadonlyArray<readonly [text: string, position: number, problem: RegExp]> = [
  ['{', 1, /ends too early, expected a property name/],
  ['', 0, /ends too early, expected a JSON value/],
  ['{"a"', 4, /expected ':'/],
  ['{"a":', 5, /expected a JSON value/],
  ['{"a":1', 6, /expected ',' or '}'/],
  ['{"a":1,}', 7, /property name in double quotes/],
  ['{a:1}', 1, /property name in double quotes/],
  ["{'a':1}", 1, /property name in double quotes/],
  ['{"a":"x', 7, /closing quote/],
  ['{"a":"x\ny"}', 7, /control characters/],
  ['{"a":"\\x"}', 6, /valid escape/],
  ['{"a":"\\u12g4"}', 6, /valid escape/],
  ['{"a":truE}', 5, /expected a JSON value/],
  ['{"a":01}', 6, /expected ',' or '}'/],
  ['[1,]', 3, /expected a JSON value/],
  ['[1 2]', 3, /expected ',' or ']'/],
  ['{}""', 2, /unexpected text after/],
  ['```json\n{}\n```', 0, /expected a JSON value/]
]

for (const [text, position, problem] of BROKEN) {
  t.test(`${JSON.stringify(text)} is broken at ${position}`, async (t) => {
    const error = findJsonSyntaxError(text)
    t.equal(error?.position, position)
    t.match(error?.problem, problem)
  })
}

t.test('it finds no error exactly where JSON.parse finds none', async () => {
  const nearlyJson = fc.tuple(fc.json({ maxDepth: 3 }), fc.nat(), fc.constantFrom('', '"', ',', '}', ']', '\\', '1', 'x', '\n', ' '))
    .map(([json, at, inserted]) => json.slice(0, at % (json.length + 1)) + inserted + json.slice(at % (json.length + 1) + 1))
  fc.assert(fc.property(fc.oneof(fc.json({ maxDepth: 3 }), nearlyJson, fc.string()), (text) =>
    (findJsonSyntaxError(text) === undefined) === isJson(text)), { numRuns: 2_000 })
})

t.test('a text of a megabyte takes milliseconds', async (t) => {
  const error = await checkTime(t, 500, () => findJsonSyntaxError(`{"a":"${'x'.repeat(1_000_000)}`))
  t.equal(error?.position, 1_000_006)
})

function isJson (text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
