import t from 'tap'
import { MAX_JSON_DEPTH } from '../../src/tools/limits.ts'
import { integerArgument, parseArguments, stringArgument } from '../../src/tools/arguments.ts'
import { ToolArgumentsError, type ToolParameters } from '../../src/tools/tool.ts'
import fc from 'fast-check'
import { spacedJson } from '../../src/tools/spaced-json.ts'

const parameters: ToolParameters = {
  type: 'object',
  properties: { skill_name: { type: 'string', description: 'Name' } },
  required: ['skill_name']
}
const SCHEMA = JSON.stringify(parameters)

function refusal (run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (error instanceof ToolArgumentsError) return error.message
    throw error
  }
  throw new Error('nothing was refused')
}

t.test('K37: an empty string, a blank one, null and nothing mean no arguments', async (t) => {
  for (const raw of ['', '  \n', null, undefined, 'null', '{}', {}]) t.same(parseArguments(raw, parameters), {})
})

t.test('K37: a JSON string and an object are the same', async (t) => {
  t.same(parseArguments('{"skill_name":"a"}', parameters), { skill_name: 'a' })
  t.same(parseArguments({ skill_name: 'a' }, parameters), { skill_name: 'a' })
})

t.test('K37: null for an optional parameter is absent, and stays for a required and an unknown one', async (t) => {
  const optional: ToolParameters = {
    ...parameters, properties: { ...parameters.properties, limit: { type: 'integer', description: 'Most' } }
  }
  t.same(parseArguments('{"skill_name":"a","limit":null}', optional), { skill_name: 'a' })
  t.same(parseArguments({ skill_name: null, other: null }, optional), { skill_name: null, other: null })
  t.match(refusal(
    () => stringArgument(parseArguments({ skill_name: null }, optional), 'skill_name', optional)
  ), /'skill_name' must be a string/)
})

t.test('K37: halves of surrogate pairs become U+FFFD, in a JSON string and in an object', async (t) => {
  for (const raw of [
    '{"skill_name":"a\\ud800b"}', { skill_name: 'a\ud800b' }
  ]) t.same(parseArguments(raw, parameters), { skill_name: 'a\ufffdb' })
})

t.test('K37: malformed JSON is refused with what, where and the schema', async (t) => {
  const message = refusal(() => parseArguments('{"skill_name": calculator}', parameters))
  // The words of V8.
  t.match(message, /^Invalid tool arguments: Unexpected token 'c', .*calculator.* is not valid JSON\n\nParameters: /)
  t.match(message, SCHEMA)
})

t.test('what is no object is refused and never unwrapped', async (t) => {
  const rows: ReadonlyArray<readonly [raw: unknown, problem: string]> = [
    ['[1]', 'expected a JSON object, got an array'],
    [[1], 'expected a JSON object, got an array'],
    ['"x"', 'expected a JSON object, got a string'],
    ['"{\\"skill_name\\":\\"a\\"}"', 'expected a JSON object, got a string'],
    ['1', 'expected a JSON object, got a number'],
    [1, 'expected a JSON object, got a number'],
    ['true', 'expected a JSON object, got a boolean']
  ]
  for (const [raw, problem] of rows) {
    t.equal(
      refusal(() => parseArguments(raw, parameters)), `Invalid tool arguments: ${problem}\n\nParameters: ${SCHEMA}`
    )
  }
})

t.test('a string nested deeper than 64 levels is refused, 64 levels are taken', async (t) => {
  const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
  t.ok(parseArguments(nested(MAX_JSON_DEPTH), parameters))
  for (const levels of [MAX_JSON_DEPTH + 1, 200_000]) {
    t.match(
      refusal(() => parseArguments(nested(levels), parameters)), 'Invalid tool arguments: nested deeper than 64 levels'
    )
  }
})

t.test('K38: `__proto__` in a string is data', async (t) => {
  const args = parseArguments('{"__proto__":{"skill_name":"x"},"constructor":{"prototype":{"polluted":1}}}', parameters)
  t.match(refusal(() => stringArgument(args, 'skill_name', parameters)), "'skill_name' is missing, it must be a string")
  t.notOk('polluted' in {})
})

t.test('an argument is never coerced', async (t) => {
  for (const value of [['a'], { toString: 'x' }, 123, null, true]) {
    t.equal(refusal(() => stringArgument({ skill_name: value }, 'skill_name', parameters)),
      `Invalid tool arguments: 'skill_name' must be a string\n\nParameters: ${SCHEMA}`)
  }
  t.equal(stringArgument({ skill_name: '5' }, 'skill_name', parameters), '5')
})

t.test('an inherited property is no argument', async (t) => {
  t.match(refusal(
    () => stringArgument(Object.create({ skill_name: 'x' }), 'skill_name', parameters)
  ), "'skill_name' is missing, it must be a string")
})

t.test('K37: an integer is an integer within bounds, or absent', async (t) => {
  const read = (value: unknown) => integerArgument({ limit: value }, 'limit', { min: 1, max: 9, absent: 5 }, parameters)
  t.equal(integerArgument({}, 'limit', { min: 1, max: 9, absent: 5 }, parameters), 5)
  for (const value of [1, 9, 3.0]) t.equal(read(value), value)
  for (const value of ['3', 0, 10, 1.5, null, true, [3], Number.NaN, Infinity]) {
    t.equal(refusal(() =>
      read(value)), `Invalid tool arguments: 'limit' must be an integer from 1 to 9\n\nParameters: ${SCHEMA}`)
  }
})

t.test('K36: one blank stands after each colon and comma, as in the seeds', async (t) => {
  t.equal(spacedJson({
    skills: ['calculator', 'weather', 'web_search']
  }), '{"skills": ["calculator", "weather", "web_search"]}')
  t.equal(spacedJson({
    skill_name: 'calculator', documentation: '# C\n\n'
  }), '{"skill_name": "calculator", "documentation": "# C\\n\\n"}')
  t.equal(
    spacedJson({ a: [], b: {}, c: [1, true, null, { d: 'x' }] }), '{"a": [], "b": {}, "c": [1, true, null, {"d": "x"}]}'
  )
})

t.test('whatever JSON there is comes back as it was, and has the spacing of Python', async () => {
  fc.assert(fc.property(fc.json({ maxDepth: 4 }), (json) => {
    const value: unknown = JSON.parse(json)
    const text = spacedJson(value)
    return JSON.stringify(JSON.parse(text)) === JSON.stringify(value) && withoutStrings(text).every(hasPythonSpacing)
  }))
})

/** The text between the string literals. */
function withoutStrings (json: string): string[] {
  return json.split(/"(?:[^"\\]|\\.)*"/)
}

function hasPythonSpacing (structure: string): boolean {
  return !/[,:](?! )|(?<![,:]) /.test(structure)
}
