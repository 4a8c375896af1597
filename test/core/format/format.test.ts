import fc from 'fast-check'
import t from 'tap'
import { validateFrontmatter } from '../../../src/core/format/fields.ts'
import { parseFrontmatter } from '../../../src/core/format/frontmatter.ts'
import { checkContent } from '../../../src/core/format/hidden-text.ts'
import { parseSkillBytes, skillBody } from '../../../src/core/format/main-file.ts'
import { MAX_FRONTMATTER_BYTES, MAX_FRONTMATTER_DEPTH, MAX_MAIN_FILE_BYTES } from '../../../src/core/shared/limits.ts'
import type { Frontmatter } from '../../../src/core/shared/skill.ts'
import { codePoint } from '../../helper/code-point.ts'
import { checkTime, heapOfEach } from '../../helper/timing.ts'

const parseYaml = (text: string) => parseFrontmatter(Buffer.from(text))
const yamlCodes = (text: string) => parseYaml(text).findings.map(({ code }) => code)

t.test('K10 K46: values have the types of YAML 1.2, as far as JSON has them', async t => {
  const { frontmatter, findings } = parseYaml([
    'version: 1.0', 'date: 2026-01-01', 'yes: yes', 'flag: true', 'nothing: ~', 'octal: 0123', 'infinite: -.inf',
    'flow: [a, {b: c}]',
    'folded: >', '  one', '  two', 'literal: |', '  one', '  two', ''].join('\n'))
  t.strictSame(findings, [])
  t.same(frontmatter, {
    version: 1,
    date: '2026-01-01',
    yes: 'yes',
    flag: true,
    nothing: null,
    octal: 123,
    infinite: '-Infinity',
    flow: ['a', { b: 'c' }],
    folded: 'one two\n',
    literal: 'one\ntwo\n'
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
    ['quotes inside', 'say "x": then \\ stop'],
    ['an apostrophe', "don't: stop"],
    ['a path and an apostrophe', "don't: C:\\temp"]
  ]
  for (const [name, value] of rows) {
    for (const end of ['\n', '\r\n']) {
      const { frontmatter, findings } = parseYaml(`name: x${end}description: ${value}${end}version: 1.5${end}`)
      t.same(frontmatter, { name: 'x', description: value, version: 1.5 }, name)
      t.match(findings, [{ code: 'yaml_repaired', severity: 'error', field: 'description' }], name)
      const isDoubled = findings[0]?.fix ===
        "Put the text of 'description' in single quotes, with each ' in it written twice"
      const quoted = `'${isDoubled ? value.replaceAll("'", "''") : value}'`
      t.same(parseYaml(`description: ${quoted}`), { frontmatter: { description: value }, findings: [], isRead: true },
        `${name}, fixed as it says`)
    }
  }
})

t.test('K10: a repair leaves alone what is not broken', async t => {
  const { frontmatter } = parseYaml(
    '# a: b: c\na: b: c # d\nlicense: MIT # see: there\nlist:\n- x\nquoted: "y: z"\nflow: [1, 2]\nblock: ' +
      '|\n  p: q: r\n')
  t.same(frontmatter, { a: 'b: c # d', license: 'MIT', list: ['x'], quoted: 'y: z', flow: [1, 2], block: 'p: q: r\n' })
})

t.test('K10: aliases are refused', async t => {
  const levels = Array.from({ length: 9 },
    (_, n) => `a${n}: &a${n} [${Array(9).fill(n === 0 ? 'lol' : `*a${n - 1}`).join(', ')}]\n`)
  t.strictSame([...new Set(yamlCodes(levels.join('')))], ['yaml_refused'])
  t.strictSame(yamlCodes('a: &a\n  b: *a\n'), ['yaml_refused'])
  t.strictSame(yamlCodes('a: &a [*a]\n'), ['yaml_refused'])
})

t.test('K10: deep nesting is refused, however often it is read', async t => {
  for (let i = 0; i < 10; i++) t.strictSame(yamlCodes('['.repeat(2_000)), ['yaml_refused'])
  t.strictSame(yamlCodes('{a: '.repeat(MAX_FRONTMATTER_DEPTH) + '1' + '}'.repeat(MAX_FRONTMATTER_DEPTH)),
    ['yaml_refused'])
  t.strictSame(yamlCodes('a: {b: {c: [[1]]}}\n'), [])
})

t.test('K9: keys that clash with object internals are data', async t => {
  const { frontmatter } =
    parseYaml('__proto__:\n  polluted: yes\nconstructor: x\ntoString: y\nmetadata:\n  __proto__: z\n')
  t.strictSame(Object.keys(frontmatter), ['__proto__', 'constructor', 'toString', 'metadata'])
  t.equal(Object.getPrototypeOf(frontmatter), Object.prototype)
  t.notOk(Object.hasOwn(Object.prototype, 'polluted'))
  t.equal(JSON.stringify(frontmatter),
    '{"__proto__":{"polluted":"yes"},"constructor":"x","toString":"y","metadata":{"__proto__":"z"}}')
})

t.test('K10: frontmatter over the limit is not parsed', async t => {
  const text = `a: ${'b'.repeat(MAX_FRONTMATTER_BYTES - 4)}\n`
  t.strictSame(yamlCodes(text), [])
  t.match(parseYaml(`${text}#`), { frontmatter: {}, findings: [{ code: 'frontmatter_too_large', severity: 'error' }] })
})

const parseFile = (frontmatter: string, folder = 'x') =>
  parseSkillBytes(Buffer.from(`---\n${frontmatter}\n---\nbody\n`), folder)

t.test('K9 K79: frontmatter that is not YAML is one finding at its line, and names the skill all the same', async t => {
  const rows = [
    { name: 'two lists', broken: 'argument-hint: [a] [b]', line: 3 },
    { name: 'text after a quote', broken: 'license: "MIT" or so', line: 3 },
    { name: 'a quote that is not closed', broken: 'license: "MIT\nmetadata:\n  a: b', line: 3 },
    { name: 'a quote that is not closed, in a mapping', broken: 'metadata:\n  a: "b\n  c: d', line: 4 },
    { name: 'a bracket that is not closed', broken: 'tags: [a\nmetadata:\n  a: b', line: 3 },
    { name: 'a brace that is not closed', broken: 'metadata: {a: b,\n  c: d\nlicense: MIT', line: 3 },
    { name: 'a backslash', broken: 'license: "C:\\Windows"', line: 3 },
    { name: 'NUL', broken: 'license: "\0"', line: 3 },
    { name: 'broken JSON', broken: 'metadata: {"a": 1 "b": 2}', line: 3 },
    { name: 'broken JSON in lines', broken: 'metadata:\n  {\n    "a": 1\n    "b": 2\n  }', line: 5 },
    { name: 'uneven blanks', broken: 'metadata:\n  a: b\n   c: d', line: 5 },
    { name: 'a line without a field in a mapping', broken: 'metadata:\n  a: b\n  text\n  c: d', line: 5 },
    { name: 'a tab', broken: 'metadata:\n\tb: 1', line: 4 },
    { name: 'a line without a field', broken: 'license: MIT\n\nname-and-no-colon\n', line: 5 },
    { name: 'an unknown tag in a list', broken: 'tags:\n  - !x y', line: 4 },
    { name: 'after a value that could be read', broken: 'license: use when: asked\nmetadata:\n  a: "b" c', line: 5 }
  ]
  for (const end of ['\n', '\r\n']) {
    for (const { name, broken, line } of rows) {
      const { summary, findings } = parseFile(`name: x\n${broken}\ndescription: y: z`.replaceAll('\n', end), 'folder')
      t.strictSame(summary, { name: 'x', description: 'y: z' }, name)
      const fix = `Correct line ${line} of SKILL.md, or put its value in double quotes`
      t.match(findings.filter(({ code }) => code !== 'line_ends_crlf'), [{ code: 'yaml_invalid', line, fix }], name)
    }
  }
})

t.test('K79: of a key that is there twice the last one counts', async t => {
  const { summary, findings } = parseFile('name: x\ndescription: y\nlicense: MIT\nlicense: BSD', 'x')
  t.strictSame(summary, { name: 'x', description: 'y' })
  t.match(findings, [{ code: 'yaml_not_portable', severity: 'warning', line: 5 }])
  t.match(parseFile('name: x\ndescription: y: z\nname: x', 'x').findings.map(({ code, line }) => [code, line]),
    [['yaml_repaired', 3], ['yaml_not_portable', 4]])
})

const validFields = { name: 'my-skill', description: 'Does a thing. Use when the thing is to be done.' }

function fieldCodes (frontmatter: Frontmatter, folder = 'my-skill'): string[] {
  return validateFrontmatter(frontmatter, folder).map(({ code }) => code)
}

function fieldErrors (frontmatter: Frontmatter, folder = 'my-skill'): string[] {
  return validateFrontmatter(frontmatter, folder).filter(({ severity }) => severity === 'error').map(({ code }) => code)
}

t.test('K9: a skill that follows the format has no findings', async t => {
  t.strictSame(fieldCodes(validFields), [])
  t.strictSame(fieldCodes({
    ...validFields,
    license: 'MIT',
    compatibility: 'Requires Python 3.11+',
    metadata: { author: 'A', version: '1.0' },
    'allowed-tools': 'Bash(jq:*) Bash(git add, git commit)'
  }), [])
  for (const name of ['a', '7', 'a1-b2-c3', 'a'.repeat(64)]) {
    t.strictSame(fieldCodes({ ...validFields, name }, name), [], name)
  }
})

t.test('K9: the reference cases for names', async t => {
  const rows: Array<[string, string, string, string[]]> = [
    ['V5', 'MySkill', 'MySkill', ['name_invalid_characters']],
    ['V6', 'a'.repeat(70), 'a'.repeat(70), ['name_too_long']],
    ['V7', '-my-skill', '-my-skill', ['name_edge_hyphen']],
    ['V7 at the end', 'my-skill-', 'my-skill-', ['name_edge_hyphen']],
    ['V8', 'my--skill', 'my--skill', ['name_double_hyphen']],
    ['V9', 'my_skill', 'my_skill', ['name_invalid_characters']],
    ['V10', 'correct-name', 'wrong-name', ['name_folder_mismatch']],
    // skills-ref takes letters of any alphabet; Wave's rule, which K9 follows, takes a-z only.
    ['V14 deviates', '技能', '技能', ['name_invalid_characters']],
    ['V15 deviates', 'мой-навык', 'мой-навык', ['name_invalid_characters']],
    // skills-ref compares NFKC forms; K5 compares exactly.
    ['V21 deviates', 'cafe\u0301', 'caf\u00E9', ['name_invalid_characters']],
    ['blanks around it', ' my-skill', 'my-skill', ['name_invalid_characters']],
    ['everything at once', `-${'A'.repeat(70)}--b`, 'my-skill',
      ['name_too_long', 'name_invalid_characters', 'name_edge_hyphen', 'name_double_hyphen']]
  ]
  for (const [id, name, folder, expected] of rows) {
    t.strictSame(fieldErrors({ ...validFields, name }, folder), expected, id)
  }
})

t.test('K9: name and description are required', async t => {
  for (const name of [undefined, null, '', ' \n']) {
    t.strictSame(fieldErrors({ ...validFields, name }), ['name_missing'], JSON.stringify(name))
  }
  for (const description of [undefined, null, '', ' \n']) {
    t.strictSame(fieldErrors({ ...validFields, description }), ['description_missing'], JSON.stringify(description))
  }
  t.strictSame(fieldErrors({}), ['name_missing', 'description_missing'])
  for (const value of [42, true, ['a'], { a: 1 }]) {
    t.strictSame(fieldErrors({ name: value, description: value }), ['name_not_text', 'description_not_text'],
      JSON.stringify(value))
  }
})

const NO_PROPOSAL = 'Choose a name of lowercase letters a to z, numbers and hyphens, and give it to the folder too'

t.test('K25: the message and the fix of a name belong to the problem', async t => {
  const rows: Array<[unknown, string, string, string]> = [
    ['Foo', 'Foo', "name 'Foo' must contain only lowercase letters, numbers and hyphens",
      "Change name to 'foo' and rename the folder to 'foo'"],
    ['pdf', 'PDF Tools', "name 'pdf' does not match the folder name 'PDF Tools'", "Rename the folder to 'pdf'"],
    ['pdf', 'pdf-tools', "name 'pdf' does not match the folder name 'pdf-tools'", "Change name to 'pdf-tools'"],
    ['Übung', 'Übung', "name 'Übung' must contain only lowercase letters, numbers and hyphens",
      "Change name to 'ubung' and rename the folder to 'ubung'"],
    ['中文技能', '中文技能', "name '中文技能' must contain only lowercase letters, numbers and hyphens", NO_PROPOSAL],
    ['中文技能', 'chinese', "name '中文技能' must contain only lowercase letters, numbers and hyphens",
      "Change name to 'chinese'"],
    [undefined, '中文-pdf', 'name is missing', NO_PROPOSAL],
    [42, 'answer', 'name must be text, not a number', "Change name to 'answer'"],
    [undefined, 'answer', 'name is missing', "Add 'name: answer' to the frontmatter"],
    ['', 'The Answer', 'name is empty', "Change name to 'the-answer' and rename the folder to 'the-answer'"],
    [42, '42', 'name must be text, not a number', "Change the line of name to 'name: \"42\"'"],
    ['other', '42', "name 'other' does not match the folder name '42'", "Change the line of name to 'name: \"42\"'"]
  ]
  for (const [name, folder, message, fix] of rows) {
    t.match(validateFrontmatter({ ...validFields, name }, folder)[0], { field: 'name', message, fix },
      `${name} in ${folder}`)
  }
})

t.test('K25: the name that a fix proposes is valid', async t => {
  t.doesNotThrow(() => fc.assert(fc.property(fc.string({ unit: codePoint, maxLength: 300 }), fc.string({
    unit: 'grapheme', maxLength: 300
  }), (name, folder) => {
    for (const { fix } of validateFrontmatter({ ...validFields, name }, folder)) {
      if (fix === NO_PROPOSAL) continue
      const proposed = /(?:to|name:) ['"]?([a-z0-9-]+)["']/.exec(fix)?.[1]
      if (proposed === undefined || fieldErrors({ ...validFields, name: proposed }, proposed).length > 0) return false
    }
    return true
  })))
})

t.test('K9: an unknown field belongs into metadata, unless some agent reads it', async t => {
  const fixOf = (frontmatter: Frontmatter) =>
    validateFrontmatter(frontmatter, 'my-skill').find(({ code }) => code === 'unknown_fields')?.fix
  t.equal(fixOf({ ...validFields, tags: 'x' }), "Move 'tags' into metadata, or remove it")
  t.equal(fixOf({ ...validFields, tags: 'x', date: 'x', model: 'x' }),
    "Move 'tags', 'date' into metadata, or remove them; " +
      "leave 'model' to the agents that read such fields: others may refuse them")
})

t.test('K9: whatever the frontmatter, findings are well-formed and nothing throws', async t => {
  const field = fc.constantFrom('name', 'description', 'license', 'compatibility', 'metadata', 'allowed-tools',
    '__proto__', 'x')
  t.doesNotThrow(() => fc.assert(fc.property(fc.dictionary(field, fc.jsonValue()), fc.string({
    unit: codePoint
  }), (frontmatter, folder) =>
    validateFrontmatter(frontmatter, folder).every(({ code, message, fix }) =>
      /^[a-z]+(?:_[a-z0-9]+)*$/.test(code) && /^[^\p{Cc}]+$/u.test(message + fix) && !message.endsWith('.') &&
        /^[A-Z]/.test(fix) && !fix.endsWith('.')))))
})

const hiddenCodes = (text: string) => checkContent(text).map(({ code }) => code)

t.test('K9: hidden text is a warning that names the line', async t => {
  const rows: Array<[string, string]> = [
    ['tag characters', 'one\ntwo \u{E0041}\u{E0042}\n'],
    ['zero width space', 'one\ntwo\u200B\n'],
    ['a joiner between Latin letters', 'one\nt\u200Dwo\n'],
    ['a joiner at the start of a line', 'one\n\u200Dtwo\n'],
    ['joiners in a row', 'one\né\u200D\u200Cè\n'],
    ['variation selectors in a row', 'one\n😀\u{E0158}\u{E0159}\n'],
    ['a byte order mark in the middle', 'one\n\uFEFFtwo\n'],
    ['right-to-left override', 'one\n\u202Etwo\n'],
    ['a terminal escape', 'one\n\u001b[2Jtwo\n'],
    ['a control character beyond ASCII', 'one\ntwo\u0085\n'],
    ['the last of them', 'one\ntwo\u009f\n']
  ]
  for (const [name, text] of rows) {
    const findings = checkContent(text)
    t.equal(findings.length, 1, name)
    t.match(findings[0],
      { severity: 'warning', message: /^SKILL\.md contains .+, the first in line 2$/, fix: /^Remove .+ line 2$/ }, name)
  }
})

t.test('K9: ordinary text of any language hides nothing', async t => {
  const rows = ['', 'plain\ttext\r\n\f', '\uFEFFwith a byte order mark', '“quotes” – dashes … é', '技能 навык',
    '👩\u200D💻 family', 'می\u200Cخواهم', 'क्\u200Dष', '❤\uFE0F\u200D🔥', 'a\u00A0b', '1\uFE0F\u20E3 葛\u{E0100}飾',
    '\u{E0100}', '\u{10FFFF}']
  for (const text of rows) t.strictSame(hiddenCodes(text), [], JSON.stringify(text))
})

/** For 1 MiB, counted by the coverage too, which is four times the work: what is not linear takes minutes. */
const FILE_MS = 250

const parse = (text: string, folder = 'demo') => parseSkillBytes(Buffer.from(text), folder)
const codes = (text: string, folder?: string) => parse(text, folder).findings.map(({ code }) => code)
const fields = 'name: demo\ndescription: Shows how.\n'
const valid = `---\n${fields}---\n# Demo\n`

t.test('K9: a valid file has fields, a summary, and no findings', async t => {
  t.same(parse(valid), {
    frontmatter: { name: 'demo', description: 'Shows how.' },
    summary: { name: 'demo', description: 'Shows how.' },
    findings: [],
    headings: ['Demo']
  })
})

t.test('K9: what is wrong with the form of a file is one finding', async t => {
  const rows: Array<[string, string, string, string]> = [
    ['no frontmatter', '# Only a heading\n', 'frontmatter_missing', 'SKILL.md has no frontmatter'],
    ['a link that git stored as text', '../../shared/SKILL.md', 'main_file_link_text',
      "SKILL.md contains nothing but the path '../../shared/SKILL.md': it was a symbolic link before"],
    ['such a link with a blank in it', '../My Skills/SKILL.md', 'main_file_link_text',
      "SKILL.md contains nothing but the path '../My Skills/SKILL.md': it was a symbolic link before"],
    ['such a link to a file beside it', 'SHARED.md', 'main_file_link_text',
      "SKILL.md contains nothing but the path 'SHARED.md': it was a symbolic link before"],
    ['a word', 'instructions', 'frontmatter_missing', 'SKILL.md has no frontmatter'],
    ['a line that mentions a path', 'Read ../a.md\n', 'frontmatter_missing', 'SKILL.md has no frontmatter'],
    ['an empty file', '', 'frontmatter_missing', 'SKILL.md is empty'],
    ['nothing but a byte order mark', '\uFEFF', 'frontmatter_missing', 'SKILL.md is empty'],
    ['a rule in a text', '# Title\n\n---\n\nText\n', 'frontmatter_missing', 'SKILL.md has no frontmatter'],
    ['unclosed', `---\n${fields}# Demo\n`, 'frontmatter_unclosed', "the frontmatter is not closed with a line '---'"],
    ['only a fence', '---', 'frontmatter_unclosed', "the frontmatter is not closed with a line '---'"],
    ['invalid YAML', '---\nname: [invalid\n---\nx', 'yaml_invalid',
      "line 2 of SKILL.md is not valid YAML: 'deficient indentation'"],
    ['a list', '---\n- a\n---\nx', 'frontmatter_not_mapping', 'the frontmatter does not consist of fields'],
    ['nothing between the fences', '---\n---\nx', 'frontmatter_empty', 'the frontmatter is empty'],
    ['a blank line first', `\n${valid}`, 'frontmatter_not_first',
      'there is text before the frontmatter of SKILL.md'],
    ['a comment first', `<!-- hi -->\n${valid}`, 'frontmatter_not_first',
      'there is text before the frontmatter of SKILL.md'],
    ['four dashes', `-${valid}`, 'fence_unusual', "the first line of SKILL.md is '----' instead of '---'"],
    ['a language word', `---js\n${fields}---\n`, 'fence_unusual',
      "the first line of SKILL.md is '---js' instead of '---'"],
    ['bare carriage returns', valid.replaceAll('\n', '\r'), 'line_ends_cr',
      'SKILL.md ends its lines with a bare carriage return']
  ]
  for (const [name, text, code, message] of rows) {
    const { summary, frontmatter, findings } = parse(text)
    const [problem, ...rest] = findings
    t.match(problem, { code, severity: 'error', message }, name)
    t.notOk(rest.some(({ severity }) => severity === 'error'), `${name}: no other error`)
    t.same({ summary, frontmatter }, { summary: { name: 'demo', description: '' }, frontmatter: {} }, name)
  }
})

t.test('K9: bytes that are not UTF-8 are one error', async t => {
  const rows = [Buffer.from('---\nname: caf\u00E9\n---\n', 'latin1'), Buffer.from(`\uFEFF${valid}`, 'utf16le'),
    Buffer.from([0, 1, 0xff])]
  for (const bytes of rows) {
    t.match(parseSkillBytes(bytes, 'demo'), {
      frontmatter: {},
      summary: { name: 'demo', description: '' },
      findings: [{ code: 'main_file_not_utf8', severity: 'error' }]
    })
  }
})

t.test('K10: a byte order mark and CRLF are accepted', async t => {
  const { summary, findings } = parse(`\uFEFF${valid.replaceAll('\n', '\r\n')}`)
  t.strictSame(summary, { name: 'demo', description: 'Shows how.' })
  t.match(findings, [{ code: 'line_ends_crlf', severity: 'info' }])
})

t.test('K9: findings about fields, body and text come together', async t => {
  t.strictSame(codes(`---\nname: Demo\nextra: 1\n---\n \r\n\t${'\n'.repeat(500)}`),
    ['name_invalid_characters', 'description_missing', 'unknown_fields', 'body_empty', 'many_lines'])
  t.strictSame(codes(`${valid}\u200B`), ['zero_width_characters'])
  t.strictSame(codes(`---\n${fields}---`), ['body_empty'])
})

t.test('K9: the summary is the trimmed text of the frontmatter, else the folder', async t => {
  const rows: Array<[string, string, string]> = [
    ['name: "  padded "\ndescription: " x "', 'padded', 'x'],
    ['name: other\ndescription: >\n  a\n  b', 'other', 'a b'],
    ['name: 42\ndescription: 42', 'demo', ''],
    ['name: ""\ndescription: [a]', 'demo', ''],
    ['name: " "', 'demo', ''],
    ['__proto__:\n  name: x\n  description: y', 'demo', ''],
    ['name: "a\\uD800b"\ndescription: "\\uD83D\\uDE00"', 'a\uFFFDb', '😀']
  ]
  for (const [yaml, name, description] of rows) {
    t.strictSame(parse(`---\n${yaml}\n---\nx`).summary, { name, description }, yaml)
  }
})

t.test('K10: half a surrogate pair in a value or key is U+FFFD', async t => {
  const half = '"\\ud800"'
  const { frontmatter } = parseYaml(`description: ${half}\nmetadata:\n  ${half}: [a, {b: ${half}}]\n`)
  t.same(frontmatter, { description: '\ufffd', metadata: { '\ufffd': ['a', { b: '\ufffd' }] } })
})

t.test('K10 K30: fences are whole lines, and the body is what follows the closing one, verbatim', async t => {
  const rows: Array<[text: string, body: string, frontmatter?: object]> = [
    [valid, '# Demo\n', { name: 'demo' }],
    [`\uFEFF${valid}`, '# Demo\n', { name: 'demo' }],
    [valid.replaceAll('\n', '\r\n'), '# Demo\r\n', { name: 'demo' }],
    [`${valid}---\nmore\n---\n`, '# Demo\n---\nmore\n---\n', { name: 'demo' }],
    ['--- \t\na: 1\n---\t \nbody', 'body', { a: 1 }],
    ['---\na: b --- c\n---\nbody', 'body', { a: 'b --- c' }],
    ['---\na: |\n  ---\n----\n--- x\n---\nbody', 'body'],
    ['---\n---\n\n  x \n', '\n  x \n'],
    ['---\na: 1\n---', '', { a: 1 }],
    ['---\na: [\n---\n技能 😀', '技能 😀'],
    ['\uFEFF# no frontmatter', '# no frontmatter'],
    ...['', '# x\n', ' ---\na: 1\n---\n', '\n---\na: 1\n---\n', '----\n---\n', '---js\n---\n', '--\n',
      '---\ra: 1\r---\r', '---', '---\n', '---\na: 1\n', '---\na: 1\n ---\n...\n----']
      .map((text): [string, string] => [text, text])
  ]
  for (const [text, body, frontmatter = {}] of rows) {
    t.equal(skillBody(text), body, JSON.stringify(text))
    t.match(parse(text).frontmatter, frontmatter)
  }
})

t.test('K9: no bytes make it throw, and every finding is well-formed', async t => {
  const file = fc.oneof(fc.uint8Array(), fc.tuple(fc.constantFrom('---\n', '\uFEFF---\r\n'),
    fc.string({ unit: codePoint }), fc.constantFrom('\n---\n', ''), fc.string())
    .map(parts => Buffer.from(parts.join(''))))
  t.doesNotThrow(() => fc.assert(fc.property(file, fc.string(), (bytes, folder) => {
    const { summary, findings } = parseSkillBytes(Buffer.from(bytes), folder)
    return summary.description.isWellFormed() && new Set(findings.map(({ code }) => code)).size === findings.length &&
      findings.every(({ code, message, fix }) => /^[a-z0-9_]+$/.test(code) && /^[^\p{Cc}]+$/u.test(message + fix))
  }), { numRuns: 300 }))
})

t.test('K10: the largest file takes linear time, whatever it holds', async t => {
  const filled = (unit: string, head = '') =>
    Buffer.from(head + unit.repeat(Math.floor((MAX_MAIN_FILE_BYTES - head.length) / Buffer.byteLength(unit))))
  const rows: Record<string, Buffer> = {
    'blanks after a fence': filled(' ', '---\n---'),
    'blanks in a line of frontmatter': Buffer.from(`---\nname: demo\nx${' '.repeat(60_000)}y\n---\n`),
    'blanks in a line below metadata': Buffer.from(
      `---\nname: demo\nmetadata:\n  a: 1\n  x${' '.repeat(8_000)}y: z${' '.repeat(60)}\n---\n`),
    'slashes that are no path': filled('/').subarray(0, 4_090).fill('\r', 4_089)
  }
  for (const [name, bytes] of Object.entries(rows)) {
    await checkTime(t, FILE_MS, () => parseSkillBytes(bytes, 'demo'), name)
  }
})

t.test('K32: what is kept of a document is its metadata, not its text', async t => {
  const body = 'x'.repeat(200_000)
  const read = () => parse(`---\nname: demo\ndescription: ${'A long description. '.repeat(10)}\n---\n${body}`)
  read()
  const bytesEach = heapOfEach(100, read)
  t.ok(bytesEach < 10_000, `${bytesEach.toFixed(0)} bytes each`)
})

t.test('K46: the headings of a body', async (t) => {
  const rows: Array<[body: string, headings: readonly string[]]> = [
    ['', []],
    ['# One\n\ntext\n## Two ##\r\n   ###### Six\n#\n#none\n####### seven\n    # code', ['One', 'Two', 'Six']],
    ['```sh\n# comment\n```\n# After\n~~~~\n# x\n~~~\n# y\n~~~~ \n# End', ['After', 'End']],
    ['# C#\n## a # b\n# '.concat(' '.repeat(50), 'x'), ['C#', 'a # b', 'x']],
    ['```\n# never closed', []]
  ]
  for (const [body, headings] of rows) {
    t.strictSame(parse(`${valid}${body}`).headings, ['Demo', ...headings], JSON.stringify(body))
  }
  t.strictSame(parse('# No frontmatter\n').headings, ['No frontmatter'])
  t.equal(parse(`# ${'x'.repeat(5_000)}\n# ${'y'.repeat(5_000)}\n`).headings.length, 1, 'bounded')
})
