import t from 'tap'
import fc from 'fast-check'
import { spacedJson } from '../../../src/tools/text/spaced-json.ts'

t.test('K36: one blank stands after each colon and comma, as in the seeds', async (t) => {
  t.equal(spacedJson({ skills: ['calculator', 'weather', 'web_search'] }), '{"skills": ["calculator", "weather", "web_search"]}')
  t.equal(spacedJson({ skill_name: 'calculator', documentation: '# C\n\n' }), '{"skill_name": "calculator", "documentation": "# C\\n\\n"}')
  t.equal(spacedJson({ a: [], b: {}, c: [1, true, null, { d: 'x' }] }), '{"a": [], "b": {}, "c": [1, true, null, {"d": "x"}]}')
})

t.test('text inside strings is never changed', async (t) => {
  t.equal(spacedJson({ 'a:b,c': 'x:y,z "q":{"r":1}' }), '{"a:b,c": "x:y,z \\"q\\":{\\"r\\":1}"}')
  t.equal(spacedJson('é 日本 😀'), '"é 日本 😀"')
})

t.test('`__proto__` is a key like any other', async (t) => {
  t.equal(spacedJson(JSON.parse('{"__proto__":{"a":1}}')), '{"__proto__": {"a": 1}}')
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
