import { createHash } from 'node:crypto'
import dns from 'node:dns'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { delimiter, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { AwsV4Signer } from 'aws4fetch'
import t, { type Test } from 'tap'
import { sha256 } from '../../src/core/shared/digest.ts'
import { dockerCredentials } from '../../src/sources/oci/docker-credentials.ts'
import { mayHaveCredentials } from '../../src/sources/oci/registry.ts'
import { tarGzOf, tarOf, zipOf } from '../helper/archives.ts'
import { startServer } from '../helper/fault-server.ts'
import { skillText, textOf } from '../helper/skills.ts'
import { openSources, sourceAt } from '../helper/sources.ts'

const TAR_LAYER = 'application/vnd.oci.image.layer.v1.tar+gzip'

type Layer = readonly [mediaType: string, bytes: Buffer, title?: string, isFolder?: boolean | undefined]

interface TestRegistry {
  readonly address: string
  /** Uploads layers and their manifest; returns its digest. */
  push (reference: string, layers: readonly Layer[]): string
  pushManifest (reference: string, manifest: object): string
}

/** A registry that keeps what is pushed. It names the digest of a tag only for tags that are not `unnamed`. */
async function startRegistry (t: Test): Promise<TestRegistry> {
  const stored = new Map<string, Buffer>()
  const server = await startServer(t, ({ url = '', method }, response) => {
    const found = stored.get(url.replace('/v2/team/skills/', ''))
    if (found !== undefined && !url.endsWith('/unnamed')) response.setHeader('docker-content-digest', sha256(found))
    response.writeHead(found === undefined ? 404 : 200).end(method === 'HEAD' ? undefined : found)
  })
  const pushManifest = (reference: string, manifest: object): string => {
    const bytes = Buffer.from(JSON.stringify(manifest))
    stored.set(`manifests/${reference}`, bytes).set(`manifests/${sha256(bytes)}`, bytes)
    return sha256(bytes)
  }
  return {
    address: `oci://${new URL(server.url).host}/team/skills`,
    pushManifest,
    push (reference, layers) {
      for (const [, bytes] of layers) stored.set(`blobs/${sha256(bytes)}`, bytes)
      return pushManifest(reference, {
        schemaVersion: 2,
        layers: layers.map(([mediaType, bytes, title, isFolder]) => ({
          mediaType,
          digest: sha256(bytes),
          size: bytes.length,
          ...title !== undefined && {
            annotations: {
              'org.opencontainers.image.title': title, ...isFolder === true && { 'io.deis.oras.content.unpack': 'true' }
            }
          }
        }))
      })
    }
  }
}

const SKILL_LAYER = 'application/vnd.agentskills.skill.content.v1.tar+gzip'

t.test('K83: artifacts of a registry, by tag, digest and collection, and a tag that moves', async (t) => {
  const { address, push, pushManifest } = await startRegistry(t)
  const first = push('1', [[SKILL_LAYER, await tarGzOf([['a/SKILL.md', skillText('a')], ['a/x.txt', 'x']])]])
  const files = push('unnamed',
    [['text/markdown', Buffer.from(skillText('f')), 'f/SKILL.md'], ['text/plain', Buffer.from('y'), 'f/y.txt']])
  const manifests = [first, files].map((digest) =>
    ({ mediaType: 'application/vnd.oci.image.manifest.v1+json', digest, size: 1 }))
  pushManifest('all', {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    artifactType: 'application/vnd.agentskills.collection.v1',
    manifests
  })
  const references = [':1', `@${first}`, ':all', ':unnamed']
  const { sources, skills, status } = await openSources(t,
    references.map((reference) => sourceAt(`${address}${reference}`)))
  t.strictSame(sources.status.map(({ state, skills }) => [state, skills]), [['ok', 1], ['ok', 1], ['ok', 2], ['ok', 1]])
  t.equal(status().revision, `1@${first}`)
  t.equal(sources.status[3]?.revision, `unnamed@${files}`,
    'a registry that does not say the digest of a tag is asked for the manifest')
  t.equal(await textOf(() => skills.read('f', (skill) => skill.file('y.txt'))), 'y')
  const second = push('1', [[SKILL_LAYER, await tarGzOf([['a/SKILL.md', skillText('a')], ['a/x.txt', 'moved']])]])
  await sources.sync()
  t.strictSame(sources.status.map(({ revision }) => revision).slice(0, 2), [`1@${second}`, first],
    'a digest never moves')
  t.equal(await textOf(() => skills.read('a', (skill) => skill.file('x.txt'))), 'moved')
})

t.test('K83: what ORAS pushes without a type of its own: plain files, archives and folders', async (t) => {
  const { address, push } = await startRegistry(t)
  const { sources, skills, status } = await openSources(t, [sourceAt(`${address}:1`)])
  const skill = Buffer.from(skillText('a'))
  const tar = await tarOf([['a/SKILL.md', skill]])
  type Titled = readonly [title: string, bytes: Buffer, isFolder?: boolean]
  const table: ReadonlyArray<readonly [what: string, ...layers: readonly Titled[]]> = [
    ['files with paths, one of them an archive', ['a/SKILL.md', skill], ['a/x.tar', tar]],
    ['a file of one skill', ['SKILL.md', skill], ['x.md', skill]],
    ['an archive', ['skills.tar', tar]], ['a compressed archive', ['skills.tgz', gzipSync(tar)]], ['a ZIP',
      ['skills.zip', zipOf([{ name: 'a/SKILL.md', bytes: skill }])]],
    ['a folder', ['a', gzipSync(tar), true]], ['a folder with a path', ['b/a', gzipSync(tar), true]]
  ]
  for (const [what, ...layers] of table) {
    push('1',
      layers.map(([title, bytes, isFolder]) => ['application/vnd.oci.image.layer.v1.tar', bytes, title, isFolder]))
    await sources.sync()
    t.match(status(), { state: 'ok', skills: 1 }, what)
    t.strictSame(await skills.list(), ['a'], what)
    const [, [path = '', bytes = skill] = []] = layers
    if (path !== '') {
      t.match(await skills.read('a', (skill) => skill.open(path.replace('a/', ''))),
        { kind: 'content', content: { bytes } }, what)
    }
  }
  push('1', [['application/vnd.oci.image.layer.v1.tar', skill, '../SKILL.md']])
  await sources.sync()
  t.match(status(), { state: 'stale', error: { code: 'refused_tree' } })
})

t.test('K84: a registry gets no credentials to another host, and other bytes than those of a ' +
  'digest are refused', async (t) => {
  const secretFile = join(t.testdir({ secret: 'hunter22-secret' }), 'secret')
  const thief = await startServer(t, (_, response) => { response.end('{"token":"x"}') })
  const challenge = (url: string): RequestListener => (_, response) => {
    response.writeHead(401, { 'www-authenticate': `Bearer realm="${url}/token",service="s"` }).end()
  }
  const server = await startServer(t, challenge(thief.url.replace('127.0.0.1', 'localhost')))
  const host = new URL(server.url).host
  const source = sourceAt(`oci://${host}/team/skills:1`, { auth: { username: 'u', secretFile } })
  const { sources, status } = await openSources(t, [source])
  t.match(status(), { state: 'failed', error: { code: 'auth_failed' } })
  t.equal(thief.requests.length, 1)
  t.equal(thief.requests[0]?.headers.authorization, undefined)
  const layer = Buffer.from('other bytes')
  const manifest = (more: object): string => JSON.stringify({
    schemaVersion: 2,
    layers: [{ mediaType: SKILL_LAYER, digest: `sha256:${'1'.repeat(64)}`, size: layer.length, ...more }]
  })
  const table: ReadonlyArray<readonly [code: string, text: string, type?: string]> = [
    ['digest_mismatch', manifest({})],
    ['refused_tree', manifest({ urls: ['https://example.org'] })],
    ['bad_answer', manifest({ digest: 'md5:1' })],
    ['bad_answer', manifest({ digest: `../../other/blobs/sha256:${'1'.repeat(64)}` })],
    ['too_large', manifest({ size: 1e10 })],
    ['bad_answer', '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","layers":[]}',
      'application/vnd.oci.image.index.v1+json'],
    ['bad_answer', '{"schemaVersion":2,"layers":[],"manifests":[]}'],
    ['bad_answer', '{"schemaVersion":1}'],
    ['bad_answer', 'not json']
  ]
  for (const [code, text, type = 'application/json'] of table) {
    server.answer = ({ url, method }, response) => {
      const isBlob = url?.includes('/blobs/') === true
      if (!isBlob) response.setHeader('docker-content-digest', sha256(text)).setHeader('content-type', type)
      response.end(isBlob ? layer : method === 'HEAD' ? undefined : text)
    }
    await sources.sync()
    t.match(status(), { state: 'failed', error: { code } }, text)
  }
  for (const [text, code] of [['<html>Sign in</html>', 'bad_answer'], ['{"token":1}', 'auth_failed']] as const) {
    thief.answer = (_, response) => { response.end(text) }
    server.answer = challenge(thief.url)
    await sources.sync()
    t.match(status(), { error: { code } }, text)
  }
  server.answer = (_, response) => { response.setHeader('docker-content-digest', `sha256:${'2'.repeat(64)}`).end('{}') }
  await sources.sync()
  t.match(status(), { error: { code: 'digest_mismatch' } })
})

t.test('K83: a later layer replaces files of an earlier one, and what lies outside of the path is no matter ' +
  'of the source', async (t) => {
  const { address, push } = await startRegistry(t)
  const base = await tarGzOf([
    ['bin/sh', 'x'], ['bin/ash', { type: 'link', linkname: 'bin/sh' }], ['lib',
      { type: 'symlink', linkname: '/usr/lib' }],
    ['dev/null', { type: 'character-device' }], ['etc/.wh.old', ''], ['opt/skills/a/SKILL.md', skillText('a')]
  ])
  const top = await tarGzOf([
    ['./opt/skills/a/x.txt', 'x'], ['./opt/skills/a/y.txt', { type: 'link', linkname: 'opt/skills/a/x.txt' }],
    ['./opt/skills/a/SKILL.md', skillText('a', 'New.\n')]
  ])
  const first = push('1', [[TAR_LAYER, base], [TAR_LAYER, top]])
  const { sources, status, skills } = await openSources(t, [sourceAt(`${address}:1#opt/skills`)])
  t.match(status(), { state: 'ok', skills: 1 })
  for (const [what, code, layers] of [
    ['no layer', 'bad_archive', []],
    ['another compression', 'bad_archive', [['application/vnd.oci.image.layer.v1.tar+zstd', Buffer.from('x')]]],
    ['a layer that removes a file of another', 'refused_tree',
      [[TAR_LAYER, base], [TAR_LAYER, await tarGzOf([['opt/skills/a/.wh.x.txt', '']])]]]
  ] satisfies ReadonlyArray<readonly [string, string, Parameters<typeof push>[1]]>) {
    push('1', layers)
    await sources.sync()
    t.match(status(), { state: 'stale', revision: `1@${first}`, error: { code } }, what)
  }
  t.strictSame((await skills.read('a', (skill) => skill.manifest())).files.map(({ path }) => path),
    ['SKILL.md', 'x.txt', 'y.txt'])
  t.match(await textOf(() => skills.read('a', (skill) => skill.mainFile('SKILL.md'))), /New/)
})

t.test('K84: a realm gets credentials on the host of the registry, and where Docker Hub and ' +
  'GitLab have theirs', async (t) => {
  for (const [realm, registry, expected] of [
    ['ghcr.io', 'ghcr.io', true], ['localhost', 'localhost', true], ['auth.docker.io', 'registry-1.docker.io', true],
    ['gitlab.com', 'registry.gitlab.com', true],
    ['gitlab.team.example', 'registry.team.example', false], ['a.co.uk', 'b.co.uk', false], ['registry.gitlab.com',
      'gitlab.com', false], ['auth.docker.io', 'ghcr.io', false],
    ['evilgitlab.com', 'registry.gitlab.com', false], ['gitlab.com.evil.example', 'registry.gitlab.com', false],
    ['com', 'registry.gitlab.com', false], ['10.0.0.1', '192.0.0.1', false], ['[::1]', '[::2]', false]
  ] as const) t.equal(mayHaveCredentials(realm, registry), expected, `${realm} for ${registry}`)
})

t.test('K84: the credentials of docker login, from config.json or from a helper that it names', async (t) => {
  const bin = t.testdir({ asked: '' })
  const helper = (name: string, script: string): void => {
    writeFileSync(join(bin, `docker-credential-${name}`), `#!/bin/sh\n${script}\n`)
    chmodSync(join(bin, `docker-credential-${name}`), 0o755)
  }
  helper('good',
    `[ "$1" = get ] && cat > '${bin}/asked'; echo '{"ServerURL":"x","Username":"AWS","Secret":"of the helper"}'`)
  helper('none', 'echo "credentials not found in native keychain"; exit 1')
  helper('bad', 'echo "hunter22-secret"; exit 1')
  helper('token', 'echo \'{"Username":"<token>","Secret":"hunter22-secret"}\'')
  helper('text', 'echo hunter22-secret')
  helper('nobody', 'echo \'{"Secret":"hunter22-secret"}\'')
  const server =
    await startServer(t, (_, response) => { response.writeHead(401, { 'www-authenticate': 'Basic realm="r"' }).end() })
  const host = new URL(server.url).host
  const env = { PATH: `${bin}${delimiter}${process.env['PATH']}`, DOCKER_CONFIG: bin }
  const { sources, status, log } = await openSources(t, [sourceAt(`oci://${host}/team/skills:1`)], { env })
  const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`
  const table: ReadonlyArray<readonly [config: object | string, authorization: string | undefined, reason?: string]> = [
    [{ auths: { [host]: { auth: 'YTpi' } }, credHelpers: { [host]: 'good' } }, basic('a:b')],
    [{ auths: { [host]: {} }, credHelpers: { [host]: 'good' }, credsStore: 'bad' }, basic('AWS:of the helper')],
    [{ credHelpers: { 'other.example': 'bad' }, credsStore: 'good' }, basic('AWS:of the helper')],
    [{ credsStore: 'none' }, undefined],
    [{ credsStore: 'absent' }, undefined,
      'docker-credential-absent, which config.json of Docker names, gives no credentials'],
    [{ credsStore: 'bad' }, undefined,
      'docker-credential-bad, which config.json of Docker names, gives no credentials'],
    [{ credsStore: 'token' }, undefined,
      'docker-credential-token gives no user and secret: set a user and a password or access token with auth'],
    [{ credsStore: 'text' }, undefined,
      'docker-credential-text, which config.json of Docker names, gives no credentials'],
    [{ credsStore: 'nobody' }, undefined,
      'docker-credential-nobody gives no user and secret: set a user and a password or access token with auth'],
    [{ credsStore: '../good' }, undefined, 'config.json of Docker has a helper whose name is not a plain word'],
    ['{', undefined, 'config.json of Docker is not JSON']
  ]
  for (const [config, authorization, reason] of table) {
    const label = JSON.stringify(config)
    writeFileSync(join(bin, 'config.json'), typeof config === 'string' ? config : label)
    const before = server.requests.length
    await sources.sync()
    t.strictSame(
      server.requests.slice(before).map(({ headers }) => headers.authorization).filter((value) =>
        value !== undefined), authorization === undefined ? [] : [authorization], label)
    t.match(status(),
      {
        state: 'failed',
        error: reason === undefined
          ? { code: 'auth_failed' }
          : { code: 'secret_missing', message: reason }
      }, label)
  }
  t.equal(readFileSync(join(bin, 'asked'), 'utf8'), host)
  writeFileSync(join(bin, 'config.json'),
    JSON.stringify({ auths: { 'https://index.docker.io/v1/': { auth: 'YTpi' } } }))
  t.strictSame(await dockerCredentials('docker.io', env, AbortSignal.timeout(60_000)),
    { authorization: basic('a:b') }, 'as docker login calls its own registry')
  t.notMatch(JSON.stringify([log, status()]), /hunter22/)
})

const ACCESS_KEY = 'AKIDEXAMPLE'
const SECRET = 'hunter22-secret'
const PAGE = 3

/** Answers a request to the bucket, and returns true; false leaves it to the bucket. */
type Fault = (response: ServerResponse, url: URL) => boolean

interface Store {
  readonly url: string
  readonly objects: Map<string, string>
  readonly gets: string[]
  before: Fault
}

function etagOf (content: string): string {
  return `"${createHash('md5').update(content).digest('hex')}"`
}

/** An object in the XML of a listing. */
function entryOf (key: string, content: string, size = Buffer.byteLength(content)): string {
  const etag = etagOf(content).replaceAll('"', '&quot;')
  return `<Contents><Key>${encodeURIComponent(key)}</Key><ETag>${etag}</ETag><Size>${size}</Size></Contents>`
}

/** @param next the token of the next page, where there is one */
function listingOf (entries: readonly string[], next?: number): string {
  const token = next === undefined ? '' : `<NextContinuationToken>${next}</NextContinuationToken>`
  return '<?xml version="1.0"?><ListBucketResult><EncodingType>url</EncodingType>' +
    `<IsTruncated>${next !== undefined}</IsTruncated>${token}${entries.join('')}</ListBucketResult>`
}

/** A bucket that keeps the protocol's rules: signatures, pages, conditions. */
async function startStore (t: Test): Promise<Store> {
  const objects = new Map<string, string>()
  for (const name of ['a', 'b', 'c']) objects.set(`team/skills/${name}/SKILL.md`, skillText(name))
  objects.set('team/skills/a/notes & more.txt', 'one')
  objects.set('other/skills/x/SKILL.md', skillText('x'))
  const store: Store = { url: '', objects, gets: [], before: () => false }
  const server = await startServer(t, (request, response) => {
    const url = new URL(request.url ?? '', store.url)
    if (!store.before(response, url)) void answer(request, response, url)
  })

  async function answer (request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    if (!await isSigned(request, url)) {
      response.writeHead(403).end('<Error><Code>SignatureDoesNotMatch</Code></Error>')
      return
    }
    if (url.searchParams.get('list-type') === '2') {
      const start = Number(url.searchParams.get('continuation-token') ?? 0)
      const all = entriesOf(store, url.searchParams.get('prefix') ?? '')
      const end = start + PAGE
      response.end(listingOf(all.slice(start, end), end < all.length ? end : undefined))
      return
    }
    const key = decodeURIComponent(url.pathname.slice('/bucket/'.length))
    store.gets.push(key)
    const content = objects.get(key)
    if (content === undefined) response.writeHead(404).end()
    else if (request.headers['if-match'] !== etagOf(content)) response.writeHead(412).end()
    else response.setHeader('etag', etagOf(content)).end(content)
  }

  return Object.assign(store, { url: server.url })
}

function entriesOf ({ objects }: Store, prefix: string): string[] {
  const keys = [...objects.keys()].filter((key) => key.startsWith(prefix)).sort()
  return keys.map((key) => entryOf(key, objects.get(key) ?? ''))
}

/** Signs the request again, from what arrived. */
async function isSigned (request: IncomingMessage, url: URL): Promise<boolean> {
  const names = /SignedHeaders=([^,]+)/.exec(request.headers.authorization ?? '')?.[1]?.split(';') ?? []
  const headers =
    Object.fromEntries(names.filter((name) => name !== 'host').map((name) => [name, String(request.headers[name])]))
  const signer = new AwsV4Signer({
    url: url.href,
    method: 'GET',
    accessKeyId: ACCESS_KEY,
    secretAccessKey: SECRET,
    service: 's3',
    region: 'us-east-1',
    headers,
    datetime: String(request.headers['x-amz-date']),
    allHeaders: true
  })
  return (await signer.sign()).headers.get('authorization') === request.headers.authorization
}

async function openStore (t: Test, store: Store, { stateDir, ...more }: { stateDir?: string, marker?: string } = {}) {
  const secretFile = join(stateDir === undefined ? t.testdir() : t.testdirName, 'secret')
  writeFileSync(secretFile, SECRET)
  const auth = { username: ACCESS_KEY, secretFile }
  const source = sourceAt('s3://bucket/team', { endpoint: store.url, auth, ...more })
  return await openSources(t, [source], { ...stateDir !== undefined && { stateDir } })
}

t.test('K83: a prefix of a bucket, of which only what changed is fetched', async (t) => {
  const store = await startStore(t)
  const { skills, sources, status } = await openStore(t, store)
  t.match(status(), { state: 'ok', skills: 3 })
  t.equal(await textOf(() => skills.read('a', (skill) => skill.file('notes & more.txt'))), 'one')
  const before = store.gets.length
  await sources.sync()
  t.equal(store.gets.length, before, 'nothing new is a listing')
  store.objects.set('team/skills/b/SKILL.md', skillText('b', 'Other.\n'))
  store.objects.delete('team/skills/c/SKILL.md')
  await sources.sync()
  t.strictSame(store.gets.slice(before), ['team/skills/b/SKILL.md'])
  t.strictSame(await skills.list(), ['a', 'b'])
})

t.test('K85: half of an upload is not served with a marker, and one that is not in the bucket is named', async (t) => {
  const store = await startStore(t)
  const { skills, sources, status } = await openStore(t, store, { marker: '.revision' })
  t.match(status(), { state: 'failed', error: { code: 'not_found', message: 'the marker is not in the bucket' } })
  const document = () => textOf(() => skills.read('a', (skill) => skill.mainFile('SKILL.md')))
  for (const [revision, text] of [['1', 'First.'], ['1', 'Half.'], ['2', 'Half.']] as const) {
    store.objects.set('team/.revision', revision)
    store.objects.set('team/skills/a/SKILL.md', skillText('a', `${text}\n`))
    await sources.sync()
    t.match(await document(), revision === '1' ? /First/ : /Half/)
  }
})

t.test('K83: a secret without the id of its key ends the start', async (t) => {
  const secretFile = join(t.testdir({ secret: SECRET }), 'secret')
  await t.rejects(openSources(t, [sourceAt('s3://bucket/team', { name: 'team', auth: { secretFile } })]),
    { message: 'source "team" needs auth.username: the id of the access key' })
})

/** Sends a body instead of what the bucket has. */
function sends (body: string, status = 200): Fault {
  return (response) => Boolean(response.writeHead(status).end(body))
}

t.test('K85: a bucket that changes while it is read, lists wrong or refuses keeps the last state', async (t) => {
  const store = await startStore(t)
  const { sources, status, skills, log } = await openStore(t, store)
  let isCut = true
  const faults: ReadonlyArray<{ readonly title: string, readonly code: string, readonly fault: Fault }> = [
    {
      title: 'an object that changes with each request',
      code: 'changing',
      fault: (_, { pathname }) => {
        if (pathname.endsWith('/b/SKILL.md')) store.objects.set('team/skills/b/SKILL.md', String(Math.random()))
        return false
      }
    },
    {
      title: 'bytes of another size than the listed one',
      code: 'changing',
      fault: (response, { pathname }) => pathname.endsWith('SKILL.md') && Boolean(response.end('other bytes'))
    },
    {
      title: 'a listing that lacks objects, and has them the next time',
      code: 'changing',
      fault: (response, { searchParams }) => {
        if (!searchParams.has('list-type') || !isCut) return false
        isCut = false
        return Boolean(response.end(listingOf(entriesOf(store, 'team/').slice(1))))
      }
    },
    ...Object.entries({
      'more pages, and no token': '<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>',
      'the same page again and again': listingOf([], 1),
      'no word of whether it ends': `<ListBucketResult>${entryOf('team/x', 'x')}</ListBucketResult>`,
      'neither yes nor no': '<ListBucketResult><IsTruncated>1</IsTruncated></ListBucketResult>',
      'an object without ETag and size': listingOf(['<Contents><Key>team/x</Key></Contents>']),
      'an object outside of the prefix': listingOf([entryOf('other/SKILL.md', 'x')]),
      'two listings': '<ListBucketResult/><ListBucketResult/>',
      'a page': '<html><br>Sign in</html',
      // A proxy that breaks off says the same as one that has sent all.
      'a listing that breaks off': listingOf([entryOf('team/x', 'x')]).replace('</ListBucketResult>', '')
    }).map(([title, body]) => ({ title, code: 'bad_answer', fault: sends(body) })),
    { title: 'a refusal', code: 'auth_failed', fault: sends(SECRET, 403) },
    { title: 'an overloaded host', code: 'unreachable', fault: sends('', 503) }
  ]
  for (const { title, code, fault } of faults) {
    store.objects.set('team/skills/b/SKILL.md', skillText('b', `${title}\n`))
    store.before = fault
    await sources.sync()
    t.match(status(), { state: 'stale', skills: 3, error: { code } }, title)
    t.strictSame(await skills.list(), ['a', 'b', 'c'], title)
  }
  t.notMatch(JSON.stringify([log, sources.status]), /hunter22/)
  store.before = () => false
  store.objects.delete('team/skills/b/SKILL.md')
  await sources.sync()
  t.match(status(), { state: 'ok', skills: 2 }, 'what is gone twice is gone')
  const replica = await openStore(t, store, { stateDir: join(t.testdirName, 'replica') })
  t.match(replica.status(), { state: 'ok', revision: status().revision }, 'another replica has the same revision')
})

t.test('K85: a refusal has the code that the service gives as its reason, and nothing else of ' +
  'what it says', async (t) => {
  const store = await startStore(t)
  const { sources, status, log } = await openStore(t, store)
  const unnamed = 'the host refuses the credentials'
  const error = (code: string, more = ''): string => `<Error><Code>${code}</Code>${more}</Error>`
  for (const [answer, body, code, message] of [
    [403, `<?xml version="1.0"?>\n${error('RequestTimeTooSkewed', '<Message>CANARY</Message>')}`, 'auth_failed',
      'the host refuses the request: RequestTimeTooSkewed'],
    [400, error('ExpiredToken'), 'bad_answer', 'the host refuses the request: ExpiredToken'],
    [403, error('CANARY https://canary.example'), 'auth_failed', unnamed],
    [403, error('CANARY'.repeat(20)), 'auth_failed', unnamed],
    [401, `${' '.repeat(100_000)}${error('CANARY')}`, 'auth_failed', unnamed]
  ] as const) {
    store.before = sends(body, answer)
    await sources.sync()
    t.match(status(), { state: 'stale', error: { code, message } }, message)
  }
  store.before = (response) => {
    response.writeHead(403).write('<Error>')
    setImmediate(() => { response.destroy() })
    return true
  }
  await sources.sync()
  t.match(status(), { error: { code: 'auth_failed', message: unnamed } }, 'a body that breaks off')
  t.notMatch(JSON.stringify([log, sources.status]), /CANARY/)
  t.match(JSON.stringify(log), /RequestTimeTooSkewed/)
})

t.test('K85: keys that no folder holds, and objects that are too large, are left out one by one, and ' +
  'named', async (t) => {
  const store = await startStore(t)
  for (const key of [`team/skills/a/${'n'.repeat(256)}`, 'team/skills/a//x', 'team/../x', 'team/skills/a/../y',
    'team/skills/b', 'team/skills/c/', `team/skills/a/${'d/'.repeat(20)}x`]) {
    store.objects.set(key, key.endsWith('/') ? '' : 'x')
  }
  const { sources, status } = await openStore(t, store)
  t.match(status(), { state: 'ok', skills: 3, left_out: { count: 6 } })
  const large = ['team/skills/a/model.bin', 'team/skills/a/../y'].map((key) => entryOf(key, '', 50 * 1_048_576 + 1))
  const listing = listingOf([entryOf('team/skills/a/SKILL.md', skillText('a')), ...large])
  store.before = (response, { searchParams }) => searchParams.has('list-type') && Boolean(response.end(listing))
  await sources.sync()
  t.match(status(), {
    state: 'ok',
    skills: 1,
    left_out: {
      count: 2,
      first: [{ path: 'team/skills/a/../y', reason: 'unsafe_name' },
        { path: 'team/skills/a/model.bin', reason: 'bound_reached' }]
    }
  })
})

t.test('K85: a listing that is larger than any honest one is not kept in memory', async (t) => {
  const store = await startStore(t)
  let page = 0
  const padding = `<!--${'x'.repeat(40 * 1_048_576)}-->`
  store.before = (response) => Boolean(response.end(listingOf([padding], ++page)))
  const { status } = await openStore(t, store)
  t.match(status(), {
    state: 'failed', error: { code: 'too_large', message: /a listing of more than 134217728 bytes/ }
  })
})

t.test('K83: the region of a bucket is that of the variable, and us-east-1 when it is unset or empty', async (t) => {
  const lookup = t.capture(dns, 'lookup',
    (_host: string, _options: object, done: (error: Error) => void) => { done(new Error('there is no network')) })
  for (const [index, env] of [{}, { AWS_REGION: '' }, { AWS_REGION: 'eu-west-1' }].entries()) {
    const { sources } =
      await openSources(t, [sourceAt('s3://bucket/team')], { env, stateDir: join(t.testdir(), String(index)) })
    await sources.close()
  }
  t.strictSame(lookup().map(({ args: [host] }) => host),
    ['s3.us-east-1.amazonaws.com', 's3.us-east-1.amazonaws.com', 's3.eu-west-1.amazonaws.com'])
})
