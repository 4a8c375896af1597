import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs, { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { transformSync } from 'esbuild'
import t from 'tap'
import { promisify } from 'node:util'
import { runHere } from '../helper/command-line.ts'
import { launch, runProcess, startProcess } from '../helper/process.ts'
import { skill, skills, skillText, startManager, until } from '../helper/skills.ts'

const EXAMPLES = fileURLToPath(new URL('../../skills', import.meta.url))
const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  readonly version: string
}

/** Runs a command in a terminal of its own. */
const TERMINAL = '/usr/bin/script'
const noTerminal = !existsSync(TERMINAL) && `there is no ${TERMINAL}`

t.test('K82: a command loads what it needs, prints to stdout and ends with 0, or with 1 after one sentence on ' +
  'stderr', async (t) => {
  const access = join(t.testdir({ 'access.yaml': 'rules: []\n' }), 'access.yaml')
  const versionLine = new RegExp(`^${version.replaceAll('.', '\\.')}(?: \\([0-9a-f]{12}\\))?\\n$`)
  const line = /^skillserve: [^\n]+\n$/
  for (const { args, max, never = /^$/, result } of [
    { args: ['version'], max: 12, result: { code: 0, stdout: versionLine, stderr: '' } },
    { args: ['healthcheck', '--port', '1'], max: 12, result: { code: 1, stdout: '', stderr: line } },
    { args: ['token', 'ann'], max: 500, never: /\/(?:fastify|markdown-it|yaml|chokidar)\//, result: { code: 0 } },
    { args: ['access', access, EXAMPLES], max: 1_000, never: /\/(?:fastify|markdown-it)\//, result: { code: 0 } }
  ]) {
    const folder = fs.mkdtempSync(join(t.testdirName, 'coverage-'))
    t.match(await runProcess(t, { args, env: { NODE_V8_COVERAGE: folder } }), result, args.join(' '))
    const loaded = readdirSync(folder).flatMap((name) => {
      const { result } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as { result: Array<{ url: string }> }
      return result.map(({ url }) => url).filter((url) => url.startsWith('file:'))
    })
    t.ok(loaded.length > 2 && loaded.length <= max, `${args.join(' ')}: ${loaded.length}`)
    t.strictSame(loaded.filter((url) => never.test(url)), [])
  }
})

t.test('K82: a reader of the output that leaves ends the command without a word', async (t) => {
  const child = spawn(process.execPath, [MAIN, 'validate', EXAMPLES, '--format', 'json'],
    { stdio: ['ignore', 'pipe', 'pipe'] })
  child.stdout.destroy()
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => { stderr += text })
  const [code] = await once(child, 'close')
  t.strictSame([code, stderr], [141, ''])
})

t.test('K91: from its first module on, each command has a listener of the signals that end it', async (t) => {
  const preload = `data:text/javascript,${encodeURIComponent(`
    process.on('removeListener', (name) => { if (name === 'SIGTERM' && process.listenerCount(name) === 0) process.exit(99) })
  `)}`
  const options = { nodeOptions: ['--import', preload] }
  await startProcess(t, { args: ['serve', EXAMPLES], ...options })
  const validation = launch(t, { args: ['validate', '--watch', EXAMPLES], ...options })
  await validation.printed('waiting for changes')
})

t.test('K91: SIGTERM ends the process while it still loads its code, also as the first process ' +
  'of a container', async (t) => {
  const preload = `data:text/javascript,${encodeURIComponent(`
    process.on('newListener', (name) => { if (name === 'SIGUSR1') setImmediate(() => process.kill(process.pid, 'SIGTERM')) })
  `)}`
  const { code, signal } = await runProcess(t, { args: ['serve', EXAMPLES], nodeOptions: ['--import', preload] })
  t.equal(signal, null)
  t.ok(code === 0 || code === 143, `${code}`)
})

t.test('K1: an older Node gets one sentence, in the syntax of Node 12', async (t) => {
  const versions = "{ value: { ...process.versions, node: '20.18.3' } }"
  const preload = `data:text/javascript,Object.defineProperty(process, 'versions', ${versions})`
  t.match(await runProcess(t, {
    script: 'cli/skillserve.cjs', args: ['version'], nodeOptions: ['--import', preload]
  }), { code: 1, stderr: 'skillserve: Node 20.19 or later is needed, this is 20.18.3\n' })
  const code = readFileSync(new URL('../../dist/cli/skillserve.cjs', import.meta.url), 'utf8')
  const forTarget = (target: string): string =>
    transformSync(code, { target, supported: { 'dynamic-import': true } }).code
  t.equal(forTarget('node12'), forTarget('esnext'), 'nothing has to be rewritten')
})

t.test('K50: the health check passes on a ready service, whatever hosts it allows, and ' +
  'fails without one; SIGUSR1 opens no inspector', async (t) => {
  const service = await startProcess(t, {
    args: [EXAMPLES],
    env: { HOST: '0.0.0.0', ALLOWED_HOSTS: 'skills.example.org', BASE_PATH: '/team' },
    nodeOptions: ['--inspect-port=0']
  })
  service.signal('SIGUSR1')
  t.ok(
    service.log().some(({ level, msg }) => level === 40 && /^everybody who can reach this address/.test(String(msg))))
  const env = { HOST: '0.0.0.0', PORT: String(service.port), ALLOWED_HOSTS: 'skills.example.org', BASE_PATH: '/team' }
  t.match(await runProcess(t, { args: ['healthcheck'], env }), { code: 0, stdout: '', stderr: '' })
  t.match(await runHere(['healthcheck', '--host', '127.0.0.1'], { env }), { code: 0, stdout: '', stderr: '' })
  t.match(await runHere(['healthcheck'], { env: { ...env, ALLOWED_HOSTS: 'other.example.org' } }),
    { code: 1, stderr: /^skillserve: GET \/readyz answered 403: \S[^\n]+\n$/ }, 'with the detail of the problem')
  // The inspector starts in a thread of its own, before the handler of a later signal is called.
  t.match(await service.stop(), { code: 0, stderr: '' })
  t.match(await runProcess(t, { args: ['healthcheck'], env }), { code: 1, stderr: /^skillserve: .*ECONNREFUSED/ })
})

t.test('K50: the image checks its health with the command', async (t) => {
  const dockerfile = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8')
  const [, command = ''] = /^HEALTHCHECK [^]*?CMD (\[.*\])$/m.exec(dockerfile) ?? []
  t.strictSame(JSON.parse(command), ['node', 'dist/cli/skillserve.cjs', 'healthcheck'])
})

t.test('K88: mcp serves a client over standard input and output, with its log on standard error, until the ' +
  'client leaves', async (t) => {
  const folder = t.testdir({ skills: skills('alpha', 'beta') })
  const args = [MAIN, 'mcp', join(folder, 'skills')]
  const transport = new StdioClientTransport({ command: process.execPath, args, stderr: 'pipe' })
  let log = ''
  transport.stderr?.on('data', (part: Buffer) => { log += String(part) })
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  await client.connect(transport)
  t.teardown(() => client.close())
  t.match(client.getServerVersion(), { name: 'skillserve', version })
  const list = await client.callTool({ name: 'list_skills', arguments: {} })
  t.match(list, { content: [{ type: 'text', text: '{"skills": ["alpha", "beta"]}' }] })
  t.match(await client.readResource({ uri: 'skill://beta/SKILL.md' }), { contents: [{ text: /^---\nname: beta/ }] })
  await until(() => log.includes('skillserve speaks MCP'))
  t.ok(log.trimEnd().split('\n').every((line) => line.startsWith('{')), 'JSON lines')
  await client.close()
})

t.test('K4, K77: dev prints each skill once at the start, linked ones too, and its findings ' +
  'after each save', async (t) => {
  const folder = t.testdir({
    real: { linked: skill('linked') },
    skills: { ...skills('a', 'b', 'c'), linked: t.fixture('symlink', '../real/linked') }
  })
  const preview = launch(t, {
    args: ['dev', join(folder, 'skills'), '--port', '0', '--allow-links', join(folder, 'real')], env: {}
  })
  await preview.printed(/Preview at http:\/\/127\.0\.0\.1:\d+/)
  await preview.printed(/linked: nothing to fix; about \d+ tokens in each turn, \d+ in use\n/)
  const [url = ''] = /http:\/\/127\.0\.0\.1:\d+/.exec(preview.stdout()) ?? []
  t.match(await (await fetch(`${url}/ui/status`)).text(), 'data-preview', 'its pages reload themselves')
  writeFileSync(join(folder, 'skills/a/SKILL.md'), '---\nname: other\ndescription: d\n---\nx\n')
  await preview.printed(/a: about/)
  await preview.printed(/error SKILL\.md:2: .*\. \w.*\.\n/)
  for (const name of ['a', 'b', 'c', 'linked']) {
    t.equal(preview.stdout().split(`${name}: nothing to fix`).length - 1, 1, name)
  }
  writeFileSync(join(folder, 'skills/a/SKILL.md'), skillText('other', 'More.\n'))
  await preview.printed(/a: about[^]*a: about/)
  process.kill(preview.pid, 'SIGTERM')
  t.match(await preview.ended, { code: 0, stderr: '' })
})

t.test('K77: dev opens the address in the browser of the person at the terminal', { skip: noTerminal }, async (t) => {
  const folder = t.testdir({
    skills: { demo: skill('demo') },
    bin: { 'xdg-open': '#!/bin/sh\necho "$1" > "$OPENED.new" && mv "$OPENED.new" "$OPENED"\n' }
  })
  chmodSync(join(folder, 'bin/xdg-open'), 0o755)
  const opened = join(folder, 'opened')
  const terminal = spawn(TERMINAL,
    ['-qec', `exec '${process.execPath}' '${MAIN}' dev '${join(folder, 'skills')}' --port 0`, '/dev/null'], {
      env: {
        PATH: [join(folder, 'bin'), process.env['PATH']].join(delimiter), DISPLAY: ':0', OPENED: opened
      },
      stdio: ['pipe', 'ignore', 'ignore']
    })
  t.teardown(() => { terminal.kill('SIGKILL') })
  await until(() => existsSync(opened))
  t.match(readFileSync(opened, 'utf8'), /^http:\/\/127\.0\.0\.1:\d+\n$/)
  // Ctrl+C: SIGHUP, which the end of the terminal sends, stops no service (K89).
  const ended = once(terminal, 'close')
  terminal.stdin.write('\u0003')
  await ended
})

const cli = fileURLToPath(new URL('../../node_modules/skills/bin/cli.mjs', import.meta.url))

t.test('K4: a folder that `npx skills add` has filled is served', async (t) => {
  const base = fs.realpathSync(
    t.testdir({
      source: { alpha: skill('alpha', { 'notes.md': 'n' }), beta: skill('beta') },
      home: {},
      project: { '.claude': {}, '.opencode': {} }
    }))
  const project = join(base, 'project')
  await promisify(execFile)(process.execPath,
    [cli, 'add', join(base, 'source'), '-y', '--skill', '*', '--agent', 'claude-code', 'codex', 'opencode'], {
      cwd: project,
      timeout: 60_000,
      env: {
        PATH: process.env['PATH'], HOME: join(base, 'home'), DISABLE_TELEMETRY: '1', DO_NOT_TRACK: '1', CI: '1'
      }
    })
  const folder = join(project, '.claude/skills')
  t.ok(fs.lstatSync(join(folder, 'alpha')).isSymbolicLink(), 'the installer makes each skill a link')

  const { stderr } = await runHere(['validate', folder])
  for (const name of ['alpha', 'beta']) {
    t.match(stderr, `--allow-links ${join(project, '.agents/skills', name)} allows it`)
  }
  const served = await startManager(t, [folder], { linkTargets: [join(project, '.agents/skills')] })
  t.strictSame(await served.list(), ['alpha', 'beta'])
  t.equal(await served.read('alpha', async (state) => (await state.file('notes.md')).bytes.toString()), 'n')
})
