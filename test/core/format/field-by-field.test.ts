import t from 'tap'
import fc from 'fast-check'
import { parseFrontmatter } from '../../../src/core/format/frontmatter.ts'
import { parseSkillBytes } from '../../../src/core/format/main-file.ts'
import { codePoint } from '../../helper/code-point.ts'

const parse = (text: string) => parseFrontmatter(Buffer.from(text))
const parseFile = (frontmatter: string, folder = 'x') => parseSkillBytes(Buffer.from(`---\n${frontmatter}\n---\nbody\n`), folder)

t.test('K9: a mistake in one field takes nothing from the others, is one finding, and names its line', async t => {
  const rows: Array<[name: string, broken: string, line: number, fix: RegExp, field?: string]> = [
    ['two lists', 'argument-hint: [a] [b]', 3, /^Correct line 3/, 'argument-hint'],
    ['an unclosed list', 'tags: [a, b', 3, /^Correct line 3/, 'tags'],
    ['an unclosed quote', 'license: "MIT', 3, /^Correct line 3/, 'license'],
    ['text after a quote', 'license: "MIT" or so', 3, /^Correct line 3/, 'license'],
    ['a backslash', 'license: "C:\\Windows"', 3, /every backslash in line 3/, 'license'],
    ['NUL', 'license: "\0"', 3, /^Remove the control characters from line 3/, 'license'],
    ['another control character', 'license: "\u0007"', 3, /^Remove the control characters from line 3/, 'license'],
    ['a control character in a block', 'license: |\n  a\u0007', 4, /^Remove the control characters from line 4/, 'license'],
    ['broken JSON in a line', 'metadata: {"a": 1 "b": 2}', 3, /^Correct line 3/, 'metadata'],
    ['broken JSON in lines', 'metadata:\n  {\n    "a": 1\n    "b": 2\n  }', 5, /^Correct line 5/, 'metadata'],
    ['JSON without an end', 'metadata: {"a": {\n  "b": 2\n  }', 5, /^Correct line 5/, 'metadata'],
    ['a list in a mapping', 'metadata:\n  a: b\n  keys: [@Cron, x]\n  c: d', 5, /^Correct line 5/, 'metadata'],
    ['uneven blanks', 'metadata:\n  a: b\n   c: d', 5, /^Correct line 5/, 'metadata'],
    ['a line without a field in a mapping', 'metadata:\n  a: b\n  text\n  c: d', 5, /^Write line 5/, 'metadata'],
    ['a tab', 'metadata:\n\tb: 1', 4, /^Indent line 4 .* instead of tabs/, 'metadata'],
    ['equal keys inside', 'metadata:\n  a: 1\n  a: 2', 5, /^Remove the field in line 5/, 'metadata'],
    ['equal fields', 'license: MIT\nlicense: BSD', 4, /^Remove the field in line 4/, 'license'],
    ['a line without a field', 'license: MIT\nor something else', 4, /^Write line 4 of SKILL\.md as 'field: value'/, 'license'],
    ['a text that is not indented', 'license: |\nMIT License\nand more', 4, /^Write line 4/, 'license'],
    ['several documents', 'license: MIT\n--- b', 4, /Remove the lines that begin with '---'/, 'license'],
    ['an unknown tag in a list', 'tags:\n  - !x y', 4, /line 4 .* '!'/, 'tags'],
    ['an alias', 'metadata: *x', 3, /^Write the aliased values out/, 'metadata'],
    ['an indented field', 'license: MIT\n  tags: a', 4, /^Correct line 4/, 'license']
  ]
  for (const end of ['\n', '\r\n']) {
    for (const [name, broken, line, fix, field] of rows) {
      for (const [order, text] of Object.entries({ middle: `name: x\n${broken}\ndescription: y`, last: `description: y\n${broken}`, many: `name: x\n${broken}\ndescription: y\n${'#\n'.repeat(5)}` })) {
        const { summary, findings } = parseFile(text.replaceAll('\n', end))
        const errors = findings.filter(({ severity }) => severity === 'error')
        t.strictSame(summary, { name: 'x', description: 'y' }, `${name}, ${order}`)
        t.match(errors, [{ fix, ...field !== undefined && { field } }], `${name}, ${order}`)
        t.equal(errors.length, 1, `${name}, ${order}: one finding`)
        if (errors[0]?.code === 'yaml_invalid' && !/documents|backslash/.test(name)) t.match(`${errors[0].message} ${errors[0].fix}`, `line ${line} of`, name)
      }
    }
  }
})

t.test('K9: what stands before the first field is one finding', async t => {
  const rows: Array<[string, string, RegExp]> = [
    ['text', 'My skill\nname: x\ndescription: y', /^Write line 2/],
    ['an indented field', ' name: x\ndescription: y', /^Remove the blanks at the start of line 2/],
    ['a directive', '%FOO\nname: x\ndescription: y', /^Write line 2/],
    ['a comment and a list', '# comment\n- a\nname: x\ndescription: y', /^Write line 3/],
    ['a missing blank', 'name:x\ndescription: y', /^Write line 2/]
  ]
  for (const [name, text, fix] of rows) {
    const { summary, findings } = parseFile(text)
    t.strictSame(summary, { name: 'x', description: 'y' }, name)
    t.match(findings, [{ code: 'yaml_invalid', fix }], name)
    t.equal(findings.length, 1, name)
  }
})

t.test('K9: of several mistakes each has its finding, in the order of the lines', async t => {
  const { summary, findings } = parseFile('tags: [a\nlicense: "b" c\nname: x\ndescription: use: it\nversion: [1] [2]')
  t.strictSame(summary, { name: 'x', description: 'use: it' })
  t.strictSame(findings.map(({ code, field }) => [code, field]), [
    ['yaml_invalid', 'tags'], ['yaml_invalid', 'license'], ['yaml_invalid', 'version'], ['yaml_repaired', 'description']
  ])
})

t.test('K9: a required field that is broken, or may be in a broken line, is not missing too', async t => {
  for (const text of ['name: [x\ndescription: y', 'name: x\ndescription: {y', 'name: x\ndescription - y', 'name: x\n  description: y']) {
    t.strictSame(parseFile(text).findings.map(({ code }) => code), ['yaml_invalid'], text)
  }
  t.match(parseFile('name: [x\ndescription: y'), { summary: { name: 'x', description: 'y' } }, "the folder's name stands in")
  t.strictSame(parseFile('name: y\ntags: [').findings.map(({ code }) => code), ['yaml_invalid', 'name_folder_mismatch'], 'a second mistake is told')
})

t.test('K9: a description in one line that is no YAML is text', async t => {
  for (const text of ['[draft] Write a poem.', '"Fold" napkins.', "'tis the season", '{x} and more']) {
    t.match(parseFile(`name: x\ndescription: ${text}\nlicense: MIT`), { summary: { description: text }, findings: [{ code: 'yaml_invalid', field: 'description' }] }, text)
  }
  t.equal(parseFile('name: x\ndescription: "a\n  b').summary.description, '')
})

t.test('K10: a bracket at the margin closes the value of its field', async t => {
  for (const text of ['metadata: {"a": {\n  "b": "c"\n}\n}', 'metadata: {\n"a": {"b": "c"\n}}']) {
    const { frontmatter, findings } = parse(`name: x\n${text}\ndescription: y\n`)
    t.same(frontmatter, { name: 'x', metadata: { a: { b: 'c' } }, description: 'y' }, text)
    t.match(findings, [{ code: 'yaml_repaired', severity: 'warning', field: 'metadata', fix: /^Indent line [45] of SKILL\.md by two blanks/ }], text)
    t.equal(findings.length, 1, text)
  }
})

t.test('K9: fields beyond those that are read one by one are named', async t => {
  const fields = (count: number) => Array.from({ length: count }, (_, index) => `f${index + 1}: x\n`).join('')
  const { frontmatter, findings } = parse(`bad: [\n${fields(33)}name: x\ndescription: y\n`)
  t.equal(Object.keys(frontmatter).length, 31)
  t.match(findings, [{ code: 'yaml_invalid', line: 2 }, { code: 'yaml_invalid', severity: 'error', line: 32, message: "of frontmatter that is not valid YAML only 32 fields are read, and not 'f30', 'f31', 'f32' and 1 more" }])
  t.equal(findings.length, 2)
  t.equal(parse(`bad: [\n${fields(29)}name: x\ndescription: y\n`).findings.length, 1)
})

t.test('K9: keys that clash with object internals are data in broken frontmatter too', async t => {
  const { frontmatter } = parse('__proto__:\n  polluted: yes\nconstructor: x\ntags: [\n')
  t.strictSame(Object.keys(frontmatter).sort(), ['__proto__', 'constructor'])
  t.equal(Object.getPrototypeOf(frontmatter), Object.prototype)
})

t.test('K9: no other field takes name and description away', async t => {
  const noise = fc.oneof(
    fc.array(fc.constantFrom('&a ', '!b ', '- ', '? ', ': ', '  ', '"', "'", '[', ']', '{', '}', ',', 'a', '#', '|', '>', '*a', '\t', '\\', '\0', '__proto__'), { maxLength: 30 }).map((tokens) => tokens.join('')),
    fc.string({ unit: codePoint }).map((text) => text.replaceAll(/[\r\n\u0085\u2028\u2029]/g, ' '))
  )
  const lines = fc.array(noise, { minLength: 1, maxLength: 4 }).map(([first, ...more]) => [`z: ${first}`, ...more.map((line) => `  ${line}`)].join('\n'))
  t.doesNotThrow(() => fc.assert(fc.property(fc.array(lines, { maxLength: 40 }), fc.array(lines, { maxLength: 40 }), (before, after) => {
    const text = [...before, 'name: x', ...after.slice(0, 20), 'description: y', ...after.slice(20)].join('\n')
    // Longer frontmatter is not read at all.
    return Buffer.byteLength(text) > 8_000 || (({ summary }) => summary.name === 'x' && summary.description === 'y')(parseFile(text, 'folder'))
  }), { numRuns: 250 }))
})

t.test('K9: no YAML makes the parser throw, and every problem has a finding', async t => {
  const token = fc.constantFrom('&a ', '!b ', '- ', '? ', ': ', '\n', '  ', '"', "'", '[', ']', '{', '}', ',', 'a', 'k: ', '#', '|\n', '>\n', '*a ', '%', '---', '\t', '\r', '\uFEFF', '__proto__: ', '\\', '\0', 'name: x\n', 'description: ')
  t.doesNotThrow(() => fc.assert(fc.property(fc.oneof(fc.array(token, { maxLength: 60 }).map(tokens => tokens.join('')), fc.string({ unit: codePoint })), text => {
    const { frontmatter, findings, broken } = parse(text)
    return Object.getPrototypeOf(frontmatter) === Object.prototype && findings.length <= 33 && (broken.size === 0 || findings.length > 0) &&
      findings.every(({ message, fix }) => /^[^\p{Cc}]+$/u.test(message + fix) && (message + fix).length < 2_000)
  }), { numRuns: 2_000 }))
})
