import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import type { ZipArchive } from '../../../src/archive/zip-writer.ts'
import { isHiddenFile } from '../../../src/core/read/hidden.ts'
import { sha256 } from '../../../src/core/shared/digest.ts'
import { countOpenBelow, skill, startManager } from '../../helper/skills.ts'

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

t.test('K45: the same content is the same bytes, whatever its times, permissions and order on the disk', async (t) => {
  const content = { 'SKILL.md': '# Demo\n', docs: { 'é.md': 'é\n', 'run.sh': '#!/bin/sh\n' }, empty: '' }
  const base = t.testdir({ one: { demo: content }, two: { demo: {} } })
  for (const [path, bytes] of Object.entries(filesIn(join(base, 'one/demo'))).reverse()) {
    const copy = join(base, 'two/demo', path)
    fs.mkdirSync(dirname(copy), { recursive: true })
    fs.writeFileSync(copy, bytes)
    fs.chmodSync(copy, 0o755)
    fs.utimesSync(copy, 1, 1)
  }
  for (const root of ['one', 'two']) {
    const manager = await startManager(t, [join(base, root)])
    const archive = await manager.read('demo', (skill) => skill.archive())
    const bytes = await readArchive(archive)
    t.equal(archive.size, bytes.length)
    t.equal(archive.revision, (await manager.read('demo', (skill) => skill.manifest())).revision)
    t.equal(await archive.digest(), sha256(bytes))
    t.equal(sha256(bytes), 'sha256:22bb700447d3e00849ca6d4e7b0cd00cdb368e19a619c58fd78fcb395a952e29',
      'on every machine and with every version of Node')
  }
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
  const name = fc.string({ unit, minLength: 1, maxLength: 60 }).filter((text) =>
    text !== '.' && text !== '.git' && !text.startsWith('..') && !isHiddenFile(text))
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
  }), { numRuns: 4 })
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
    t.testdir({ demo: skill('demo', { 'big.bin': Buffer.alloc(30_000_000), 'other.bin': Buffer.alloc(1_000_000) }) })
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
