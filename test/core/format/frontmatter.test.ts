import t from 'tap'
import fc from 'fast-check'
import { locateFrontmatter } from '../../../src/core/format/fences.ts'
import { parseFrontmatter } from '../../../src/core/format/frontmatter.ts'
import { MAX_FRONTMATTER_BYTES, MAX_FRONTMATTER_DEPTH } from '../../../src/core/shared/limits.ts'
import { checkTime } from '../../helper/timing.ts'

const BUDGET_MS = 50

const parse = (text: string) => parseFrontmatter(Buffer.from(text))
const codes = (text: string) => parse(text).findings.map(({ code }) => code)

const filled = (unit: string, bytes = MAX_FRONTMATTER_BYTES) => unit.repeat(Math.floor(bytes / Buffer.byteLength(unit)))

function numbered (line: (n: number) => string): string {
  let text = ''
  for (let n = 0; text.length + line(n).length <= MAX_FRONTMATTER_BYTES; n++) text += line(n)
  return text
}

t.test('K10: the fences are whole lines', async t => {
  const rows: Array<[string, string, string, string]> = [
    ['LF', '---\na: 1\n---\nbody', 'a: 1\n', 'body'],
    ['CRLF', '---\r\na: 1\r\n---\r\nbody', 'a: 1\r\n', 'body'],
    ['byte order mark', '\uFEFF---\na: 1\n---\nbody', 'a: 1\n', 'body'],
    ['trailing blanks', '--- \t\na: 1\n---\t \nbody', 'a: 1\n', 'body'],
    ['nothing between', '---\n---\nbody', '', 'body'],
    ['nothing after', '---\na: 1\n---', 'a: 1\n', ''],
    ['three dashes in a value', '---\na: b --- c\n---\nbody', 'a: b --- c\n', 'body'],
    ['longer and indented dashes', '---\na: |\n  ---\n----\n--- x\n---\nbody', 'a: |\n  ---\n----\n--- x\n', 'body'],
    ['a rule in the body', '---\na: 1\n---\nx\n---\ny', 'a: 1\n', 'x\n---\ny']
  ]
  for (const [name, text, frontmatter, body] of rows) {
    const bytes = Buffer.from(text)
    const location = locateFrontmatter(bytes)
    if (location.kind !== 'found') {
      t.fail(name)
      continue
    }
    t.equal(bytes.toString('utf8', location.start, location.end), frontmatter, name)
    t.equal(bytes.toString('utf8', location.bodyStart), body, name)
  }
})

t.test('K10: what is no fence is body', async t => {
  for (const text of ['', '# x', ' ---\na: 1\n---\n', '\n---\na: 1\n---\n', '----\n---\n', '---js\n---\n', '--\n', '---\ra: 1\r---\r']) {
    t.strictSame(locateFrontmatter(Buffer.from(text)), { kind: 'missing', bodyStart: 0 }, JSON.stringify(text))
  }
  for (const text of ['---', '---\n', '---\na: 1\n', '---\na: 1\n ---\n...\n----']) {
    t.strictSame(locateFrontmatter(Buffer.from(text)), { kind: 'unclosed', bodyStart: 0 }, JSON.stringify(text))
  }
})

t.test('fences, frontmatter and body put together are the file', async t => {
  const line = fc.oneof(fc.constantFrom('---', '--- ', '----', ' ---', '', 'a: 1', '...'), fc.string())
  const end = fc.constantFrom('\n', '\r\n', '\r')
  const file = fc.tuple(fc.constantFrom('', '\uFEFF', '---\n', '\uFEFF---\r\n'), fc.array(fc.tuple(line, end)))
  t.doesNotThrow(() => fc.assert(fc.property(file, ([head, lines]) => {
    const bytes = Buffer.from(head + lines.flat().join(''))
    const location = locateFrontmatter(bytes)
    if (location.kind !== 'found') return location.bodyStart === (head.startsWith('\uFEFF') ? 3 : 0)
    const fence = /^---[ \t]*(?:\r?\n)?$/
    return /^(?:\uFEFF)?---[ \t]*\r?\n$/.test(bytes.toString('utf8', 0, location.start)) &&
      fence.test(bytes.toString('utf8', location.end, location.bodyStart)) &&
      !bytes.toString('utf8', location.start, location.end).split('\n').slice(0, -1).some(text => /^---[ \t]*\r?$/.test(text))
  })))
})

t.test('K10: values have the types of YAML 1.2', async t => {
  const { frontmatter, findings } = parse([
    'version: 1.0', 'date: 2026-01-01', 'yes: yes', 'flag: true', 'nothing: ~', 'octal: 0123', 'flow: [a, {b: c}]',
    'folded: >', '  one', '  two', 'literal: |', '  one', '  two', ''].join('\n'))
  t.strictSame(findings, [])
  t.same(frontmatter, {
    version: 1, date: '2026-01-01', yes: 'yes', flag: true, nothing: null, octal: 123, flow: ['a', { b: 'c' }], folded: 'one two\n', literal: 'one\ntwo\n'
  })
})

t.test('K10: a one-line value that YAML cannot read is read as text', async t => {
  const rows: Array<[string, string]> = [
    ['a colon and a blank', 'Use this when: the user asks'],
    ['a colon at the end', 'Use this when:'],
    ['an at sign', '@mention someone'],
    ['a backtick', '`code` first'],
    ['a star', '*Always* close the gate'],
    ['a tag', '!text Sharpen pencils'],
    ['a percent sign', '%d items'],
    ['a dash', '- item'],
    ['a closing bracket', '] done'],
    ['a control character', 'ring\u0007 the bell'],
    ['quotes inside', 'say "x": then \\ stop'],
    ['an apostrophe', "don't: stop"],
    ['a path and an apostrophe', "don't: C:\\temp"]
  ]
  for (const [name, value] of rows) {
    for (const end of ['\n', '\r\n']) {
      const { frontmatter, findings } = parse(`name: x${end}description: ${value}${end}version: 1.5${end}`)
      t.same(frontmatter, { name: 'x', description: value, version: 1.5 }, name)
      t.match(findings, [{ code: 'yaml_repaired', severity: 'warning', field: 'description', fix: /^Put the text of 'description' in (?:double|single) quotes/ }], name)
      const fix = findings[0]?.fix ?? ''
      const plain = value.replaceAll(/\p{Cc}/gu, '')
      t.equal(fix.includes(', without control characters'), plain !== value, name)
      const quoted = fix.includes('in double') ? `"${plain}"` : `'${fix.includes(", with each ' in it written twice") ? plain.replaceAll("'", "''") : plain}'`
      t.same(parse(`description: ${quoted}`), { frontmatter: { description: plain }, findings: [], broken: new Set() }, `${name}, mended as it says`)
    }
  }
})

t.test('K10: a repair leaves alone what is not broken', async t => {
  const { frontmatter } = parse('# a: b: c\na: b: c # d\nlicense: MIT # see: there\nlist:\n- x\nquoted: "y: z"\nflow: [1, 2]\nblock: |\n  p: q: r\n')
  t.same(frontmatter, { a: 'b: c # d', license: 'MIT', list: ['x'], quoted: 'y: z', flow: [1, 2], block: 'p: q: r\n' })
})

t.test('K9: frontmatter without fields is one error', async t => {
  for (const text of ['', '\n\n', '# only a comment\n', '~\n', '...\n']) t.strictSame(codes(text), ['frontmatter_empty'], JSON.stringify(text))
  for (const text of ['- a\n- b\n', 'just a sentence\n', '42\n', '"x"\n']) t.strictSame(codes(text), ['frontmatter_not_mapping'], JSON.stringify(text))
})

t.test('K10: aliases are refused', async t => {
  const levels = Array.from({ length: 9 }, (_, n) => `a${n}: &a${n} [${Array(9).fill(n === 0 ? 'lol' : `*a${n - 1}`).join(', ')}]\n`)
  t.strictSame([...new Set(codes(levels.join('')))], ['yaml_refused'])
  t.strictSame(codes('a: &a\n  b: *a\n'), ['yaml_refused'])
  t.strictSame(codes('a: &a [*a]\n'), ['yaml_refused'])
})

t.test('K10: deep nesting is refused, however often it is read', async t => {
  for (let i = 0; i < 10; i++) t.strictSame(codes('['.repeat(2_000)), ['yaml_refused'])
  t.strictSame(codes('{a: '.repeat(MAX_FRONTMATTER_DEPTH) + '1' + '}'.repeat(MAX_FRONTMATTER_DEPTH)), ['yaml_refused'])
  t.strictSame(codes('a: {b: {c: [[1]]}}\n'), [])
})

t.test('K9: keys that clash with object internals are data', async t => {
  const { frontmatter } = parse('__proto__:\n  polluted: yes\nconstructor: x\ntoString: y\nmetadata:\n  __proto__: z\n')
  t.strictSame(Object.keys(frontmatter), ['__proto__', 'constructor', 'toString', 'metadata'])
  t.equal(Object.getPrototypeOf(frontmatter), Object.prototype)
  t.notOk(Object.hasOwn(Object.prototype, 'polluted'))
  t.equal(JSON.stringify(frontmatter), '{"__proto__":{"polluted":"yes"},"constructor":"x","toString":"y","metadata":{"__proto__":"z"}}')
})

t.test('K9: no input makes the process print a warning', async t => {
  const warnings: Error[] = []
  const listen = (warning: Error) => { warnings.push(warning) }
  process.on('warning', listen)
  for (const text of ['a: !x y\n', '%YAML 1.1\n---\na: 1\n', '%FOO\n---\na: 1\n', 'a: &b c\n']) parse(text)
  await new Promise(resolve => setImmediate(resolve))
  process.off('warning', listen)
  t.strictSame(warnings, [])
})

t.test('K10: no frontmatter takes long, whatever it holds', async t => {
  const rows: Record<string, string> = {
    '? ': '? '.repeat(500),
    'double quotes': filled('"'),
    'single quotes': filled("'"),
    anchors: filled('&a '),
    'anchors on lines': filled('&a\n'),
    'key lines': numbered(n => `k${n}: 1\n`),
    'number keys': numbered(n => `${n}: 1\n`),
    'key lines to repair': numbered(n => `k${n}: a: b\n`),
    'one line to repair': `a: ${filled('b: ', MAX_FRONTMATTER_BYTES - 4)}`,
    dashes: filled('- '),
    'dash lines': filled('-\n'),
    brackets: filled('['),
    'bracket keys': numbered(() => '[x]: 1\n'),
    'flow mappings': numbered(n => `a${n}: {b: [c], d: e}\n`),
    'flow pairs': `x: [${filled('a: b,', MAX_FRONTMATTER_BYTES - 8)}]`,
    'nested flow keys': numbered(() => `- ${'['.repeat(12)}a${']:b'.repeat(11)}]\n`),
    colons: filled(':\n'),
    documents: filled('---\n'),
    'tagged documents': filled('!b\n...\n: '),
    directives: numbered(n => `%TAG !a${n}! b\n`),
    'carriage returns': filled('\r'),
    'blank lines': filled('\n'),
    blanks: `a: b: ${filled(' ', MAX_FRONTMATTER_BYTES - 8)}c`,
    'byte order marks': filled('\uFEFF\n'),
    folded: `a: >\n${filled(' b\n', MAX_FRONTMATTER_BYTES - 8)}`,
    digits: `a: ${filled('1', MAX_FRONTMATTER_BYTES - 4)}e`,
    astral: `a: ${filled('😀', MAX_FRONTMATTER_BYTES - 4)}`,
    'broken fields': numbered(n => `k${n}: [x] y\n`),
    'broken long fields': Array.from({ length: 32 }, (_, n) => `k${n}: {a: [${'b, '.repeat(70)}] c\n`).join(''),
    'fields with lines at the margin': numbered(n => `k${n}: {a: b\n}} c\n`),
    'equal fields': filled('a: 1\n'),
    'fields that are indented': numbered(n => `k${n}: x\n   l: y: z\n`),
    'properties on nested lines': Array.from({ length: 30 }, (_, n) => `${' '.repeat(n)}!!map &a${n}\n`).join('')
  }
  for (const [name, text] of Object.entries(rows)) {
    const bytes = Buffer.from(text)
    t.ok(bytes.length <= MAX_FRONTMATTER_BYTES, `${name} is within the size that is parsed`)
    await checkTime(t, BUDGET_MS, () => parseFrontmatter(bytes), name)
  }
})

t.test('K10: frontmatter over the limit is not parsed', async t => {
  const text = `a: ${'b'.repeat(MAX_FRONTMATTER_BYTES - 4)}\n`
  t.strictSame(codes(text), [])
  t.match(parse(`${text}#`), { frontmatter: {}, findings: [{ code: 'frontmatter_too_large', severity: 'error' }] })
})
