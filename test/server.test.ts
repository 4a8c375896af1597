import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { Agent, get, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { json } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { type ProcessOptions, runProcess, type ServiceProcess, startProcess } from './helper/process.ts'
import { skills, until } from './helper/skills.ts'
import { startStopwatch } from './helper/timing.ts'

/** Far above what a stop needs, far below the deadline of the drain. */
const AT_ONCE_MS = 4_000
const UPPER_BOUND_MS = 10_000
/** The last of them are still to be logged when the process is told to end. */
const REQUESTS = 200

function skillsFolder (t: Test): string {
  return t.testdir({ skills: skills('demo'), other: skills('second') })
}

function start (t: Test, options: ProcessOptions = {}): Promise<ServiceProcess> {
  return startProcess(t, { cwd: skillsFolder(t), ...options })
}

async function skillNames ({ url }: ServiceProcess): Promise<readonly string[]> {
  const response = await fetch(`${url}/skills`, { headers: { connection: 'close' } })
  return ((await response.json()) as { skills: string[] }).skills
}

async function open (port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** A process that prints nothing cannot be waited for: this one stops itself. */
const STOP_WHEN_LISTENING = 'data:text/javascript,' + encodeURIComponent(`
  import { Server } from 'node:net'
  const { listen } = Server.prototype
  Server.prototype.listen = function (...args) {
    this.once('listening', () => setImmediate(() => process.kill(process.pid, 'SIGTERM')))
    return listen.apply(this, args)
  }
`)

async function timed<T> (promise: Promise<T>): Promise<readonly [value: T, ms: number]> {
  const elapsed = startStopwatch()
  return [await promise, elapsed()]
}

t.test('K1, K2, K39, K89: ./skills is served on a loopback address by default, the line that says so carries the port, ' +
  'all lines are JSON, and with idle clients SIGTERM ends the process at once, its log complete', async (t) => {
  const service = await start(t)
  const agent = new Agent({ keepAlive: true })
  t.teardown(() => { agent.destroy() })
  const [response] = await once(get(`${service.url}/livez`, { agent }), 'response') as [IncomingMessage]
  response.resume()
  await once(response, 'end')
  const silent = await open(service.port)
  t.teardown(() => { silent.destroy() })
  t.match(service.url, /^http:\/\/127\.0\.0\.1:\d+$/)
  const answers = await Promise.all(Array.from({ length: REQUESTS }, () => skillNames(service)))
  for (const names of answers) t.strictSame(names, ['demo'])
  t.not(service.port, 0)
  service.signal('SIGHUP')
  await service.printed('SIGHUP: done')
  const lines = service.log().filter(({ msg }) => String(msg).includes('listening at'))
  t.strictSame(lines.map(({ msg }) => msg), [`skillserve listening at ${service.url}`])
  const [{ code, stderr }, ms] = await timed(service.stop())
  t.equal(code, 0)
  t.equal(stderr, '')
  t.ok(ms < AT_ONCE_MS, `${ms} ms`)
  t.equal(service.log().at(-1)?.msg, 'stopped')
  t.equal(service.log().filter(({ url, status }) => url === '/skills' && status === 200).length, REQUESTS)
})

t.test('K2: folders, personal folder, host, port and level: flags beat the environment, and an exception that nobody ' +
  'handles is logged in full and ends the process with exit code 1', async (t) => {
  const preload =
    `data:text/javascript,${encodeURIComponent("process.on('SIGUSR2', () => { throw new Error('boom') })")}`
  const service = await start(t, {
    env: { SKILLS_DIR: ['skills', 'nowhere'].join(delimiter), PORT: '1', HOST: '192.0.2.1', LOG_LEVEL: 'silent' },
    args: ['serve', 'other', '--personal', 'skills', '--port', '0', '--host', '127.0.0.1', '--log-level=info'],
    nodeOptions: ['--import', preload]
  })
  t.strictSame(await skillNames(service), ['demo', 'second'])
  t.equal((await service.stop('SIGUSR2')).code, 1)
  t.match(service.log().find(({ level }) => level === 60), { err: { message: 'boom', stack: /^Error: boom\n {4}at / } })
})

t.test('K2: a bad value stops the process with one line on stderr that names it, and exit code 1', async (t) => {
  const { code, stdout, stderr } = await runProcess(t, { env: { SKILLS_DIR: `a${delimiter}` } })
  t.strictSame([code, stdout], [1, ''])
  t.match(stderr, /^skillserve: [^\n]*SKILLS_DIR[^\n]*\n$/)
})

t.test('K2: a port in use is one line on stderr and exit code 1', async (t) => {
  const holder = createServer().listen(0, '127.0.0.1')
  t.teardown(() => holder.close())
  await once(holder, 'listening')
  const { port } = holder.address() as AddressInfo
  const { code, stdout, stderr } = await runProcess(t, { args: ['--port', String(port)] })
  t.strictSame([code, stdout], [1, ''], 'nothing is announced')
  t.equal(stderr,
    `skillserve: port ${port} of 127.0.0.1 is already in use; choose another with PORT or --port (0: any free port)\n`)
})

t.test('K2: at a terminal a start says in at most ten lines what there is', {
  skip: !existsSync('/usr/bin/script') && 'there is no script'
}, async (t) => {
  const folder = t.testdir({ skills: { ...skills('one', 'two'), three: { 'SKILL.md': 'x' } } })
  const main = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
  const terminal = spawn('/usr/bin/script',
    ['-qec', `exec '${process.execPath}' '${main}' skills --port 0`, '/dev/null'], {
      cwd: folder, stdio: ['pipe', 'pipe', 'ignore']
    })
  t.teardown(() => { terminal.kill('SIGKILL') })
  let out = ''
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => { out += text })
  while (!out.includes('tool calls')) await once(terminal.stdout, 'data')
  const lines = out.trimEnd().split(/\r?\n/)
  t.ok(lines.length <= 10, out)
  t.match(lines[0], /^skillserve \d+\.\d+\.\d+: 3 skills, \d+ findings?$/)
  t.match(lines[1], /skills: 3 skills, \d+ findings?$/)
  for (const address of [
    /page +http:\/\/127\.0\.0\.1:\d+\/ \(1 invalid skill: \S+\?valid=false\)$/m,
    /MCP +http:\/\/127\.0\.0\.1:\d+\/mcp\r?$/m,
    /tool calls +http:\/\/127\.0\.0\.1:\d+\/agent\/tool-call/
  ]) {
    t.match(out.replaceAll('\r', ''), address)
  }
  const ended = once(terminal, 'exit')
  terminal.kill('SIGTERM')
  await ended
})

t.test('K91: a client that is slow to read its last answer receives all of it after SIGTERM', async (t) => {
  const folder = t.testdir({ skills: skills('demo') })
  // The answer is larger than the buffers of the system, and is written at once.
  writeFileSync(join(folder, 'skills/demo/large.bin'), Buffer.alloc(8_000_000))
  const service = await startProcess(t, { args: [join(folder, 'skills')] })
  const options = { agent: false, headers: { accept: 'application/json' } }
  const asked = get(`${service.url}/skills/demo/files/large.bin?encoding=base64`, options)
  const [response] = await once(asked, 'response') as [IncomingMessage]
  service.signal('SIGTERM')
  await service.printed('stopping')
  const isOpen = () => open(service.port).then((socket) => { socket.destroy() }).then(() => true, () => false)
  await until(async () => !await isOpen())
  const { content } = await json(response) as { readonly content: string }
  t.equal(Buffer.from(content, 'base64').length, 8_000_000)
  t.equal((await service.ended).code, 0)
})

t.test('K91: a call to the file system that never returns does not keep the process', async (t) => {
  const folder = skillsFolder(t)
  const fifo = join(folder, 'fifo')
  execFileSync('mkfifo', [fifo])
  const preload = `data:text/javascript,import { open } from 'node:fs'; open(${JSON.stringify(fifo)}, 'r', () => {})`
  const service = await startProcess(t, { cwd: folder, nodeOptions: ['--import', preload] })
  const [{ signal }, ms] = await timed(service.stop())
  t.equal(signal, 'SIGKILL')
  t.ok(ms < UPPER_BOUND_MS, `${ms} ms`)
})

t.test('K2: with the level silent nothing is printed', async (t) => {
  t.match(await runProcess(t, { env: { LOG_LEVEL: 'silent' }, nodeOptions: ['--import', STOP_WHEN_LISTENING] }),
    { code: 0, stdout: '', stderr: '' })
})
