import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { COMMANDS } from '../../src/cli/commands.ts'
import { runHere } from '../helper/command-line.ts'
import { SETTINGS } from '../../src/config/settings.ts'

interface Outcome {
  readonly code: number | undefined
  readonly stdout: string
  readonly stderr: string
}

/** What a command line that starts no service does in a folder. */
const run = (cwd: string, ...argv: readonly string[]): Promise<Outcome> => runWith({}, cwd, ...argv)

async function runWith (env: Readonly<Record<string, string>>, cwd: string, ...argv: readonly string[]): Promise<Outcome> {
  return await runHere(argv, { env, cwd })
}

function world (t: Test): string {
  return t.testdir({
    file: '',
    skills: { demo: { 'SKILL.md': '' }, empty: { 'skill.md': {} } },
    shouted: { 'SKILL.MD': '' }
  })
}

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { readonly version: string }

t.test('K82: help prints every command and every setting, and exits with 0', async (t) => {
  const cwd = world(t)
  for (const argv of [['help'], ['--help'], ['-h'], ['--port', '80', '--help']]) {
    const { code, stdout, stderr } = await run(cwd, ...argv)
    t.strictSame([code, stderr], [0, ''], argv.join(' '))
    for (const name of Object.keys(COMMANDS)) t.match(stdout, `  ${name} `)
    for (const { variable } of Object.values(SETTINGS)) t.match(stdout, variable)
    t.ok(stdout.split('\n').every((line) => line.length <= 80))
  }
})

t.test('K82: each command has its own help, which exits with 0', async (t) => {
  const cwd = world(t)
  for (const name of Object.keys(COMMANDS)) {
    const asked = await run(cwd, 'help', name)
    t.match(asked, { code: 0, stderr: '' })
    t.ok(asked.stdout.startsWith(`Usage: skillserve ${name}`), name)
    t.ok(asked.stdout.split('\n').every((line) => line.length <= 80), name)
    t.strictSame(await run(cwd, name, '--help'), asked, name)
    t.strictSame(await run(cwd, name, '-h'), asked, name)
  }
  t.match((await run(cwd, 'help', 'serve')).stdout, '--port PORT')
})

t.test('K82: version prints the version of the package and exits with 0', async (t) => {
  const cwd = world(t)
  for (const argv of [['version'], ['--version'], ['-v'], ['serve', '-v'], ['healthcheck', '--version']]) {
    t.strictSame(await run(cwd, ...argv), { code: 0, stdout: `${version}\n`, stderr: '' }, argv.join(' '))
  }
})

t.test('K82: what is no command and no folder, or a skill, is one line on stderr and exit code 1', async (t) => {
  const cwd = world(t)
  const cases: readonly (readonly [argv: readonly string[], line: RegExp])[] = [
    [['serv'], /^"serv" is no command, and no folder here, did you mean "serve"\? \(commands: serve, .*\)\. .* "\.\/serv"$/],
    [['verison'], /did you mean "version"\?/],
    [['helthcheck', '--unknown'], /did you mean "healthcheck"\?/],
    [['elsewhere'], /^"elsewhere" is no command, and no folder here \(commands: serve, [a-z, ]+, help, version\)/],
    [['file'], /^"file" is no command, and no folder here/],
    [['constructor'], /^"constructor" is no command, and no folder here/],
    [['__proto__'], /^"__proto__" is no command, and no folder here/],
    [['a\nb'], /^"a\\nb" is no command/],
    [['a\0b'], /^"a\\u0000b" is no command/],
    [['x'.repeat(5_000)], /^"x{80}…" is no command/],
    [['skills', 'other'], /^"other" is no command, and no folder here/],
    [['serve', 'other'], /^"other" is no command, and no folder here/],
    [['--port', '0', 'other'], /^"other" is no command, and no folder here/],
    [['git+https:/host/team.git'], /^"git\+https:\/host\/team\.git" is no folder here, and no address of skills: did you mean "git\+https:\/\/host\/team\.git"\?$/],
    [['serve', 'git+file:/srv/team.git'], /did you mean "git\+file:\/\/\/srv\/team\.git"\?$/],
    [['oci:ghcr.io/team/skills:1'], /did you mean "oci:\/\/ghcr\.io\/team\/skills:1"\?$/],
    [['sync', 's3:bucket'], /did you mean "s3:\/\/bucket"\?$/],
    [['sync', 'git+https://', 'https://x.example/a.zip'], /^the address git\+https:\/\/… cannot be used: the address has no host: it is git\+https:\/\/host\/path$/],
    [['github.com/owner/repository'], /^"github\.com\/owner\/repository" is no folder here, and no address of skills: did you mean "https:\/\/github\.com\/owner\/repository"\?$/],
    [['sync', 'GitLab.com/owner/repository.git#main:skills'], /did you mean "https:\/\/GitLab\.com\/owner\/repository\.git#main:skills"\?$/],
    [['skills/demo'], /^"skills\/demo" is itself a skill, with its own SKILL\.md: give the folder that holds it, "\.\/skills"$/],
    [['skills', './skills/demo/'], /^"\.\/skills\/demo\/" is itself a skill, .*"\.\/skills"$/],
    [['shouted'], /^"shouted" is itself a skill, with its own SKILL\.MD: give the folder that holds it, "\."$/],
    [[join(cwd, 'shouted')], new RegExp(`it, "${cwd}"$`)],
    [['lock', 'other'], /^"other" is no folder in \/[^"]+$/],
    [['export', 'out', 'other'], /^"other" is no folder in \/[^"]+$/],
    [['sync', 'other'], /^"other" is no folder in \/[^"]+$/],
    [['dev', 'other'], /^"other" is no folder in \/[^"]+$/],
    [['help', 'serv'], /^"serv" is no command, did you mean "serve"\? \(commands: /],
    [['help', 'toString'], /^"toString" is no command/],
    [['help', 'serve', 'version'], /^help takes one command, not "version" as well$/],
    [['version', 'x'], /^version takes no argument, not "x"$/],
    [['healthcheck', 'skills'], /^healthcheck takes no argument, not "skills"$/],
    [['--port', '0', 'version'], /^version comes before its flags: skillserve version …$/],
    [['version', '--port', '1'], /^"--port" is not a flag, there are --help, --version$/],
    [[''], /^DIR must be a folder, not ""$/],
    [['verify', '', '--trust', 'trust.yaml'], /^verify has an empty argument$/],
    [['sync', 'skills', ''], /^sync has an empty argument$/],
    [['--port', 'x', './elsewhere'], /^--port must be /]
  ]
  for (const [argv, line] of cases) {
    const { code, stdout, stderr } = await run(cwd, ...argv)
    t.strictSame([code, stdout], [1, ''], JSON.stringify(argv))
    t.match(stderr, /^skillserve: [^\n]+\n$/)
    t.match(stderr.slice('skillserve: '.length, -1), line)
  }
})

t.test('K82: a folder that is itself a skill is refused with an empty variable LAYOUT as without one', async (t) => {
  const cwd = world(t)
  for (const argv of [['./skills/demo'], ['sync', './skills/demo'], ['export', 'out', './skills/demo']]) {
    // Without a port that it can have, no service starts.
    t.match(await runWith({ LAYOUT: '', PORT: 'x' }, cwd, ...argv), { code: 1, stdout: '', stderr: /^skillserve: "\.\/skills\/demo" is itself a skill, [^\n]+\n$/ }, argv.join(' '))
  }
})

t.test('the health check says why it fails', async (t) => {
  const { code, stderr } = await run(world(t), 'healthcheck', '--port', '1')
  t.equal(code, 1)
  t.equal(stderr, 'skillserve: GET /readyz has no answer: connect ECONNREFUSED 127.0.0.1:1; --host and --port, or HOST and PORT, are those of the service\n')
})

t.test('K50: the health check says that port 0 names no service', async (t) => {
  t.match(await run(world(t), 'healthcheck', '--port', '0'), { code: 1, stderr: /^skillserve: [^\n]+port 0 takes any free port[^\n]+\n$/ })
})

t.test('K50: the health check finds a service at an address with a zone', { skip: process.platform !== 'linux' && 'the loopback interface has another name' }, async (t) => {
  const hosts: unknown[] = []
  const server = createServer((request, response) => {
    hosts.push(request.headers.host)
    response.end('{}')
  })
  t.teardown(() => { server.close() })
  await once(server.listen(0, '::1'), 'listening')
  t.match(await run(world(t), 'healthcheck', '--host', '::1%lo', '--port', String((server.address() as AddressInfo).port)), { code: 0, stderr: '' })
  t.strictSame(hosts, ['[::1]'])
})
