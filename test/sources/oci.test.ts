import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { tarGzOf } from '../helper/archives.ts'
import { startServer } from '../helper/fault-server.ts'
import { skillText, textOf, until } from '../helper/skills.ts'
import { openSources, sourceAt } from '../helper/sources.ts'

const REGISTRY = '/usr/bin/docker-registry'
const skip = existsSync(REGISTRY) ? false : 'docker-registry of Debian is not installed'

async function freePort (): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}

/** A real registry on loopback; resolves with its host. */
async function startRegistry (t: Test): Promise<string> {
  const port = await freePort()
  const folder = t.testdir({ store: {} })
  const config = join(folder, 'config.yml')
  writeFileSync(config, `version: 0.1\nlog: { level: error }\nstorage: { filesystem: { rootdirectory: ${join(folder, 'store')} } }\nhttp: { addr: '127.0.0.1:${port}' }\n`)
  const child = spawn(REGISTRY, ['serve', config], { stdio: 'ignore', env: { PATH: process.env.PATH, OTEL_TRACES_EXPORTER: 'none' } })
  t.teardown(() => { child.kill('SIGKILL') })
  await until(() => fetch(`http://127.0.0.1:${port}/v2/`).then(({ ok }) => ok, () => false))
  return `127.0.0.1:${port}`
}

function digestOf (bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}

/** Uploads blobs and a manifest, as `oras push` does; returns the manifest's digest. */
async function push (host: string, reference: string, layers: ReadonlyArray<readonly [mediaType: string, bytes: Buffer, title?: string]>, artifactType = 'application/vnd.agentskills.skill.v1'): Promise<string> {
  const empty = Buffer.from('{}')
  for (const bytes of [empty, ...layers.map(([, bytes]) => bytes)]) {
    const { headers } = await fetch(`http://${host}/v2/team/skills/blobs/uploads/`, { method: 'POST' })
    const location = new URL(headers.get('location') ?? '', `http://${host}`)
    location.searchParams.set('digest', digestOf(bytes))
    await fetch(location, { method: 'PUT', body: bytes, headers: { 'content-type': 'application/octet-stream' } })
  }
  return await pushManifest(host, reference, {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    artifactType,
    config: { mediaType: 'application/vnd.agentskills.skill.config.v1+json', digest: digestOf(empty), size: empty.length },
    layers: layers.map(([mediaType, bytes, title]) => ({ mediaType, digest: digestOf(bytes), size: bytes.length, ...title !== undefined && { annotations: { 'org.opencontainers.image.title': title } } }))
  })
}

async function pushManifest (host: string, reference: string, manifest: { readonly mediaType: string, readonly [key: string]: unknown }): Promise<string> {
  const bytes = Buffer.from(JSON.stringify(manifest))
  const response = await fetch(`http://${host}/v2/team/skills/manifests/${reference === '' ? digestOf(bytes) : reference}`, { method: 'PUT', body: bytes, headers: { 'content-type': manifest.mediaType } })
  if (!response.ok) throw new Error(await response.text())
  return digestOf(bytes)
}

const SKILL_LAYER = 'application/vnd.agentskills.skill.content.v1.tar+gzip'

t.test('K83: artifacts of a registry, by tag, digest and collection, and a tag that moves', { skip }, async (t) => {
  const host = await startRegistry(t)
  const first = await push(host, '1', [[SKILL_LAYER, await tarGzOf([['a/SKILL.md', skillText('a')], ['a/x.txt', 'x']])]])
  const files = await push(host, 'files', [['text/markdown', Buffer.from(skillText('f')), 'f/SKILL.md'], ['text/plain', Buffer.from('y'), 'f/y.txt']])
  const manifests = [first, files].map((digest) => ({ mediaType: 'application/vnd.oci.image.manifest.v1+json', digest, size: 1 }))
  const sized = await Promise.all(manifests.map(async (entry) => ({ ...entry, size: Number((await fetch(`http://${host}/v2/team/skills/manifests/${entry.digest}`, { headers: { accept: entry.mediaType } })).headers.get('content-length')) })))
  const index = { schemaVersion: 2, mediaType: 'application/vnd.oci.image.index.v1+json', artifactType: 'application/vnd.agentskills.collection.v1', manifests: sized }
  await pushManifest(host, 'all', index)
  const { sources, skills, status } = await openSources(t, [sourceAt(`oci://${host}/team/skills:1`), sourceAt(`oci://${host}/team/skills@${first}`), sourceAt(`oci://${host}/team/skills:all`)])
  t.strictSame(sources.status.map(({ state, skills }) => [state, skills]), [['ok', 1], ['ok', 1], ['ok', 2]])
  t.equal(status().revision, `1@${first}`)
  t.equal(await textOf(() => skills.readFile('f', 'y.txt')), 'y')
  const second = await push(host, '1', [[SKILL_LAYER, await tarGzOf([['a/SKILL.md', skillText('a')], ['a/x.txt', 'moved']])]])
  await sources.sync()
  t.strictSame(sources.status.map(({ revision }) => revision).slice(0, 2), [`1@${second}`, first], 'a digest never moves')
  t.equal(await textOf(() => skills.readFile('a', 'x.txt')), 'moved')
})

t.test('K84: a registry gets no credentials to another host, and other bytes than those of a digest are refused', async (t) => {
  const secretFile = join(t.testdir({ secret: 'hunter22-secret' }), 'secret')
  const thief = await startServer(t, (_, response) => { response.end('{"token":"x"}') })
  const server = await startServer(t, (_, response) => { response.writeHead(401, { 'www-authenticate': `Bearer realm="${thief.url.replace('127.0.0.1', 'localhost')}/token",service="s"` }).end() })
  const host = new URL(server.url).host
  const source = sourceAt(`oci://${host}/team/skills:1`, { auth: { username: 'u', secretFile } })
  const { sources, status } = await openSources(t, [source])
  t.match(status(), { state: 'failed', error: { code: 'auth_failed' } })
  t.equal(thief.requests.length, 1)
  t.equal(thief.requests[0]?.headers.authorization, undefined)
  const layer = Buffer.from('other bytes')
  const manifest = (more: object): Buffer => Buffer.from(JSON.stringify({ schemaVersion: 2, layers: [{ mediaType: SKILL_LAYER, digest: `sha256:${'1'.repeat(64)}`, size: layer.length, ...more }] }))
  const table: ReadonlyArray<readonly [string, Buffer]> = [
    ['digest_mismatch', manifest({})], ['refused_tree', manifest({ urls: ['https://example.org'] })], ['bad_answer', manifest({ digest: 'md5:1' })], ['too_large', manifest({ size: 1e10 })],
    ['bad_answer', Buffer.from('{"schemaVersion":1}')], ['bad_answer', Buffer.from('not json')]
  ]
  for (const [code, bytes] of table) {
    server.answer = (request, response) => {
      if (request.url?.includes('/blobs/') === true) response.end(layer)
      else response.setHeader('docker-content-digest', digestOf(bytes)).end(request.method === 'HEAD' ? undefined : bytes)
    }
    await sources.sync()
    t.match(status(), { state: 'failed', error: { code } }, bytes.toString())
  }
  for (const text of ['<html>Sign in</html>', 'null', '[]', '{"token":1}']) {
    thief.answer = (_, response) => { response.end(text) }
    server.answer = (_, response) => { response.writeHead(401, { 'www-authenticate': `Bearer realm="${thief.url}/token",service="s"` }).end() }
    await sources.sync()
    t.match(status(), { error: { code: 'auth_failed' } }, text)
  }
  server.answer = (_, response) => { response.setHeader('docker-content-digest', `sha256:${'2'.repeat(64)}`).end('{}') }
  await sources.sync()
  t.match(status(), { error: { code: 'digest_mismatch' } })
})

t.test('K85: an artifact without a layer that can be read, or with one that takes files away, leaves the state before it', { skip }, async (t) => {
  const host = await startRegistry(t)
  const first = await push(host, '1', [[SKILL_LAYER, await tarGzOf([['a/SKILL.md', skillText('a')]])]])
  const { sources, skills, status } = await openSources(t, [sourceAt(`oci://${host}/team/skills:1`)])
  const whiteOut = await tarGzOf([['.wh.a', ''], ['b/SKILL.md', skillText('b')]])
  for (const [what, code, layers] of [
    ['no layer', 'bad_archive', []],
    ['another compression', 'bad_archive', [['application/vnd.oci.image.layer.v1.tar+zstd', Buffer.from('x')]]],
    ['a layer that removes a skill of another', 'refused_tree', [['application/vnd.oci.image.layer.v1.tar+gzip', await tarGzOf([['a/SKILL.md', skillText('a')]])], ['application/vnd.oci.image.layer.v1.tar+gzip', whiteOut]]]
  ] satisfies ReadonlyArray<readonly [string, string, Parameters<typeof push>[2]]>) {
    await push(host, '1', layers)
    await sources.sync()
    t.match(status(), { state: 'stale', revision: `1@${first}`, error: { code } }, what)
  }
  t.strictSame(await skills.list(), ['a'])
})
