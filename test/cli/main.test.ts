import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { transformSync } from 'esbuild'
import t from 'tap'
import { runHere } from '../helper/command-line.ts'
import { runProcess, startProcess } from '../helper/process.ts'
import { freePort } from '../helper/proxies.ts'
import { skills } from '../helper/skills.ts'

const EXAMPLES = fileURLToPath(new URL('../../skills', import.meta.url))
const INDEXED = 'the skills are indexed'
const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { readonly version: string }

t.test('K82: a command prints to stdout and ends with 0, a mistake prints to stderr and ends with 1', async (t) => {
  t.match(await runProcess(t, { args: ['version'] }), { code: 0, stdout: `${version}\n`, stderr: '' })
  t.match(await runHere(['help', 'serve']), { code: 0, stdout: /^Usage: skillserve serve \[DIR\.\.\.\]/, stderr: '' })
  t.match(await runProcess(t, { args: ['verison'] }), { code: 1, stdout: '', stderr: /^skillserve: "verison" is no command, [^\n]+\n$/ })
})

t.test('a reader of the output that leaves ends the command without a word', async (t) => {
  const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
  const child = spawn(process.execPath, [main, 'validate', EXAMPLES, '--format', 'json'], { stdio: ['ignore', 'pipe', 'pipe'] })
  child.stdout.destroy()
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => { stderr += text })
  const [code] = await once(child, 'close')
  t.equal(stderr, '')
  t.equal(code, 141)
})

t.test('output that cannot be written, a working folder that is gone, and too few files that may be open, are one line each', { skip: process.platform !== 'linux' }, (t) => {
  const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
  // Leaves one. Versions of Node open different numbers of files for themselves.
  const take = "const taken = []; try { while (true) taken.push(openSync('/dev/null')) } catch {}"
  const takeFiles = `data:text/javascript,${encodeURIComponent(`
    import { closeSync, openSync } from 'node:fs'
    ${take}
    closeSync(taken.pop())
  `)}`
  const shell = (script: string) => spawnSync('sh', ['-c', script, process.execPath, main, t.testdir({ gone: {} }), takeFiles], { encoding: 'utf8', timeout: 60_000 })
  t.match(shell('"$0" "$1" validate --help >/dev/full'), { status: 3, stderr: /^skillserve: standard output cannot be written \(ENOSPC\)\n$/ })
  t.match(shell('cd "$2/gone" && rmdir "$2/gone" && "$0" "$1" version'), { status: 1, stderr: /^skillserve: the working folder is not there any more: change to another one\n$/ })
  t.match(shell('ulimit -n 64 && "$0" --import "$3" "$1" --port 0 "$2"'), { status: 1, stderr: /^skillserve: the process may not open enough files: raise its limit \(ulimit -n\)\n$/ })
  const takeAllWhenItListens = `data:text/javascript,${encodeURIComponent(`
    import { openSync } from 'node:fs'
    import { Server } from 'node:net'
    const { listen } = Server.prototype
    Server.prototype.listen = function (...options) {
      this.once('listening', () => { ${take} })
      return listen.apply(this, options)
    }
  `)}`
  // The preview loads code once it listens, and Node 20 opens more before.
  const { status, stdout, stderr } = shell(`ulimit -n 64 && "$0" --import "${takeAllWhenItListens}" "$1" dev --port 0 "$2"`)
  t.equal(status, 1)
  t.match(stdout + stderr, /: the process may not open enough files: raise its limit \(ulimit -n\)/)
  t.end()
})

t.test('SIGTERM ends the process while it still loads its code, also as the first process of a container', async (t) => {
  const preload = `data:text/javascript,${encodeURIComponent(`
    process.on('newListener', (name) => { if (name === 'SIGUSR1') setImmediate(() => process.kill(process.pid, 'SIGTERM')) })
  `)}`
  const { code, signal } = await runProcess(t, { args: ['serve', EXAMPLES], nodeOptions: ['--import', preload] })
  t.equal(signal, null)
  t.ok(code === 0 || code === 143, `${code}`)
})

t.test('K1: an older Node gets one sentence', async (t) => {
  for (const [older, code] of [['18.20.8', 1], ['20.18.3', 1], ['20.19.0', 0], ['22.0.0', 0]] as const) {
    const preload = `data:text/javascript,Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${older}' } })`
    const { code: actual, stderr } = await runProcess(t, { script: 'cli/skillserve.cjs', args: ['version'], nodeOptions: ['--import', preload] })
    t.equal(actual, code, older)
    t.equal(stderr, code === 0 ? '' : `skillserve: Node 20.19 or later is needed, this is ${older}\n`)
  }
})

t.test('K1: the linked program has the syntax of Node 12', (t) => {
  const code = readFileSync(new URL('../../dist/cli/skillserve.cjs', import.meta.url), 'utf8')
  const forTarget = (target: string): string => transformSync(code, { target, supported: { 'dynamic-import': true } }).code
  t.equal(forTarget('node12'), forTarget('esnext'), 'nothing has to be rewritten')
  t.end()
})

t.test('K3: a folder that was named is waited for, not replaced by the examples', async (t) => {
  const service = await startProcess(t, { cwd: t.testdir(), env: { SKILLS_DIR: 'skills' } })
  t.equal((await fetch(`${service.url}/skills`)).status, 503)
  await service.stop()
  t.notOk(service.log().some(({ msg }) => /example/.test(String(msg))))
})

t.test('K50: the health check passes on a ready service, whatever hosts it allows, and fails without one', async (t) => {
  const service = await startProcess(t, { args: [EXAMPLES], env: { HOST: '0.0.0.0', ALLOWED_HOSTS: 'skills.example.org' } })
  await service.printed(INDEXED)
  t.match(service.log(), [{ level: 40, msg: /^everybody who can reach this address can read every skill/ }])
  t.notOk(service.log().some(({ msg }) => /no folder was named/.test(String(msg))), 'those of the package, named, are a folder like any other')
  const env = { HOST: '0.0.0.0', PORT: String(service.port), ALLOWED_HOSTS: 'skills.example.org' }
  t.match(await runProcess(t, { args: ['healthcheck'], env }), { code: 0, stdout: '', stderr: '' })
  t.match(await runHere(['healthcheck', '--host', '127.0.0.1'], { env }), { code: 0, stdout: '', stderr: '' })
  t.match(await runHere(['healthcheck'], { env: { ...env, ALLOWED_HOSTS: 'other.example.org' } }), { code: 1, stderr: /^skillserve: GET \/readyz answered 403: \S[^\n]+\n$/ }, 'with the detail of the problem')
  await service.stop()
  t.match(await runProcess(t, { args: ['healthcheck'], env }), { code: 1, stderr: /^skillserve: .*ECONNREFUSED/ })
})

t.test('K50: the health check finds a service by the flags that it was started with', async (t) => {
  if (process.platform !== 'linux') {
    t.comment('skipped: only Linux tells the command line of a process')
    return
  }
  const port = await freePort()
  const cwd = t.testdir({ 'skills.lock': '{}' })
  // The last of them is a flag that may have a value.
  const service = await startProcess(t, { cwd, args: [EXAMPLES, '--port', String(port), '--base-path=/team', '--locked'] })
  await service.printed(INDEXED)
  const env = { PORT: '1' }
  t.match(await runHere(['healthcheck', '--pid', String(service.pid)], { env }), { code: 0, stderr: '' })
  t.match(await runHere(['healthcheck'], { env }), { code: 1 })
  t.match(await runHere(['healthcheck', '--pid', String(process.pid), '--port', String(port), '--base-path', '/team']), { code: 0 }, 'a process that is no service has nothing to say')
  for (const [pid, problem] of [['abc', '--pid must be the number of a process, not "abc"'], ['999999999', '--pid: there is no process 999999999']] as const) {
    t.match(await runHere(['healthcheck', '--pid', pid, '--port', String(port), '--base-path', '/team']), { code: 1, stderr: `skillserve: ${problem}\n` })
  }
})

t.test('the image checks its health with the command', async (t) => {
  const dockerfile = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8')
  const [, command = ''] = /^HEALTHCHECK [^]*?CMD (\[.*\])$/m.exec(dockerfile) ?? []
  const [program, ...args] = JSON.parse(command) as string[]
  t.strictSame([program, ...args], ['node', 'dist/cli/main.js', 'healthcheck'])
  t.match(execFileSync(process.execPath, [...args, '--help'], { cwd: fileURLToPath(new URL('../../', import.meta.url)), encoding: 'utf8' }), /^Usage: skillserve healthcheck/)
})

t.test('SIGUSR1 opens no inspector', async (t) => {
  const service = await startProcess(t, { args: [t.testdir(skills('one'))], nodeOptions: ['--inspect-port=0'] })
  service.signal('SIGUSR1')
  // The inspector starts in a thread of its own, before the handler of a later signal is called.
  for (let question = 0; question < 20; question++) t.equal((await fetch(`${service.url}/livez`)).status, 200)
  t.match(await service.stop(), { code: 0, stderr: '' })
})
