import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { checkSkillsFolder } from '../../src/cli/folders.ts'
import { createProgram } from '../../src/cli/program.ts'
import { ConfigError } from '../../src/operator/setting.ts'
import { SETTINGS } from '../../src/config/settings.ts'
import { runHere } from '../helper/command-line.ts'
import { skills } from '../helper/skills.ts'

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
    { argv: ['elsewhere'], line: /not a command, and not a folder here \(commands: serve, [a-z, ]+, help, version\)/ },
    { argv: ['file'], line: /^"file" is a file, not a folder of skills$/ },
    { argv: ['./file'], line: /^"\.\/file" is a file, not a folder of skills$/ },
    { argv: ['constructor'], line: /^"constructor" is not a command, and not a folder here/ },
    { argv: ['__proto__'], line: /^"__proto__" is not a command, and not a folder here/ },
    { argv: ['a\nb'], line: /^"a\\nb" is not a command/ },
    { argv: ['a\0b'], line: /^"a\\u0000b" is not a command/ },
    { argv: ['x'.repeat(5_000)], line: /^"x{80}…" is not a command/ },
    ...[['skills'], ['serve'], ['--port', '0'], ['sync'], ['dev'], ['export', 'out']].map((before) =>
      ({ argv: [...before, 'other'], line: notACommand })),
    { argv: ['owner/repo'], line: /^"owner\/repo" is not a folder here, .* did you mean "github:owner\/repo"\? / },
    { argv: ['sync', 'git+https://', 'https://x.example/a.zip'], line: /^the address git\+https:.* cannot be used: / },
    ...['github:a', 'github:acme/', 'github:'].map((address) =>
      ({ argv: ['sync', address], line: /^the address … cannot be used: write it as github:OWNER\/REPOSITORY$/ })),
    { argv: ['skills/demo'], line: /^"skills\/demo" is itself a skill, with its own SKILL\.md: .*, "\.\/skills"$/ },
    { argv: ['skills', './skills/demo/'], line: /^"\.\/skills\/demo\/" is itself a skill, .*"\.\/skills"$/ },
    { argv: ['shouted'], line: /^"shouted" is itself a skill, with its own SKILL\.MD: give the .* holds it, "\."$/ },
    { argv: [join(cwd, 'shouted')], line: new RegExp(`it, "${cwd}"$`) },
    { argv: ['help', 'serv'], line: /^there is no command "serv", did you mean "serve"\? \(commands: / },
    { argv: ['help', 'toString'], line: /^there is no command "toString"/ },
    { argv: ['help', 'serve', 'version'], code: 2, line: /^too many arguments for 'help'/ },
    { argv: ['version', 'x'], code: 2, line: /^too many arguments for 'version'/ },
    { argv: ['healthcheck', 'skills'], code: 2, line: /^too many arguments for 'healthcheck'/ },
    { argv: ['version', '--port', '1'], code: 2, line: /^unknown option '--port'$/ },
    { argv: ['completion'], code: 2, line: /^missing required argument 'SHELL'$/ },
    { argv: ['completion', 'fish'], code: 2, line: /Allowed choices are bash, zsh/ },
    { argv: ['--port', '0', 'version'], line: /^put the command first: skillserve version …$/ },
    { argv: ['--prot', '1'], line: /^unknown option '--prot' \(Did you mean --port\?\)$/ },
    { argv: ['--port'], line: /^option '--port <PORT>' argument missing$/ },
    { argv: ['--port', 'x', './elsewhere'], line: /^--port must be / },
    { argv: [''], line: /^an argument is empty$/ },
    { argv: ['verify', '', '--trust', 'trust.yaml'], line: /^an argument is empty$/ },
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
  t.match(await runHere(['healthcheck', '--host', '::1%lo'], { env, cwd: world(t) }), { code: 0, stderr: '' })
  t.strictSame(hosts, ['[::1]', '/team/readyz'])
})

t.test('K89: init writes a skill that validate accepts', async (t) => {
  const cwd = t.testdir({})
  const files = ['SKILL.md', 'references/limits.md', 'scripts/count.sh'].map((file) => `skills/word-count/${file}\n`)
  const next = 'Next: skillserve validate skills/word-count, and skillserve dev skills'
  t.match(await run(cwd, 'init', 'skills/word-count'), { code: 0, stdout: `${files.join('')}\n${next}\n` })
  t.equal(
    execFileSync(join(cwd, 'skills/word-count/scripts/count.sh'),
      [join(cwd, 'skills/word-count/references/limits.md')], { encoding: 'utf8' }).trim(), '31')
  const report = await run(cwd, 'validate', 'skills', '--target', 'all', '--fail-on', 'info')
  t.match(report, { code: 0, stdout: /^1 skill: no findings/ })
  t.match(await run(cwd, 'init', 'skills/word-count'),
    { code: 1, stderr: /"word-count" is not an empty folder: init writes new skills only\n$/ })
  mkdirSync(join(cwd, 'empty'))
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
