import t from 'tap'
import { subjectFor, type SkillParts, verdictsFor } from '../helper/verdicts.ts'
import { type Outcome, parseTargets, TARGET_NAMES, type TargetName, TARGETS, verdictsOf } from '../../src/verdicts/index.ts'

const D = 'description: What it is for'

function text (...lines: readonly string[]): string {
  return `---\n${lines.map((line) => `${line}\n`).join('')}---\n# Demo\n`
}

const GOOD: SkillParts = { text: text('name: demo', D) }
/** Outcomes in short: `refused spec codex; warned vscode`; `invalid` is what keeps every skill with errors out of this service's own lists. */
function said (text: string): Partial<Record<TargetName, Outcome>> {
  const outcomes: Partial<Record<TargetName, Outcome>> = {}
  for (const part of text.replace('invalid', 'not_loaded mcp discovery-0.1.0 discovery-0.2.0').split('; ')) {
    const [outcome, ...targets] = part.split(' ')
    for (const target of targets) outcomes[target as TargetName] = outcome as Outcome
  }
  return outcomes
}

const long = (count: number): string => 'x'.repeat(count)

/** The smallest skill that trips a rule, the code of the finding, and what the targets make of it; all others take it. */
const RULES: ReadonlyArray<readonly [rule: string, parts: SkillParts, code: string, outcomes: Partial<Record<TargetName, Outcome>>]> = [
  ['main file SKILL.MD', { ...GOOD, mainFile: 'SKILL.MD' }, 'main_file_casing', said('refused spec skills-ref quick-validate anthropic-upload openai-upload gh-skill; not_loaded claude-code codex vscode gemini-cli opencode goose skills-cli mcp')],
  ['main file skill.md', { ...GOOD, mainFile: 'skill.md' }, 'main_file_casing', said('refused spec quick-validate anthropic-upload gh-skill; not_loaded claude-code codex vscode gemini-cli opencode goose skills-cli mcp')],
  ['no frontmatter', { text: '# Demo\n' }, 'frontmatter_missing', said('invalid; refused spec skills-ref quick-validate anthropic-upload openai-upload gh-skill; changed claude-code; not_loaded codex gemini-cli opencode goose skills-cli; warned vscode')],
  ['byte order mark', { text: `\uFEFF${GOOD.text}` }, 'byte_order_mark', { 'skills-ref': 'refused', codex: 'not_loaded', 'gemini-cli': 'not_loaded' }],
  ['CRLF', { text: GOOD.text?.replaceAll('\n', '\r\n') ?? '' }, 'line_ends_crlf', { 'quick-validate': 'refused' }],
  ['unquoted colon', { text: text('name: demo', 'description: Use when: asked') }, 'yaml_repaired', broken()],
  ['YAML that nobody reads', { text: text('name: demo', D, 'tags: "a" b') }, 'yaml_invalid', broken()],
  ['no name', { text: text(D) }, 'name_missing', said('invalid; refused spec skills-ref quick-validate anthropic-upload openai-upload gh-skill; changed claude-code codex; warned vscode; not_loaded gemini-cli opencode goose skills-cli')],
  ['name of 65 letters', { folder: long(65), text: text(`name: ${long(65)}`, D) }, 'name_too_long', said('invalid; refused spec skills-ref quick-validate anthropic-upload gh-skill; not_loaded codex')],
  ['name in capitals', { folder: 'Demo', text: text('name: Demo', D) }, 'name_invalid_characters', said('invalid; refused spec skills-ref quick-validate anthropic-upload gh-skill; warned vscode')],
  ['name in another alphabet', { folder: '技能', text: text('name: 技能', D) }, 'name_invalid_characters', said('invalid; refused spec quick-validate anthropic-upload gh-skill; warned vscode')],
  ['name with a slash', { text: text('name: a/b', D) }, 'name_invalid_characters', said('invalid; refused spec skills-ref quick-validate anthropic-upload gh-skill; warned vscode; changed gemini-cli; not_loaded goose')],
  ['name with a colon', { text: text("name: 'a:b'", D) }, 'name_invalid_characters', said('invalid; refused spec skills-ref quick-validate anthropic-upload gh-skill; warned vscode; changed gemini-cli')],
  ['hyphen at the end', { folder: 'demo-', text: text('name: demo-', D) }, 'name_edge_hyphen', hyphens()],
  ['two hyphens', { folder: 'de--mo', text: text('name: de--mo', D) }, 'name_double_hyphen', hyphens()],
  ['another name than the folder', { text: text('name: other', D) }, 'name_folder_mismatch', said('invalid; refused spec skills-ref gh-skill; changed claude-code; warned vscode')],
  ['reserved word', { folder: 'claude-demo', text: text('name: claude-demo', D) }, 'name_reserved_word', { 'anthropic-upload': 'refused' }],
  ['name that is a number', { folder: '3000', text: text('name: 3000', D) }, 'name_not_text', said('invalid; refused spec quick-validate anthropic-upload; changed claude-code gemini-cli; not_loaded codex opencode goose skills-cli; warned vscode')],
  ['no description', { text: text('name: demo') }, 'description_missing', said('invalid; refused spec skills-ref quick-validate anthropic-upload openai-upload gh-skill; changed claude-code; not_loaded codex gemini-cli opencode skills-cli; warned vscode')],
  ['description of 1,100 characters', { text: text('name: demo', `description: ${long(1_100)}`) }, 'description_too_long', said('invalid; refused spec skills-ref quick-validate anthropic-upload gh-skill; not_loaded codex')],
  ['description of 1,600 characters', { text: text('name: demo', `description: ${long(1_600)}`) }, 'description_too_long', said('invalid; refused spec skills-ref quick-validate anthropic-upload gh-skill; cut claude-code; not_loaded codex')],
  ['tag in the description', { text: text('name: demo', 'description: a <b> c') }, 'description_xml_tag', { 'quick-validate': 'refused', 'anthropic-upload': 'refused' }],
  ['angle bracket in the description', { text: text('name: demo', 'description: a > b') }, 'description_angle_bracket', { 'quick-validate': 'refused' }],
  ['description as a folded block', { text: text('name: demo', 'description: >', '  one', '  two') }, 'description_block_scalar', { 'gemini-cli': 'warned' }],
  ['description as a literal block', { text: text('name: demo', 'description: |', '  one', '  two') }, 'description_block_scalar', { codex: 'changed', 'gemini-cli': 'warned' }],
  ['description over two lines', { text: text('name: demo', 'description: one', '  two') }, 'description_not_one_line', { 'gemini-cli': 'warned' }],
  ['metadata that is text', { text: text('name: demo', D, 'metadata: text') }, 'metadata_not_mapping', { spec: 'refused', codex: 'not_loaded', vscode: 'warned', goose: 'not_loaded', mcp: 'not_loaded' }],
  ['compatibility of 501 characters', { text: text('name: demo', D, `compatibility: ${long(501)}`) }, 'compatibility_too_long', said('refused spec skills-ref quick-validate; not_loaded mcp')],
  ['a skill inside', { ...GOOD, files: { 'inner/SKILL.md': 1 } }, 'nested_skills', { 'anthropic-upload': 'refused', 'openai-upload': 'refused', goose: 'cut', 'skills-cli': 'warned' }],
  ['30 MB', { ...GOOD, files: Object.fromEntries(Array.from({ length: 4 }, (_, i) => [`${i}.bin`, 8_000_000])) }, 'upload_too_large', said('refused anthropic-upload; warned mcp; cut discovery-0.1.0')],
  ['501 files', { ...GOOD, files: Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`${i}.md`, 1])) }, 'upload_too_large', { 'openai-upload': 'refused' }],
  ['a copy of an installer', { text: text('name: demo', D, 'metadata:', '  github-repo: a/b') }, 'vendored_copy', { 'gh-skill': 'refused' }],
  ['a dead link', { text: `${GOOD.text}[a](b.md)\n` }, 'body_link_missing', { vscode: 'warned' }],
  ['a link that leaves', { text: `${GOOD.text}[a](../b.md)\n` }, 'body_link_outside', {}],
  ['a placeholder', { text: `${GOOD.text}Do $ARGUMENTS\n` }, 'body_placeholder', {}]
]

function broken (): Partial<Record<TargetName, Outcome>> {
  return said('invalid; refused spec skills-ref quick-validate anthropic-upload gh-skill; not_loaded codex opencode goose skills-cli; changed claude-code gemini-cli; warned vscode')
}

function hyphens (): Partial<Record<TargetName, Outcome>> {
  return said('invalid; refused spec skills-ref quick-validate anthropic-upload gh-skill')
}

for (const [rule, parts, code, outcomes] of RULES) {
  t.test(`K79: ${rule}`, async (t) => {
    const { targets, findings } = await verdictsFor(parts, TARGET_NAMES)
    t.ok(findings.some((found) => found.code === code), findings.map((found) => found.code).join())
    const withoutUnknown = targets.filter(({ because = [] }) => because.some((each) => each !== 'unknown_fields' && each !== 'frontmatter_flow_style'))
    t.strictSame(Object.fromEntries(withoutUnknown.map(({ target, verdict }) => [target, verdict])), outcomes)
  })
}

t.test('K79: rules about fields that the format does not know, or knows in another shape', async (t) => {
  const rows: ReadonlyArray<readonly [lines: readonly string[], code: string, outcomes: Partial<Record<TargetName, Outcome>>]> = [
    [['tags: a'], 'unknown_fields', { 'skills-ref': 'refused', 'quick-validate': 'refused', vscode: 'warned' }],
    [['argument-hint: a'], 'unknown_fields', { 'skills-ref': 'refused', 'quick-validate': 'refused' }],
    [['allowed-tools:', '  - Read'], 'allowed_tools_list', { spec: 'warned', vscode: 'warned', 'gh-skill': 'refused' }],
    [['tags: [a]'], 'frontmatter_flow_style', { 'skills-ref': 'refused', 'quick-validate': 'refused', vscode: 'warned' }],
    [['allowed-tools: [Read]'], 'allowed_tools_list', { spec: 'warned', 'skills-ref': 'refused', vscode: 'warned', 'gh-skill': 'refused' }],
    [['metadata:', '  a: [b]'], 'metadata_not_text', { spec: 'warned', 'skills-ref': 'refused', mcp: 'not_loaded' }],
    [[`when_to_use: ${long(1_530)}`], 'when_to_use_too_long', { 'skills-ref': 'refused', 'quick-validate': 'refused', 'claude-code': 'cut', vscode: 'warned' }],
    [['disable-model-invocation: true', 'user-invocable: no'], 'nobody_can_invoke', { 'skills-ref': 'refused', 'quick-validate': 'refused', 'claude-code': 'not_loaded' }]
  ]
  for (const [lines, code, outcomes] of rows) {
    const { targets, findings } = await verdictsFor({ text: text('name: demo', D, ...lines) }, TARGET_NAMES)
    t.ok(findings.some((found) => found.code === code), code)
    t.strictSame(Object.fromEntries(targets.filter(({ verdict }) => verdict !== 'ok').map(({ target, verdict }) => [target, verdict])), outcomes, code)
  }
})

t.test('K79: a skill without mistakes has no finding, and every target takes it', async (t) => {
  for (const parts of [
    GOOD,
    { text: text('name: demo', D, 'license: MIT', 'compatibility: Any', 'allowed-tools: Read Write', 'metadata:', '  a: b') },
    { text: `${GOOD.text}[a](docs/b%20c.md#d), [x](https://example.org), [h](#demo), \`[no](link.md)\`\n\`\`\`\n[no](link.md)\n\`\`\`\n`, files: { 'docs/b c.md': 1 } },
    { text: text('name: demo', `description: ${long(1_024)}`) },
    { folder: long(64), text: text(`name: ${long(64)}`, D) }
  ]) {
    const { targets, findings } = await verdictsFor(parts, TARGET_NAMES)
    t.strictSame(findings, [])
    t.ok(targets.every(({ verdict, because }) => verdict === 'ok' && because === undefined))
  }
})

t.test('K79: one mistake is one finding, which names its targets', async (t) => {
  for (const parts of [
    { text: text('name: other', D) },
    { text: text('name: demo', 'description: Use when: asked') },
    { text: text('name: demo', D, 'metadata: text') },
    { ...GOOD, mainFile: 'skill.md' },
    { text: '# Demo\n' },
    { text: text('name: demo', D, 'metadata:', '  a: [b]') },
    { text: text('name: demo', D, 'allowed-tools: [Read, Write]') },
    { text: text('name: [demo]', D) },
    { text: text('name: demo', D, 'license: [MIT] too') },
    { text: GOOD.text?.replace('---', '---  ') ?? '' }
  ]) {
    const { findings } = await verdictsFor(parts)
    t.equal(findings.length, 1, findings.map(({ code }) => code).join())
    t.ok(findings[0]?.targets !== undefined)
  }
})

t.test('K79: chosen targets decide on severities; without a choice a code has its own', async (t) => {
  const parts = { text: text('name: other', D) }
  const severity = async (targets?: readonly TargetName[]) => (await verdictsFor(parts, targets)).findings.map((found) => found.severity)
  t.strictSame(await severity(), ['error'])
  t.strictSame(await severity(['codex']), ['info'])
  t.strictSame(await severity(['vscode']), ['warning'])
  t.strictSame(await severity(['codex', 'gh-skill']), ['error'])
  t.strictSame((await verdictsFor(parts)).targets.map(({ target, verdict }) => [target, verdict]), [['spec', 'refused']])
})

t.test('K79: each finding about the main file says where', async (t) => {
  const rows: ReadonlyArray<readonly [SkillParts, code: string, line: number, column: number]> = [
    [{ text: text('name: other', D) }, 'name_folder_mismatch', 2, 7],
    [{ text: text(D, '"name": other') }, 'name_folder_mismatch', 3, 9],
    [{ text: text('name: demo') }, 'description_missing', 1, 1],
    [{ text: text('name: demo', D, '', 'tags: x') }, 'unknown_fields', 5, 1],
    [{ text: text('name: demo', 'description: |', '  a', '  b') }, 'description_block_scalar', 3, 14],
    [{ text: text('name: demo', D, 'metadata:', '  x: "open', '  y: 2') }, 'yaml_invalid', 5, 1],
    [{ text: text('name: demo', D, 'metadata:', '  no colon', '  y: 2') }, 'yaml_invalid', 5, 1],
    [{ text: `${text('name: demo', D)}ä\u200Bb\n` }, 'zero_width_characters', 6, 2],
    [{ text: `${text('name: demo', D)}see [a](b.md)\n` }, 'body_link_missing', 6, 9],
    [{ text: `${text('name: demo', D)}a $ARGUMENTS\n` }, 'body_placeholder', 6, 3],
    [{ text: text('name: demo', D, 'metadata:', '  a: b', '  "c": 1') }, 'metadata_not_text', 6, 3],
    [{ text: text('name: demo', `description: ${'😀'.repeat(600)}`) }, 'discovery_description_too_long', 3, 14],
    [{ text: text('name: demo', D, 'user-invocable: no', 'disable-model-invocation: yes') }, 'nobody_can_invoke', 4, 17],
    [{ text: GOOD.text?.replace('---', '---\t') ?? '' }, 'discovery_frontmatter_differs', 1, 1],
    [{ text: `${text('name: demo', D)}curl -L https://example.org/x | sudo bash\n` }, 'download_to_shell', 6, 1]
  ]
  for (const [parts, code, line, column] of rows) {
    const found = (await verdictsFor(parts)).findings.find((each) => each.code === code)
    t.match(found, { file: 'SKILL.md', line, column }, code)
  }
})

t.test('K86: a folder of skills among skills says so', async (t) => {
  const { findings } = await verdictsFor({ folder: 'group', files: { 'one/SKILL.md': 1, 'one/a.md': 1, 'two/SKILL.md': 1 } })
  t.match(findings, [{ code: 'main_file_missing', severity: 'error', message: "SKILL.md is missing, but there are skills below: 'one', 'two'", file: 'SKILL.md' }])
})

t.test('targets have names, aliases and the day on which they were read', async (t) => {
  t.strictSame(parseTargets('codex, claude_code,codex'), ['claude-code', 'codex'])
  t.strictSame(parseTargets('gh,VSCode'), ['vscode', 'gh-skill'])
  t.strictSame(parseTargets('codex,all'), TARGET_NAMES)
  t.strictSame(parseTargets('codex,nope'), { unknown: 'nope' })
  t.strictSame(parseTargets(','), { unknown: ',' })
  for (const { read } of Object.values(TARGETS)) t.match(read, /^\d{4}-\d\d-\d\d$/)
  t.ok(verdictsOf(await subjectFor(GOOD), TARGET_NAMES).targets.every(({ read }) => /^\d{4}-/.test(read)))
})
