import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { checkSkillsFolder } from '../../src/cli/folders.ts'
import { createProgram } from '../../src/cli/program.ts'
import { SETTINGS } from '../../src/config/settings.ts'
import { ConfigError } from '../../src/operator/setting.ts'
import { runHere } from '../helper/command-line.ts'
import { createRepository, skillFiles } from '../helper/git.ts'
import { makeKeyPair, sign } from '../helper/signing.ts'
import { skill, skills, skillText } from '../helper/skills.ts'

const COMMANDS = createProgram(() => {}, async () => {}).commands.map((command) => command.name())
const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  readonly version: string
}

/** What a command line that starts no service does in a folder. */
async function run (cwd: string, ...argv: readonly string[]) {
  return await runHere(argv, { cwd })
}

function world (t: Test): string {
  return t.testdir({
    file: '',
    skills: { demo: { 'SKILL.md': '' }, empty: { 'skill.md': {} } },
    shouted: { 'SKILL.MD': '' }
  })
}

t.test('K82: help prints every command, help of a command its flags, help of serve every setting, all ' +
  'with exit code 0', async (t) => {
  const cwd = world(t)
  for (const argv of [['help'], ['--help'], ['-h'], ['--port', '80', '--help']]) {
    const { code, stdout, stderr } = await run(cwd, ...argv)
    t.strictSame([code, stderr], [0, ''], argv.join(' '))
    for (const name of COMMANDS) t.match(stdout, `  ${name} `)
  }
  for (const name of COMMANDS) {
    const asked = await run(cwd, 'help', name)
    t.match(asked, { code: 0, stderr: '', stdout: new RegExp(`^Usage: skillserve ${name}`) })
    t.strictSame(await run(cwd, name, '--help'), asked, name)
  }
  const { stdout } = await run(cwd, 'help', 'serve')
  t.match(stdout, '--port <PORT>')
  for (const { variable } of Object.values(SETTINGS)) t.match(stdout.replace(/\s+/g, ' '), variable)
})

t.test('K82: version prints the version of the package and exits with 0', async (t) => {
  const cwd = world(t)
  for (const argv of [['version'], ['--version'], ['-v'], ['serve', '-v'], ['healthcheck', '--version']]) {
    t.strictSame(await run(cwd, ...argv), { code: 0, stdout: `${version}\n`, stderr: '' }, argv.join(' '))
  }
})

t.test('K82: what cannot be started is one line on stderr, with 2 for wrong use of a command, else 1', async (t) => {
  const cwd = world(t)
  const notACommand = /^"other" is not a command, and not a folder here/
  const fails: readonly { readonly argv: readonly string[], readonly code?: number, readonly line: RegExp }[] = [
    { argv: ['serv'], line: /^"serv" is .*, did you mean "serve"\? \(commands: serve, .*\)\. .* "\.\/serv"$/ },
    { argv: ['helthcheck'], line: /did you mean "healthcheck"\?/ },
    { argv: ['file'], line: /^"file" is a file, not a folder of skills$/ },
    { argv: ['constructor'], line: /^"constructor" is not a command, and not a folder here/ },
    { argv: ['a\nb'], line: /^"a\\nb" is not a command/ },
    { argv: ['x'.repeat(5_000)], line: /^"x{80}…" is not a command/ },
    ...[['skills'], ['serve'], ['--port', '0'], ['sync'], ['dev'], ['export', 'out']].map((before) =>
      ({ argv: [...before, 'other'], line: notACommand })),
    { argv: ['owner/repo'], line: /^"owner\/repo" is not a folder here, .* did you mean "github:owner\/repo"\? / },
    { argv: ['sync', 'git+https://', 'https://x.example/a.zip'], line: /^the address git\+https:.* cannot be used: / },
    ...['github:a', 'github:acme/', 'github:'].map((address) =>
      ({ argv: ['sync', address], line: /^the address … cannot be used: write it as github:OWNER\/REPOSITORY$/ })),
    { argv: ['skills/demo'], line: /^"skills\/demo" is itself a skill, with its own SKILL\.md: .*, "\.\/skills"$/ },
    { argv: ['skills', './skills/demo/'], line: /^"\.\/skills\/demo\/" is itself a skill, .*"\.\/skills"$/ },
    { argv: [join(cwd, 'shouted')], line: new RegExp(`folder, "${cwd}"$`) },
    { argv: ['help', 'serv'], line: /^there is no command "serv", did you mean "serve"\? \(commands: / },
    { argv: ['help', 'serve', 'version'], code: 2, line: /^too many arguments for 'help'/ },
    { argv: ['version', '--port', '1'], code: 2, line: /^unknown option '--port'$/ },
    { argv: ['completion'], code: 2, line: /^missing required argument 'SHELL'$/ },
    { argv: ['completion', 'fish'], code: 2, line: /Allowed choices are bash, zsh/ },
    { argv: ['--port', '0', 'version'], line: /^put the command first: skillserve version …$/ },
    { argv: ['--prot', '1'], line: /^unknown option '--prot' \(Did you mean --port\?\)$/ },
    { argv: ['--port'], line: /^option '--port <PORT>' argument missing$/ },
    { argv: [''], line: /^an argument is empty$/ },
    { argv: ['healthcheck', '--port', '1'], line: /^GET \/readyz has no answer: .* ECONNREFUSED .*; check --host, / },
    { argv: ['healthcheck', '--port', '0'], line: /port 0 takes any free port/ }
  ]
  for (const { argv, code = 1, line } of fails) {
    const { stderr, ...result } = await run(cwd, ...argv)
    t.strictSame(result, { code, stdout: '' }, JSON.stringify(argv))
    t.match(stderr, /^skillserve: [^\n]+\n$/)
    t.match(stderr.slice('skillserve: '.length, -1), line)
  }
  for (const argv of [['./skills/demo'], ['sync', './skills/demo']]) {
    t.match(await runHere(argv, { cwd, env: { LAYOUT: '', PORT: 'x' } }), { code: 1, stderr: /is itself a skill/ },
      'an empty variable is none')
  }
})

t.test('K2, K82: who stands in skills of their own is not served the examples', async (t) => {
  const cwd = t.testdir({ demo: { 'SKILL.md': '' } })
  for (const { folder, remedy } of [{ folder: '.', remedy: '.' }, { folder: 'demo', remedy: '..' }]) {
    const line = `there is no ./skills here, but this folder has skills: skillserve ${remedy} serves them`
    for (const command of ['serve', 'mcp', 'config']) {
      const { code, stderr } = await run(join(cwd, folder), command)
      t.strictSame([code, stderr], [1, `skillserve: ${line}\n`], `${command} in ${folder}`)
    }
  }
  t.equal((await run(t.testdir({ other: {} }), 'config')).code, 0)
})

t.test('K89: config refuses the folders that serve refuses', async (t) => {
  for (const folder of ['elsewhere', 'shouted', './file']) {
    const cwd = world(t)
    const serving = await run(cwd, folder)
    t.match(await run(cwd, 'config', folder), { code: 1, stderr: serving.stderr }, folder)
  }
})

t.test('K82, K3: a path is a folder, there or not, and a bare word is one when it is there', async (t) => {
  const cwd = t.testdir({
    skills: { demo: { 'SKILL.md': '' } }, odd: { 'SKILL.md': { 'SKILL.md': '' } }, link: t.fixture('symlink', 'skills')
  })
  symlinkSync('skills/demo', join(cwd, 'demo'))
  symlinkSync('nowhere', join(cwd, 'dangling'))
  for (const text of ['skills', 'link', 'odd', '.', '..', './skills', 'skills/', './missing', 'missing/', './a/b',
    'a/b/c', join(cwd, 'missing'), './serve', 'github:owner/repo']) {
    await t.resolves(checkSkillsFolder(text, cwd, COMMANDS), text)
  }
  for (const text of ['demo', 'dangling']) await t.rejects(checkSkillsFolder(text, cwd, COMMANDS), ConfigError)
})

t.test('K50: the health check finds a service at an address with a zone', {
  skip: process.platform !== 'linux' && 'the loopback interface has another name'
}, async (t) => {
  const hosts: unknown[] = []
  const server = createServer((request, response) => {
    hosts.push(request.headers.host, request.url)
    response.end('{}')
  })
  t.teardown(() => { server.close() })
  await once(server.listen(0, '::1'), 'listening')
  const env = { PORT: String((server.address() as AddressInfo).port), BASE_PATH: '/team' }
  t.match(await runHere(['healthcheck', '--host', '::1%lo'], { env }), { code: 0, stderr: '' })
  t.strictSame(hosts, ['[::1]', '/team/readyz'])
})

t.test('K89: init writes a skill that validate accepts', async (t) => {
  const cwd = t.testdir({ empty: {} })
  const next = 'Next: skillserve validate skills/word-count, and skillserve dev skills'
  t.match(await run(cwd, 'init', 'skills/word-count'), { code: 0, stdout: `skills/word-count/SKILL.md\n\n${next}\n` })
  const report = await run(cwd, 'validate', 'skills', '--target', 'all', '--fail-on', 'info')
  t.match(report, { code: 0, stdout: /^1 skill: no findings/ })
  t.match(await run(cwd, 'init', 'skills/word-count'),
    { code: 1, stderr: /"skills\/word-count" is there already: init writes new skills only\n$/ })
  t.match(await run(join(cwd, 'empty'), 'init', '.'), { code: 0, stdout: /validate \., and skillserve dev \.\.\n$/ })
  for (const name of ['Word-Count', 'a--b', 'a-', 'ä', 'x'.repeat(65)]) {
    t.match(await run(cwd, 'init', name), { code: 1, stderr: /cannot be the name of a skill/ }, name)
  }
})

t.test('K89: config prints each setting with its origin and no secret, and every mistake at once', async (t) => {
  const cwd = t.testdir({
    skills: skills('one'),
    'access.yaml': 'rules:\n  - { groups: [a], roots: [nope] }\n',
    'trust.yaml': 'signer: []\n',
    'sources.yaml': `sources:
  - { name: more, folder: ./skills }
  - { name: team, git: https://host.example/a.git, ref: main, path: skills, interval: 5m }
  - { name: packed, archive: https://host.example/a.zip?token=pass-word }\n`
  })
  const env = {
    AUDIT_LOG: 'audit.log',
    AUDIT_SALT: 'a-secret-of-the-operator',
    LIMITS_STORE: 'redis://:pass-word@127.0.0.1',
    PORT: '9090'
  }
  const good = await runHere(['config', 'skills', '--config', 'sources.yaml', '--log-level', 'warn'], { cwd, env })
  t.match(good, { code: 0, stderr: '' })
  for (const line of [/^SKILLS_DIR +\/\S+\/skills +DIR$/m, /^PORT +9090 +PORT$/m, /^LOG_LEVEL +warn +--log-level$/m,
    /^HOST +127\.0\.0\.1 +default$/m,
    /^AUDIT_SALT +\(secret\) +AUDIT_SALT$/m, /^LIMITS_STORE +\(secret\) +LIMITS_STORE$/m, /^TRUST_FILE +-$/m,
    /^skills +folder +\/\S+\/skills +- +- +flat +DIR$/m, /^more +folder .* flat +\/\S+\/sources\.yaml$/m,
    /^team +git +https:\/\/host\.example\/a\.git#:skills +main +300s +auto +\/\S+\/sources\.yaml$/m,
    /^packed +archive +https:\/\/host\.example\/a\.zip\?… +- +300s +auto /m]) t.match(good.stdout, line)
  t.notMatch(good.stdout, /a-secret-of|pass-word/)
  const bad = await runHere(['config', 'skills', '--access', 'access.yaml', '--trust', 'trust.yaml',
    '--locked=none.lock', '--port', 'x'], {
    cwd, env: { ...env, AUDIT_SALT: 'short', LIMITS: 'maybe' }
  })
  t.equal(bad.code, 1)
  const lines = bad.stderr.trimEnd().split('\n')
  t.equal(lines.length, 6, bad.stderr)
  for (const mistake of [/--port must be/, /AUDIT_SALT must be/, /LIMITS must be one of auto, on, off/,
    /access\.yaml:2: rules\[0\]\.roots\[0\] is not the name of a folder/, /trust\.yaml:1: /,
    /LOCKED or --locked: .*none\.lock cannot be read/]) {
    t.ok(lines.some((line) => mistake.test(line)), String(mistake))
  }
})

t.test('K82: completion in bash has commands, flags, values and paths', async (t) => {
  const cwd = t.testdir({ skills: {}, 'two words': {}, 'a.yaml': '' })
  const { code, stdout } = await run(cwd, 'completion', 'bash')
  t.equal(code, 0)
  t.ok((await run(cwd, 'completion', 'zsh')).stdout.endsWith(stdout))
  writeFileSync(join(cwd, 'script'), stdout)
  const complete = (...words: readonly string[]): readonly string[] => {
    const program = 'source ./script; COMP_WORDS=(skillserve "$@"); COMP_CWORD=$#; _skillserve; printf "%s\\n" "$' +
      '{COMPREPLY[@]}"'
    return execFileSync('bash', ['--norc', '-c', program, 'bash', ...words], { cwd, encoding: 'utf8' }).split(
      '\n').filter((line) => line !== '')
  }
  t.strictSame(complete('').filter((word) => COMMANDS.includes(word)), COMMANDS)
  for (const [words, expected] of [
    [['va'], ['validate']],
    [['s'], ['serve', 'sign', 'sync', 'skills']],
    [['tw'], ['two words']],
    [['validate', '--fi'], ['--fix']],
    [['validate', '--format', 's'], ['sarif']],
    [['validate', '--target', 'claude-co'], ['claude-code']],
    [['help', 'val'], ['validate']],
    [['completion', ''], ['bash', 'zsh']],
    [['validate', 'a.'], ['a.yaml']],
    [['skills', '--por'], ['--port']],
    [['serve', '--lock'], ['--locked']]
  ] as const) t.strictSame(complete(...words), expected, words.join(' '))
})

interface Line {
  readonly event: string
  readonly outcome?: string
  readonly day?: number
  readonly caller?: string
  readonly target?: object
}

function linesOf (lines: readonly Line[]): string {
  return lines.map(({ event, outcome = 'success', day = 1, caller = 'ann', target = {} }) => {
    const principal = caller.includes('.') ? { kind: 'anonymous' } : { kind: 'token', id: `token:${caller}` }
    const source = { address: caller }
    return `${JSON.stringify({ time: `2026-11-0${day}T10:00:00Z`, event, outcome, principal, source, target })}\n`
  }).join('')
}

const LINES: readonly Line[] = [
  { event: 'service.started' },
  { event: 'skill.read', target: { skill: 'calculator' } },
  { event: 'skill.read', outcome: 'not_modified', caller: 'bob', target: { skill: 'calculator' } },
  { event: 'skill.file_read', day: 2, target: { skill: 'weather', path: 'a.md' } },
  { event: 'skill.read', outcome: 'not_found', target: { skill: 'nope' } },
  { event: 'skill.search', target: { query: '=cmd|"x"', results: 0 } },
  { event: 'skill.search', target: { query: 'sums', results: 2 } },
  { event: 'auth.failed', outcome: 'denied', caller: '192.0.2.1', target: { code: 'invalid_token' } },
  { event: 'access.denied', outcome: 'denied', caller: '192.0.2.2', target: { code: 'invalid_token' } }
]

/** Two logs, the older one rotated and compressed. */
function writeLogs (t: Test): string {
  const folder = t.testdir({
    skills: { calculator: skill('calculator'), weather: skill('weather'), old: skill('old') }
  })
  writeFileSync(join(folder, 'audit.jsonl'), `${linesOf(LINES.slice(4))}half a li`)
  writeFileSync(join(folder, 'audit.jsonl.1.gz'), gzipSync(linesOf(LINES.slice(0, 4))))
  return folder
}

t.test('K96: usage counts reads, callers, what nobody read, empty searches and refusals', async (t) => {
  const cwd = writeLogs(t)
  const files = ['audit.jsonl', 'audit.jsonl.1.gz']
  const text = await runHere(['usage', ...files, '--roots', 'skills'], { cwd })
  t.equal(text.code, 0)
  t.match(text.stderr, /1 line skipped: not lines of an audit log/)
  t.match(text.stdout, /SKILL +READS +CALLERS\n"calculator" +2 +2\n"weather" +1 +1\n/)
  t.match(text.stdout, 'Skills that were never read: "old"\n')
  t.match(text.stdout, /"invalid_token" +2 +2\n/)

  const json = JSON.parse((await runHere(['usage', ...files, '--format', 'json', '--by', 'day'], { cwd })).stdout)
  t.same(json, {
    skills: [
      { day: '2026-11-01', name: 'calculator', count: 2, callers: 2 },
      { day: '2026-11-02', name: 'weather', count: 1, callers: 1 }
    ],
    never_read: [],
    empty_searches: [{ day: '2026-11-01', name: '=cmd|"x"', count: 1, callers: 1 }],
    refusals: [{ day: '2026-11-01', name: 'invalid_token', count: 2, callers: 2 }]
  })

  const csv = (await runHere(['usage', ...files, '--format', 'csv'], { cwd })).stdout
  t.match(csv, 'kind,day,name,count,callers\r\nskill,,calculator,2,2\r\n')
  t.match(csv, 'empty_search,,"\'=cmd|""x""",1,1\r\n', 'a formula is a text')
})

t.test('K96: a log that is missing or damaged is one sentence', async (t) => {
  const cwd = t.testdir({ 'bad.gz': 'no gzip' })
  for (const file of ['missing.jsonl', 'bad.gz', '.']) {
    const { code, stdout, stderr } = await runHere(['usage', file], { cwd })
    t.match({ code, stdout }, { code: 1, stdout: '' }, file)
    t.match(stderr, /^skillserve: \S+ cannot be read \([^\n]+\)\n$/)
  }
})

/** What a command line does in a folder with a state folder. */
async function runWithState (cwd: string, ...argv: readonly string[]) {
  return await runHere(argv, { cwd, env: { STATE_DIR: join(cwd, 'state') } })
}

t.test('K83: wherever a folder can be given, so can a source', async (t) => {
  const repository = createRepository(t)
  const commit = repository.commit({ ...skillFiles('a', 'b'), 'skills/b/SKILL.md': '---\nname: b\n---\n' })
  const address = `git+file://${repository.path}`
  const cwd = t.testdirName
  t.strictSame(await runWithState(cwd, 'sync', '--once', address),
    { code: 0, stdout: `repo: main@sha1:${commit}, 2 skills\n`, stderr: '' })
  t.match(await runWithState(cwd, 'validate', address), { code: 1, stdout: /repo\/b/ })
  mkdirSync(join(cwd, 'ci'))
  t.match(await runWithState(cwd, 'validate', address, '--baseline', 'ci/base.json', '--write-baseline'), { code: 0 })
  t.match(JSON.parse(readFileSync(join(cwd, 'ci/base.json'), 'utf8')), { '../repo/b': Array },
    'a skill of a source lies in a folder of its name')
  t.match(await runWithState(cwd, 'validate', address, '--fix'), { code: 2, stderr: /--fix takes folders/ })
  t.match(await runWithState(cwd, 'lock', address), { code: 0, stdout: 'skills.lock: 2 skills\n' })
  t.match(readFileSync(join(cwd, 'skills.lock'), 'utf8'), /"a": sha256:/)
  t.match(await runWithState(cwd, 'verify', address, '--locked', 'skills.lock'), { code: 0, stdout: /ok {7}"a"/ })
  t.match(await runWithState(cwd, 'export', 'out', `${address}#main:skills`), { stdout: /1 skill in|2 skills in/ })
  t.ok(existsSync(join(cwd, 'out/.well-known')))

  writeFileSync(join(cwd, 'access.yaml'), 'rules:\n  - { groups: [docs], roots: [repo], skills: [a] }\n')
  const asked = ['access', 'access.yaml', address, '--as', 'group:docs', '--state-dir', join(cwd, 'other')] as const
  t.match(await runWithState(cwd, ...asked), { code: 0, stdout: /and sees 1 skill\na {2}repo {2}/ })

  writeFileSync(join(cwd, 'sources.yaml'),
    `sources:\n  - git: file://${repository.path}\n    name: team\n  - git: file://${repository.path}-none\n    name: none\n    optional: true\n`)
  t.match(await runWithState(cwd, 'sync', '--config', 'sources.yaml'),
    { code: 0, stdout: /^team: main@.*\n$/, stderr: /^skillserve: source "none" cannot be read: .+ \(not_found\)\n$/ },
    'one that is optional may fail')
  const leftOut = 'source "none" cannot be read: there is no such repository, or no permission to read it ' +
    '(not_found); it is optional, so the command goes on without it\n'
  t.match(await runWithState(cwd, 'lock', '--config', 'sources.yaml'),
    { code: 0, stdout: 'skills.lock: 2 skills\n', stderr: leftOut }, 'for lock too, which says so')
  t.match(await runWithState(cwd, 'export', 'again', '--config', 'sources.yaml'), { stdout: /1 skill in /, stderr: leftOut })
  rmSync(repository.path, { recursive: true })
  t.match(await runWithState(cwd, 'lock', '--config', 'sources.yaml'),
    { code: 1, stderr: /^[^\n]*source "team" cannot be read/ })
  writeFileSync(join(cwd, 'sources.yaml'),
    `sources:\n  - git: file://${repository.path}\n    name: team\n    optional: true\n`)
  t.match(await runWithState(cwd, 'lock', '--config', 'sources.yaml'),
    { code: 0, stdout: 'skills.lock: 2 skills\n', stderr: /^skillserve: source "team" cannot be read: [^\n]*\(not_found\); it is optional, so its last state is used\n$/ })
  writeFileSync(join(cwd, 'sources.yaml'), `sources:\n  - git: file://${repository.path}-none\n    optional: true\n`)
  t.match(await runWithState(cwd, 'lock', '--config', 'sources.yaml'),
    { code: 1, stderr: /goes on without it\n[^\n]*there are no skills\n$/ })
  t.match(await runWithState(cwd, ...asked), { code: 1, stderr: /source "repo" cannot be read: / },
    'a file is not validated by skills that are not there')
  t.match(await runWithState(cwd, 'sync', address),
    { code: 1, stdout: '', stderr: /^skillserve: source "repo" cannot be read: .* \(not_found\)\n$/ })
  t.match(await runWithState(cwd, 'lock', address),
    { code: 1, stderr: /source "repo" cannot be read: there is no such repository, or no permission to read it \(not_found\)$/m }, 'no lock of what may be old')
  t.match(await runWithState(cwd, 'sync'), {
    code: 1, stderr: /nothing to sync: folders are not fetched\. Give a source address or --config FILE\n$/
  })
  t.match(await runWithState(cwd, 'export', 'out', address, '--trust', 'none.yaml'),
    { code: 1, stderr: /TRUST_FILE or --trust/ })
  const left = readdirSync(join(cwd, 'state'), { recursive: true, encoding: 'utf8' })
  t.notOk(left.some((path) => basename(path) === 'lock'), 'whatever fails, others may use the state folder')
})

t.test('K95: sync publishes no state with a skill that is not signed as the trust file asks', async (t) => {
  const repository = createRepository(t)
  const keys = makeKeyPair()
  mkdirSync(join(repository.path, 'skills'), { recursive: true })
  repository.commit(skillFiles('a'))
  await sign(join(repository.path, 'skills/a'), keys)
  const signed = repository.commit({})
  const address = `git+file://${repository.path}`
  const cwd = t.testdirName
  writeFileSync(join(cwd, 'key.pub'), keys.publicPem)
  writeFileSync(join(cwd, 'trust.yaml'), 'signers:\n  - { name: team, key: key.pub }\nroots: { repo: require }\n')
  t.strictSame(await runWithState(cwd, 'sync', '--trust', 'trust.yaml', address),
    { code: 0, stdout: `repo: main@sha1:${signed}, 1 skill\n`, stderr: '' })

  const unsigned = repository.commit({ 'skills/a/SKILL.md': skillText('a', 'Changed by somebody.\n') })
  const refusal = {
    code: 1,
    stdout: '',
    stderr: new RegExp(`^skillserve: source "repo" cannot be read: main@sha1:${unsigned} is refused ` +
      'for the skill "a": [^\\n]+ \\(verification_failed\\)\\n$')
  }
  t.match(await runWithState(cwd, 'sync', '--trust', 'trust.yaml', address), refusal)
  t.match(await runWithState(cwd, 'sync', '--trust', 'none.yaml', address),
    { code: 1, stdout: '', stderr: /^skillserve: TRUST_FILE or --trust: [^\n]+\n$/ })
})

t.test('K86: a folder that is a skill is one with the layout single', async (t) => {
  const cwd = t.testdir({ mine: { 'SKILL.md': skillText('mine') } })
  t.match(await runWithState(cwd, 'sync', './mine'), { code: 1, stderr: /is itself a skill/ })
  t.match(await runWithState(cwd, 'lock', './mine', '--layout', 'single'), { code: 0, stdout: 'skills.lock: 1 skill\n' })
  t.match(readFileSync(join(cwd, 'skills.lock'), 'utf8'), /"mine": sha256:/)
})
