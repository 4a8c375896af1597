import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import net, { type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { sha256 } from '../../src/core/shared/digest.ts'
import type { Source } from '../../src/sources/kinds.ts'
import { subjectOfArchive } from '../../src/verdicts/upload.ts'
import { tarGzOf, tarOf, zipOf, zipOfTexts } from '../helper/archives.ts'
import { type FaultServer, startServer } from '../helper/fault-server.ts'
import { skillText, startManager, textOf } from '../helper/skills.ts'
import { openSources, sourceAt } from '../helper/sources.ts'

const good = [['repo-abc/skills/a/SKILL.md', skillText('a')], ['repo-abc/skills/a/x.txt', 'x'],
  ['repo-abc/skills/b/SKILL.md', skillText('b')]] as const

interface ArchiveHost extends FaultServer {
  /** What it sends next, with a tag unless the test wants none. */
  body: Buffer
}

async function startHost (t: Test, body: Buffer, isTagged = true): Promise<ArchiveHost> {
  const server = await startServer(t, (request, response) => {
    const tag = `"${sha256(host.body).slice(-8)}"`
    if (isTagged) response.setHeader('etag', tag)
    if (isTagged && request.headers['if-none-match'] === tag) response.writeHead(304).end()
    else response.end(host.body)
  })
  const host = Object.assign(server, { body })
  return host
}

/** A source that is fetched from a host of its own. */
async function openArchive (t: Test, body: Buffer, { isTagged, ...more }: {
  isTagged?: boolean
} & Partial<Source> = {}) {
  const host = await startHost(t, body, isTagged)
  return { host, ...await openSources(t, [sourceAt(`${host.url}/a.tar.gz`, more)]) }
}

t.test('K83: archives of each kind, by their bytes, with the revisions of a folder', async (t) => {
  const bodies = [await tarGzOf(good), await tarOf(good), zipOfTexts(good)]
  const folder = await startManager(t, [t.testdir({ a: { 'SKILL.md': skillText('a'), 'x.txt': 'x' } })])
  const { host, skills, sources, status } = await openArchive(t, zipOfTexts([]))
  for (const body of bodies) {
    host.body = body
    await sources.sync()
    t.strictSame(await skills.list(), ['a', 'b'])
    t.equal((await skills.read('a', (skill) => skill.manifest())).revision,
      (await folder.read('a', (skill) => skill.manifest())).revision)
    t.match(status(), { kind: 'archive', state: 'ok', revision: sha256(body) })
  }
})

t.test('K83: a path may name the folder that holds everything, as it may leave it out', async (t) => {
  const twice = [['skills/skills/a/SKILL.md', skillText('a')], ['skills/other/b/SKILL.md', skillText('b')]] as const
  const bodies = [await tarGzOf(good), await tarGzOf(twice)]
  const server =
    await startServer(t, (request, response) => { response.end(bodies[Number(/\d/.exec(request.url ?? '')?.[0])]) })
  for (const [index, [address, names]] of ([
    ['0.tgz#skills', ['a', 'b']], ['0.tgz#repo-abc/skills', ['a', 'b']], ['0.tgz#repo', undefined],
    ['1.tgz#skills', ['a']], ['1.tgz#other', ['b']]
  ] as const).entries()) {
    const { skills, status, sources } =
      await openSources(t, [sourceAt(`${server.url}/${address}`)], { stateDir: join(t.testdirName, `s${index}`) })
    if (names === undefined) t.match(status(), { state: 'failed', error: { code: 'path_not_found' } }, address)
    else t.strictSame(await skills.list(), names, `${address} ${JSON.stringify(status().error)}`)
    await sources.close()
  }
})

t.test('K85: a tar archive that was cut between two files publishes nothing', async (t) => {
  const body = await tarOf(good)
  let end = body.length
  const server = await startServer(t, (_, response) => {
    // A body without a length ends with its connection, whole or not.
    response.useChunkedEncodingByDefault = false
    response.writeHead(200, { connection: 'close', etag: `"${end}"` }).end(body.subarray(0, end))
  })
  const { sources, skills, status } = await openSources(t, [sourceAt(`${server.url}/a.tar`)])
  const revision = status().revision
  for (end = 512; end < body.length; end += 512) {
    const other = await openSources(t, [sourceAt(`${server.url}/a.tar`)],
      { stateDir: join(t.testdirName, `cut-${end}`) })
    t.match(other.status(), { state: 'failed', error: { code: 'bad_archive' } }, `${end} of ${body.length} bytes`)
    await other.sources.close()
  }
  end = 1_024
  await sources.sync()
  t.match(status(), { state: 'stale', revision, error: { code: 'bad_archive' } })
  t.strictSame(await skills.list(), ['a', 'b'])
})

t.test('K83: one fetch for each release, everything else is a 304; without a validator the bytes ' +
  'are compared', async (t) => {
  for (const isTagged of [true, false]) {
    const { host, sources, skills, status } = await openArchive(t, await tarGzOf(good), { isTagged })
    const { revision, changed_at: changedAt } = status()
    await sources.sync()
    t.match(status(), { state: 'ok', revision, changed_at: changedAt })
    t.equal(host.requests.length, 2)
    t.equal(await textOf(() => skills.read('a', (skill) => skill.file('x.txt'))), 'x')
    host.body = await tarGzOf([['a/SKILL.md', skillText('a')], ['a/x.txt', 'y'], ['c/SKILL.md', skillText('c')]])
    await sources.sync()
    t.strictSame(await skills.list(), ['a', 'c'])
    t.equal(await textOf(() => skills.read('a', (skill) => skill.file('x.txt'))), 'y')
    await sources.close()
  }
})

t.test('K83: other bytes than those of the digest are never published, nor served from before', async (t) => {
  const body = await tarGzOf(good)
  const server = await startHost(t, body)
  const stateDir = join(t.testdir(), 'state')
  const open = async (fragment: string) =>
    await openSources(t, [sourceAt(`${server.url}/a.tar.gz${fragment}`)], { stateDir })
  const first = await open('')
  t.match(first.status(), { state: 'ok', skills: 2 })
  await first.sources.close()
  const wrong = await open(`#sha256:${'0'.repeat(64)}`)
  t.match(wrong.status(), { state: 'failed', skills: 0, error: { code: 'digest_mismatch' } })
  await wrong.sources.close()
  t.match((await open(`#${sha256(body)}`)).status(), { state: 'ok', skills: 2, revision: sha256(body) })
})

t.test('K85: a hostile archive publishes nothing, writes nothing outside, and is named in the status', async (t) => {
  const { host, sources, status, skills } = await openArchive(t, await tarGzOf(good))
  const main = ['a/SKILL.md', skillText('a')] as const
  const folder = (await tarOf([['d', { type: 'directory' }]])).subarray(0, 512)
  const twoNames = zipOfTexts([main])
  twoNames.write('a/OTHER.md', twoNames.indexOf(main[0]))
  const two = zipOfTexts([main, ['b/SKILL.md', skillText('b')]])
  const [directory, secondOfIt, end] = [two.indexOf('PK\u0001\u0002'), two.lastIndexOf('PK\u0001\u0002'),
    two.indexOf('PK\u0005\u0006')]
  // The bytes of the first entry go on into those of the second.
  const overlapping = Buffer.from(two)
  for (const at of [18, directory + 20]) overlapping.writeUInt32LE(directory - 30 - main[0].length, at)
  const flipped = zipOf([{ name: 'a/SKILL.md', bytes: Buffer.from(main[1]), isStored: true }])
  flipped.write('X', flipped.indexOf(main[1]) + 5)
  const hostile: ReadonlyArray<readonly [Buffer, RegExp]> = [
    [flipped, /"a\/SKILL\.md" does not match its checksum$/],
    [await tarGzOf([main, ['../up.txt', 'x']]), /up\.txt.*leads out/],
    [await tarGzOf([main, ['ok/../../up.txt', 'x']]), /leads out/],
    [await tarGzOf([main, ['/abs/x', 'x']]), /absolute path/],
    [await tarGzOf([main, ['a/C:evil\\x', 'x']]), /backslash/],
    [await tarGzOf([main, ['a/l', { type: 'symlink', linkname: '/etc/passwd' }]]), /leads out/],
    [await tarGzOf([main, ['a/l', { type: 'symlink', linkname: '../../x' }]]), /leads out/],
    [await tarGzOf([main, ['a/l', { type: 'link', linkname: 'a/other' }]]), /hard link to a file that does not come/],
    [await tarGzOf([main, ['a/f', { type: 'fifo' }]]), /is a FIFO/],
    [await tarGzOf([main, ['a/skill.MD', 'x']]), /occurs twice/],
    [await tarGzOf([main, ['a/.git/config', 'x']]), /is in a folder \.git/],
    [await tarGzOf([main, ['a', 'x']]), /a file and a folder/],
    [await tarGzOf([main, ['a/zeros', Buffer.alloc(12 * 1_048_576)]]), /its content is too large/],
    [await tarOf([main, ['a/large', Buffer.alloc(51 * 1_048_576)]]), /"a\/large" is larger than 52428800 bytes/],
    [(await tarGzOf(good)).subarray(0, 100), /damaged/],
    [zipOfTexts([['../up.txt', 'x']]), /leads out/],
    [zipOfTexts([['a/l', '../../etc/passwd', 0o120777]]), /leads out/],
    [zipOfTexts([['a/x', 'x', 0o060644]]), /not a regular file/],
    [zipOf([{ name: 'a/zeros', bytes: Buffer.alloc(12 * 1_048_576) }]), /its content is too large/],
    [zipOf([{ name: 'a/SKILL.md', bytes: Buffer.from(main[1]), claimed: 5 }]), /damaged|larger/],
    [zipOf([{ name: 'a/SKILL.md', bytes: Buffer.from(main[1]), flags: 0x801 }]), /encrypted/],
    [await tarGzOf([main, ['a/d/x', { type: 'character-device' }]]), /is a CharacterDevice/],
    [gzipSync((await tarOf([main, ['b/SKILL.md', skillText('b')]])).subarray(0, 1_024)), /no end mark/],
    [gzipSync(Buffer.concat([...Array.from({ length: 50_001 }, () => folder), await tarOf([main])])),
      /more than 50000 files and folders/],
    [await tarGzOf([main, [`a/${'n'.repeat(1_023)}`, 'x'], ['../up.txt', 'x']]),
      /"a\/n{118}…" is longer than 1024 bytes/],
    [await tarGzOf([main, ['a/l', { type: 'symlink', linkname: 'n'.repeat(4_096) }], ['../up.txt', 'x']]),
      /"a\/l" is a link of more than 4095 bytes/],
    [await tarGzOf([main, ['a/\ufffd.txt', 'x']]), /is not a file name/],
    [await tarGzOf([main, ['a\\b', { type: 'directory' }]]), /backslash/],
    [twoNames, /differs between its local header and the directory of the archive/],
    [overlapping, /two of its entries overlap/],
    [zipOf([{ name: 'a/SKILL.md', bytes: Buffer.from(main[1]) }, { name: 'a/d/', bytes: Buffer.from('hidden') }]),
      /a folder with content/],
    [Buffer.from('<html>'), /not a ZIP/]
  ]
  for (const [bytes, expected] of hostile) {
    host.body = bytes
    await sources.sync()
    t.match(status(), { state: 'stale', skills: 2, error: { message: expected } })
    t.notMatch(status().error?.message, t.testdirName)
  }
  t.strictSame(await skills.list(), ['a', 'b'])
  t.notOk(existsSync(join(t.testdirName, 'up.txt')))
  host.body = Buffer.concat([two.subarray(0, directory), two.subarray(secondOfIt, end),
    two.subarray(directory, secondOfIt), two.subarray(end)])
  await sources.sync()
  t.match(status(), { state: 'ok', skills: 2 }, 'the directory of a ZIP may have another order')
  host.body = await tarGzOf([main, ['a/link.md', { type: 'symlink', linkname: 'SKILL.md' }]])
  await sources.sync()
  t.match(status(), { state: 'ok', skills: 1 })
  t.match(await textOf(() => skills.read('a', (skill) => skill.file('link.md'))), /What a is for/)
})

t.test('K84: credentials reach no other host, and redirects lead nowhere else than allowed', async (t) => {
  const body = await tarGzOf(good)
  const store = await startServer(t, (_, response) => { response.setHeader('etag', '"1"').end(body) })
  const server = await startServer(t, (request, response) => {
    if (request.headers.authorization !== 'Bearer hunter22-token') response.writeHead(401).end()
    else response.writeHead(302, { location: `${store.url}/signed` }).end()
  })
  const { status, sources } = await openSources(t,
    [sourceAt(`${server.url}/a.tar.gz`, { auth: { secretVariable: 'TEST_ARCHIVE_TOKEN' } })], {
      env: { TEST_ARCHIVE_TOKEN: 'hunter22-token' }
    })
  t.match(status(), { state: 'ok', skills: 2 })
  t.equal(store.requests[0]?.headers.authorization, undefined)
  const faults: ReadonlyArray<readonly [string, Parameters<typeof startServer>[1]]> = [
    ['redirected', (_, response) => { response.writeHead(302, { location: 'http://example.org/x' }).end() }],
    ['redirected', (_, response) => { response.writeHead(302, { location: 'file:///etc/passwd' }).end() }],
    ['redirected', (request, response) => { response.writeHead(302, { location: `${request.url ?? ''}x` }).end() }],
    ['rate_limited', (_, response) => { response.writeHead(429, { 'retry-after': '120' }).end() }],
    ['unreachable', (_, response) => { response.writeHead(503).end() }],
    ['unreachable', (_, response) => {
      response.writeHead(200, { 'content-length': '1000' }).write('x', () => { response.destroy() })
    }],
    ['not_found', (_, response) => { response.writeHead(404).end() }],
    ['auth_failed', (_, response) => { response.writeHead(403).end('hunter22-token') }]
  ]
  for (const [code, answer] of faults) {
    server.answer = answer
    await sources.sync()
    t.match(status(), { state: 'stale', skills: 2, error: { code } })
  }
  t.notMatch(JSON.stringify(sources.status), /hunter22/)
})

t.test('K85: a host that does not speak the protocol of the address is told as that', async (t) => {
  const ssh = net.createServer((socket) => { socket.on('error', () => {}).end('SSH-2.0-OpenSSH_9.2\r\n') })
    .listen(0, '127.0.0.1')
  t.teardown(() => ssh.close())
  await once(ssh, 'listening')
  const { port } = ssh.address() as AddressInfo
  const { sources } = await openSources(t,
    ['http', 'https'].map((scheme) => sourceAt(`${scheme}://127.0.0.1:${port}/${scheme}.zip`)))
  t.strictSame(sources.status.map(({ error }) => error),
    Array(2).fill({ code: 'bad_answer', message: 'the host answers in another protocol: check its port' }))
})

t.test('K85: a host that sends slowly, or nothing, is left alone after the time of the source', async (t) => {
  const server =
    await startServer(t, (_, response) => { response.writeHead(200, { 'content-length': '1000' }).write('x') })
  const { status } = await openSources(t, [sourceAt(`${server.url}/a.tar.gz`, { timeoutMs: 300 })])
  t.match(status(), { state: 'failed', error: { code: 'timeout' } })
})

t.test('K85: a host that is slow holds back no other source', async (t) => {
  const body = await tarGzOf(good)
  const unanswered = new Set(['/1.tgz', '/2.tgz', '/3.tgz', '/4.tgz'])
  const slow: ServerResponse[] = []
  const server = await startServer(t, (request, response) => {
    const { url = '' } = request
    unanswered.delete(url)
    if (url === '/slow.tgz') slow.push(response)
    else response.end(body)
    if (unanswered.size === 0) for (const each of slow.splice(0)) each.end(body)
  })
  const names = ['slow', '1', '2', '3', '4']
  const { sources } = await openSources(t,
    names.map((name) => sourceAt(`${server.url}/${name}.tgz`, { name, timeoutMs: 5_000 })))
  t.strictSame(sources.status.map(({ name, state }) => [name, state]), names.map((name) => [name, 'ok']))
})

t.test('K86: what a Mac adds to an archive is no skill, no package and no folder beside the only one', async (t) => {
  const zip = zipOfTexts([['p/SKILL.md', skillText('p')], ['p/._kept', 'x'], ['__MACOSX/p/._SKILL.md', 'mac'],
    ['__MACOSX/._p', 'mac']])
  const body = await tarGzOf([['._top', 'mac'], ['top/._a', 'mac'], ['top/a/SKILL.md', skillText('a')],
    ['top/a/._SKILL.md', 'mac'], ['top/p.skill', zip], ['top/._p.skill', 'mac']])
  const { skills, status } = await openArchive(t, body, { layout: 'tree' })
  t.strictSame(await skills.list(), ['a', 'p'])
  t.strictSame((await skills.read('a', (skill) => skill.manifest())).files.map(({ path }) => path), ['SKILL.md'])
  t.strictSame((await skills.read('p', (skill) => skill.manifest())).files.map(({ path }) => path).sort(), ['SKILL.md'])
  t.equal(status().left_out, undefined)
})

t.test('K86: a package that cannot be published costs only itself', async (t) => {
  const zip = (...more: ReadonlyArray<readonly [string, string, number?]>) =>
    zipOfTexts([['SKILL.md', skillText('p')], ...more])
  const packages: ReadonlyArray<readonly [string, Buffer]> = [
    ['a.skill', zip()], ['a.zip', zip()], ['b', Buffer.from('a file')], ['b.zip', zip()], ['deep.zip',
      zip([`${'d/'.repeat(21)}x`, 'x'])], ['git.zip', zip(['.git/config', 'x'])],
    ['long.zip', zip(['n'.repeat(256), 'x'])], ['twice.zip', zip(['x', 'x'], ['x/y', 'y'])]
  ]
  const expected = [['a.zip', 'shadowed'], ['deep.zip', 'bad_package'], ['git.zip', 'bad_package'],
    ['long.zip', 'bad_package'], ['twice.zip', 'bad_package']]
  const server = await startHost(t, await tarGzOf([['top/SKILL.txt', 'x'], ...packages]))
  const folder = join(t.testdir({ folder: Object.fromEntries(packages) }), 'folder')
  for (const source of [sourceAt(`${server.url}/a.tar.gz`, { layout: 'tree' }), {
    kind: 'folder', name: 'f', path: folder, layout: 'tree'
  } as const]) {
    const { skills, sources, status } = await openSources(t, [source])
    t.strictSame(await skills.list(), ['a', 'b'])
    t.match(status(), { state: 'ok', skills: 2 })
    t.strictSame(status().left_out?.first.map(({ path, reason }) => [path, reason]), expected)
    await sources.close()
  }
})

t.test('K83 K86: packages that are no skills, bad ones and those beyond a thousand leave ' +
  'nothing on the disk', async (t) => {
  const skill = zipOfTexts([['SKILL.md', skillText('p')]])
  const zeros = (size: number): Buffer => zipOfTexts([['zeros', Buffer.alloc(size).toString()]])
  const files: Record<string, Buffer> = {
    'a.zip': skill, 'a.skill': skill, 'bomb.zip': zeros(30 * 1_048_576), 'data.zip': zeros(1_048_576)
  }
  for (let index = 0; index < 997; index++) files[`${index}.zip`] = Buffer.from('x')
  const folder = t.testdir({ packages: files, state: {} })
  const source = { kind: 'folder', name: 'f', path: join(folder, 'packages'), layout: 'tree' } as const
  const { skills, status, stateDir } = await openSources(t, [source], { stateDir: join(folder, 'state') })
  t.strictSame(await skills.list(), ['a'])
  t.equal(status().left_out?.count, 1_000)
  t.match(status().left_out?.first[0], { path: 'data.zip', reason: 'bound_reached' })
  const rest = readdirSync(stateDir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  t.strictSame(rest.map(({ name }) => name).sort(), ['SKILL.md', 'lock', 'skills.json'])
})

t.test('K83: archives as people build them', async (t) => {
  const skill = skillText('a')
  const zip = zipOf([
    { name: './t/a/SKILL.md', bytes: Buffer.from(skill) }, { name: 't/a/café.md', bytes: Buffer.from('x'), flags: 0 },
    { name: Buffer.from([0x74, 0x2f, 0x61, 0x2f, 0x82, 0x2e, 0x6d, 0x64]), bytes: Buffer.from('y'), flags: 0 }
  ])
  const v7 = await tarOf([['t/a/SKILL.md', skill]])
  v7.fill(0, 257, 265)
  let sum = 0
  for (let at = 0; at < 512; at++) sum += at >= 148 && at < 156 ? 32 : v7[at] ?? 0
  v7.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  const linked = await tarGzOf([['t/a/SKILL.md', skill], ['t/a/copy.md', { type: 'link', linkname: 't/a/SKILL.md' }]])
  const { host, sources, status, skills } = await openArchive(t, zip, { layout: 'tree' })
  for (const [bytes, files] of [[zip, ['SKILL.md', 'café.md', 'é.md']], [gzipSync(v7), ['SKILL.md']],
    [linked, ['SKILL.md', 'copy.md']]] as const) {
    host.body = bytes
    await sources.sync()
    t.match(status(), { state: 'ok', skills: 1, error: undefined })
    t.strictSame((await skills.read('a', (skill) => skill.manifest())).files.map(({ path }) => path), files)
  }
  t.equal(await textOf(() => skills.read('a', (skill) => skill.file('copy.md'))), skill)
})

t.test('K80 K83: one ZIP has one judgement, as a source and at POST /validate', async (t) => {
  const main = { name: 'a/SKILL.md', bytes: Buffer.from(skillText('a')) }
  const bzip2 = zipOf([main])
  for (const at of [8, bzip2.indexOf('PK\u0001\u0002') + 10]) bzip2.writeUInt16LE(12, at)
  const one = (name: string): Buffer => zipOf([main, { name, bytes: Buffer.from('x') }])
  const { host, sources, status } = await openArchive(t, zipOf([main]))
  for (const [bytes, reason] of [
    [bzip2, '"a/SKILL.md" is compressed with bzip2; only Deflate is supported'], [one('a\\b'),
      '"a\\\\b" has a backslash in its name'],
    [one('/etc/x'), '"/etc/x" is an absolute path'], [one('a/../../x'), '"a/../../x" leads out of its folder'],
    [one('a/SKILL.md'), '"a/SKILL.md" occurs twice']
  ] as const) {
    host.body = bytes
    await sources.sync()
    t.equal(status().error?.message, `the archive is refused: ${reason}`)
    await t.rejects(subjectOfArchive(bytes, undefined), { message: status().error?.message ?? '' })
  }
})
