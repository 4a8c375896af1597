import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { mock } from 'node:test'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import pLimit from 'p-limit'
import { isAddress, outlineOf, splitRoots } from '../../src/sources/address/address.ts'
import type { Fetched } from '../../src/sources/address/source-kind.ts'
import { FetchedOrigin, type FetchedOptions } from '../../src/sources/fetched-origin.ts'
import { parseAddress, type Source } from '../../src/sources/kinds.ts'
import type { SourceFiles } from '../../src/sources/publish/source-tree.ts'
import { AddressError, SourceError } from '../../src/sources/source-error.ts'
import { SourceSync } from '../../src/sources/source-sync.ts'
import { createRepository, skillFiles } from '../helper/git.ts'
import { skillText } from '../helper/skills.ts'
import { createLog, openSources, setSources, sourceAt } from '../helper/sources.ts'

function read (text: string): Source | string {
  try {
    return parseAddress(text)
  } catch (error) {
    if (error instanceof AddressError) return error.message
    throw error
  }
}

t.test('K83: addresses of all kinds', async (t) => {
  const table: ReadonlyArray<readonly [string, object]> = [
    ['git+https://git.example/team/skills.git',
      { kind: 'git', name: 'skills', url: 'https://git.example/team/skills.git', path: '' }],
    ['git+https://git.example/team/skills.git#main:go/skills', { ref: 'main', path: 'go/skills' }],
    ['git+https://git.example/team/skills.git#:skills', { path: 'skills' }],
    ['git+ssh://git@git.example:2222/team/skills.git',
      { kind: 'git', url: 'ssh://git@git.example:2222/team/skills.git' }],
    ['git+file:///srv/skills', { kind: 'git', url: 'file:///srv/skills', name: 'skills' }],
    ['git+http://127.0.0.1:3000/a/b.git', { kind: 'git', url: 'http://127.0.0.1:3000/a/b.git' }],
    ['https://github.com/anthropics/skills', { kind: 'git', url: 'https://github.com/anthropics/skills', path: '' }],
    ['https://github.com/o/r/tree/main/skills',
      { kind: 'git', url: 'https://github.com/o/r', ref: 'main', path: 'skills' }],
    ['https://github.com/o/r/blob/main/skills/a/SKILL.md', { ref: 'main', path: 'skills/a' }],
    ['https://gitlab.example/g/h/r/-/tree/v1/x',
      { kind: 'git', url: 'https://gitlab.example/g/h/r', ref: 'v1', path: 'x' }],
    ['https://codeberg.org/o/r/src/branch/main/x', { url: 'https://codeberg.org/o/r', ref: 'main', path: 'x' }],
    ['git+https://github.com/o/r/tree/main/skills', { url: 'https://github.com/o/r' }],
    ['git+https://git.example/r.git#20240101:skills', { ref: '20240101', path: 'skills' }],
    ['https://host.example/skills.tar.gz', { kind: 'archive', name: 'skills', path: '' }],
    ['https://host.example/a/skills.zip#pack/skills', { kind: 'archive', path: 'pack/skills' }],
    ['https://github.com/o/r/archive/refs/heads/main.zip', { kind: 'archive', name: 'main' }],
    ['https://github.com/o/r/tree/main/skills.zip', { kind: 'archive' }],
    ['s3://bucket/a/prefix/', { kind: 's3', bucket: 'bucket', prefixPath: 'a/prefix/', name: 'prefix' }],
    ['oci://registry.example:5000/team/skills:1.4',
      { kind: 'oci', registry: 'registry.example:5000', repository: 'team/skills', reference: '1.4' }],
    [`oci://registry.example/skills@sha256:${'a'.repeat(64)}`, { reference: `sha256:${'a'.repeat(64)}` }]
  ]
  for (const [text, expected] of table) t.match(read(text), expected, text)
  for (const type of ['zip', 'skill', 'tar.gz', 'tgz', 'tar', 'ZIP']) {
    t.match(read(`https://host.example/a.${type}`), { kind: 'archive' }, type)
  }
})

t.test('K83: what is refused says why, and repeats no secret', async (t) => {
  const table: ReadonlyArray<readonly [string, RegExp]> = [
    ['git+https://user:hunter22@git.example/r.git', /password/],
    ['git+https://ghp_hunter22@git.example/r.git', /password/],
    ['git@git.example:team/skills.git', /git\+ssh:\/\//],
    ['git+http://git.example/r.git', /this machine only/],
    ['http://host.example/a.zip', /this machine only/],
    ['ftp://host.example/a.zip', /ftp:\/\/ is not an address/],
    ['https://host.example/page', /git\+https/],
    ['git+https://git.example/r.git#--upload-pack=x', /is not a ref of git/],
    ['git+https://git.example/r.git#a..b', /is not a ref of git/],
    ['git+https://git.example/r.git#main:../x', /leads out of the source/],
    ['git+ssh://-oProxyCommand=x/r.git', /"-"|such as/],
    ['git+ssh://git@git.example/-oProxyCommand=x', /"-"/],
    ['git+ssh://-oProxyCommand=x@git.example/r.git', /"-"/],
    ['git+file:///-x', /"-"/],
    ['oci://registry.example/skills', /needs a tag or a digest/],
    ['s3://B/x', /s3:\/\/bucket/],
    ['s3://bucket/team#public', /# is not allowed in a s3 address/],
    ['s3://bucket/team?public', /s3:\/\/bucket/],
    ['s3://bucket/%zz', /percent-encoding/],
    ['git+https://', /such as https:\/\/host\/path$/],
    ['git+https://git.example:port/r.git', /such as https:\/\/host\/path$/]
  ]
  for (const [text, expected] of table) {
    const refusal = read(text)
    t.match(refusal, expected, text)
    t.notMatch(refusal, /hunter22/)
  }
})

t.test('K83: a sentence about an address names its protocol and host, and nothing that may be a secret', async (t) => {
  for (const [text, outline] of [
    ['git+https://', 'git+https://…'],
    ['git+https://git.example:8443/hunter22#hunter22', 'git+https://git.example:8443/…'],
    ['git+https://user:hunter22@git.example/r.git', 'git+https://…'],
    ['git+https://user:hun/ter22@git.example/r.git', 'git+https://…'],
    ['https://user:22/7@git.example/r.git', 'https://…'],
    ['https://hunter22?a@b', 'https://…'],
    ['git+ssh://hun ter22@x', 'git+ssh://…'],
    ['git@git.example:hunter22', '…']
  ] as const) t.equal(outlineOf(text), outline, text)
})

t.test('K83: a variable is split at delimiters, but not inside an address', async (t) => {
  t.strictSame(splitRoots('/a:./b', ':'), ['/a', './b'])
  t.strictSame(splitRoots('git+https://h:8443/r.git#main:skills:./b:oci://h:5000/r:1.4:/srv:https://x/a.zip', ':'),
    ['git+https://h:8443/r.git#main:skills', './b', 'oci://h:5000/r:1.4', '/srv', 'https://x/a.zip'])
  t.strictSame(splitRoots('a::b', ':'), ['a', '', 'b'])
  t.strictSame(splitRoots('C:\\a;https://x/a.zip', ';'), ['C:\\a', 'https://x/a.zip'])
})

t.test('K83: folders are no addresses', async (t) => {
  for (const text of ['skills', './a', '/a/b', '../x', 'C:\\skills', 'a@b', './git@x:y']) t.notOk(isAddress(text), text)
})

t.test('K83: any text is an address, or refused', async () => {
  const protocols = fc.constantFrom('', 'git+https://', 'git+ssh://', 'https://', 's3://', 'oci://', 'git+file://')
  fc.assert(fc.property(protocols, fc.string(), (protocol, rest) => {
    read(protocol + rest)
    return splitRoots(protocol + rest, ':').join(':') === protocol + rest
  }))
})

const HOUR_MS = 3_600_000

/** A source that a test answers for. */
async function openSync (t: Test, fetch: () => Promise<Fetched | undefined>,
  { folder = join(t.testdir(), 'source'), ...more }: Partial<FetchedOptions> = {}) {
  const { lines: log, log: logger } = createLog()
  mkdirSync(folder, { recursive: true })
  const origin = new FetchedOrigin({
    source: sourceAt('git+https://git.example/team/skills.git'),
    kind: { intervalMs: 60_000, load: async () => ({ fetch }) },
    folder,
    env: {},
    approve: async () => {},
    inTurn: pLimit(9),
    log: logger,
    ...more
  })
  const sync = new SourceSync(origin, logger)
  t.teardown(() => sync.close())
  await origin.open()
  return { sync, origin, log, folder }
}

function stateOf (number: number, read?: SourceFiles['read']): Fetched {
  const text = skillText('a', `Number ${number}.\n`)
  return {
    revision: `main@sha1:${String(number).repeat(40)}`,
    memory: { number: String(number) },
    path: '',
    files: {
      entries: [{ path: 'skills/a/SKILL.md', kind: 'file', id: String(number), size: text.length }],
      read: read ?? (async (files, use) => { for (const file of files) await use(file, Buffer.from(text)) })
    }
  }
}

/** Files of skills with these names. */
function filesOf (names: readonly string[]): SourceFiles {
  return {
    entries: names.map((name) => ({ path: `skills/${name}/SKILL.md`, kind: 'file', id: name, size: 100 })),
    read: async (files, use) => { for (const file of files) await use(file, Buffer.from(skillText(file.entry.id))) }
  }
}

t.test('K85: a host that is away for a day costs a question each quarter of an hour and one line, and is ' +
  'back within that', async (t) => {
  let isAway = false
  let asked = 0
  const { sync, log } = await openSync(t, async () => {
    asked++
    if (isAway) throw new SourceError('unreachable', 'the host cannot be reached, or closed the connection')
    return stateOf(isAway ? 1 : 2)
  })
  await sync.checkNow()
  t.match(sync.status, { state: 'ok', skills: 1 })

  mock.timers.enable({ apis: ['Date', 'setTimeout'], now: Date.now() })
  t.teardown(() => { mock.timers.reset() })
  isAway = true
  asked = 0
  const pass = async (ms: number): Promise<void> => {
    const end = Date.now() + ms
    const nextAt = (): number => Date.parse(sync.status.next_at ?? '')
    while (nextAt() <= end) {
      mock.timers.tick(nextAt() - Date.now())
      // The check takes real time: it makes a folder.
      while (nextAt() <= Date.now()) await nextTurn()
    }
    mock.timers.tick(end - Date.now())
  }
  await sync.checkNow()
  const lines = log.length
  const since = sync.status.failing_since
  await pass(24 * HOUR_MS)
  t.match(sync.status, {
    state: 'stale', skills: 1, revision: /^main@/, failing_since: since, error: { code: 'unreachable' }
  })
  t.equal(log.length, lines, 'one line for all of it')
  t.ok(asked > 90 && asked < 140, `${asked} questions`)
  isAway = false
  await pass(HOUR_MS / 4 * 1.1)
  t.match(sync.status, { state: 'ok', failing_since: undefined })
  t.equal(log.filter(({ message }) => message.endsWith(' is reachable again')).length, 1)
})

t.test('K85: a disk that is full or fails while a state is written leaves the state before it, and nothing ' +
  'of the new one', async (t) => {
  let next = stateOf(1)
  const { sync, log, folder } = await openSync(t, async () => next)
  await sync.checkNow()
  const before = readdirSync(join(folder, 'skills'))
  for (const code of ['EIO', 'ENOSPC']) {
    next = stateOf(2, async (files, use) => {
      for (const file of files) await use(file, Buffer.from('half'))
      throw Object.assign(new Error(`${code}: a reason of the system, write`), { code })
    })
    await sync.checkNow()
    t.match(sync.status, {
      state: 'stale',
      skills: 1,
      revision: /1$/,
      error: { code: 'disk', message: `the state folder cannot be written (${code}: a reason of the system)` }
    })
  }
  t.strictSame(readdirSync(join(folder, 'skills')), before)
  t.strictSame(readdirSync(join(folder, 'tmp')), [])
  t.match(log.at(-1), { level: 'warn', message: /still serving / })
  next = stateOf(3)
  await sync.checkNow()
  t.match(sync.status, { state: 'ok', revision: /3$/ })
})

t.test('K85: the folders of a state stay while the next one is served, and are used again', async (t) => {
  let names = ['a', 'b', 'gone']
  const { sync, origin } = await openSync(t,
    async () => ({ ...stateOf(1), revision: names.join(), files: filesOf(names) }))
  await sync.checkNow()
  const places = origin.root.listed.folders
  const areThere = () => ['a', 'b', 'gone'].map((name) => existsSync(places?.get(name)?.path ?? ''))
  names = ['b']
  await sync.checkNow()
  t.strictSame(areThere(), [true, true, true])
  names = ['a', 'b']
  await sync.checkNow()
  t.match(sync.status, { state: 'ok', skills: 2 })
  t.equal(origin.root.listed.folders?.get('a')?.path, places?.get('a')?.path)
  t.strictSame(areThere(), [true, true, false])
})

t.test('K84: hooks that come during a check are followed by one more, as soon as hooks may be', async (t) => {
  let asked = 0
  const { sync } = await openSync(t, async () => {
    if (++asked > 1) return undefined
    for (let hook = 0; hook < 40; hook++) sync.checkSoon()
    return stateOf(1)
  })
  mock.timers.enable({ apis: ['Date', 'setTimeout'], now: Date.now() })
  t.teardown(() => { mock.timers.reset() })
  await sync.checkNow()
  const pause = Date.parse(sync.status.next_at ?? '') - Date.now()
  if (!t.ok(pause <= 5_000, `a check in ${pause} ms`)) return
  mock.timers.tick(5_000)
  const isAskedAgain = (): boolean => asked === 2
  while (!isAskedAgain()) await nextTurn()
  await sync.checkNow()
  t.equal(asked, 3)
  t.notOk(Date.parse(sync.status.next_at ?? '') - Date.now() <= 5_000, 'and by no more than one')
})

t.test('K83: a state that cannot be read is as if it were not there, with one warning', async (t) => {
  const repository = createRepository(t)
  repository.commit(skillFiles('a'))
  const source = sourceAt(`git+file://${repository.path}`)
  const { stateDir, sources } = await openSources(t, [source])
  await sources.close()
  const [folder = ''] = readdirSync(join(stateDir, 'sources'))
  for (const text of ['null', '{"skills":{"a":5}}', '{"version":2,"skills":{}}', '{',
    '{"version":1,"skills":{"a":"../../a"}}']) {
    writeFileSync(join(stateDir, 'sources', folder, 'skills.json'), text)
    const { status, log, sources } = await openSources(t, [source], { stateDir })
    t.match(status(), { state: 'ok', skills: 1 }, text)
    t.equal(log.filter(({ message }) => message.includes('in the state folder is damaged')).length, 1, text)
    await sources.close()
  }
})

t.test('K85 K89: a source that was edited serves its last state, after a reload and after a restart', async (t) => {
  const repository = createRepository(t)
  repository.commit(skillFiles('a'))
  const edit = (more: object) => sourceAt(`git+file://${repository.path}`, { configFile: '/etc/config.yaml', ...more })
  const first = await openSources(t, [edit({})])
  await setSources(first.sources, [edit({ ref: 'missing' })])
  await first.sources.sync()
  t.match(first.status(), { state: 'stale', skills: 1, error: { code: 'ref_not_found' } })
  await first.sources.close()
  const second = await openSources(t, [edit({ ref: 'missing' })], { stateDir: first.stateDir })
  t.match(second.status(), { state: 'stale', skills: 1 })
  await setSources(second.sources, [edit({ path: 'skills' })])
  t.match(second.status(), { state: 'stale', skills: 1, error: undefined }, 'until it is fetched')
  await second.sources.sync()
  t.match(second.status(), { state: 'ok', skills: 1 })
})
