import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer as createProxy, type IncomingMessage } from 'node:http'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { createServer } from 'node:https'
import { networkInterfaces } from 'node:os'
import { type AddressInfo, connect } from 'node:net'
import { createRepository, serveGit, skillFiles, startTeam } from '../helper/git.ts'
import { launch, runProcess, startProcess } from '../helper/process.ts'
import { skillText, until } from '../helper/skills.ts'
import { sha256 } from '../../src/core/shared/digest.ts'
import { tarGzOf } from '../helper/archives.ts'
import { runHere } from '../helper/command-line.ts'

const COMMAND = fileURLToPath(new URL('../../dist/cli/skillserve.cjs', import.meta.url))

/** The locks of sources in a state folder. */
function locksIn (stateDir: string): readonly string[] {
  return readdirSync(stateDir, { recursive: true, encoding: 'utf8' }).filter((path) => basename(path) === 'lock')
}

t.test('K85: killed in the middle of a fetch, and started again without network, the service has ' +
  'the last state', async (t) => {
  const { repository, host, address } = await startTeam(t)
  const stateDir = join(t.testdirName, 'state')
  const args = ['--state-dir', stateDir, address]
  const first = await startProcess(t, { args })
  const documentOf = async (url: string) =>
    (await (await fetch(`${url}/skills/a`)).json() as { documentation?: string }).documentation
  await until(async () => (await fetch(`${first.url}/readyz`)).status === 200)
  const before = await documentOf(first.url)

  repository.commit({ 'skills/a/SKILL.md': skillText('a', 'Pushed.\n') })
  const asked = new Promise<void>((resolve) => {
    // The host answers what there is, and never sends it.
    host.fault = (request) => {
      if (request.method !== 'POST' || host.requests.filter(({ method }) => method === 'POST').length < 4) return false
      resolve()
      return true
    }
  })
  first.signal('SIGHUP')
  await Promise.race([asked, until(async () => await documentOf(first.url) !== before)])
  await first.stop('SIGKILL')

  host.fault = (request) => {
    request.socket.destroy()
    return true
  }
  const second = await startProcess(t, { args })
  t.ok([before, skillText('a', 'Pushed.\n')].includes(await documentOf(second.url)), 'one state or the other, at once')
  await until(async () => /"stale"/.test(await (await fetch(`${second.url}/readyz`)).text()))
  t.equal((await fetch(`${second.url}/readyz`)).status, 200, 'a source that fails takes no readiness')
  host.fault = undefined
  second.signal('SIGHUP')
  await until(async () => await documentOf(second.url) === skillText('a', 'Pushed.\n'))
  t.match(await second.stop(), { code: 0 })
})

t.test('K83 K84: a signal while sources are opened or first fetched ends the process as every other time, and ' +
  'leaves neither a lock nor a git', async (t) => {
  const folder = t.testdir({
    bin: { git: '#!/bin/sh\necho $$ > pid\nwhile [ ! -e go ]; do sleep 0.05; done\necho git version 2.40.0\n' }
  })
  chmodSync(join(folder, 'bin/git'), 0o755)
  const env = { PATH: `${join(folder, 'bin')}:${process.env.PATH}`, STATE_DIR: join(folder, 'state') }
  const starting = launch(t, { args: ['git+https://127.0.0.1:1/team.git'], cwd: folder, env })
  await until(() => existsSync(join(folder, 'pid')))
  process.kill(starting.pid, 'SIGTERM')
  await starting.printed('"stopping"')
  writeFileSync(join(folder, 'go'), '')
  t.match(await starting.ended, { code: 0, signal: null, stdout: /"stopped"/, stderr: '' })
  t.strictSame(locksIn(env.STATE_DIR), [])

  const { host, address } = await startTeam(t)
  for (const [args, code] of [[['sync'], 143], [[], 0]] as const) {
    const asked = new Promise<IncomingMessage>((resolve) => {
      host.fault = (request) => {
        resolve(request)
        return true
      }
    })
    const fetching = launch(t, { args: [...args, address], cwd: folder, env: { STATE_DIR: env.STATE_DIR } })
    const { socket } = await asked
    process.kill(fetching.pid, 'SIGTERM')
    t.match(await fetching.ended, { code, signal: null, stderr: '' })
    t.strictSame(locksIn(env.STATE_DIR), [])
    if (!socket.closed) await once(socket, 'close')
  }
})

t.test('K84: a webhook without its secret is a warning at the start, and its hooks are refused', async (t) => {
  const repository = createRepository(t, 'team.git')
  repository.commit(skillFiles('a'))
  const config = join(t.testdirName, 'config.yaml')
  writeFileSync(config,
    JSON.stringify({
      sources: [{ name: 'team', git: `git+file://${repository.path}`, webhook: { secret_file: 'hook.secret' } }]
    }))
  const service = await startProcess(t, { args: ['--state-dir', join(t.testdirName, 'state'), '--config', config] })
  await service.printed('cannot read the secret of the webhook')
  t.match(service.log().find(({ msg }) => String(msg).startsWith('cannot read the secret')),
    { level: 40, source: 'team', file: join(t.testdirName, 'hook.secret') })
  t.equal((await fetch(`${service.url}/hooks/git`, { method: 'POST', headers: { 'x-gitlab-token': 'word' } })).status,
    403)
  writeFileSync(join(t.testdirName, 'hook.secret'), 'word\n')
  t.equal((await fetch(`${service.url}/hooks/git`, { method: 'POST', headers: { 'x-gitlab-token': 'word' } })).status,
    200, 'a file that comes later counts')
})

t.test('K83: a user without a home and an entry in passwd needs --state-dir for sources, and nothing else', {
  skip: process.getuid?.() !== 0 && 'needs another user'
}, async (t) => {
  const folder = t.testdir({ skills: { a: { 'SKILL.md': skillText('a') } }, own: {} })
  chmodSync(join(folder, 'own'), 0o777)
  const run = (...args: readonly string[]) => spawnSync(process.execPath, [COMMAND, ...args], {
    uid: 54_321, gid: 54_321, env: { PATH: process.env['PATH'] }, cwd: join(folder, 'own'), encoding: 'utf8'
  })
  const source = 'https://127.0.0.1:1/a.zip'
  t.match(run('sync', source), {
    status: 1, stdout: '', stderr: /no home folder .*: --state-dir or STATE_DIR names a folder\n$/
  })
  t.match(run('sync', '--state-dir', join(folder, 'own/state'), source),
    { status: 1, stderr: /refuses the connection.*\(unreachable\)/ })
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

t.test('K89: SIGHUP reads the configuration file again: what stays is served all the time, and a file with a ' +
  'mistake changes nothing', async (t) => {
  const repository = createRepository(t, 'team')
  repository.commit(skillFiles('fetched'))
  const folder = join(t.testdirName, 'own')
  for (const path of ['first/one', 'first/both', 'second/two', 'second/both']) {
    mkdirSync(join(folder, path), { recursive: true })
    writeFileSync(join(folder, path, 'SKILL.md'), skillText(basename(path), `Of the ${dirname(path)}.\n`))
  }
  const config = join(folder, 'config.yaml')
  const configure = (...sources: readonly object[]): void => { writeFileSync(config, JSON.stringify({ sources })) }
  const [first, second] = [{ folder: 'first' }, { folder: 'second' }]
  const team = { git: `git+file://${repository.path}`, name: 'team' }
  configure(first, second)
  writeFileSync(join(folder, 'access.yaml'), 'anonymous: [all]\nrules: [{ groups: [all] }]\n')
  const args = ['--state-dir', `${folder}-state`, '--config', config, '--access', join(folder, 'access.yaml'),
    '--metrics-port', '0']
  const service = await startProcess(t, { args, env: { LIMITS: 'off' } })
  const json = async (path: string) => await (await fetch(`${service.url}${path}`)).json() as Record<string, unknown>
  const reload = async () => {
    const lines = service.log().length
    service.signal('SIGHUP')
    await until(() => service.log().slice(lines).some(({ msg }) => /^SIGHUP: (?:done|reload failed)/.test(String(msg))))
    return service.log().slice(lines)
  }
  const done = (lines: readonly Record<string, unknown>[]) => lines.find(({ msg }) => msg === 'SIGHUP: done')
  const over = new AbortController()
  const statuses = new Set<number>()
  const asking =
    (async () => {
      while (!over.signal.aborted) {
        for (const name of ['two',
          'both']) statuses.add((await fetch(`${service.url}/skills/${name}`)).status)
      }
    })()

  t.match(done(await reload()), { sources: 'no change' })
  configure(team, second)
  t.match(done(await reload()), { sources: 'added team; removed first', checked: ['team'] })
  t.match(await json('/skills'), { skills: ['both', 'fetched', 'two'] })
  t.match((await json('/skills/both'))['documentation'], /Of the second/)
  t.match(await json('/catalog?q=fetched'), { skills: [{ name: 'fetched' }] })
  t.match(await json('/catalog?q=one'), { skills: [] })

  configure({ ...team, layout: 'single' }, first, second)
  t.match(done(await reload()), { sources: 'added first; changed team' })
  t.match((await json('/skills/both'))['documentation'], /Of the first/)
  configure(second, first)
  t.match(done(await reload()), { sources: 'removed team' })
  t.match((await json('/skills/both'))['documentation'], /Of the second/, 'the order counts')

  const refused = 'SIGHUP: reload failed; the configuration before it stays in force'
  writeFileSync(config, 'sources:\n  - floder: first\n')
  t.match((await reload()).filter(({ msg }) => msg === refused),
    [{ level: 40, problem: `${config}:2: sources[0].floder is an unknown key` }])
  configure(second, { folder: 'elsewhere/second' })
  t.match((await reload()).filter(({ msg }) => msg === refused),
    [{ problem: /two folders of skills are called "second"/ }])
  configure(second, { folder: '.' })
  t.match((await reload()).filter(({ msg }) => msg === refused),
    [{ problem: /access.yaml" is inside .*whose files are served/ }])
  t.match(await json('/skills'), { skills: ['both', 'one', 'two'] })
  writeFileSync(join(folder, 'second/two/SKILL.md'), skillText('two', 'Edited.\n'))
  t.match((await json('/skills/two'))['documentation'], /Edited/)

  configure(second, first)
  writeFileSync(join(folder, 'access.yaml'), 'rules: 1\n')
  const lines = await reload()
  t.match(lines.filter(({ msg }) => msg === refused), [{ problem: /access.yaml:1: rules must be/ }])
  t.notOk(done(lines))
  over.abort()
  await asking
  t.strictSame([...statuses], [200])
  t.match(await service.stop(), { code: 0, stderr: '' })
})

/** A registry on loopback is asked without TLS: another address of this machine, if it has one. */
const OWN = Object.values(networkInterfaces()).flat().find((each) => each?.family === 'IPv4' && !each.internal)?.address

t.test('K83: a private authority of NODE_EXTRA_CA_CERTS counts for archives, git and registries, through a proxy too', {
  skip: spawnSync('openssl', ['version']).status !== 0 && 'openssl is not installed'
}, async (t) => {
  createRepository(t, 'team.git').commit(skillFiles('b'))
  const folder = t.testdirName
  const openssl =
    (command: string): void => { execFileSync('openssl', command.split(' '), { cwd: folder, stdio: 'ignore' }) }
  writeFileSync(join(folder, 'ext'),
    `subjectAltName=DNS:localhost,IP:127.0.0.1${OWN === undefined ? '' : `,IP:${OWN}`}\n`)
  openssl(
    'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -subj /CN=private -days 2')
  openssl(
    'req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out csr.pem -subj /CN=localhost')
  openssl('x509 -req -in csr.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out cert.pem')
  const layer = await tarGzOf([['a/SKILL.md', skillText('a')]])
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip', digest: sha256(layer), size: layer.length }]
    }))
  const server = createServer({
    key: readFileSync(join(folder, 'key.pem')), cert: readFileSync(join(folder, 'cert.pem'))
  }, (request, response) => {
    const url = request.url ?? ''
    if (url.startsWith('/team.git')) serveGit(folder, request, response)
    else if (url.includes('/manifests/')) {
      response.setHeader('docker-content-digest', sha256(manifest)).end(
        request.method === 'HEAD' ? undefined : manifest)
    } else response.end(layer)
  }).listen(0)
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const addresses = [`https://localhost:${port}/a.tar.gz`, `git+https://localhost:${port}/team.git`,
    ...OWN === undefined ? [] : [`oci://${OWN}:${port}/team/skills:1`]]
  const args = ['sync', '--state-dir', join(folder, 'state'), ...addresses]
  const without = await runHere(args, { env: { PATH: process.env['PATH'] ?? '' } })
  t.equal(without.code, 1)
  t.equal(without.stderr.match(/ \(tls\)$/gm)?.length, addresses.length, without.stderr)
  const { code, stdout } = await runProcess(t, { args, env: { NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem') } })
  t.equal(code, 0, stdout)
  t.equal(stdout.match(/, 1 skill$/gm)?.length, addresses.length, stdout)
  const pem = readdirSync(join(folder, 'state'), { recursive: true, encoding: 'utf8' }).find((path) =>
    path.endsWith('authorities.pem')) ?? ''
  t.ok((readFileSync(join(folder, 'state', pem), 'utf8').match(/BEGIN CERTIFICATE/g)?.length ?? 0) > 100,
    'the usual authorities count too')
  let tunnels = 0
  const proxy = createProxy().on('connect', (request: IncomingMessage, socket) => {
    tunnels++
    const target = connect(Number(request.url?.split(':')[1]), '127.0.0.1',
      () => { socket.write('HTTP/1.1 200 OK\r\n\r\n') })
    target.on('error', () => {}).pipe(socket).on('error', () => {}).pipe(target)
  }).listen(0, '127.0.0.1')
  t.teardown(() => proxy.close())
  await once(proxy, 'listening')
  const env = {
    NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem'),
    HTTPS_PROXY: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  }
  const proxied = await runProcess(t, {
    args: ['sync', '--state-dir', join(folder, 'proxied'), ...addresses.slice(0, 2)], env
  })
  t.equal(proxied.stdout.match(/, 1 skill$/gm)?.length, 2, proxied.stdout)
  t.ok(tunnels >= 2, 'git and archives')
})
