import fc from 'fast-check'
import { load } from 'js-yaml'
import t from 'tap'
import { readPlainLines } from '../../../src/core/format/plain-lines.ts'

function readYaml (source: string): unknown {
  try {
    return load(source, { maxDepth: 32, maxAliases: 0 })
  } catch {
    return 'not YAML'
  }
}

t.test('K10: what is read without the parser is what the parser says', (t) => {
  const piece = fc.constantFrom('name', 'description', 'true', 'Null', 'y', 'no', 'on', 'NaN', 'a', '-', ': ', ':', ' #', '#', ' ', '\n', '\t', '\r', '"', "'", '[', '{', '&a', '*a', '!t',
    '|', '>', '%', '@', '1', '0x1', '.inf', '~', '?', ', ', '<<', '__proto__', 'é', '\u0085', '---', '...', '\\', 'constructor')
  const line = fc.tuple(fc.constantFrom('name', 'x-y', 'key_1', 'null', '__proto__', 'description'), fc.constantFrom(': ', ':', ':  ', ' : '), fc.array(piece, { maxLength: 6 }))
    .map(([key, colon, value]) => `${key}${colon}${value.join('')}\n`)
  const ascii = fc.array(fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)), { maxLength: 20 })
    .map((characters) => `description: ${characters.join('')}\n`)
  let taken = 0
  fc.assert(fc.property(fc.oneof(fc.array(line, { minLength: 1, maxLength: 3 }).map((lines) => lines.join('')), ascii), (source) => {
    const plain = readPlainLines(source)
    if (plain === undefined) return
    taken++
    t.same(readYaml(source), plain, JSON.stringify(source))
  }), { numRuns: 20_000 })
  t.ok(taken > 500, `${taken} of them were plain`)
  t.end()
})

t.test('K10: plain frontmatter is taken, everything else is left to the parser', (t) => {
  t.same(readPlainLines('name: demo\ndescription: Does this, and that (really). Use it when asked!  \n'), {
    name: 'demo', description: 'Does this, and that (really). Use it when asked!'
  })
  for (const source of ['', 'name: "demo"\n', 'name: demo # a comment\n', 'a: b: c\n', 'a: b:\n', 'version: 1.0\n', 'on: true\n', 'a: b\na: c\n', '__proto__: x\n', 'a: b\r\n',
    'a: b\n  more\n', 'a:\n  b: c\n', 'a: [b]\n', 'a: é\n', 'a: b\tc\n', '# comment\n', '\n', 'null: x\n']) {
    t.equal(readPlainLines(source), undefined, JSON.stringify(source))
  }
  t.end()
})
