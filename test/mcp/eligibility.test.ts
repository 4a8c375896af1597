import t from 'tap'
import { FileContent } from '../../src/core/read/file-content.ts'
import { parseSkillBytes } from '../../src/core/format/main-file.ts'
import { MAX_MCP_LISTED_FILES, MAX_TEXT_FILE_BYTES } from '../../src/core/shared/limits.ts'
import type { CatalogSkill, Manifest, ManifestFile } from '../../src/core/shared/skill.ts'
import { checkEligibility, type Eligibility } from '../../src/mcp/methods/eligibility.ts'

function file (path: string, bytes = 1): ManifestFile {
  return { path, size_bytes: bytes, media_type: 'text/plain', digest: `sha256:${'0'.repeat(64)}` }
}

async function check (
  text: string, files: readonly ManifestFile[] = [file('SKILL.md')], given: Partial<CatalogSkill> = {}
): Promise<Eligibility> {
  const bytes = Buffer.from(text)
  const { frontmatter, summary, findings } = parseSkillBytes(bytes, 'demo')
  const manifest: Manifest = { skill_name: 'demo', revision: 'sha256:', files }
  const skill: CatalogSkill = {
    name: 'demo',
    metadata: { ...summary, type: 'project', skillPath: '/skills/demo', path: '/skills/demo/SKILL.md' },
    frontmatter,
    findings,
    valid: findings.every(({ severity }) => severity !== 'error'),
    ...given
  }
  return await checkEligibility(skill, manifest, new FileContent(bytes))
}

/** The main file of a skill that is fine, with these lines in its frontmatter. */
function withLines (...lines: readonly string[]): string {
  return `---\nname: demo\ndescription: A demo\n${lines.map((line) => `${line}\n`).join('')}---\n# Demo\n`
}

async function codes (text: string, files?: readonly ManifestFile[]): Promise<readonly string[]> {
  return (await check(text, files)).findings.map(({ code }) => code)
}

t.test('nothing is said of a skill that is listed', async (t) => {
  for (const text of [
    withLines(), withLines().replaceAll('\n', '\r\n'), `\uFEFF${withLines()}`,
    withLines('license: "MIT"', "x: 'it''s'", '# comment', '', 'version: 1.0.0', 'count: 3', 'on: yes # comment'),
    withLines('metadata:', '  author: someone', '  version: "1.0"', 'compatibility: Needs Python'),
    withLines('allowed-tools: [Read, "Bash(git status)", Bash(git:*)]', 'empty: []', 'json: {"a": {"b": [1, true, null]}}'),
    withLines('tools:', '- Read', 'nested:', '  - name: a', '    value: b', '  -', '    c: d', '  - - x', '    - y'),
    withLines('notes: |', '  a: b', '    deeper', '', '  # no comment', 'folded: >-', '  one', '  two', 'list:', '  - |', '    x'),
    withLines('long: goes on', '  in the next line', '  and one more', 'below:', '  is its value')
  ]) t.same(await codes(text), [], text)
})

t.test('each reason has its code, a sentence and the fix', async (t) => {
  const cases: ReadonlyArray<readonly [text: string, codes: readonly string[]]> = [
    ['no frontmatter', ['mcp_skill_invalid']],
    ['---\nname: other\ndescription: x\n---\n', ['mcp_skill_invalid']],
    ...[
      withLines('metadata: text'),
      withLines('metadata:'),
      withLines('metadata:', '  version: 1.0'),
      withLines('compatibility:'),
      withLines('compatibility: ""'),
      withLines(`compatibility: ${'x'.repeat(501)}`),
      withLines('note: colon: inside'),
      withLines('anchor: &a b'),
      withLines('tag: !!str b'),
      withLines('quoted: "over', '  two lines"'),
      withLines('flow: [a,', '  b]'),
      `--- \n${withLines().slice(4)}`
    ].map((text) => [text, ['mcp_refused']] as const)
  ]
  for (const [text, expected] of cases) {
    const { frontmatter, findings } = await check(text)
    t.same(findings.map(({ code }) => code), expected, text)
    t.equal(frontmatter, undefined, text)
    for (const { code, severity, message, fix } of findings) {
      t.match(code, /^mcp_[a-z_]+$/)
      t.equal(severity, 'info')
      t.match(message, /^MCP does not list the skill: .*[^.]$/s)
      t.match(fix, /^[A-Z].*[^.]$/s)
    }
  }
})

t.test('files decide too; a skill over the limits of the extension is listed, and said to be', async (t) => {
  const many = (count: number) => [file('SKILL.md'), ...Array.from({ length: count - 1 }, (_, i) => file(`${i}`))]
  const large = [file('a', MAX_TEXT_FILE_BYTES), file('b', 16 * 1_048_576 - MAX_TEXT_FILE_BYTES)]
  for (const [files, ...expected] of [
    [[file('SKILL.MD')], 'mcp_main_file_casing'],
    [[file('SKILL.md'), file('a', MAX_TEXT_FILE_BYTES + 1)], 'mcp_file_too_large'],
    [many(512)],
    [many(513), 'mcp_limits_exceeded'],
    [[file('SKILL.md', 0), ...large]],
    [[file('SKILL.md'), ...large], 'mcp_limits_exceeded'],
    [many(MAX_MCP_LISTED_FILES), 'mcp_limits_exceeded'],
    [many(MAX_MCP_LISTED_FILES + 1), 'mcp_too_many_files', 'mcp_limits_exceeded']
  ] as const) t.same(await codes(withLines(), files), expected)
  const { frontmatter, findings } = await check(withLines(), many(513))
  t.match(findings, [{ severity: 'info', message: /512 files or 16777216 bytes/ }])
  t.same(frontmatter, { name: 'demo', description: 'A demo' })
})
