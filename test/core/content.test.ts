import { execFileSync, spawnSync } from 'node:child_process'
import fs, { appendFileSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { ZipArchive } from '../../src/archive/zip-writer.ts'
import { createNetworkDisk, type Disk } from '../../src/core/read/disk.ts'
import { isHidden } from '../../src/core/read/hidden.ts'
import { createCoalescer } from '../../src/core/shared/async.ts'
import { sha256 } from '../../src/core/shared/digest.ts'
import { buildService, type Service } from '../helper/build.ts'
import { type DiskOperation } from '../helper/disk.ts'
import {
  countOpenBelow, createFaultyDisk, failing, osError, outcome, passTick, skill, skillText, startManager, until
} from '../helper/skills.ts'

const CHUNK_BYTES = 65_536

async function readArchive (archive: ZipArchive, start?: number, end?: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of archive.chunks(start, end)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** Files below a folder by path. */
function filesIn (folder: string): Record<string, Buffer> {
  const entries = fs.readdirSync(folder, { withFileTypes: true, recursive: true }).filter((entry) =>
    !entry.isDirectory())
  return Object.fromEntries(entries.map(({ parentPath, name }) => {
    const path = join(parentPath, name)
    return [path.slice(folder.length + 1), fs.readFileSync(path)] as const
  }).sort(([a], [b]) => a < b ? -1 : 1))
}

const hasUnzip = spawnSync('unzip', ['-v']).status === 0
const hasPython = spawnSync('python3', ['--version']).status === 0

/** Programs that unpack an archive into a folder. `-^`: unzip would leave control characters out of names. */
const READERS = [
  ...hasUnzip
    ? [(zip: string, folder: string) =>
        execFileSync('unzip', ['-q', '-^', zip, '-d', folder], { env: { ...process.env, LC_ALL: 'C.UTF-8' } })]
    : [],
  ...hasPython
    ? [(zip: string, folder: string) =>
        execFileSync('python3',
          ['-c',
            'import sys, zipfile\nwith zipfile.ZipFile(sys.argv[1]) as z:\n  assert z.testzip() is None\n  ' +
            'z.extractall(sys.argv[2])', zip, folder])]
    : []
]

t.test('K45 K49: the same content is the same bytes and revision, whatever its times, permissions and order on the disk', async (t) => {
  const content = { 'SKILL.md': '# Demo\n', docs: { 'é.md': 'é\n', 'run.sh': '#!/bin/sh\n' }, empty: '' }
  const base = t.testdir({ one: { demo: content }, two: { demo: {} } })
  for (const [path, bytes] of Object.entries(filesIn(join(base, 'one/demo'))).reverse()) {
    const copy = join(base, 'two/demo', path)
    fs.mkdirSync(dirname(copy), { recursive: true })
    fs.writeFileSync(copy, bytes)
    fs.chmodSync(copy, 0o755)
    fs.utimesSync(copy, 1, 1)
  }
  const revisions = new Set<string>()
  for (const root of ['one', 'two']) {
    const manager = await startManager(t, [join(base, root)])
    const archive = await manager.read('demo', (skill) => skill.archive())
    const bytes = await readArchive(archive)
    t.equal(archive.size, bytes.length)
    t.equal(archive.revision, (await manager.read('demo', (skill) => skill.manifest())).revision)
    t.equal(await archive.digest(), sha256(bytes))
    t.equal(sha256(bytes), 'sha256:22bb700447d3e00849ca6d4e7b0cd00cdb368e19a619c58fd78fcb395a952e29',
      'on every machine and with every version of Node')
    revisions.add(archive.revision)
  }
  t.equal(revisions.size, 1)
})

t.test('K45: any legal name survives the way through other programs', {
  skip: READERS.length === 0 && 'neither unzip nor python3 is installed'
}, async (t) => {
  const unit = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom('a', 'b', 'é', '出', '\u{1F600}') },
    {
      weight: 2,
      arbitrary: fc.constantFrom('\\', ' ', ':', '.', '-', '"', "'", '%', '*', '?', '<', '|', '$', '~', '@', '#', '^')
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom('\n', '\t', '\x01', '\x1b', '\x7f', '\u0085', '\u200e', '\u2028',
        '\uFEFF', '\uFFFD', 'e\u0301')
    }
  )
  const name = fc.string({ unit, minLength: 1, maxLength: 60 }).filter((text) => text !== '.' && !isHidden(text, false))
  const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((segments) => segments.join('/'))
  const special = ['a\\b', 'a', 'C:x', '-rf', 'a..', '[\u{1F600}]', 'x'.repeat(255), 'é'.repeat(127),
    'deep/'.repeat(40) + 'x']

  let run = 0
  await fc.assert(fc.asyncProperty(fc.array(path, { maxLength: 60 }), async (paths) => {
    const base = t.testdir({ root: { demo: {} } })
    run++
    for (const relative of [...special, ...paths]) {
      const place = join(base, 'root/demo', relative)
      try {
        fs.mkdirSync(dirname(place), { recursive: true })
        fs.writeFileSync(place, relative)
      } catch {
        // A folder where this wants a file, or the other way round.
      }
    }
    const manager = await startManager(t, [join(base, 'root')])
    const zip = join(base, 'a.zip')
    fs.writeFileSync(zip, await readArchive(await manager.read('demo', (skill) => skill.archive())))
    for (const [index, read] of READERS.entries()) {
      read(zip, join(base, `read-${index}`))
      t.strictSame(filesIn(join(base, `read-${index}`)), filesIn(join(base, 'root/demo')), `run ${run}`)
    }
    await manager.close()
  }), { numRuns: 2 })
})

t.test('K53: without kept revisions a change ends an archive that is sent, and it is never complete', async (t) => {
  const changes: Readonly<Record<string, (path: string) => void>> = {
    'another content': (path) => { fs.writeFileSync(path, 'two') },
    'a large file with other bytes': (path) => { fs.writeFileSync(path, Buffer.alloc(10 * CHUNK_BYTES, 'b')) },
    'a file that went away': (path) => { fs.rmSync(path) },
    'a link to the outside': (path) => {
      fs.rmSync(path)
      fs.symlinkSync('/etc/hostname', path)
    }
  }
  for (const [what, change] of Object.entries(changes)) {
    const large = Buffer.alloc(10 * CHUNK_BYTES)
    const base = t.testdir({ demo: skill('demo', { first: large, second: large }) })
    const manager = await startManager(t, [base], { keep: { keepMs: 0 } })
    const archive = await manager.read('demo', (skill) => skill.archive())
    let length = 0
    const read = async () => {
      for await (const chunk of archive.chunks()) {
        if (length === 0) change(join(base, 'demo/second'))
        length += chunk.length
      }
    }
    await t.rejects(read(), { name: 'SkillError' }, what)
    t.ok(length > 0 && length < archive.size, what)
    t.equal(countOpenBelow(base), 0, `${what}: nothing stays open`)
    t.ok((await readArchive(await manager.read('demo', (skill) => skill.archive()))).length > 0,
      `${what}: the next archive is of the new state`)
  }
})

t.test('K59: an archive that was begun is finished, whatever becomes of the skill meanwhile', async (t) => {
  const base = t.testdir({ demo: skill('demo', { first: Buffer.alloc(3 * CHUNK_BYTES), second: 'one' }) })
  const manager = await startManager(t, [base])
  const archive = await manager.read('demo', (skill) => skill.archive())
  const expected = await archive.digest()
  const chunks: Buffer[] = []
  for await (const chunk of archive.chunks()) {
    if (chunks.length === 0) fs.rmSync(join(base, 'demo'), { recursive: true })
    chunks.push(chunk)
  }
  t.equal(sha256(Buffer.concat(chunks)), expected)
})

t.test('K56: a large file is streamed, one at a time, and a reader that goes away leaves nothing open', async (t) => {
  const base =
    t.testdir({ demo: skill('demo', { 'big.bin': Buffer.alloc(5_000_000), 'other.bin': Buffer.alloc(1_000_000) }) })
  const manager = await startManager(t, [base], { keep: { keepMs: 0 } })
  const archive = await manager.read('demo', (skill) => skill.archive())
  for await (const chunk of archive.chunks()) {
    if (chunk.length > CHUNK_BYTES || countOpenBelow(base) > 1) t.fail(`${chunk.length} bytes`)
  }
  const chunks = archive.chunks()
  while (countOpenBelow(base) === 0) await chunks.next()
  await chunks.return(undefined)
  t.equal(countOpenBelow(base), 0)
})

const HOUR_MS = 3_600_000

async function pathsIn (t: Test, root: string, disk?: Disk): Promise<readonly string[]> {
  const manager = await startManager(t, [root], disk && { disk })
  return (await manager.read('demo', (skill) => skill.manifest())).files.map(({ path }) => path)
}

t.test('K8 K43: what is not served is not listed', async (t) => {
  const link = (target: string) => t.fixture('symlink', target)
  const base = t.testdir({
    secret: { a: 'secret' },
    root: {
      other: skill('other'),
      demo: skill('demo', {
        docs: { 'a.md': '' },
        '.git': { config: '' },
        sub: { '.svn': { x: '' }, '.hg': { x: '' }, '.env': '', '.gitignore': '' },
        '.env': '',
        '.env.example': '',
        inside: link('docs/a.md'),
        chain: link('inside'),
        'to-folder': link('docs'),
        'to-itself': link('.'),
        outside: link('../../secret/a'),
        passwd: link('/etc/passwd'),
        sibling: link('../other/SKILL.md'),
        'sibling-folder': link('../other'),
        parent: link('..'),
        everything: link('/'),
        dangling: link('nothing'),
        loop: link('loop'),
        'to-env': link('.env'),
        'to-git': link('.git/config')
      })
    }
  })
  execFileSync('mkfifo', [join(base, 'root/demo/fifo')])
  fs.writeFileSync(Buffer.concat([Buffer.from(`${base}/root/demo/`), Buffer.from([0xff])]), '')
  const expected = ['.env.example', 'SKILL.md', 'chain', 'docs/a.md', 'inside', 'sub/.gitignore']
  for (const disk of [undefined, createFaultyDisk({ hasProc: false }),
    createNetworkDisk()]) t.strictSame(await pathsIn(t, join(base, 'root'), disk), expected)
})

t.test('K49: each difference gives a skill another revision', async (t) => {
  const base = t.testdir({ demo: skill('demo', { docs: { 'a.md': 'a', 'b.md': 'b' } }) })
  const manager = await startManager(t, [base])
  const changes = [
    () => {},
    () => fs.writeFileSync(join(base, 'demo/docs/a.md'), 'x'),
    () => fs.renameSync(join(base, 'demo/docs/a.md'), join(base, 'demo/docs/c.md')),
    () => fs.writeFileSync(join(base, 'demo/empty'), ''),
    () => fs.rmSync(join(base, 'demo/docs/b.md'))
  ]
  const seen = new Set<string>()
  for (const change of changes) {
    change()
    seen.add((await manager.read('demo', (skill) => skill.manifest())).revision)
  }
  t.equal(seen.size, changes.length)
})

t.test('K53: a change during the walk is never half in the manifest', async (t) => {
  const base =
    t.testdir({ root: { demo: skill('demo', { a: 'one', z: 'one' }) }, next: skill('demo', { a: 'two', z: 'two' }) })
  const demo = join(base, 'root/demo')
  const flip = () => {
    fs.renameSync(demo, join(base, 'aside'))
    fs.renameSync(join(base, 'next'), demo)
    fs.renameSync(join(base, 'aside'), join(base, 'next'))
  }
  const consistent = new Set([['one', 'one'], ['two', 'two']].map((pair) => pair.map(sha256).join()))
  for (let moment = 1; ; moment++) {
    const disk = createFaultyDisk()
    const manager = await startManager(t, [join(base, 'root')], { disk })
    let operations = 0
    disk.intercept = () => { if (++operations === moment) flip() }
    const { files } = await manager.read('demo', (skill) => skill.manifest())
    const digests = files.filter(({ path }) => path !== 'SKILL.md').map(({ digest }) => digest).join()
    if (!consistent.has(digests)) t.fail(`a mixture when flipped before operation ${moment}`)
    if (operations >= moment) continue
    t.ok(moment > 5, `${moment} moments`)
    break
  }
})

t.test('K43 K51: what may not be read is left out, until it may be', async (t) => {
  const base = t.testdir({ demo: skill('demo', { file: 'a', docs: { 'a.md': 'a' }, locked: { 'b.md': 'b' } }) })
  const disk = createFaultyDisk({ ageMs: HOUR_MS })
  const manager = await startManager(t, [base], { disk })
  const paths = async () => (await manager.read('demo', (skill) => skill.manifest())).files.map(({ path }) => path)
  // A file of mode 000; a folder whose names may not be listed; one whose files may not even be looked at.
  disk.intercept = (operation, path) => {
    if (operation === 'open' && path.endsWith('demo/file')) throw osError('EACCES')
    if (operation === 'readdir' && path.endsWith('locked')) throw osError('EACCES')
    if (path.endsWith('docs/a.md')) throw osError('EACCES')
  }
  t.strictSame(await paths(), ['SKILL.md'])
  t.strictSame(await paths(), ['SKILL.md'])
  disk.intercept = () => {}
  passTick(base)
  fs.chmodSync(join(base, 'demo/file'), 0o600)
  t.strictSame(await paths(), ['SKILL.md', 'docs/a.md', 'file', 'locked/b.md'],
    'a mode is given to a file without a change to its folder')
})

t.test('K43 K53: a failing disk is an I/O error, takes no file for gone, and leaves nothing open', async (t) => {
  const base = t.testdir({ demo: skill('demo', { a: 'a', docs: { b: 'b' }, link: t.fixture('symlink', 'a') }) })
  const disk = createFaultyDisk()
  const manager = await startManager(t, [base], { disk })
  const failures = [['read', ''], ['fstat', ''], ['readdir', 'docs'], ['stat', 'docs'], ['lstat', '/a'],
    ['stat', '/link']] as const
  for (const [operation, ending] of failures) {
    disk.intercept = failing(operation, ending, operation === 'stat' ? 'ESTALE' : 'EIO')
    t.equal(await outcome(() => manager.read('demo', (skill) => skill.manifest())),
      "SkillError: Error reading skill 'demo'", operation)
  }
  t.equal(countOpenBelow(base), 0)
})

t.test('K48: a skill of which no state holds is unavailable for now, after a bounded wait', async (t) => {
  const base = t.testdir({ demo: skill('demo', { a: 'a' }) })
  const disk = createFaultyDisk()
  const manager = await startManager(t, [base], { disk })
  let writes = 0
  disk.intercept = (operation) => {
    if (operation === 'close') fs.writeFileSync(join(base, 'demo/a'), 'a'.repeat(++writes % 100))
  }
  const start = performance.now()
  await t.rejects(manager.read('demo', (skill) => skill.manifest()),
    { code: 'skill_changing', message: "Skill 'demo' changed while it was read" })
  t.ok(performance.now() - start < 20_000)
  disk.intercept = () => {}
  t.match(await manager.read('demo', (skill) => skill.manifest()), { skill_name: 'demo' })
})

// A hundred equal requests at once, and skills that take long to be read.

const MIB = 1_048_576

/** A service with a skill of 10 MiB, and how often each operation was asked for since the last question. */
async function start (t: Test, ageMs: number) {
  const files = Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`file-${index}.bin`, '']))
  const disk = createFaultyDisk({ ageMs })
  const prepare = (folder: string) => {
    for (const file of Object.keys(files)) writeFileSync(join(folder, 'skills/big', file), Buffer.alloc(MIB, file))
  }
  const service = await buildService(t, { files: { big: skill('big', files) }, options: { disk, prepare } })
  await service.skills.indexed()
  const callsSince = async (act: () => Promise<unknown>): Promise<ReadonlyMap<DiskOperation, number>> => {
    disk.calls.clear()
    await act()
    return new Map(disk.calls)
  }
  return { service, callsSince }
}

async function ask ({ app }: Service, times: number, path: string, method: 'GET' | 'HEAD'): Promise<Set<string>> {
  const answers =
    await Promise.all(Array.from({ length: times }, () => app.inject({ method, url: `/skills/big${path}` })))
  return new Set(answers.map(({ statusCode, headers, payload }) => `${statusCode} ${headers.etag} ${payload.length}`))
}

/** A document that was edited just now is read again until the clock has moved on, by requests that begin later. */
const REQUESTS = [
  { path: '/files', method: 'GET', ageMs: 0, most: 2 },
  { path: '/archive.zip', method: 'HEAD', ageMs: 60_000, most: 2 },
  { path: '/files/file-3.bin', method: 'HEAD', ageMs: 60_000, most: 2 },
  { path: '', method: 'GET', ageMs: 0, most: 10 }
] as const

for (const { path, method, ageMs, most } of REQUESTS) {
  const what = `${method} ${path || 'the document'} of a skill that was edited ${ageMs === 0
? 'just now'
    : 'a minute ago'}`
  t.test(`K43 K44 K45 K51: a hundred times ${what} cost at most ${most}`, async (t) => {
    const costOf = async (times: number) => {
      const { service, callsSince } = await start(t, ageMs)
      writeFileSync(join(service.root, 'big/SKILL.md'), skillText('big', `${'Words. '.repeat(10_000)}\n`))
      const before = process.cpuUsage()
      const calls = await callsSince(async () => {
        t.equal((await ask(service, times, path, method)).size, 1, 'all answers are equal')
      })
      const { user, system } = process.cpuUsage(before)
      return { reads: (calls.get('read') ?? 0) + (calls.get('readdir') ?? 0), ms: (user + system) / 1_000 }
    }
    const one = await costOf(1)
    const hundred = await costOf(100)
    t.comment(
      `${hundred.reads} reads and ${Math.round(hundred.ms)} ms instead of ${one.reads} and ${Math.round(one.ms)} ms`)
    t.ok(one.reads > 0)
    // An edit that was noticed by a request is compared once more in the background.
    t.ok(hundred.reads <= most * one.reads + 4)
    // A request costs a millisecond by itself. Without sharing it would be a hundred times.
    t.ok(hundred.ms < 10 * one.ms + 500)
  })
}

t.test('K51: a shared run begins after each call that gets its result', async (t) => {
  const share = createCoalescer<number>()
  let state = 0
  let finish = () => {}
  const job = async (): Promise<number> => {
    const read = state
    await new Promise<void>((resolve) => { finish = resolve })
    return read
  }
  const first = share('a', job)
  state = 1
  const later = [share('a', job), share('a', job)]
  t.equal(later[0], later[1])
  finish()
  t.equal(await first, 0)
  const latest = share('a', job)
  await setImmediate()
  finish()
  t.strictSame(await Promise.all([...later, latest]), [1, 1, 1], 'a call before the second run joins it')
  await t.rejects(share('a', () => Promise.reject(new Error('no'))))
  const after = share('a', job)
  finish()
  t.equal(await after, 1, 'a failure ends with its run')
})

t.test('K53: a list waits for no large skill, which is read in the background, nor for one that grows', async (t) => {
  const FILES = { grows: skill('grows'), large: skill('large'), small: skill('small', { 'a.md': 'a' }) }
  let release = () => {}
  const held = new Promise<void>((resolve) => { release = resolve })
  const disk = createFaultyDisk({
    ageMs: 60_000,
    intercept: async (operation, _path, file) => {
      if (operation !== 'read' || !file.endsWith('.bin')) return
      if (file.includes('/grows/')) appendFileSync(file, 'more')
      else await held
    }
  })
  const prepare = (folder: string) => {
    for (const name of ['grows', 'large']) {
      writeFileSync(join(folder, `skills/${name}/a.bin`), '')
      truncateSync(join(folder, `skills/${name}/a.bin`), 16 * MIB)
    }
  }
  const service = await buildService(t, { files: FILES, options: { disk, prepare } })
  interface Entry {
    readonly name: string,
    readonly revision: string | null,
    readonly findings: ReadonlyArray<{ readonly code: string }>
  }
  const catalog = async () => (await service.app.inject('/catalog')).json<{ skills: Entry[] }>().skills
  const indexed = async (path = 'agent-skills') => (await service.app.inject(`/.well-known/${path}/index.json`))
    .json<{ skills: Array<{ name: string }> }>().skills.map(({ name }) => name)
  const [grows, large, small] = await catalog()
  for (const entry of [grows, large]) {
    t.equal(entry?.revision, null)
    t.strictSame(entry?.findings.map(({ code }) => code), ['revision_pending'])
  }
  t.match(small, { revision: /^sha256:/ })
  for (const path of ['agent-skills', 'skills']) t.strictSame(await indexed(path), ['small'], path)
  release()
  await until(async () => (await catalog())[1]?.revision !== null)
  t.strictSame(await indexed('skills'), ['large', 'small'], 'as soon as it has been read')
  t.equal((await catalog())[0]?.revision, null)
})
