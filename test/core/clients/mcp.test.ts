import { isDeepStrictEqual } from 'node:util'
import { skillEntry } from '@modelcontextprotocol/server/ext/skills'
import fc from 'fast-check'
import t from 'tap'
import { FileContent } from '../../../src/core/files/file-content.ts'
import { MAX_MCP_LISTED_FILES, MAX_TEXT_FILE_BYTES } from '../../../src/core/limits.ts'
import type { Manifest, ManifestFile } from '../../../src/core/content/manifest.ts'
import { parseSkillBytes } from '../../../src/core/format/main-file.ts'
import type { CatalogSkill, Finding } from '../../../src/core/skill.ts'
import { isListedInMcp, mcpFindings } from '../../../src/core/clients/mcp.ts'

function file (path: string, bytes = 1): ManifestFile {
  return { path, size_bytes: bytes, media_type: 'text/plain', digest: `sha256:${'0'.repeat(64)}` }
}

function look (text: string, files: readonly ManifestFile[] = [file('SKILL.md')]): { readonly findings: readonly Finding[], readonly skill: CatalogSkill } {
  const bytes = Buffer.from(text)
  const { frontmatter, label, findings } = parseSkillBytes(bytes, 'demo')
  const manifest: Manifest = { skill_name: 'demo', revision: 'sha256:', files }
  const skill: CatalogSkill = {
    name: 'demo',
    metadata: { ...label, type: 'project', skillPath: '/skills/demo', path: '/skills/demo/SKILL.md' },
    frontmatter,
    findings,
    valid: findings.every(({ severity }) => severity !== 'error')
  }
  return { skill, findings: mcpFindings(skill, manifest, new FileContent(bytes)) }
}

/** The main file of a skill that is fine, with these lines in its frontmatter. */
function withLines (...lines: readonly string[]): string {
  return `---\nname: demo\ndescription: A demo\n${lines.map((line) => `${line}\n`).join('')}---\n# Demo\n`
}

function codes (text: string, files?: readonly ManifestFile[]): readonly string[] {
  return look(text, files).findings.map(({ code }) => code)
}

t.test('nothing is said of a skill that is listed', async (t) => {
  for (const text of [
    withLines(), withLines().replaceAll('\n', '\r\n'), `\uFEFF${withLines()}`,
    withLines('license: "MIT"', "x: 'it''s'", '# comment', '', 'version: 1.0.0', 'count: 3', 'date: 2026-01-01', 'on: yes # comment'),
    withLines('metadata:', '  author: someone', '  version: "1.0"', 'compatibility: Needs Python'),
    withLines('allowed-tools: [Read, Write, "Bash(git status)", Bash(git:*)]', 'empty: []', 'json: {"a": {"b": [1, true, null]}}'),
    withLines('tools:', '- Read', '- Write', 'nested:', '  - name: a', '    value: b', '  -', '    c: d', '  - - x', '    - y'),
    withLines('notes: |', '  a: b', '    deeper', '', '  # not a comment', 'folded: >-', '  one', '  two', 'list:', '  - |', '    text'),
    withLines('long: goes on', '  in the next line', '  and one more', 'below:', '  is its value')
  ]) t.same(codes(text), [], text)
})

t.test('each reason has its code, a sentence and what mends it', async (t) => {
  const cases: ReadonlyArray<readonly [text: string, codes: readonly string[]]> = [
    ['no frontmatter', ['mcp_skill_invalid']],
    ['---\nname: other\ndescription: x\n---\n', ['mcp_skill_invalid']],
    [withLines('metadata: text'), ['mcp_metadata_refused']],
    [withLines('metadata:'), ['mcp_metadata_refused']],
    [withLines('metadata:', '  version: 1.0'), ['mcp_metadata_refused']],
    [withLines('compatibility:'), ['mcp_compatibility_refused']],
    [withLines('compatibility: ""'), ['mcp_compatibility_refused']],
    [withLines(`compatibility: ${'x'.repeat(501)}`), ['mcp_compatibility_refused']],
    [withLines('note: colon: inside'), ['mcp_yaml_refused']],
    [withLines('anchor: &a b'), ['mcp_yaml_refused']],
    [withLines('tag: !!str b'), ['mcp_yaml_refused']],
    [withLines('quoted: "over', '  two lines"'), ['mcp_yaml_refused']],
    [withLines('flow: [a,', '  b]'), ['mcp_yaml_refused']],
    [withLines('flow: {a: b}'), ['mcp_yaml_refused']],
    [withLines('"quoted key": b'), ['mcp_yaml_refused']],
    [withLines('1: b'), ['mcp_yaml_refused']],
    [withLines('number: .inf'), ['mcp_yaml_refused']],
    [withLines('number: -0'), ['mcp_yaml_refused']],
    [withLines('number: 0b11'), ['mcp_yaml_refused']],
    [withLines('number: 007'), ['mcp_yaml_refused']],
    [withLines('block: |2', '  a'), ['mcp_yaml_refused']],
    [withLines('__proto__: a'), ['mcp_yaml_refused']],
    [withLines('tab:\ta'), ['mcp_yaml_refused']],
    [`--- \n${withLines().slice(4)}`, ['mcp_yaml_refused']]
  ]
  for (const [text, expected] of cases) {
    const { findings } = look(text)
    t.same(findings.map(({ code }) => code), expected, text)
    t.notOk(isListedInMcp(findings), text)
    for (const { code, severity, message, fix } of findings) {
      t.match(code, /^mcp_[a-z_]+$/)
      t.equal(severity, 'warning')
      t.match(message, /^MCP does not list the skill: .*[^.]$/s)
      t.match(fix, /^[A-Z].*[^.]$/s)
    }
  }
})

t.test('files decide too', async (t) => {
  t.same(codes(withLines(), [file('SKILL.MD')]), ['mcp_main_file_casing'])
  t.same(codes(withLines(), [file('SKILL.md'), file('a', MAX_TEXT_FILE_BYTES + 1)]), ['mcp_file_too_large'])
  const many = (count: number) => [file('SKILL.md'), ...Array.from({ length: count - 1 }, (_, i) => file(`${i}`))]
  t.same(codes(withLines(), many(512)), [])
  t.same(codes(withLines(), many(MAX_MCP_LISTED_FILES + 1)), ['mcp_too_many_files', 'mcp_limits_exceeded'])
})

t.test('a skill over the limits of the extension is listed, and said to be', async (t) => {
  const over = [
    Array.from({ length: 513 }, (_, i) => file(i === 0 ? 'SKILL.md' : `${i}`)),
    [file('SKILL.md'), file('a', 9_000_000), file('b', 9_000_000)]
  ]
  for (const files of over) {
    const { findings } = look(withLines(), files)
    t.match(findings, [{ code: 'mcp_limits_exceeded', severity: 'info', message: /512 files or 16777216 bytes/ }])
    t.equal(findings.length, 1)
    t.ok(isListedInMcp(findings))
  }
})

t.test('what is listed, the official parser takes and reads in the same way', async (t) => {
  const word = fc.constantFrom('a', 'b-c', 'x y', '1', '1.0', '0x1', '1e3', '007', '-0', '~', 'null', 'true', 'yes', '.inf', '.5', '+1', '2026-01-01', 'Bash(git:*)', "it's", 'a#b', 'a #b', 'a: b', 'a:', ':a', '- a', '-', '?', '? a', '&a', '*a', '!a', '|', '>', '>-', '|+', '|2', '%', '@a', '`a', '', ' ', '\t', '"', "'", '"a"', "'a'", '"a', '"a\\n"', '"a" b', '"a" # c', '[]', '[a]', '[a, b]', '[a, [b]]', '[a', '[a,]', '[a: b]', '[1, 0x1]', "['a', \"b\"]", '{}', '{a: b}', '{"a": 1}', '{"a":"b"}', '{a', '# c', '...', '\u2028', '\u0085', '\u00a0', 'é', '\uFEFF')
  const key = fc.constantFrom('a', 'b', 'a b', 'metadata', 'compatibility', '1', 'true', '"q"', 'é', 'x.y', '- a', '- - a', '? a', '__proto__', 'a ')
  const indent = fc.constantFrom('', '', '', ' ', '  ', '    ', '\t')
  const line = fc.oneof(
    fc.tuple(indent, key, fc.constantFrom(': ', ': ', ':', ':\t', ':  '), word).map((parts) => parts.join('')),
    fc.tuple(indent, fc.constantFrom('- ', '-  ', '', '-\t'), word).map((parts) => parts.join(''))
  )
  let listed = 0
  await fc.assert(fc.asyncProperty(fc.array(line, { maxLength: 6 }), fc.constantFrom('\n', '\r\n', '\r'), async (lines, end) => {
    const text = withLines(...lines).replaceAll('\n', end)
    const { skill, findings } = look(text)
    if (!isListedInMcp(findings)) return true
    listed++
    const { frontmatter } = await skillEntry('demo', { 'SKILL.md': text })
    return isDeepStrictEqual(JSON.parse(JSON.stringify(frontmatter)), JSON.parse(JSON.stringify(skill.frontmatter)))
  }), { numRuns: 5_000 })
  t.ok(listed > 300, `${listed} were listed`)
})
