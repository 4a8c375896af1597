import t from 'tap'
import fc from 'fast-check'
import { MAX_MAIN_FILE_BYTES } from '../../../src/core/shared/limits.ts'
import { parseSkillBytes, skillBody } from '../../../src/core/format/main-file.ts'
import { codePoint } from '../../helper/code-point.ts'
import { heapOfEach } from '../../helper/memory.ts'
import { checkTime } from '../../helper/timing.ts'

/** For 1 MiB, counted by the coverage too, which is four times the work: what is not linear takes minutes. */
const BUDGET_MS = 250

const parse = (text: string, folder = 'demo') => parseSkillBytes(Buffer.from(text), folder)
const codes = (text: string, folder?: string) => parse(text, folder).findings.map(({ code }) => code)
const fields = 'name: demo\ndescription: Shows how.\n'
const valid = `---\n${fields}---\n# Demo\n`

t.test('K9: a valid file has fields, a summary, and no findings', async t => {
  t.same(parse(valid), {
    frontmatter: { name: 'demo', description: 'Shows how.' }, summary: { name: 'demo', description: 'Shows how.' }, findings: []
  })
})

t.test('K9: what is wrong with the form of a file is one finding', async t => {
  const rows: Array<[string, string, string, string]> = [
    ['no frontmatter', '# Only a heading\n', 'frontmatter_missing', 'SKILL.md has no frontmatter'],
    ['a link that git stored as text', '../../shared/SKILL.md', 'main_file_link_text', "SKILL.md holds nothing but the path '../../shared/SKILL.md': it was a symbolic link before"],
    ['such a link with a blank in it', '../My Skills/SKILL.md', 'main_file_link_text', "SKILL.md holds nothing but the path '../My Skills/SKILL.md': it was a symbolic link before"],
    ['such a link to a file beside it', 'SHARED.md', 'main_file_link_text', "SKILL.md holds nothing but the path 'SHARED.md': it was a symbolic link before"],
    ['a word', 'instructions', 'frontmatter_missing', 'SKILL.md has no frontmatter'],
    ['a line that mentions a path', 'Read ../a.md\n', 'frontmatter_missing', 'SKILL.md has no frontmatter'],
    ['an empty file', '', 'frontmatter_missing', 'SKILL.md is empty'],
    ['nothing but a byte order mark', '\uFEFF', 'frontmatter_missing', 'SKILL.md is empty'],
    ['a rule in a text', '# Title\n\n---\n\nText\n', 'frontmatter_missing', 'SKILL.md has no frontmatter'],
    ['unclosed', `---\n${fields}# Demo\n`, 'frontmatter_unclosed', "the frontmatter is not closed with a line '---'"],
    ['only a fence', '---', 'frontmatter_unclosed', "the frontmatter is not closed with a line '---'"],
    ['closed with dots', `---\n${fields}...\n# Demo\n`, 'frontmatter_unclosed', "the frontmatter is closed with '...' instead of '---'"],
    ['invalid YAML', '---\nname: [invalid\n---\nx', 'yaml_invalid', "line 2 of SKILL.md is not valid YAML: 'deficient indentation'"],
    ['a list', '---\n- a\n---\nx', 'frontmatter_not_mapping', 'the frontmatter does not consist of fields'],
    ['nothing between the fences', '---\n---\nx', 'frontmatter_empty', 'the frontmatter is empty'],
    ['a blank line first', `\n${valid}`, 'frontmatter_not_first', 'something stands before the frontmatter of SKILL.md'],
    ['a comment first', `<!-- hi -->\n${valid}`, 'frontmatter_not_first', 'something stands before the frontmatter of SKILL.md'],
    ['four dashes', `-${valid}`, 'fence_unusual', "the first line of SKILL.md is '----' instead of '---'"],
    ['a language word', `---js\n${fields}---\n`, 'fence_unusual', "the first line of SKILL.md is '---js' instead of '---'"],
    ['bare carriage returns', valid.replaceAll('\n', '\r'), 'line_ends_cr', 'SKILL.md ends its lines with a bare carriage return']
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
  const rows = [Buffer.from('---\nname: caf\u00E9\n---\n', 'latin1'), Buffer.from(`\uFEFF${valid}`, 'utf16le'), Buffer.from([0, 1, 0xff])]
  for (const bytes of rows) {
    t.match(parseSkillBytes(bytes, 'demo'), { frontmatter: {}, summary: { name: 'demo', description: '' }, findings: [{ code: 'main_file_not_utf8', severity: 'error' }] })
  }
})

t.test('K10: a byte order mark and CRLF are accepted', async t => {
  const { summary, findings } = parse(`\uFEFF${valid.replaceAll('\n', '\r\n')}`)
  t.strictSame(summary, { name: 'demo', description: 'Shows how.' })
  t.match(findings, [{ code: 'line_ends_crlf', severity: 'info' }, { code: 'byte_order_mark', severity: 'info' }])
})

t.test('K10: a repaired skill is valid, with a warning', async t => {
  for (const end of ['\n', '\r\n']) {
    const { summary, findings } = parse(['---', 'name: demo', 'description: Use this when: asked', '---', 'x'].join(end))
    t.equal(summary.description, 'Use this when: asked')
    t.notOk(findings.some(({ severity }) => severity === 'error'))
    t.match(findings[0], { code: 'yaml_repaired', severity: 'warning' })
  }
})

t.test('K9: findings about fields, body and text come together', async t => {
  t.strictSame(codes(`---\nname: Demo\nextra: 1\n---\n \r\n\t${'\n'.repeat(500)}`),
    ['name_invalid_characters', 'description_missing', 'unknown_fields', 'body_empty', 'many_lines'])
  t.strictSame(codes(`${valid}\u200B`), ['zero_width_characters'])
  t.strictSame(codes(`---\n${fields}---`), ['body_empty'])
})

t.test('the summary is the trimmed text of the frontmatter, else the folder', async t => {
  const rows: Array<[string, string, string]> = [
    ['name: "  padded "\ndescription: " x "', 'padded', 'x'],
    ['name: other\ndescription: >\n  a\n  b', 'other', 'a b'],
    ['name: 42\ndescription: 42', 'demo', ''],
    ['name: ""\ndescription: [a]', 'demo', ''],
    ['name: " "', 'demo', ''],
    ['__proto__:\n  name: x\n  description: y', 'demo', ''],
    ['name: "a\\uD800b"\ndescription: "\\uD83D\\uDE00"', 'a\uFFFDb', '😀']
  ]
  for (const [yaml, name, description] of rows) t.strictSame(parse(`---\n${yaml}\n---\nx`).summary, { name, description }, yaml)
})

t.test('K30: the body is what follows the closing fence, verbatim', async t => {
  const rows: Array<[string, string]> = [
    [valid, '# Demo\n'],
    [`\uFEFF${valid}`, '# Demo\n'],
    [valid.replaceAll('\n', '\r\n'), '# Demo\r\n'],
    [`${valid}---\nmore\n---\n`, '# Demo\n---\nmore\n---\n'],
    ['---\n---\n\n  x \n', '\n  x \n'],
    ['---\na: 1\n---', ''],
    ['---\na: [\n---\n技能 😀', '技能 😀'],
    ['# no frontmatter\n', '# no frontmatter\n'],
    ['\uFEFF# no frontmatter', '# no frontmatter'],
    ['---\nunclosed', '---\nunclosed'],
    ['', '']
  ]
  for (const [text, body] of rows) t.equal(skillBody(text), body, JSON.stringify(text))
})

t.test('K30: the body is always the end of the file', async t => {
  t.doesNotThrow(() => fc.assert(fc.property(fc.constantFrom('', '---\n', '\uFEFF---\r\n'), fc.array(fc.constantFrom('---', '\n', '\r\n', 'a: 1', ' ', '😀', '\uFEFF')), (head, parts) => {
    const text = head + parts.join('')
    return text.endsWith(skillBody(text))
  })))
})

t.test('K9: no bytes make it throw, and every finding is well-formed', async t => {
  const file = fc.oneof(fc.uint8Array(), fc.tuple(fc.constantFrom('---\n', '\uFEFF---\r\n'), fc.string({ unit: codePoint }), fc.constantFrom('\n---\n', ''), fc.string())
    .map(parts => Buffer.from(parts.join(''))))
  t.doesNotThrow(() => fc.assert(fc.property(file, fc.string(), (bytes, folder) => {
    const { summary, findings } = parseSkillBytes(Buffer.from(bytes), folder)
    return summary.description.isWellFormed() && new Set(findings.map(({ code }) => code)).size === findings.length &&
      findings.every(({ code, message, fix }) => /^[a-z0-9_]+$/.test(code) && /^[^\p{Cc}]+$/u.test(message + fix))
  }), { numRuns: 1_000 }))
})

t.test('K10: the largest file takes linear time, whatever it holds', async t => {
  const filled = (unit: string, head = '') => Buffer.from(head + unit.repeat(Math.floor((MAX_MAIN_FILE_BYTES - head.length) / Buffer.byteLength(unit))))
  const rows: Record<string, Buffer> = {
    dashes: filled('-'),
    'blank lines': filled('\n'),
    'blank lines after a fence': filled('\n', '---\n'),
    'fences that are none': filled('---x\n', '---\n'),
    'blanks after a fence': filled(' ', '---\n---'),
    'lines of text': filled('some text\n', valid),
    'hidden characters': filled('\u200B', valid),
    emoji: filled('👩\u200D💻', valid),
    NUL: filled('\0', valid),
    'blanks in a line of frontmatter': Buffer.from(`---\nname: demo\nx${' '.repeat(60_000)}y\n---\n`),
    'blanks in a line below metadata': Buffer.from(`---\nname: demo\nmetadata:\n  a: 1\n  x${' '.repeat(8_000)}y: z${' '.repeat(60)}\n---\n`),
    'slashes that are no path': filled('/').subarray(0, 4_090).fill('\r', 4_089)
  }
  for (const [name, bytes] of Object.entries(rows)) {
    await checkTime(t, BUDGET_MS, () => parseSkillBytes(bytes, 'demo'), name)
  }
})

t.test('K32: what is kept of a document is its metadata, not its text', async t => {
  const body = 'x'.repeat(200_000)
  const read = () => parse(`---\nname: demo\ndescription: ${'A long description. '.repeat(10)}\n---\n${body}`)
  read()
  const bytesEach = heapOfEach(100, read)
  t.ok(bytesEach < 10_000, `${bytesEach.toFixed(0)} bytes each`)
})

t.test('K9: of the fields beside one that is repaired, none changes', async t => {
  const { frontmatter, findings } = parse('---\nname: demo\ndescription: Use this: when asked\nlicense: # todo: choose\n---\nx')
  t.strictSame(frontmatter, { name: 'demo', description: 'Use this: when asked', license: null })
  t.strictSame(findings.filter(({ code }) => code === 'yaml_repaired').map(({ field }) => field), ['description'])
})
