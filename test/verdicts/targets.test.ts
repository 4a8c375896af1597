import t from 'tap'
import { Ajv2020 } from 'ajv/dist/2020.js'
import {
  D, GOOD, long, RULES, said, type SkillParts, subjectFor, text, verdictsFor, without
} from '../helper/verdicts.ts'
import { MAX_TEXT_FILE_BYTES } from '../../src/core/shared/limits.ts'
import { type FindingCode, FINDINGS } from '../../src/verdicts/findings.ts'
import { MAX_DISCOVERY_FILES, MAX_MCP_LISTED_FILES } from '../../src/verdicts/limits.ts'
import { verdictsOf } from '../../src/verdicts/client-verdicts.ts'
import {
  type Outcome, outcomesOf, parseTargets, TARGET_GROUPS, TARGET_NAMES, type TargetName, TARGETS
} from '../../src/verdicts/targets.ts'
import { printable } from '../../src/core/shared/text.ts'
import { codesInSchema, frontmatterSchema } from '../../scripts/frontmatter-schemas.ts'

for (const [rule, parts, code, outcomes] of RULES) {
  t.test(`K79: ${rule}`, async (t) => {
    const { targets, findings } = await verdictsFor(parts, TARGET_NAMES)
    t.ok(findings.some((found) => found.code === code), findings.map((found) => found.code).join())
    const withoutUnknown = targets.filter(({ because = [] }) =>
      because.some((each) => each !== 'unknown_fields' && each !== 'frontmatter_flow_style'))
    t.strictSame(Object.fromEntries(withoutUnknown.map(({ target, verdict }) => [target, verdict])), outcomes)
  })
}

t.test('K79: rules about fields that the format does not know, or knows in another shape', async (t) => {
  type Row = readonly [lines: readonly string[], code: string, outcomes: Partial<Record<TargetName, Outcome>>]
  const rows: readonly Row[] = [
    [['tags: a'], 'unknown_fields', said('refused skills-ref quick-validate; warned vscode')],
    [['argument-hint: a', 'user-invocable: true', 'disable-model-invocation: false', 'context: fork'],
      'unknown_fields', said('refused skills-ref quick-validate')],
    [['allowed-tools:', '  - Read'], 'allowed_tools_list', said('warned spec vscode; refused gh-skill')],
    [['tags: [a]'], 'frontmatter_flow_style', said('refused skills-ref quick-validate; warned vscode')],
    [['allowed-tools: [Read]'], 'allowed_tools_list', said('warned spec vscode; refused skills-ref gh-skill')],
    [['metadata:', '  a: [b]'], 'metadata_not_text', said('warned spec; refused skills-ref; not_loaded mcp')],
    [[`when_to_use: ${long(1_530)}`], 'when_to_use_too_long',
      said('refused skills-ref quick-validate; cut claude-code; warned vscode')],
    [['disable-model-invocation: true', 'user-invocable: false'], 'nobody_can_invoke',
      said('refused skills-ref quick-validate; not_loaded claude-code')]
  ]
  for (const [lines, code, outcomes] of rows) {
    const { targets, findings } = await verdictsFor({ text: text('name: demo', D, ...lines) }, TARGET_NAMES)
    t.ok(findings.some((found) => found.code === code), code)
    t.strictSame(Object.fromEntries(targets.filter(({ verdict }) => verdict !== 'ok')
      .map(({ target, verdict }) => [target, verdict])), outcomes, code)
  }
})

t.test('K79: verdicts that hang on more than the code of a finding', async (t) => {
  const name = (value: string, folder = 'demo'): SkillParts => ({ folder, text: text(`name: ${value}`, D) })
  const described = (value: string): SkillParts => ({ text: text('name: demo', `description: ${value}`) })
  const also = (...lines: readonly string[]): SkillParts => ({ text: text('name: demo', D, ...lines) })
  const many = (count: number): Readonly<Record<string, number>> =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`${index}.md`, 1]))
  const sizes = (files: Readonly<Record<string, number>>): SkillParts => ({ ...GOOD, files })
  const mainBytes = Buffer.byteLength(GOOD.text ?? '')
  const listed = (whenToUse: number): SkillParts =>
    ({ text: text('name: demo', `description: ${'😀'.repeat(600)}`, `when_to_use: ${long(whenToUse)}`) })
  const rows: ReadonlyArray<readonly [SkillParts, code: string, Partial<Record<TargetName, Outcome>>]> = [
    [name('Demo'), 'name_invalid_characters', said('refused skills-ref; changed claude-code; warned vscode; ok codex')],
    [name('Demo', 'Demo'), 'name_invalid_characters', said('ok claude-code')],
    [name('a_b', 'a_b'), 'name_invalid_characters', said('refused skills-ref; ok claude-code')],
    [name('技-能2', '技-能2'), 'name_invalid_characters', said('ok skills-ref claude-code')],
    ...Array.from('\\<>*?"|', (character) =>
      [name(`'a${character}b'`), 'name_invalid_characters', said('changed gemini-cli; ok goose')] as const),
    [name('demo-'), 'name_edge_hyphen', said('changed claude-code; warned vscode')],
    [name('de--mo'), 'name_double_hyphen', said('changed claude-code; warned vscode')],
    [name(long(65)), 'name_too_long', said('changed claude-code; warned vscode')],
    [name('claude-demo'), 'name_folder_mismatch', said('refused anthropic-upload')],
    [name('other'), 'name_folder_mismatch', said('ok anthropic-upload')],
    [name('2024'), 'name_not_text', said('refused skills-ref')],
    [name('2024', '2024'), 'name_not_text', said('ok skills-ref')],
    [name('[demo]'), 'name_not_text', said('refused skills-ref')],
    [described('5'), 'description_not_text', said('refused spec quick-validate; ok skills-ref; not_loaded skills-cli')],
    [described('\n  - a'), 'description_not_text', said('refused skills-ref')],
    [described('a\n\n  b'), 'description_not_one_line', said('changed codex')],
    [described('😀'.repeat(600)), 'discovery_description_too_long',
      said('ok discovery-0.1.0; not_loaded discovery-0.2.0')],
    [also('compatibility: 5'), 'compatibility_not_text',
      said('refused spec quick-validate; ok skills-ref; not_loaded mcp')],
    [also('compatibility:', '  node: 20'), 'compatibility_not_text', said('refused skills-ref')],
    [also("compatibility: ''"), 'compatibility_empty', said('warned spec; not_loaded mcp')],
    [also('license: 5'), 'license_not_text', said('warned spec; ok skills-ref')],
    [also('license:', '  - MIT'), 'license_not_text', said('ok skills-ref')],
    [also('license: [MIT]'), 'license_not_text', said('refused skills-ref')],
    [also('allowed-tools: 5'), 'allowed_tools_not_text', said('warned spec; ok skills-ref')],
    [also('allowed-tools:', '  a: b'), 'allowed_tools_not_text', said('refused skills-ref')],
    [also('metadata: { a: b }'), 'frontmatter_flow_style', said('ok spec; refused skills-ref')],
    [also('license: &a MIT', 'compatibility: *a'), 'yaml_refused',
      said('refused spec skills-ref; not_loaded codex mcp indexes')],
    [{ ...GOOD, folder: 'team-demo', nameInSource: 'demo' }, 'name_prefixed',
      said('ok spec codex; refused skills-ref gh-skill; changed claude-code; warned vscode')],
    [also('metadata: [a]'), 'metadata_not_mapping', said('refused skills-ref')],
    [also('metadata:', '  internal: true'), 'discovery_internal', said('warned skills-cli indexes')],
    [{ text: `---\nname: demo\n${D}\n---\n` }, 'body_empty', said('warned spec; ok codex')],
    [{ text: `${GOOD.text}`.replace('---', '---  ') }, 'yaml_not_portable',
      said('warned spec quick-validate skills-cli; not_loaded mcp indexes')],
    [also('---x: 1'), 'yaml_not_portable', said('warned spec mcp; not_loaded indexes')],
    [also('license: MIT', 'license: BSD'), 'yaml_not_portable', said('warned spec codex; not_loaded indexes')],
    [described('Use when: asked'), 'yaml_repaired', said('not_loaded indexes')],
    [{ ...GOOD, files: { 's\u212aill.md': 1 } }, 'discovery_path_unsafe', said('not_loaded indexes; ok mcp')],
    [{ ...GOOD, files: { 'a.md': 1_048_577 } }, 'discovery_file_large', said('ok discovery-0.2.0')],
    ...['a\\b.md', 'c:x.md'].map((path) =>
      [{ ...GOOD, files: { [path]: 1 } }, 'discovery_path_unsafe',
        said('not_loaded indexes; ok mcp')] as const),
    ...['a?.md', 'é.md', 'a..b.md', 'c#d.md', 'g%20h.md', '[x].md', 'tab\t.md', 'line\n.md', 'end '].map((path) =>
      [{ ...GOOD, files: { [path]: 1 } }, 'discovery_path_not_plain',
        said('not_loaded discovery-0.1.0; ok discovery-0.2.0')] as const),
    [{ ...GOOD, files: { 'a.md': MAX_TEXT_FILE_BYTES + 1 } }, 'mcp_file_too_large', said('not_loaded mcp')],
    [sizes(many(511)), 'upload_too_large', said('ok mcp')],
    [sizes(many(512)), 'mcp_limits_exceeded', said('warned mcp')],
    [sizes({ a: MAX_TEXT_FILE_BYTES, b: 16 * 1_048_576 - MAX_TEXT_FILE_BYTES - mainBytes }), 'discovery_file_large',
      said('ok mcp')],
    [sizes({ a: MAX_TEXT_FILE_BYTES, b: 16 * 1_048_576 - MAX_TEXT_FILE_BYTES - mainBytes, c: 1 }),
      'mcp_limits_exceeded', said('warned mcp')],
    [sizes(many(MAX_MCP_LISTED_FILES)), 'mcp_too_many_files', said('not_loaded mcp')],
    [also('flow: [a,', '  b]'), 'frontmatter_flow_style', said('not_loaded mcp')],
    [also('quoted: "over', '  two lines"'), 'mcp_refused', said('not_loaded mcp')],
    [sizes({ ...many(497), a: 25_000_000, b: 5_000_000 - 497 - mainBytes }), 'upload_too_large',
      said('refused anthropic-upload; ok openai-upload')],
    [sizes({ a: 25_000_001 }), 'upload_too_large', said('ok anthropic-upload; refused openai-upload')],
    [sizes({ a: 25_000_000, b: 25_000_000 - mainBytes }), 'upload_too_large', said('ok openai-upload')],
    [sizes({ a: 25_000_000, b: 25_000_000 - mainBytes, c: 1 }), 'upload_too_large', said('refused openai-upload')],
    [listed(936), 'unknown_fields', said('ok claude-code')],
    [listed(937), 'when_to_use_too_long', said('cut claude-code')],
    [{ ...GOOD, files: many(MAX_DISCOVERY_FILES) }, 'discovery_archive_too_large',
      said('ok discovery-0.1.0; not_loaded discovery-0.2.0')]
  ]
  for (const [parts, code, outcomes] of rows) {
    const { targets, findings } = await verdictsFor(parts, TARGET_NAMES)
    t.ok(findings.some((found) => found.code === code), `${code} in ${findings.map((found) => found.code).join()}`)
    for (const [target, outcome] of Object.entries(outcomes)) {
      t.equal(targets.find((each) => each.target === target)?.verdict, outcome, `${target}: ${parts.text}`)
    }
  }
})

t.test('K79: whatever takes the main file, or its frontmatter, from its readers has one verdict each', async (t) => {
  const noFile = said('invalid; refused spec skills-ref quick-validate anthropic-upload openai-upload gh-skill; ' +
    'not_loaded claude-code codex vscode gemini-cli opencode goose skills-cli')
  const noFrontmatter = RULES.find(([, , code]) => code === 'frontmatter_missing')?.[3] ?? {}
  const rows: ReadonlyArray<readonly [code: string, SkillParts, Partial<Record<TargetName, Outcome>>]> = [
    ['main_file_missing', {}, noFile],
    ['main_file_not_a_file', { mainFiles: ['SKILL.md'] }, noFile],
    ['main_file_permission_denied', { refusal: 'permission_denied' }, noFile],
    ['main_file_unreadable', { refusal: 'io_error' }, noFile],
    ['main_file_not_utf8', { bytes: Buffer.from('---\nname: demo\ndescription: \xe9\n---\n', 'latin1') }, noFile],
    ['main_file_link_text', { text: '../shared/SKILL.md' }, noFile],
    ['main_file_too_large', { refusal: 'too_large' }, said('invalid; refused spec')],
    ['main_file_ambiguous', {
      ...GOOD, mainFiles: ['SKILL.md', 'skill.md']
    }, said('warned spec; not_loaded indexes')],
    ['frontmatter_too_large', { text: text('name: demo', D, `note: ${long(70_000)}`) }, said('invalid; refused spec')],
    ['frontmatter_not_first', { text: `\n${GOOD.text}` }, without(noFrontmatter, 'goose')],
    ['frontmatter_unclosed', { text: `---\nname: demo\n${D}\n` }, noFrontmatter],
    ['frontmatter_empty', { text: '---\n---\n# Demo\n' }, noFrontmatter],
    ['frontmatter_not_mapping', { text: text('- a') }, noFrontmatter],
    ['fence_unusual', { text: `${GOOD.text}`.replaceAll('---', '----') }, noFrontmatter],
    ['line_ends_cr', {
      text: `${GOOD.text}`.replaceAll('\n', '\r')
    }, without(noFrontmatter, 'goose', 'skills-ref', 'quick-validate')]
  ]
  for (const [code, parts, outcomes] of rows) {
    const { targets, findings } = await verdictsFor(parts, TARGET_NAMES)
    t.strictSame(findings.map((found) => found.code), [code], 'one finding a mistake')
    t.strictSame(Object.fromEntries(targets.filter(({ verdict }) => verdict !== 'ok')
      .map(({ target, verdict }) => [target, verdict])), outcomes, code)
  }
})

t.test('K79: YAML on which readers disagree is one finding, with its line, the reason and the remedy', async (t) => {
  const plain = (value: string, type: string, lines: readonly string[], line: number) => ({
    lines,
    line,
    message: `line ${line} of SKILL.md has '${value}' without quotes, which is ${type} to some readers and text to others`,
    fix: `Put '${value}' in double quotes`
  })
  const described = (value: string, type: string) => plain(value, type, ['name: demo', `description: ${value}`], 3)
  const inMetadata = (value: string, type: string) =>
    plain(value, type, ['name: demo', D, 'metadata:', `  a: ${value}`], 5)
  const row = (line: number, what: string, fix: string, ...lines: readonly string[]) =>
    ({ lines, line, message: `line ${line} of SKILL.md has ${what}`, fix })
  const escape = (value: string) => row(3, `the escape '${value}', which is not a complete character: some readers refuse it`,
    'Write the character itself', 'name: demo', `description: "${value}"`)
  const refused = 'a character that some readers refuse, or take for a line end'
  for (const { lines, line, message, fix } of [
    ...['on', 'yes', 'N', 'Off'].map((value) => described(value, 'true or false')),
    ...['0b11', '0x_1', '1_000', '1:30', '190:20:30', '.inf', '-.NaN', '1__0'].map((value) =>
      described(value, 'a number')),
    ...['2024-01-02', '2024-1-2', '2024-01-02 10:00', '2001-12-14t21:59:43.10-05:00'].map((value) =>
      inMetadata(value, 'a date')),
    described('<<', 'a keyword'),
    plain('y', 'true or false', ['name: demo', D, 'y: x'], 4),
    ...['\\ud83d', '\\U00110000'].map(escape),
    row(4, 'an anchor or a tag', "Remove the word that begins with '&' or '!'", 'name: demo', D, 'license: !!str 5'),
    row(4, 'a tab', 'Write spaces instead of the tab', 'name: demo', D, 'license: a\tb'),
    row(4, "a key after '?'", "Write the key without '?'", 'name: demo', D, '? license', ': MIT'),
    row(3, "'---' or '...', where some readers end the frontmatter", 'Write it in another way', 'name: demo',
      'description: a --- b'),
    ...['\f', '\x85', '\u2028', '\u2029', '\x7f'].map((character) => row(4, refused, 'Remove the character',
      'name: demo', D, `# a${character}b`)),
    row(1, 'a byte order mark', 'Save SKILL.md as UTF-8 without a byte order mark', '\uFEFF---', 'name: demo', D),
    row(1, "spaces after its '---'", "Remove the spaces after '---'", '--- ', 'name: demo', D),
    {
      lines: ['name: demo', D, 'license: MIT', 'license: BSD'],
      line: 5,
      message: /^the key 'license' occurs twice/,
      fix: 'Remove one of the two'
    }
  ]) {
    const source = /---/.test(lines[0] ?? '') ? `${lines.join('\n')}\n---\n# Demo\n` : text(...lines)
    const subject = await subjectFor({ text: source })
    const found = verdictsOf(subject).findings.filter(({ code }) => code === 'yaml_not_portable')
    t.match(found, [{ severity: 'warning', line, message, fix }], printable(lines.join()))
    t.equal(found.length, 1)
    const { targets } = verdictsOf(subject, TARGET_NAMES)
    t.notOk(targets.some(({ verdict }) => verdict === 'ok'), 'no client is promised to take it')
  }
  for (const value of ['5', '-1', '1.5', 'true', 'null', '1.2.3', '3d', 'yes please', '"on"', "'2024-01-02'",
    '"\\u00e9"', '😀']) {
    const { findings } = await verdictsFor(
      { text: text('name: demo', D, 'license: MIT', 'metadata:', `  a: ${value}`) })
    t.notOk(findings.some(({ code }) => code === 'yaml_not_portable'), value)
  }
  const many = Array.from({ length: 30 }, (_, index) => `a${index}: on`)
  const { findings } = await verdictsFor({ text: text('name: demo', D, ...many) })
  t.equal(findings.filter(({ code }) => code === 'yaml_not_portable').length, 10, 'bounded')
})

t.test('K79: brackets in a text are no list', async (t) => {
  for (const lines of [
    ['description: |', '  What it is for', '', '  Argument hint: [file] [--to md]', '  - [ ] a box', '  [x]'],
    ['description: What it is', '  [for]'],
    ['description: "What it is', '  [for]"'],
    [D, 'metadata:', '  note: |', '    {a: b}']
  ]) {
    const { targets, findings } = await verdictsFor({ text: text('name: demo', ...lines) }, ['skills-ref'])
    t.notOk(findings.some(({ code }) => code === 'frontmatter_flow_style'), lines.join('\n'))
    t.match(targets, [said('ok verdict')])
  }
  for (const [lines, line] of [[['tags:', '  a:', '    [b]'], 6], [['tags: &x', '  [a]', 'note: {}'], 5]] as const) {
    const { findings } = await verdictsFor({ text: text('name: demo', D, ...lines) })
    t.match(findings.filter(({ code }) => code === 'frontmatter_flow_style'), [{ line }])
  }
})

t.test('K79: a skill without mistakes has no finding, and every target takes it', async (t) => {
  for (const parts of [
    GOOD,
    {
      text: text('name: demo', D, 'license: MIT', 'compatibility: Any', 'allowed-tools: Read Write', 'metadata:',
        '  a: b')
    },
    {
      text: `${GOOD.text}[a](docs/b%20c.md#d), [x](https://example.org), [h](#demo), ` +
      '`[no](link.md)`\n```\n[no](link.md)\n```\n',
      files: { 'docs/b c.md': 1 }
    },
    {
      text: `${GOOD.text}[a](copy(1).md), [b](copy(1)(2).md#x), [c](copy(1).md "title"), ([d](copy(1).md))\n`,
      files: { 'copy(1).md': 1, 'copy(1)(2).md': 1 }
    },
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
    { text: text('name: demo', D, 'compatibility: 5') },
    { text: text('name: demo', D, "compatibility: ''") },
    { text: text('name: demo', D, `compatibility: ${long(501)}`) },
    { text: text('{"name": "demo", "description": "Use when asked"}') },
    { text: text('name: demo', 'description: Use \u0007 when asked') },
    { text: text('name: demo', 'description: "Use \u0007 when asked"') },
    { text: GOOD.text?.replace('---', '---  ') ?? '' }
  ]) {
    const { findings } = await verdictsFor(parts)
    t.equal(findings.length, 1, findings.map(({ code }) => code).join())
    t.ok(findings[0]?.targets !== undefined)
  }
})

t.test('K79: a finding that repeats another one is left out, and one next to it is not', async (t) => {
  for (const [parts, codes] of [
    [{ text: `${GOOD.text}a\u0007b\n` }, ['control_characters']],
    [{
      text: `${text('name: demo', 'description: Use when: asked')}a\u0007b\n`
    }, ['yaml_repaired', 'control_characters']],
    [{
      ...GOOD, files: Object.fromEntries(Array.from({ length: MAX_MCP_LISTED_FILES }, (_, index) => [`${index}.md`, 1]))
    }, ['mcp_too_many_files', 'discovery_archive_too_large', 'upload_too_large']]
  ] as const) t.strictSame((await verdictsFor(parts)).findings.map(({ code }) => code), codes)
})

t.test('K80: what a target of this service is said to do is what the service does', async (t) => {
  for (const [lines, verdict, because] of [
    [['name: demo', 'description: Use: it'], 'not_loaded', ['yaml_repaired']],
    [['name: demo', 'description: Use \u0007 it'], 'ok', undefined],
    [['name: demo', 'description: Use \u0007 it', 'note: Use: it'], 'not_loaded', ['yaml_repaired']],
    [['{"name": "demo", "description": "Use it"}'], 'not_loaded', ['frontmatter_flow_style']],
    [['name: demo', D, 'license: [MIT]'], 'ok', undefined],
    [['name: demo', D, 'tags: [a]', 'note: "over', '  lines"'], 'not_loaded', ['mcp_refused']]
  ] as const) {
    const subject = await subjectFor({ text: text(...lines) })
    t.equal(subject.otherFindings.some(({ code }) => code.startsWith('mcp_')), verdict === 'not_loaded', lines.join())
    t.match(verdictsOf(subject, ['mcp']).targets, [{ verdict, because }], lines.join())
  }
})

t.test('K79: without a choice the format decides: on severities, on the verdict, and on `valid`', async (t) => {
  for (const [rule, parts] of RULES) {
    const subject = await subjectFor(parts)
    const { targets: [spec], findings } = verdictsOf(subject)
    t.strictSame(verdictsOf(subject, ['spec']).findings, findings, rule)
    t.equal(subject.skill.valid, spec?.verdict !== 'refused', rule)
    t.equal(findings.some(({ severity }) => severity === 'error'), !subject.skill.valid, rule)
  }
  for (const code of Object.keys(FINDINGS)) {
    const possible = outcomesOf(code)
    if (possible.length === 0) continue
    const outcomes = possible.filter(({ target, when }) => target === 'spec' && when === undefined)
      .map(({ outcome }) => outcome)
    t.equal(FINDINGS[code as FindingCode][0], outcomes.includes('refused')
      ? 'error'
      : outcomes.length > 0 ? 'warning' : 'info', `the severity of ${code} in FINDINGS is what spec makes of it`)
    t.notOk(possible.some(({ target, when }) => target === 'spec' && when !== undefined), code)
  }
})

t.test('K79: chosen targets decide on severities', async (t) => {
  const parts = { text: text('name: other', D) }
  const severity = async (targets?: readonly TargetName[]) =>
    (await verdictsFor(parts, targets)).findings.map((found) => found.severity)
  t.strictSame(await severity(), ['error'])
  t.strictSame(await severity(['codex']), ['info'])
  t.strictSame(await severity(['vscode']), ['warning'])
  t.strictSame(await severity(['codex', 'gh-skill']), ['error'])
  t.match((await verdictsFor({ text: text('name: demo', D, 'metadata: text') }, ['codex'])).findings, [
    { severity: 'error', targets: ['spec', 'codex', 'vscode', 'goose', 'mcp'] }
  ], 'what is not loaded')
  const [found] = (await verdictsFor({ ...GOOD, files: { 'a.md': 1, 'A.md': 1 } }, ['codex'])).findings
  t.match(found, { code: 'file_names_collide', severity: 'warning' },
    'what no target validates concerns every reader of the skill')
  t.notOk('targets' in (found ?? {}))
  t.strictSame((await verdictsFor(parts)).targets.map(({ target, verdict }) => [target, verdict]),
    [['spec', 'refused']])
})

t.test('K79: each finding about the main file says where', async (t) => {
  const rows: ReadonlyArray<readonly [SkillParts, code: string, line: number, column: number]> = [
    [{ text: text('name: other', D) }, 'name_folder_mismatch', 2, 7],
    [{ text: text('name: demo') }, 'description_missing', 1, 1],
    [{ text: text('name: demo', D, '', 'tags: x') }, 'unknown_fields', 5, 7],
    [{ text: text('name: demo', D, 'tags: [a]', 'note: "over', '  lines"') }, 'mcp_refused', 5, 1],
    [{ text: text(`{"name": "demo", "description": "${'😀'.repeat(600)}"}`) }, 'discovery_description_too_long', 1, 1],
    [{ text: text('name: demo', 'description: |', '  a', '  b') }, 'description_block_scalar', 3, 14],
    [{ text: text('name: demo', D, 'metadata:', '  x: "open', '  y: 2') }, 'yaml_invalid', 5, 1],
    [{ text: `${text('name: demo', D)}ä\u200Bb\n` }, 'zero_width_characters', 6, 2],
    [{ text: `${text('name: demo', D)}see [a](b.md)\n` }, 'body_link_missing', 6, 9],
    [{ text: `${text('name: demo', D)}a $ARGUMENTS\n` }, 'body_placeholder', 6, 3],
    [{ text: text('name: demo', D, 'metadata:', '  a: b', '  "c": 1') }, 'metadata_not_text', 4, 1],
    [{ text: `---\nname: demo\n${D}\n---` }, 'body_empty', 4, 1],
    [{ text: `---\nname: demo\n${D}\n---\n\n\n` }, 'body_empty', 5, 1],
    [{ text: text('name: demo', D, 'user-invocable: false', 'disable-model-invocation: true') }, 'nobody_can_invoke',
      4, 17],
    [{ text: GOOD.text?.replace('---', '---\t') ?? '' }, 'yaml_not_portable', 1, 1],
    [{ text: `${text('name: demo', D)}curl -L https://example.org/x | sudo bash\n` }, 'download_to_shell', 6, 1]
  ]
  for (const [parts, code, line, column] of rows) {
    const found = (await verdictsFor(parts)).findings.find((each) => each.code === code)
    t.match(found, { file: 'SKILL.md', line, column }, code)
  }
  t.match((await verdictsFor({ ...GOOD, files: { 'con.md': 1 } })).findings, [
    { code: 'file_name_not_portable', file: 'con.md', line: undefined }
  ], 'another file has no line')
})

t.test('K79: what is too large for uploads is said with its files and bytes', async (t) => {
  const { findings } = await verdictsFor({ ...GOOD, files: { 'large.bin': 40_000_000 } })
  t.match(findings.find(({ code }) =>
    code === 'upload_too_large'), { message: /^the skill has 2 files and 40,000,\d{3} bytes, more than uploads accept$/ })
})

t.test('K86: a folder of skills among skills says so', async (t) => {
  const { findings } = await verdictsFor(
    { folder: 'group', files: { 'one/SKILL.md': 1, 'one/a.md': 1, 'two/SKILL.md': 1 } })
  t.match(findings, [{
    code: 'main_file_missing',
    severity: 'error',
    message: 'SKILL.md is missing, but there are ' +
    "skills below: 'one', 'two'",
    fix: /or move those skills up$/,
    file: 'SKILL.md'
  }])
  t.match((await verdictsFor({ files: { 'one/SKILL.md': 1 } })).findings, [{ fix: /or move that skill up$/ }])
  t.match((await verdictsFor({ files: { 'a.md': 1 } })).findings,
    [{ code: 'main_file_missing', message: /^SKILL\.md is missing$/ }])
})

t.test('K79: targets have names, groups and the day on which they were read', async (t) => {
  t.strictSame(parseTargets('codex, Claude-Code,codex'), ['claude-code', 'codex'])
  t.strictSame(parseTargets('codex,all'), TARGET_NAMES)
  for (const [group, names] of Object.entries(TARGET_GROUPS)) t.strictSame(parseTargets(group), names, group)
  t.strictSame(parseTargets('codex,nope'), { unknown: 'nope' })
  t.strictSame(parseTargets(','), { unknown: ',' })
  for (const { read } of Object.values(TARGETS)) t.match(read, /^\d{4}-\d\d-\d\d$/)
  t.ok(verdictsOf(await subjectFor(GOOD), TARGET_NAMES).targets.every(({ read }) => /^\d{4}-/.test(read)))
})

/** Skills whose frontmatter no schema gets to read. */
const UNREAD = /^(?:frontmatter_missing|yaml_)/

const MORE: readonly SkillParts[] = [
  GOOD,
  ...[
    ['tags: a'], ['argument-hint: a'], [
      'allowed-tools:', '  - Read'
    ], ['allowed-tools: 3'], ['metadata:', '  a:', '    - b'], ['metadata: ~', 'license: ~'],
    ['license: 1'], ['compatibility: 1'], [
      "compatibility: ''"
    ], ['disable-model-invocation: true', 'user-invocable: no'], ['disable-model-invocation: true']
  ].map((lines) => ({ text: text('name: demo', D, ...lines) })),
  { text: text('name: ~', 'description: 3') },
  { text: text('name: demo', "description: ' '") }
]

t.test('K79: the schema of a target refuses the frontmatter that the target does not take as it is', async (t) => {
  const ajv = new Ajv2020({ strictTypes: false, allowUnionTypes: true })
  const skills = [...RULES.filter(([, , code]) => !UNREAD.test(code)).map(([, parts]) => parts), ...MORE]
  for (const target of TARGET_NAMES) {
    const validate = ajv.compile(frontmatterSchema(target))
    const codes = codesInSchema(target)
    for (const parts of skills) {
      const subject = await subjectFor(parts)
      const because = verdictsOf(subject, [target]).targets[0]?.because ?? []
      t.equal(validate(subject.skill.frontmatter), !because.some((code) =>
        codes.has(code)), `${target}: ${parts.text?.slice(0, 60)} ${because.join()}`)
    }
  }
})

t.test('K79: a schema has the rules of a target and not those of others', (t) => {
  t.ok(codesInSchema('spec').has('name_too_long'))
  t.notOk(codesInSchema('goose').has('name_too_long'))
  t.match(frontmatterSchema('codex'), {
    title: 'Frontmatter of a SKILL.md for Codex', properties: { description: { allOf: [{}, { maxLength: 1_024 }] } }
  })
  t.end()
})
