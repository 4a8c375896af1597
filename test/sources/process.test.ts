import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync
} from 'node:fs'
import { createServer as createProxy, type IncomingMessage } from 'node:http'
import { createServer } from 'node:https'
import { type AddressInfo, connect, type Server } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { sha256 } from '../../src/core/shared/digest.ts'
import { tarGzOf } from '../helper/archives.ts'
import { runHere } from '../helper/command-line.ts'
import { createRepository, serveGit, skillFiles, startTeam } from '../helper/git.ts'
import { launch, runProcess, startProcess } from '../helper/process.ts'
import { skillText, until } from '../helper/skills.ts'

const DIST = new URL('../../dist/', import.meta.url)
const LOCK_MODULE = fileURLToPath(new URL('sources/publish/folder-lock.js', DIST))
const DEAD = JSON.stringify({ pid: 2 ** 30, host: hostname(), id: 'dead' })

/** Takes the lock of each folder that a line names, and says whether it did. */
const CONTENDER = `
  import { createInterface } from 'node:readline'
  const { FolderLock } = await import(process.argv[1])
  console.log('ready')
  for await (const folder of createInterface({ input: process.stdin })) {
    console.log(await new FolderLock(folder).acquire() === undefined ? 'owner' : 'other')
  }`

t.test('K83: of three processes that find the lock of a dead one, one becomes the owner, sixty times', async (t) => {
  const contenders = Array.from({ length: 3 }, () => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', CONTENDER, LOCK_MODULE], {
      stdio: ['pipe', 'pipe', 'inherit']
    })
    t.teardown(() => { child.kill('SIGKILL') })
    return { child, lines: createInterface({ input: child.stdout })[Symbol.asyncIterator]() }
  })
  for (const { lines } of contenders) await lines.next()
  const owners: number[] = []
  for (let round = 0; round < 60; round++) {
    const folder = join(t.testdirName, String(round))
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'lock'), DEAD)
    // A process that ended while it took the lock over is taken over itself.
    if (round % 3 === 0) writeFileSync(join(folder, 'lock.after-dead'), DEAD.replace('"dead"', '"dead-too"'))
    for (const { child } of contenders) child.stdin.write(`${folder}\n`)
    const said = await Promise.all(contenders.map(async ({ lines }) => String((await lines.next()).value)))
    owners.push(said.filter((word) => word === 'owner').length)
    t.strictSame(readdirSync(folder), ['lock'], 'nothing else is left')
  }
  t.strictSame(owners, Array.from({ length: 60 }, () => 1))
})

/** A source of one skill in a state folder of its own. */
function createSource (t: Test) {
  const repository = createRepository(t, 'team')
  repository.commit(skillFiles('a'))
  const stateDir = join(t.testdirName, 'state')
  const config = join(t.testdirName, 'config.yaml')
  const team = { git: `git+file://${repository.path}`, name: 'team', interval: '10s' }
  writeFileSync(config, JSON.stringify({ sources: [team] }))
  const commit = (text: string): void => { repository.commit({ 'skills/a/SKILL.md': skillText('a', `${text}\n`) }) }
  const folder = (): string => join(stateDir, 'sources', readdirSync(join(stateDir, 'sources'))[0] ?? '')
  return { stateDir, commit, folder, args: ['--state-dir', stateDir, '--config', config] }
}

async function textAt (url: string): Promise<string> {
  const answer = await fetch(`${url}/skills/a`)
  return answer.ok ? ((await answer.json()) as { readonly documentation: string }).documentation : String(answer.status)
}

async function isReady (url: string): Promise<boolean> {
  return (await fetch(`${url}/readyz`)).status === 200
}

t.test('K83 K88: processes share a state folder: one fetches, others serve its states, and take over; one that was ' +
  'suspended notices', async (t) => {
  const { args, commit, stateDir, folder } = createSource(t)
  const [first, second] = [await startProcess(t, { args }), await startProcess(t, { args })]
  await second.printed('another process fetches this source')
  await until(async () => await isReady(first.url) && await isReady(second.url))
  t.equal(await textAt(second.url), skillText('a'))
  for (const command of [['sync'], ['lock', '--out', join(stateDir, 'skills.lock')]]) {
    t.match(await runHere([...command, ...args]), { code: 0, stderr: '' }, command.join(' '))
  }
  const ownerPid = () => (JSON.parse(readFileSync(join(folder(), 'lock'), 'utf8')) as { readonly pid: number }).pid
  first.signal('SIGSTOP')
  // As after a minute without a heartbeat.
  const past = new Date(Date.now() - 120_000)
  utimesSync(join(folder(), 'lock'), past, past)
  await until(() => ownerPid() === second.pid)
  first.signal('SIGCONT')
  first.signal('SIGHUP')
  await first.printed('another process took over this source while this process was suspended')
  commit('Second.')
  second.signal('SIGHUP')
  await second.printed('new revision of this source is published')
  await until(async () => /Second/.test(await textAt(first.url)))
  t.equal(ownerPid(), second.pid)

  await second.stop('SIGKILL')
  await first.printed('this process fetches this source from now on')
  t.equal(ownerPid(), first.pid)
  t.match(await first.stop(), { code: 0, stderr: '' })
})

t.test('K83: what nobody has used for a week is removed; config opens and writes nothing', async (t) => {
  const { args, stateDir, folder } = createSource(t)
  t.match(await runHere(['config', ...args]), { code: 0, stderr: '' })
  t.notOk(existsSync(stateDir))
  t.match(await runHere(['sync', ...args]), { code: 0 })
  const used = folder()
  const past = new Date(Date.now() - 8 * 24 * 3_600_000)
  for (const name of ['old', 'locked']) mkdirSync(join(stateDir, 'sources', name))
  writeFileSync(join(stateDir, 'sources/locked/lock'), JSON.stringify({ pid: process.ppid, host: hostname(), id: 'x' }))
  for (const name of ['old', 'locked']) utimesSync(join(stateDir, 'sources', name), past, past)
  t.match(await runHere(['sync', ...args]), { code: 0 })
  t.notOk(existsSync(join(stateDir, 'sources/old')))
  t.ok(existsSync(join(stateDir, 'sources/locked')) && statSync(used).isDirectory())
})

t.test('K89 K91: SIGHUP and a closed terminal end every command but serve; SIGTERM of serve is ' +
  'exit 0 at once', async (t) => {
  const { args, stateDir } = createSource(t)
  const skills = join(t.testdirName, 'skills')
  mkdirSync(join(skills, 'a'), { recursive: true })
  writeFileSync(join(skills, 'a/SKILL.md'), skillText('a'))
  const commands: Readonly<Record<string, { args: readonly string[], line: string, code: number }>> = {
    dev: { args: ['dev', '--no-open', skills], line: 'Preview at', code: 0 },
    validate: { args: ['validate', '--watch', skills], line: 'skill', code: 129 }
  }
  for (const [name, { args, line, code }] of Object.entries(commands)) {
    const running = launch(t, { args })
    await running.printed(line)
    process.kill(running.pid, 'SIGHUP')
    t.match(await running.ended, { code, signal: null }, name)
  }
  const host = spawn(process.execPath, [fileURLToPath(new URL('cli/main.js', DIST)), 'mcp', ...args])
  t.teardown(() => { host.kill('SIGKILL') })
  await until(() => existsSync(stateDir) && locksIn(stateDir).length > 0)
  host.kill('SIGHUP')
  t.match(await once(host, 'close'), [129, null])
  t.strictSame(locksIn(stateDir), [])

  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    // As soon as the first module of the service has been evaluated.
    const kill = `if(process.listenerCount('${name}')>0){clearInterval(x);process.kill(process.pid,'${name}')}`
    const starting = launch(t, {
      args: ['serve', skills], nodeOptions: ['--import', `data:text/javascript,const x=setInterval(()=>{${kill}},1)`]
    })
    t.match(await starting.ended, { code: 0, signal: null }, name)
  }
})

/** The locks of sources in a state folder. */
function locksIn (stateDir: string): readonly string[] {
  return readdirSync(stateDir, { recursive: true, encoding: 'utf8' }).filter((path) => basename(path) === 'lock')
}

t.test('K85: killed in the middle of a fetch, and started again without network, the service has ' +
  'the last state', async (t) => {
  const { repository, host, address } = await startTeam(t)
  const stateDir = join(t.testdirName, 'state')
  const args = ['--state-dir', stateDir, address]
  t.match(await runHere(['sync', ...args]), { code: 0 })

  repository.commit({ 'skills/a/SKILL.md': skillText('a', 'Pushed.\n') })
  const asked = new Promise<void>((resolve) => {
    // The host says twice what there is, and never sends it.
    let questions = 0
    host.fault = ({ method }) => {
      if (method !== 'POST' || ++questions < 3) return false
      resolve()
      return true
    }
  })
  const first = await startProcess(t, { args })
  t.equal(await textAt(first.url), skillText('a'))
  await asked
  await first.stop('SIGKILL')

  host.fault = ({ socket }) => Boolean(socket.destroy())
  const second = await startProcess(t, { args })
  t.equal(await textAt(second.url), skillText('a'), 'at once')
  await second.printed('cannot update source')
  t.ok(await isReady(second.url), 'a source that fails takes no readiness')
  host.fault = undefined
  await second.printed('is reachable again')
  t.equal(await textAt(second.url), skillText('a', 'Pushed.\n'))
  t.match(await second.stop(), { code: 0 })
})

t.test('K83 K84: a signal while sources are first fetched ends the process as every other time, and leaves ' +
  'neither a lock nor a git', async (t) => {
  const { host, address } = await startTeam(t)
  for (const [args, code] of [[['sync'], 143], [[], 0]] as const) {
    const asked = new Promise<IncomingMessage>((resolve) => {
      host.fault = (request) => {
        resolve(request)
        return true
      }
    })
    const stateDir = join(t.testdirName, 'state')
    const fetching = launch(t, { args: [...args, '--state-dir', stateDir, address] })
    const { socket } = await asked
    process.kill(fetching.pid, 'SIGTERM')
    t.match(await fetching.ended, { code, signal: null, stderr: '' })
    t.strictSame(locksIn(stateDir), [])
    if (!socket.closed) await once(socket, 'close')
  }
})

t.test('K83: a user without a home and an entry in passwd needs --state-dir for sources, and nothing else', {
  skip: process.getuid?.() !== 0 && 'needs another user'
}, async (t) => {
  const folder = t.testdir({ skills: { a: { 'SKILL.md': skillText('a') } }, own: {} })
  chmodSync(join(folder, 'own'), 0o777)
  const program = fileURLToPath(new URL('cli/skillserve.cjs', DIST))
  const options = {
    uid: 54_321, gid: 54_321, env: { PATH: process.env['PATH'] }, cwd: join(folder, 'own'), encoding: 'utf8'
  } as const
  const run = (...args: readonly string[]) => spawnSync(process.execPath, [program, ...args], options)
  const source = 'https://127.0.0.1:1/a.zip'
  t.match(run('sync', source), {
    status: 1, stdout: '', stderr: /no home folder .*; set --state-dir or STATE_DIR\n$/
  })
  t.match(run('lock', '--layout', 'tree', join(folder, 'skills')), { status: 0, stdout: /1 skill$/m })
})

t.test('K85: a disk that is full at one start leaves no lock for the next', async (t) => {
  const cwd = t.testdir({ state: {} })
  const repository = createRepository(t, 'full')
  repository.commit(skillFiles('a'))
  const args = ['sync', '--state-dir', join(cwd, 'state'), `git+file://${repository.path}`]
  t.match(await runProcess(t, { args, ulimit: '-f 0' }), { code: 1, stderr: /cannot be written \(EFBIG/ })
  t.strictSame(locksIn(join(cwd, 'state')), [])
})

/** A registry on loopback is asked without TLS: another address of this machine, if it has one. */
const OWN = Object.values(networkInterfaces()).flat().find((each) => each?.family === 'IPv4' && !each.internal)?.address

/** A certificate for this machine that a private authority has issued. */
function makeCertificate (folder: string): { readonly key: Buffer, readonly cert: Buffer } {
  const names = ['DNS:localhost', 'IP:127.0.0.1', ...OWN === undefined ? [] : [`IP:${OWN}`]]
  writeFileSync(join(folder, 'ext'), `subjectAltName=${names.join()}\n`)
  const newKey = 'req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
  for (const command of [
    `${newKey} -x509 -keyout ca.key -out ca.pem -subj /CN=private -days 2`,
    `${newKey} -keyout key.pem -out csr.pem -subj /CN=localhost`,
    'x509 -req -in csr.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out cert.pem'
  ]) execFileSync('openssl', command.split(' '), { cwd: folder, stdio: 'ignore' })
  return { key: readFileSync(join(folder, 'key.pem')), cert: readFileSync(join(folder, 'cert.pem')) }
}

/** Waits until a server listens, and returns its port. */
async function portOf (t: Test, server: Server): Promise<number> {
  t.teardown(() => { server.close() })
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

t.test('K83: a private authority of NODE_EXTRA_CA_CERTS counts for archives, git and registries, through a proxy too', {
  skip: spawnSync('openssl', ['version']).status !== 0 && 'openssl is not installed'
}, async (t) => {
  createRepository(t, 'team.git').commit(skillFiles('b'))
  const folder = t.testdirName
  const layer = await tarGzOf([['a/SKILL.md', skillText('a')]])
  const mediaType = 'application/vnd.oci.image.layer.v1.tar+gzip'
  const layers = [{ mediaType, digest: sha256(layer), size: layer.length }]
  const manifest = JSON.stringify({ schemaVersion: 2, layers })
  const server = createServer(makeCertificate(folder), (request, response) => {
    const { url = '', method } = request
    if (url.startsWith('/team.git')) serveGit(folder, request, response)
    else if (url.includes('/manifests/')) {
      response.setHeader('docker-content-digest', sha256(manifest)).end(method === 'HEAD' ? undefined : manifest)
    } else response.end(layer)
  }).listen(0)
  const port = await portOf(t, server)
  const tunnels: unknown[] = []
  const proxy = createProxy().on('connect', (request: IncomingMessage, socket) => {
    tunnels.push(request.url)
    const target = connect(port, '127.0.0.1', () => { socket.write('HTTP/1.1 200 OK\r\n\r\n') })
    target.on('error', () => {}).pipe(socket).on('error', () => {}).pipe(target)
  }).listen(0, '127.0.0.1')
  const HTTPS_PROXY = `http://127.0.0.1:${await portOf(t, proxy)}`
  const addresses = [`https://localhost:${port}/a.tar.gz`, `git+https://localhost:${port}/team.git`,
    ...OWN === undefined ? [] : [`oci://${OWN}:${port}/team/skills:1`]]
  const args = ['sync', '--state-dir', join(folder, 'state'), ...addresses]
  const without = await runHere(args, { env: { PATH: process.env['PATH'] ?? '' } })
  t.equal(without.code, 1)
  t.equal(without.stderr.match(/ \(tls\)$/gm)?.length, addresses.length, without.stderr)
  const { code, stdout } = await runProcess(t, {
    args, env: { NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem'), HTTPS_PROXY, NO_PROXY: OWN ?? '' }
  })
  t.equal(code, 0, stdout)
  t.equal(stdout.match(/, 1 skill$/gm)?.length, addresses.length, stdout)
  t.ok(tunnels.length >= 2, 'git and archives')
  t.strictSame(new Set(tunnels), new Set([`localhost:${port}`]))
  const pem = readdirSync(join(folder, 'state'), { recursive: true, encoding: 'utf8' }).find((path) =>
    path.endsWith('authorities.pem')) ?? ''
  t.ok((readFileSync(join(folder, 'state', pem), 'utf8').match(/BEGIN CERTIFICATE/g)?.length ?? 0) > 100,
    'the usual authorities count too')
})
