import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import fc from 'fast-check'
import { runCommandLine } from '../../src/cli/run.ts'
import { fixText } from '../../src/validate/fix.ts'
import { skill, skillText } from '../helper/skills.ts'

async function run (cwd: string, ...argv: readonly string[]): Promise<{ code: number | undefined, out: string, errors: string }> {
  let out = ''
  let errors = ''
  const code = await runCommandLine(['validate', ...argv], { env: {}, cwd, print: (text) => { out += text } }, (text) => { errors += text })
  return { code, out, errors }
}

function brokenFolder (t: Test): string {
  return t.testdir({ skills: { good: skill('good'), bad: { 'SKILL.md': '---\nname: other\ndescription: x\n---\nbody\n' } } })
}

t.test('K79: a set without findings is one line; with a broken skill there are file, line, rule and remedy', async (t) => {
  t.strictSame(await run(t.testdir({ skills: { good: skill('good') } }), 'skills'), { code: 0, out: '1 skill: no findings\n', errors: '' })
  const { code, out } = await run(brokenFolder(t))
  t.equal(code, 1)
  t.match(out, /^skills\/bad\/SKILL\.md:2:7 {2}error {2}name_folder_mismatch {2}name 'other' does not match the folder name 'bad'\n {4}fix: Change name to 'bad'\n/)
  t.match(out, /\n2 skills: 1 error\n$/)
})

t.test('K79: a folder of skills, a skill and a SKILL.md are told apart', async (t) => {
  const cwd = brokenFolder(t)
  for (const [path, skills] of [['skills', 2], ['skills/bad', 1], ['skills/bad/SKILL.md', 1]] as const) {
    t.match(JSON.parse((await run(cwd, path, '--format', 'json')).out), { totals: { skills, errors: 1 } }, path)
  }
  t.match(JSON.parse((await run(cwd, 'skills', 'skills/bad', '--format', 'json')).out), { totals: { skills: 2 } }, 'each once')
})

t.test('K79: wrong use, and a path without skills, exit with 2', async (t) => {
  const cwd = t.testdir({ empty: {}, 'a.md': 'x', group: { inner: { one: skill('one') } } })
  for (const [argv, line] of [
    [['nope'], /'nope' is not there/],
    [['empty'], /'empty' has no skills/],
    [['group'], /'group' has no skills: .* There are skills in 'group\/inner'/],
    [['a.md'], /is no SKILL\.md/],
    [['--target', 'nope'], /--target has "nope", there are spec, /],
    [['--format', 'xml'], /--format must be one of text, json, sarif, github/],
    [['--max-warnings', '-1'], /./],
    [['--nope'], /is not a flag/],
    [['--write-baseline'], /needs --baseline/]
  ] as const) {
    const { code, out, errors } = await run(cwd, ...argv)
    t.strictSame([code, out], [2, ''], argv.join(' '))
    t.match(errors, line)
    t.match(errors, /^skillserve: [^\n]+\n$/)
  }
})

t.test('K79: what fails is chosen', async (t) => {
  const cwd = brokenFolder(t)
  t.equal((await run(cwd, '--fail-on', 'never')).code, 0)
  t.equal((await run(cwd, '--target', 'codex')).code, 0, 'a rule of a target that was not chosen')
  t.equal((await run(cwd, '--target', 'vscode')).code, 0, 'a warning')
  t.equal((await run(cwd, '--target', 'vscode', '--max-warnings', '0')).code, 1)
  t.equal((await run(cwd, '--target', 'vscode', '--fail-on', 'warning')).code, 1)
  t.match((await run(cwd, '--target', 'spec,codex,vscode,gh')).out, 'skills/bad: spec refused, codex ok, vscode warned, gh-skill refused\n')
  t.equal((await run(cwd, '--target', 'codex', '--quiet')).out.includes('name_folder_mismatch'), false)
})

t.test('K79: a baseline accepts what there is', async (t) => {
  const cwd = brokenFolder(t)
  t.equal((await run(cwd, '--baseline', 'base.json', '--write-baseline')).code, 0)
  t.strictSame(JSON.parse(readFileSync(join(cwd, 'base.json'), 'utf8')), { 'skills/bad': ['name_folder_mismatch'] })
  t.match(await run(cwd, '--baseline', 'base.json'), { code: 0, out: '2 skills: no findings, 1 accepted by the baseline\n' })
  t.equal((await run(cwd, '--baseline', 'nope.json')).code, 2)
})

t.test('K79: text of a skill forges no line of a report', async (t) => {
  const text = '---\nname: other\ndescription: "a\\n::error file=x::forged\\e[31m"\nx\u2028y: 1\n::error::z: 2\n---\n\u001b[31m[a](b\u0085::error.md)\n'
  const cwd = t.testdir({ '::error::a': { 'SKILL.md': text } })
  for (const format of ['text', 'github', 'json', 'sarif']) {
    const { out } = await run(cwd, '.', '--format', format, '--target', 'all')
    t.notMatch(out, /[^\P{Cc}\n]|[\u2028\u2029]/u, format)
    if (format === 'text') t.notMatch(out, /^\s*(?:::|##)/m)
    if (format === 'github') t.ok(out.trim().split('\n').every((line) => /^::(?:error|warning|notice) file=[^:,]*,(?:line=\d+,col=\d+,)?title=\w+::/.test(line)), out)
  }
})

t.test('K79: SARIF has what code scanning reads', async (t) => {
  const { out } = await run(brokenFolder(t), '--format', 'sarif')
  const sarif = JSON.parse(out)
  t.match(sarif, { version: '2.1.0', $schema: /sarif-2\.1\.0/, runs: [{ columnKind: 'utf16CodeUnits', tool: { driver: { name: 'skillserve' } } }] })
  const [{ results, tool: { driver: { rules } } }] = sarif.runs
  t.match(results, [{
    ruleId: 'name_folder_mismatch',
    level: 'error',
    message: { text: String },
    locations: [{ physicalLocation: { artifactLocation: { uri: 'skills/bad/SKILL.md', uriBaseId: '%SRCROOT%' }, region: { startLine: 2, startColumn: 7 } } }]
  }])
  for (const { id, helpUri, help, shortDescription } of rules) t.ok(helpUri.endsWith(`docs/findings.md#${id}`) && help.text !== '' && shortDescription.text !== '', id)
})

t.test('K79: --fix mends what is certain, once, and keeps comments and order', async (t) => {
  const text = '\uFEFF---\r\n# about\r\nname: Other # the name\r\nversion: 1.0 # of ours\r\ndescription: Use when: asked\r\nallowed-tools: [Read, "Bash(git:*)"]\r\nmetadata:\r\n  a: b\r\nargument-hint: x\r\n---\r\nBody\r\n'
  const cwd = t.testdir({ skills: { demo: { 'SKILL.md': text } } })
  t.match(await run(cwd, '--fix', '--dry-run'), { code: 1, out: /^--- skills\/demo\/SKILL\.md\n/ })
  const file = join(cwd, 'skills/demo/SKILL.md')
  t.equal(readFileSync(file, 'utf8'), text)
  t.equal((await run(cwd, '--fix')).code, 0)
  const fixed = readFileSync(file, 'utf8')
  t.equal(fixed, '---\n# about\nname: demo # the name\ndescription: "Use when: asked"\nallowed-tools: "Read Bash(git:*)"\nmetadata:\n  a: b\n  version: "1.0" # of ours\nargument-hint: x\n---\nBody\n')
  await run(cwd, '--fix')
  t.equal(readFileSync(file, 'utf8'), fixed)
})

t.test('K79: fixing twice is fixing once, whatever the file', async (t) => {
  const line = fc.constantFrom('name: demo', 'name: "x" # c', 'name:', 'description: a: b', 'description: >', '  folded: x', 'tags: a', 'version: 2', 'x: "y" # z', 'metadata:', '  k: v', 'metadata: t', 'allowed-tools:', '  - Read', '- Write',
    'allowed-tools: [A, B]', '', '# c', '\tbad', 'author: {a: b}', '__proto__: x')
  t.doesNotThrow(() => fc.assert(fc.property(fc.array(line, { maxLength: 8 }), fc.boolean(), (lines, isCrlf) => {
    const text = `---\n${lines.map((each) => `${each}\n`).join('')}---\nBody\n`
    const once = fixText(isCrlf ? text.replaceAll('\n', '\r\n') : text, 'demo')
    return fixText(once, 'demo') === once
  }), { numRuns: 500 }))
})

t.test('K82: completion scripts come from the table of commands', async (t) => {
  let out = ''
  t.equal(await runCommandLine(['completion', 'bash'], { env: {}, cwd: '/', print: (text) => { out += text } }, () => {}), 0)
  t.match(out, /validate\) flags='--target --format/)
  t.match(out, /complete -o filenames -F _skillserve skillserve/)
  t.equal(await runCommandLine(['completion', 'fish'], { env: {}, cwd: '/', print: () => {} }, () => {}), 1)
})

t.test('K81: the report has estimates of tokens', async (t) => {
  const cwd = t.testdir({ skills: { good: skill('good') } })
  mkdirSync(join(cwd, 'skills/good/docs'))
  writeFileSync(join(cwd, 'skills/good/docs/a.md'), 'x'.repeat(4_000))
  const { skills: [{ tokens }] } = JSON.parse((await run(cwd, '--format', 'json')).out)
  t.match(tokens, { listed: Number, body: Number, all_files: Number, method: /estimate/ })
  t.ok(tokens.all_files >= 1_000 && tokens.body < 20, skillText('good'))
})
