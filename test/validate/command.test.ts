import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Ajv } from 'ajv'
import formats from 'ajv-formats'
import { MAX_SKILL_BYTES } from '../../src/core/shared/limits.ts'
import type { Finding } from '../../src/core/shared/skill.ts'
import { REPORTERS, type ReportFormat, type SkillReport } from '../../src/validate/report.ts'
import { runHere, runValidate as run } from '../helper/command-line.ts'
import { launch, runProcess } from '../helper/process.ts'
import { skill, skills, skillText } from '../helper/skills.ts'
import { FINDING_EXAMPLES, writeExample } from '../helper/finding-examples.ts'
import { GOOD, subjectFor } from '../helper/verdicts.ts'

function brokenFolder (t: Test): string {
  return t.testdir({
    skills: { good: skill('good'), bad: { 'SKILL.md': '---\nname: other\ndescription: x\n---\nbody\n' } }
  })
}

t.test('K79: a report has colors on a terminal that shows them', async (t) => {
  for (const [env, isColored] of [
    [{}, true], [{ TERM: 'xterm' }, true], [{ TERM: 'dumb' }, false], [{ NO_COLOR: '1' }, false]
  ] as const) {
    const { stdout } = await runHere(['validate', 'skills'], { cwd: brokenFolder(t), env, isTerminal: true })
    t.equal(stdout.includes('\u001b['), isColored, JSON.stringify(env))
  }
})

t.test('K79: a set without findings is one line; a finding has file, line, rule and remedy', async (t) => {
  t.match(await run(t.testdir({ skills: { good: skill('good') } }), 'skills'), {
    code: 0, out: /^1 skill: no findings; about \d+ tokens in each turn, \d+ in use, \d+ with all files\n$/, errors: ''
  })
  const { code, out } = await run(brokenFolder(t))
  t.equal(code, 1)
  t.match(out, /^skills\/bad\/SKILL\.md:2:7 {2}error {2}name_folder_mismatch {2}.*\n {4}fix: Change name to 'bad'\n/)
  t.match(out, /\n2 skills: 1 error; about \d+ tokens in each turn\n$/)
})

t.test('K79: a main file that is left out is one finding; other files have their own', async (t) => {
  const cwd = t.testdir({
    'outside.md': 'x',
    skills: {
      out: { 'SKILL.md': t.fixture('symlink', '../../outside.md') },
      gone: { 'SKILL.md': t.fixture('symlink', 'nowhere.md') },
      folder: { real: {}, 'SKILL.md': t.fixture('symlink', 'real') },
      both: { 'SKILL.md': t.fixture('symlink', 'nowhere.md'), 'other.md': t.fixture('symlink', '../../outside.md') },
      second: { ...skill('second'), 'skill.md': t.fixture('symlink', '../../outside.md') },
      large: skill('large', { 'data.bin': '' }),
      program: skill('program', { tool: '\x7fELF' })
    }
  })
  truncateSync(join(cwd, 'skills/large/data.bin'), MAX_SKILL_BYTES + 1)
  mkdirSync(join(cwd, 'folders/only/SKILL.md'), { recursive: true })
  for (const path of ['folders', 'folders/only']) {
    t.match(await run(cwd, path), { code: 1, out: /^folders\/only\/SKILL\.md {2}error {2}main_file_not_a_file/ }, path)
  }
  const { skills } = JSON.parse((await run(cwd, '--format', 'json')).out) as {
    readonly skills: ReadonlyArray<{
      readonly skill_name: string
      readonly findings: ReadonlyArray<{ readonly code: string }>
    }>
  }
  t.strictSame(skills.map(({ skill_name: name, findings }) => [name, ...findings.map(({ code }) => code)]), [
    ['both', 'main_file_not_a_file', 'link_outside'],
    ['folder', 'main_file_not_a_file'],
    ['gone', 'main_file_not_a_file'],
    ['large', 'too_many_bytes'],
    ['out', 'main_file_not_a_file'],
    ['program', 'file_program'],
    ['second', 'main_file_ambiguous', 'link_outside']
  ])
  const codes = (await run(cwd, '--format', 'github')).out.matchAll(/title=(\w+)::/g)
  t.strictSame(Array.from(codes, ([, code]) => code),
    skills.flatMap(({ findings }) => findings.map(({ code }) => code)))
})

t.test('K79: a folder of skills, a skill and a SKILL.md may be named', async (t) => {
  const cwd = brokenFolder(t)
  for (const [path, skills] of [['skills', 2], ['skills/bad', 1], ['skills/bad/SKILL.md', 1]] as const) {
    t.match(JSON.parse((await run(cwd, path, '--format', 'json')).out), { totals: { skills, errors: 1 } }, path)
  }
  t.match(JSON.parse((await run(cwd, 'skills', 'skills/bad', '--format', 'json')).out), { totals: { skills: 2 } },
    'each once')
  const linked = t.testdir({
    other: t.fixture('symlink', 'linked'),
    deep: skill('deep', { inner: skill('inner') }),
    linked: { 'SKILL.md': t.fixture('symlink', 'docs/main.md'), docs: { 'main.md': skillText('linked') } }
  })
  t.match((await run(linked, 'linked')).out, /^1 skill: no findings/, 'a main file may be a link')
  t.match((await run(linked, 'other')).out, /^other\/SKILL\.md:2:7 {2}error {2}name_folder_mismatch[^]*\n1 skill: /,
    'and so may a skill')
  t.match((await run(linked, 'deep')).out, /nested_skills[^]*\n1 skill: /, 'a skill with another one inside')
})

t.test('K79: without a path it takes ./skills, else the skill or the folder of skills one stands in', async (t) => {
  const cwd = brokenFolder(t)
  for (const { folder, skills } of [
    { folder: '.', skills: 2 }, { folder: 'skills', skills: 2 }, { folder: 'skills/bad', skills: 1 }
  ]) {
    const { code, out } = await run(join(cwd, folder), '--format', 'json')
    t.match({ code, ...JSON.parse(out) }, { code: 1, totals: { skills, errors: 1 } }, folder)
  }
})

t.test('K79: wrong use, and a path without skills, exit with 2', async (t) => {
  const cwd = t.testdir({
    empty: {}, 'a.md': 'x', loop: t.fixture('symlink', 'loop'), group: { inner: skills('one') }
  })
  for (const [argv, line] of [
    [['nope'], /'nope' does not exist: give a folder of skills, a skill, or a SKILL\.md$/m],
    [[], /there is no \.\/skills, and no skill here: name a folder of skills, a skill, or a SKILL\.md$/m],
    [['empty'], /'empty' has no skills/],
    [['group'],
      /'group' has no skills: no folder in it has a SKILL\.md\. Where they lie deeper, [^\n]*--layout tree$/m],
    [['a.md/SKILL.md'], /'a\.md\/SKILL\.md' does not exist: /],
    [['loop'], /'loop' cannot be read/],
    [['a.md'], /is not a SKILL\.md/],
    [['--target', 'nope'], /--target must be one of spec, .*, all, not "nope"/],
    [['--target', 'codx'], /--target must be one of spec, .*, not "codx", did you mean "codex"\?$/m],
    [['--format', 'xml'], /'xml' is invalid\. Allowed choices are text, json, sarif, github/],
    [['--max-warnings', '-1'], /'--max-warnings <N>' argument '-1' is invalid\. It must be a whole number/],
    [['--watch', '--write-baseline'], /'--watch' cannot be used with option '--write-baseline'/],
    [['--nope'], /unknown option '--nope'/],
    [['group/inner', '--write-baseline'], /needs --baseline/],
    [['--watch', '--format', 'json'], /'--watch' cannot be used with option '--format <FORMAT>'/],
    [['--watch', '--fix'], /'--watch' cannot be used with option '--fix'/],
    [['--watch', 'git+https://git.example/a.git'], /--watch takes folders, not addresses of sources/]
  ] as const) {
    const { code, out, errors } = await run(cwd, ...argv)
    t.strictSame([code, out], [2, ''], argv.join(' '))
    t.match(errors, line)
    t.match(errors, /^skillserve: [^\n]+\n$/)
  }
})

t.test('K79: a skill that may not be read is a finding, with --fix too', async (t) => {
  const cwd = t.testdir({ skills: skills('one', 'two') })
  chmodSync(cwd, 0o755)
  chmodSync(join(cwd, 'skills/two/SKILL.md'), 0)
  chmodSync(join(cwd, 'skills/one'), 0)
  const uid = process.getuid?.() === 0 ? { uid: 65_534 } : {}
  const folder = await runProcess(t, { cwd, args: ['validate', 'skills', '--fix'], ...uid })
  chmodSync(join(cwd, 'skills/one'), 0o755)
  t.match(folder, {
    code: 1, stdout: /^skills\/one\/SKILL\.md {2}error {2}main_file_permission_denied[^]*^skills\/two\/SKILL\.md {2}error/m, stderr: ''
  })
})

t.test('K4, K79: what is left out is named, and --allow-links takes links as serve does', async (t) => {
  const cwd = t.testdir({
    real: { linked: skill('linked') },
    only: { linked: t.fixture('symlink', '../real/linked') },
    mixed: {
      good: skill('good'),
      linked: t.fixture('symlink', '../real/linked'),
      gone: t.fixture('symlink', '../nowhere'),
      'a\nb': skill('x')
    }
  })
  const allowed = join(cwd, 'real')
  const hint =
    `'linked' is skipped, since the link leads out of the folder: --allow-links ${join(allowed, 'linked')} allows it`
  t.match(await run(cwd, 'only'), {
    code: 2, out: '', errors: `skillserve: ${hint}\nskillserve: 'only' has no skills: no folder in it has a SKILL.md\n`
  })
  const mixed = await run(cwd, 'mixed', '--format', 'json')
  t.equal(mixed.code, 0)
  t.strictSame(JSON.parse(mixed.out).skills.map((each: { readonly skill_name: string }) => each.skill_name), ['good'])
  const lines = [/^skillserve: 'a\\nb' is skipped, /, /^skillserve: 'gone' is skipped, /, `skillserve: ${hint}`]
  t.match(mixed.errors.trimEnd().split('\n').sort(), lines)
  t.match(await run(cwd, 'only', '--allow-links', 'real'), { code: 0, out: /^1 skill: no findings/, errors: '' })
  writeFileSync(join(cwd, 'real/linked/SKILL.md'), `\uFEFF${skillText('linked')}`)
  t.match(await run(cwd, 'only', '--fix', '--allow-links', 'real'), {
    code: 0, errors: /^skillserve: fixed only\/linked\/SKILL\.md\n[^]*\n\+---\n/
  })
  t.equal(readFileSync(join(cwd, 'real/linked/SKILL.md'), 'utf8'), skillText('linked'))
})

t.test('K79: what fails is chosen', async (t) => {
  const cwd = brokenFolder(t)
  t.equal((await run(cwd, '--fail-on', 'never')).code, 0)
  t.equal((await run(cwd, '--fail-on', 'never', '--fail-on', 'error')).code, 1, 'the last one counts')
  t.match((await run(cwd, '--target', 'codex', '--target', 'vscode')).out, 'skills/bad: codex ok, vscode warned\n',
    'but targets add up')
  t.equal((await run(cwd, '--target', 'codex')).code, 0, 'a rule of a target that was not chosen')
  t.equal((await run(cwd, '--target', 'vscode')).code, 0, 'a warning')
  t.equal((await run(cwd, '--target', 'vscode', '--max-warnings', '0')).code, 1)
  t.equal((await run(cwd, '--target', 'vscode', '--fail-on', 'warning')).code, 1)
  t.match((await run(cwd, '--target', 'spec,codex,vscode,gh-skill')).out,
    'skills/bad: spec refused, codex ok, vscode warned, gh-skill refused\n')
  t.equal((await run(cwd, '--target', 'codex', '--quiet')).out.includes('name_folder_mismatch'), false)
  t.match(await run(cwd, '--target', 'codex', '--baseline', 'base.json', '--write-baseline'), {
    out: '1 finding of 2 skills accepted\n'
  }, 'infos too')
  writeFileSync(join(cwd, 'skills/bad/SKILL.md'), '---\nname: bad\ndescription: x\nnote: "over\n  lines"\n---\nbody\n')
  t.match((await run(cwd, '--target', 'mcp')).out, 'skills/bad: mcp not_loaded\n', 'what its client says counts')
})

t.test('K79: a file next to the skills has the choices of a project', async (t) => {
  const cwd = brokenFolder(t)
  const file = join(cwd, 'skills/.skillserve.yaml')
  writeFileSync(file, 'targets: [codex, vscode]\nfail_on: warning\n')
  for (const path of ['skills', 'skills/bad', 'skills/bad/SKILL.md']) {
    t.match(await run(cwd, path), { code: 1, out: /skills\/bad: codex ok, vscode warned\n/ }, path)
  }
  t.equal((await run(cwd, '--fail-on', 'error')).code, 0, 'a flag beats it')
  t.match((await run(cwd, '--target', 'gh-skill')).out, /gh-skill refused/)
  writeFileSync(file, 'targets: [vscode]\nmax_warnings: 0\n')
  t.equal((await run(cwd)).code, 1)
  t.equal((await run(cwd, '--max-warnings', '1')).code, 0)
  writeFileSync(file, 'baseline: ../base.json\nmax_warnings: 0\n')
  writeFileSync(join(cwd, 'base.json'), '{"skills/bad": ["name_folder_mismatch"]}')
  t.equal((await run(cwd)).code, 0)
  for (const [text, line] of [
    ['targets: [codex, nope]\n', /\.skillserve\.yaml:1: targets\[1\] is not a target; allowed: spec, /],
    ['targets: [codx]\n', /:1: targets\[0\] is not a target; allowed: spec, .*, did you mean "codex"\?$/m],
    ['# a\ntarget: x\n', /\.skillserve\.yaml:2: target .*did you mean "targets"\?$/m],
    ['fail_on: eror\n', /:1: fail_on must be error, warning, info or never, did you mean "error"\?$/m],
    ['fail_on: bad\n', /:1: fail_on must be error, warning, info or never$/m],
    ['targets: codex\n', /:1: targets must be a list of targets$/m],
    ['targets: []\n', /:1: targets must be a list of targets$/m],
    ['baseline: ""\n', /:1: baseline must /],
    ['max_warnings: -1\n', /:1: max_warnings must be a whole number from 0$/m],
    ['fail_on: [', /\.skillserve\.yaml:\d: not valid YAML/]
  ] as const) {
    writeFileSync(file, text)
    const { code, errors } = await run(cwd)
    t.equal(code, 2)
    t.match(errors, line)
  }
  writeFileSync(file, 'targets: [codex]\n')
  t.match((await run(join(cwd, 'skills'), 'bad')).out, 'codex ok', 'up to the working folder')
  writeFileSync(join(cwd, '.skillserve.yaml'), 'targets: [nope]\n')
  t.equal((await run(cwd)).code, 0, 'the nearest one')
})

t.test('K79: a baseline accepts what there is, and one that cannot be used is one line', async (t) => {
  const cwd = brokenFolder(t)
  t.strictSame(await run(cwd, '--baseline', 'base.json', '--write-baseline', '--quiet', '--fail-on', 'never'), {
    code: 0, out: '1 finding of 2 skills accepted\n', errors: ''
  })
  t.strictSame(JSON.parse(readFileSync(join(cwd, 'base.json'), 'utf8')), { 'skills/bad': ['name_folder_mismatch'] })
  t.match(await run(cwd, '--baseline', 'base.json'), {
    code: 0, out: /^2 skills: no findings, 1 accepted by the baseline; about \d+ tokens in each turn\n$/
  })
  execFileSync('mkfifo', [join(cwd, 'pipe')])
  writeFileSync(join(cwd, 'text'), 'x')
  writeFileSync(join(cwd, 'codes'), '{"skills/bad": "name_missing"}')
  for (const [file, line, ...flags] of [
    ['nope.json', '--baseline: FILE does not exist yet: --write-baseline writes it'],
    ['pipe', '--baseline: FILE cannot be read: it is not a regular file'],
    ['text', 'FILE:1: must be an object of paths'],
    ['codes', 'FILE:1: "skills/bad" must be a list of codes'],
    ['text', '--write-baseline writes over baselines only: FILE:1: must be an object of paths', '--write-baseline'],
    ['skills',
      '--write-baseline writes over baselines only: --baseline: FILE cannot be read: EISDIR: illegal operation ' +
        'on a directory',
      '--write-baseline']
  ] as const) {
    const errors = `skillserve: ${line.replace('FILE', join(cwd, file))}\n`
    t.strictSame(await run(cwd, '--baseline', file, ...flags), { code: 2, out: '', errors })
  }
  writeFileSync(join(cwd, 'skills/bad/SKILL.md'), '---\n# moved\n\ndescription: x\nname: other\n---\nbody\n')
  t.match(await run(cwd, '--baseline', 'base.json'), { code: 0 }, 'wherever the line is')
  writeFileSync(join(cwd, 'skills/bad/SKILL.md'), '---\nname: other\n---\nbody\n')
  t.match(await run(cwd, '--baseline', 'base.json'), { code: 1, out: /description_missing/ }, 'new findings count')
})

t.test('K79: what a baseline accepts is in no verdict, and one that a project names and lacks ' +
  'is explained', async (t) => {
  const cwd = brokenFolder(t)
  writeFileSync(join(cwd, '.skillserve.yaml'), 'targets: [spec, vscode]\nbaseline: base.json\n')
  t.strictSame(await run(cwd), {
    code: 2,
    out: '',
    errors: `skillserve: ${cwd}/.skillserve.yaml:2: baseline ${cwd}/base.json does not exist yet: --write-baseline writes it\n`
  })
  t.match(await run(cwd, '--write-baseline'), { code: 0 })
  t.match(await run(cwd), { code: 0, out: /^2 skills: no findings, 1 accepted by the baseline/ })
})

t.test('K79: annotations and SARIF name files from the root of the repository, wherever the ' +
  'command runs', async (t) => {
  const cwd =
    t.testdir({ '.git': {}, pkg: { skills: { bad: { 'SKILL.md': '---\nname: other\ndescription: x\n---\nbody\n' } } } })
  const fromRoot = 'pkg/skills/bad/SKILL.md'
  for (const { folder, argv, env = {}, path = fromRoot } of [
    { folder: 'pkg', argv: ['skills'] },
    { folder: 'pkg', argv: ['skills'], env: { GITHUB_WORKSPACE: join(cwd, 'nowhere') } },
    { folder: 'pkg', argv: ['skills'], env: { GITHUB_WORKSPACE: join(cwd, 'pkg') }, path: 'skills/bad/SKILL.md' },
    { folder: 'pkg/skills/bad', argv: [] },
    { folder: '.', argv: [join(cwd, 'pkg/skills')] },
    { folder: '..', argv: [join(cwd, fromRoot)] }
  ]) {
    const report = async (format: string) =>
      (await runHere(['validate', ...argv, '--format', format], { cwd: join(cwd, folder), env })).stdout
    t.match(await report('github'), `::error file=${path},line=2,`, `${folder} ${argv.join()}`)
    t.match(JSON.parse(await report('sarif')).runs[0].results[0].locations[0].physicalLocation.artifactLocation,
      { uri: path })
  }
})

t.test('K79: a baseline counts wherever the command runs', async (t) => {
  const cwd = brokenFolder(t)
  mkdirSync(join(cwd, 'ci'))
  writeFileSync(join(cwd, 'skills/.skillserve.yaml'), 'baseline: ../base.json\n')
  t.match(await run(cwd, '--write-baseline'), { code: 0, errors: '' }, 'into the file that the project names')
  t.equal((await run(cwd, '--baseline', 'ci/base.json', '--write-baseline')).code, 0)
  t.strictSame(JSON.parse(readFileSync(join(cwd, 'ci/base.json'), 'utf8')),
    { '../skills/bad': ['name_folder_mismatch'] })
  for (const [folder, ...argv] of [
    ['.'], ['skills', '.'], ['skills/bad', '.', '--baseline', '../../base.json'], ['ci', '../skills'],
    ['ci', '../skills', '--baseline', 'base.json'], ['skills', '.', '--baseline', '../ci/base.json']
  ] as const) {
    t.equal((await run(join(cwd, folder), ...argv)).code, 0, `${folder}: validate ${argv.join(' ')}`)
  }
})

t.test('K79: text of a skill forges no line of a report', async (t) => {
  const text = '---\nname: other\ndescription: "a\\n::error file=x::forged\\e[31m"\nx\u2028y: 1\n::error::z: 2\n' +
    '---\n\u001b[31m[a](b\u0085::error.md)\n'
  const cwd = t.testdir({ '::error::a': { 'SKILL.md': text } })
  for (const format of ['text', 'github', 'json', 'sarif']) {
    const { out } = await run(cwd, '.', '--format', format, '--target', 'all')
    t.notMatch(out, /[^\P{Cc}\n]|[\u2028\u2029]/u, format)
    if (format === 'text') t.notMatch(out, /^\s*(?:::|##)/m)
    const annotation = /^::(?:error|warning|notice) file=[^:,]*,(?:line=\d+,col=\d+,)?title=\w+::/
    if (format === 'github') t.ok(out.trim().split('\n').every((line) => annotation.test(line)), out)
  }
})

/** Of every kind: with a field, without one, in another file, about the folder. */
const ODD = {
  bad: { 'SKILL.md': '---\nname: other\ndescription: x\n---\nbody\n' },
  deep: {
    'SKILL.md': '---\nname: deep\ndescription: x\nmetadata: {a: 1}\n---\n[a](b.md)\n',
    inner: { 'SKILL.md': 'x' },
    'a b#c%.md': 'x'
  },
  lower: { 'skill.md': '---\nname: lower\ndescription: x\n---\nbody\n' },
  none: { 'a.md': 'x' }
}

t.test('K79: SARIF passes its JSON schema, and every result has a file and a line', async (t) => {
  const schema = JSON.parse(readFileSync(new URL('../fixtures/sarif-2.1.0.schema.json', import.meta.url), 'utf8'))
  // That of OASIS without its descriptions: written in draft 4, of which it uses nothing that later drafts read
  // otherwise.
  const { id, $schema, ...draft7 } = schema
  const ajv = new Ajv({ strict: false, allErrors: true, unicodeRegExp: false })
  formats.default(ajv)
  const isValid = ajv.compile(draft7)
  const cwd = t.testdir({ '.git': {}, skills: ODD })
  for (const argv of [[], ['--target', 'all'], ['skills/bad/SKILL.md']]) {
    const sarif = JSON.parse((await run(cwd, '--format', 'sarif', ...argv)).out)
    t.ok(isValid(sarif), JSON.stringify(isValid.errors?.slice(0, 3)))
    for (const { locations: [{ physicalLocation: place }], ruleId } of sarif.runs[0].results) {
      const { artifactLocation: { uri }, region } = place
      t.ok(existsSync(join(cwd, decodeURIComponent(uri))) || ruleId === 'main_file_missing', uri)
      t.ok(region.startLine >= 1, ruleId)
    }
  }
  t.equal(isValid({ version: '2.1.0', runs: [{ results: [] }] }), false)
  const { runs: [{ tool: { driver: { rules } } }] } = JSON.parse((await run(cwd, '--format', 'sarif')).out)
  for (const { id, helpUri, help, shortDescription, fullDescription } of rules) {
    t.ok(helpUri.endsWith(`docs/findings.md#${id}`), id)
    const texts = [help, shortDescription, fullDescription].map(({ text }) => text)
    t.ok(texts.every((text) => text !== ''), `${id}: code scanning asks for all three`)
  }
})

t.test('K81: the report has estimates of tokens, and as JSON the revision', async (t) => {
  const cwd = t.testdir({ skills: { good: skill('good') } })
  mkdirSync(join(cwd, 'skills/good/docs'))
  writeFileSync(join(cwd, 'skills/good/docs/a.md'), 'x'.repeat(4_000))
  const { skills: [{ tokens, revision }] } = JSON.parse((await run(cwd, '--format', 'json')).out)
  t.match(revision, /^\S+$/)
  t.match(tokens, { listed: Number, body: Number, all_files: Number, method: /estimate/ })
  t.ok(tokens.all_files >= 1_000 && tokens.body < 20, skillText('good'))
})

t.test('K79: --watch reports again after each change, and ends with the exit code of the last report', async (t) => {
  const cwd = t.testdir({ skills: { good: skill('good') } })
  const running = launch(t, { args: ['validate', '--watch'], cwd })
  await running.printed(/1 skill: no findings; about .*\nwaiting for changes\n/)
  rmSync(join(cwd, 'skills'), { recursive: true })
  await running.printed(/'skills' does not exist: [^\n]*\nwaiting for changes\n/)
  mkdirSync(join(cwd, 'skills/bad'), { recursive: true })
  writeFileSync(join(cwd, 'skills/bad/SKILL.md'), '---\nname: other\ndescription: x\n---\nbody\n')
  await running.printed(/1 skill: 1 error; about .*\nwaiting for changes\n/)
  process.kill(running.pid, 'SIGINT')
  t.match(await running.ended, { code: 1, stdout: /^1 skill/, stderr: '' })
})

interface Examples {
  readonly skills: ReadonlyArray<{ readonly path: string, readonly findings: ReadonlyArray<{ readonly code: string }> }>
}

t.test('K79: each wrong example of the documents has its finding, and the right one has not', async (t) => {
  const cwd = t.testdir()
  const folders = Object.entries(FINDING_EXAMPLES).flatMap(([code, example]) =>
    (['wrong', 'right'] as const).map((side) => {
      const folder = `${code}/${side}`
      mkdirSync(join(cwd, folder), { recursive: true })
      writeFileSync(join(cwd, folder, 'demo.md'), 'A text\n')
      writeExample(join(cwd, folder, 'other'), 'files', ['SKILL.md'])
      writeExample(join(cwd, folder, 'demo'), example.place, example[side])
      return folder
    }))
  const { stdout, stderr } = await runHere(['validate', ...folders, '--target', 'all', '--format', 'json'], { cwd })
  t.equal(stderr, '')
  const { skills } = JSON.parse(stdout) as Examples
  const examples = skills.filter(({ path }) => path.endsWith('/demo'))
  t.equal(examples.length, folders.length)
  for (const { path, findings } of examples) {
    const [code, side] = path.split('/')
    const codes = findings.map((each) => each.code)
    t.equal(codes.includes(code ?? ''), side === 'wrong', `${path}: ${codes.join(' ')}`)
  }
})

const DOCUMENTATION = 'https://github.com/skillserve/skillserve/blob/main/docs/findings.md'
const NO_TOTALS = { skills: 1, error: 0, warning: 0, info: 0, accepted: 0 }
const FINDINGS: readonly Finding[] = [
  {
    code: 'name_missing',
    severity: 'error',
    message: 'a: 100 %, {b}\u001b',
    fix: 'Do\nit',
    field: 'name',
    file: 'SKILL.md',
    line: 2,
    column: 7,
    targets: ['codex', 'spec']
  },
  { code: 'file_program', severity: 'warning', message: 'b', fix: 'Do b', file: 'a,b:c.md' },
  { code: 'file_program', severity: 'info', message: 'c', fix: 'Do c', file: 'c.md', line: 3 },
  { code: 'body_empty', severity: 'info', message: 'd', fix: 'Do d' }
]

async function report (more: Partial<SkillReport> = {}): Promise<SkillReport> {
  const { skill } = await subjectFor({ ...GOOD, mainFile: 'skill.md' })
  const tokens = () => ({ listed: 6, body: 7, all_files: 8, method: 'm' })
  return {
    path: 'skills/demo',
    skill,
    revision: null,
    verdicts: [{ target: 'codex', verdict: 'ok', read: '2026-11-22' }],
    findings: FINDINGS,
    tokens,
    ...more
  }
}

function print (
  format: ReportFormat, reports: readonly SkillReport[],
  options: Partial<Parameters<typeof REPORTERS[ReportFormat]>[0]> = {}, totals = NO_TOTALS
): string {
  let text = ''
  const reporter =
    REPORTERS[format]({ print: (part) => { text += part }, targets: undefined, hasColor: false, ...options })
  for (const each of reports) reporter.skill(each)
  reporter.end?.(totals)
  return text
}

t.test('K79: a report as text has a line for each finding and its remedy, and each address once', async (t) => {
  t.equal(print(
    'text', [await report()], {}, { skills: 1_000, error: 1, warning: 1, info: 2, accepted: 1 }
  ), `skills/demo/SKILL.md:2:7  error  name_missing  a: 100 %, {b}\\u001b
    fix: Do\\u000ait
    matters to: codex, spec
    see: ${DOCUMENTATION}#name_missing
skills/demo/a,b:c.md  warning  file_program  b
    fix: Do b
    see: ${DOCUMENTATION}#file_program
skills/demo/c.md:3:1  info  file_program  c
    fix: Do c
skills/demo  info  body_empty  d
    fix: Do d
    see: ${DOCUMENTATION}#body_empty

1,000 skills: 1 error, 1 warning, 2 infos, 1 accepted by the baseline; ${'about 6 tokens in each turn, 7 in use, 8 ' +
  'with all files'}
`)
  t.equal(print(
    'text', [await report({ findings: [], tokens: () => ({ listed: 1, body: null, all_files: null, method: '' }) })]
  ), '1 skill: no findings; about 6 tokens in each turn\n')
  const notLoaded = await report({
    findings: [],
    verdicts: [{ target: 'codex', verdict: 'not_loaded', read: '' }, { target: 'spec', verdict: 'ok', read: '' }]
  })
  t.equal(print(
    'text', [notLoaded, await report({ findings: [] })], { targets: ['codex', 'spec'] }
  ), 'skills/demo: codex not_loaded, spec ok\n\n1 skill: no findings; about 12 tokens in each turn\n')
  t.equal(
    print('text', [notLoaded]), '1 skill: no findings; about 6 tokens in each turn, 7 in use, 8 with all files\n',
    'no verdict that nobody asked for'
  )
})

t.test('K79: annotations have a level, a place and the remedy; those of the whole skill are at ' +
  'its main file', async (t) => {
  t.equal(print(
    'github', [await report()]
  ), `::error file=skills/demo/SKILL.md,line=2,col=7,title=name_missing::a: 100 %25, {b}\\u001b. Do\\u000ait
::warning file=skills/demo/a%2Cb%3Ac.md,line=1,title=file_program::b. Do b
::notice file=skills/demo/c.md,line=3,title=file_program::c. Do c
::notice file=skills/demo/skill.md,line=1,title=body_empty::d. Do d
`)
})

t.test('K79: SARIF has a result for each finding, and says how many code scanning would not take', async (t) => {
  const read = async (findings: readonly Finding[], path = 'skills/demo') =>
    JSON.parse(print('sarif', [await report({ findings, path })])).runs[0]
  const { results, invocations } = await read(FINDINGS)
  const location = (uri: string, region: object) =>
    [{ physicalLocation: { artifactLocation: { uri, uriBaseId: '%SRCROOT%' }, region } }]
  t.strictSame(results, [
    {
      ruleId: 'name_missing',
      level: 'error',
      message: { text: 'a: 100 %, {{b}}\u001b. Do\nit.' },
      locations: location('skills/demo/SKILL.md', { startLine: 2, startColumn: 7 }),
      properties: { targets: ['codex', 'spec'] }
    },
    {
      ruleId: 'file_program',
      level: 'warning',
      message: { text: 'b. Do b.' },
      locations: location('skills/demo/a%2Cb%3Ac.md', { startLine: 1 })
    },
    {
      ruleId: 'file_program',
      level: 'note',
      message: { text: 'c. Do c.' },
      locations: location('skills/demo/c.md', { startLine: 3 })
    },
    {
      ruleId: 'body_empty',
      level: 'note',
      message: { text: 'd. Do d.' },
      locations: location('skills/demo/skill.md', { startLine: 1 })
    }
  ])
  t.strictSame(invocations, [{ executionSuccessful: true }])
  t.match((await read(FINDINGS.slice(3), '/other/demo')).results, [{
    locations: [{
      physicalLocation: { artifactLocation: { uri: 'file:///other/demo/skill.md', uriBaseId: undefined } }
    }]
  }])
  const many = (count: number) =>
    read(Array.from({ length: count }, () => ({ code: 'file_program', severity: 'info', message: 'c', fix: 'Do c' })))
  t.match(await many(25_000), { results: { length: 25_000 }, invocations: [{ toolExecutionNotifications: undefined }] })
  t.match(await many(25_001), {
    results: { length: 25_000 },
    invocations: [
      {
        executionSuccessful: true,
        toolExecutionNotifications: [
          { level: 'warning', message: { text: /^1 more findings are skipped: code scanning accepts 25000 in a run$/ } }
        ]
      }
    ]
  })
})
