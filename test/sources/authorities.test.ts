import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer as createProxy, type IncomingMessage } from 'node:http'
import { createServer } from 'node:https'
import { networkInterfaces } from 'node:os'
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { sha256 } from '../../src/core/shared/digest.ts'
import { tarGzOf } from '../helper/archives.ts'
import { runHere } from '../helper/command-line.ts'
import { createRepository, serveGit, skillFiles } from '../helper/git.ts'
import { runProcess } from '../helper/process.ts'
import { skillText } from '../helper/skills.ts'

/** A registry on loopback is asked without TLS: another address of this machine, if it has one. */
const OWN = Object.values(networkInterfaces()).flat().find((each) => each?.family === 'IPv4' && !each.internal)?.address

t.test('K83: a private authority of NODE_EXTRA_CA_CERTS counts for archives, git and registries, through a proxy too', { skip: spawnSync('openssl', ['version']).status !== 0 && 'openssl is not installed' }, async (t) => {
  createRepository(t, 'team.git').commit(skillFiles('b'))
  const folder = t.testdirName
  const openssl = (command: string): void => { execFileSync('openssl', command.split(' '), { cwd: folder, stdio: 'ignore' }) }
  writeFileSync(join(folder, 'ext'), `subjectAltName=DNS:localhost,IP:127.0.0.1${OWN === undefined ? '' : `,IP:${OWN}`}\n`)
  openssl('req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -subj /CN=private -days 2')
  openssl('req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out csr.pem -subj /CN=localhost')
  openssl('x509 -req -in csr.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out cert.pem')
  const layer = await tarGzOf([['a/SKILL.md', skillText('a')]])
  const manifest = Buffer.from(JSON.stringify({ schemaVersion: 2, layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip', digest: sha256(layer), size: layer.length }] }))
  const server = createServer({ key: readFileSync(join(folder, 'key.pem')), cert: readFileSync(join(folder, 'cert.pem')) }, (request, response) => {
    const url = request.url ?? ''
    if (url.startsWith('/team.git')) serveGit(folder, request, response)
    else if (url.includes('/manifests/')) response.setHeader('docker-content-digest', sha256(manifest)).end(request.method === 'HEAD' ? undefined : manifest)
    else response.end(layer)
  }).listen(0)
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const addresses = [`https://localhost:${port}/a.tar.gz`, `git+https://localhost:${port}/team.git`, ...OWN === undefined ? [] : [`oci://${OWN}:${port}/team/skills:1`]]
  const args = ['sync', '--state-dir', join(folder, 'state'), ...addresses]
  const without = await runHere(args, { env: { PATH: process.env['PATH'] ?? '' } })
  t.equal(without.code, 1)
  t.equal(without.stdout.match(/ \(tls\)$/gm)?.length, addresses.length, without.stdout)
  const { code, stdout } = await runProcess(t, { args, env: { NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem') } })
  t.equal(code, 0, stdout)
  t.equal(stdout.match(/, 1 skill$/gm)?.length, addresses.length, stdout)
  const pem = readdirSync(join(folder, 'state'), { recursive: true, encoding: 'utf8' }).find((path) => path.endsWith('authorities.pem')) ?? ''
  t.ok((readFileSync(join(folder, 'state', pem), 'utf8').match(/BEGIN CERTIFICATE/g)?.length ?? 0) > 100, 'the usual authorities count too')
  let tunnels = 0
  const proxy = createProxy().on('connect', (request: IncomingMessage, socket) => {
    tunnels++
    const target = connect(Number(request.url?.split(':')[1]), '127.0.0.1', () => { socket.write('HTTP/1.1 200 OK\r\n\r\n') })
    target.on('error', () => {}).pipe(socket).on('error', () => {}).pipe(target)
  }).listen(0, '127.0.0.1')
  t.teardown(() => proxy.close())
  await once(proxy, 'listening')
  const env = { NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem'), HTTPS_PROXY: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` }
  const proxied = await runProcess(t, { args: ['sync', '--state-dir', join(folder, 'proxied'), ...addresses.slice(0, 2)], env })
  t.equal(proxied.stdout.match(/, 1 skill$/gm)?.length, 2, proxied.stdout)
  t.ok(tunnels >= 2, 'git and archives')
})
