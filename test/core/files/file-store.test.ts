import fs from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import t, { type Test } from 'tap'
import { FileStore, type RoomForFile } from '../../../src/core/files/file-store.ts'
import { sha256 } from '../../../src/core/shared/digest.ts'
import { CONTENT_CACHE_BYTES, MAX_BUFFERED_FILE_BYTES, MAX_LARGE_READS, MAX_MAIN_FILE_BYTES } from '../../../src/core/shared/limits.ts'
import { PollPhase } from '../../../src/core/disk/poll-phase.ts'
import { countOpenBelow, createFaultyDisk, failing, type FaultyDisk, outcome, passTick, skill } from '../../helper/skills.ts'

const HOUR_MS = 3_600_000

/** A skill whose timestamps look old, so that what is read of it may be kept. */
async function createStore (t: Test, files: Readonly<Record<string, unknown>>, ageMs = HOUR_MS, maxBytes?: number, hasRoom?: RoomForFile) {
  const base = t.testdir({ demo: skill('demo', files) })
  const path = fs.realpathSync(join(base, 'demo'))
  const disk = createFaultyDisk({ ageMs })
  const place = (file: string) => ({ disk, folder: path, path: file })
  passTick(base)
  return { base, path, disk, store: new FileStore(new PollPhase(), maxBytes, hasRoom), place }
}

function opens (disk: FaultyDisk): number {
  return disk.calls.get('open') ?? 0
}

t.test('what has not changed is served from memory after a stat of the file and the folders on the way', async (t) => {
  const { disk, store, place } = await createStore(t, { docs: { deep: { 'a.md': 'a' } } })
  const before = opens(disk)
  const { content } = await store.read(place('docs/deep/a.md'), 10)
  t.equal(content.bytes.toString(), 'a')
  t.ok(opens(disk) > before)
  const opened = opens(disk)
  const looked = disk.calls.get('stat') ?? 0
  t.equal((await store.read(place('docs/deep/a.md'), 10)).content, content)
  t.match(await store.open(place('docs/deep/a.md')), { kind: 'content' })
  t.equal(opens(disk), opened)
  t.equal(disk.calls.get('stat'), looked + 8, 'the skill folder, docs, docs/deep and the file, twice')
  t.match(await store.read(place('docs/deep/a.md'), 0).catch((error: unknown) => error), { refusal: 'too_large', size: 1n })
})

t.test('K51: what was written within a clock tick before is not kept', async (t) => {
  const { store, place, path } = await createStore(t, {}, 0)
  fs.writeFileSync(join(path, 'a.md'), 'a')
  const first = await store.read(place('a.md'), 10)
  t.not(await store.read(place('a.md'), 10), first)
})

t.test('K51: a change to the file, to a folder on the way or to the skill folder is seen', async (t) => {
  const { base, store, place, path } = await createStore(t, { docs: { 'a.md': 'a' }, other: { 'a.md': 'other' } })
  const read = async () => (await store.read(place('docs/a.md'), 100)).content.bytes.toString()
  t.equal(await read(), 'a')
  const changes: ReadonlyArray<readonly [string, () => void, string]> = [
    ['written in place', () => fs.writeFileSync(join(path, 'docs/a.md'), 'longer'), 'longer'],
    ['replaced', () => { fs.writeFileSync(join(path, 'docs/tmp'), 'new'); fs.renameSync(join(path, 'docs/tmp'), join(path, 'docs/a.md')) }, 'new'],
    ['folder exchanged', () => { fs.renameSync(join(path, 'docs'), join(path, 'x')); fs.renameSync(join(path, 'other'), join(path, 'docs')) }, 'other'],
    ['link in its place', () => { fs.rmSync(join(path, 'docs/a.md')); fs.symlinkSync('../SKILL.md', join(path, 'docs/a.md')) }, skill('demo')['SKILL.md']]
  ]
  for (const [what, change, expected] of changes) {
    passTick(base)
    change()
    t.equal(await read(), expected, what)
  }
})

t.test('K19: what lies behind a link is read anew each time', async (t) => {
  const { disk, store, place, path } = await createStore(t, { docs: { 'a.md': 'a' }, link: t.fixture('symlink', 'docs') })
  t.equal((await store.read(place('link/a.md'), 10)).content.bytes.toString(), 'a')
  const before = opens(disk)
  fs.writeFileSync(join(path, 'docs/a.md'), 'b')
  t.equal((await store.read(place('link/a.md'), 10)).content.bytes.toString(), 'b')
  t.ok(opens(disk) > before)
})

t.test('K32: memory is bounded by the weight of the contents, not by their number', async (t) => {
  const files = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`${index}.md`, 'x'.repeat(1_000)]))
  const { disk, store, place } = await createStore(t, files, HOUR_MS, 40_000)
  for (const file of Object.keys(files)) await store.read(place(file), 10_000)
  const before = opens(disk)
  await store.read(place('29.md'), 10_000)
  t.equal(opens(disk), before, 'the latest is kept')
  await store.read(place('0.md'), 10_000)
  t.ok(opens(disk) > before, 'the first is not')
  t.ok(CONTENT_CACHE_BYTES <= 50 * 1_048_576)
})

t.test('K22: a file whose growth passes the limit gives what it had when it was opened', async (t) => {
  const { disk, store, place, path } = await createStore(t, { log: 'a'.repeat(20_000) })
  const growsBy = (bytes: number) => {
    let isGrown = false
    disk.intercept = (operation) => {
      if (operation !== 'read' || isGrown) return
      isGrown = true
      fs.appendFileSync(join(path, 'log'), 'b'.repeat(bytes))
    }
  }
  growsBy(MAX_MAIN_FILE_BYTES)
  const opened = await store.open(place('log'))
  t.equal(opened.kind === 'content' ? opened.content.bytes.toString() : opened.kind, 'a'.repeat(20_000))
  fs.writeFileSync(join(path, 'log'), 'a'.repeat(900))
  growsBy(200)
  t.equal((await store.read(place('log'), 1_000)).content.bytes.toString(), 'a'.repeat(900))

  fs.writeFileSync(join(path, 'log'), 'a'.repeat(900))
  let writes = 0
  disk.intercept = (operation) => { if (operation === 'read') fs.writeFileSync(join(path, 'log'), `${++writes % 10}`.repeat(1_100)) }
  t.match(await store.read(place('log'), 1_000).catch((error: unknown) => error), { refusal: 'too_large' }, 'not one that is rewritten')
})

t.test('K44: no two files of different skills share a place in memory, whatever their names are', async (t) => {
  const { disk, store, base, path } = await createStore(t, { 'x\ny': 'of demo' })
  fs.mkdirSync(join(base, 'demo\nx'))
  fs.writeFileSync(join(base, 'demo\nx/y'), 'of the other')
  const since = store.readCount
  await store.read({ disk, folder: path, path: 'x\ny' }, 100)
  t.equal((await store.read({ disk, folder: `${path}\nx`, path: 'y' }, 100, since)).content.bytes.toString(), 'of the other')
})

t.test('K44: small files come whole, large ones open, with their digest', async (t) => {
  const large = 'x'.repeat(MAX_BUFFERED_FILE_BYTES + 1)
  const { disk, store, place, path } = await createStore(t, { small: large.slice(1), large })
  t.match(await store.open(place('small')), { kind: 'content', content: { digest: sha256(large.slice(1)) } })
  const streamed = await store.open(place('large'))
  t.match(streamed, { kind: 'stream', digest: sha256(large) })
  if (streamed.kind !== 'stream') return
  const reads = disk.calls.get('read')
  t.match(await store.checksums(streamed.file), { digest: sha256(large), crc32: crc32(large) })
  t.equal(disk.calls.get('read'), reads, 'an unchanged file is hashed once')
  await streamed.file.close()
  disk.intercept = failing('read', '', 'EIO')
  fs.appendFileSync(join(path, 'large'), 'x')
  await t.rejects(async () => await store.open(place('large')), { message: 'io_error' })
  t.equal(countOpenBelow(path), 0, 'nothing stays open')
})

t.test('K49: the digest of a file that was written just now is not kept', async (t) => {
  // Timestamps that lie ahead: the file stays young, however long the machine stalls.
  const { disk, store, place, path } = await createStore(t, {}, -HOUR_MS)
  fs.writeFileSync(join(path, 'large'), 'x'.repeat(MAX_BUFFERED_FILE_BYTES + 1))
  const streamed = await store.open(place('large'))
  if (streamed.kind !== 'stream') throw new Error('not streamed')
  const reads = disk.calls.get('read') ?? 0
  await store.checksums(streamed.file)
  t.ok((disk.calls.get('read') ?? 0) > reads)
  await streamed.file.close()
})

t.test('a file over 1 MiB is served, not kept', async (t) => {
  const { store, place } = await createStore(t, { large: 'x'.repeat(MAX_MAIN_FILE_BYTES + 1) })
  const first = await store.read(place('large'), 10 * MAX_MAIN_FILE_BYTES)
  t.equal(first.content.bytes.length, MAX_MAIN_FILE_BYTES + 1)
  t.not(await store.read(place('large'), 10 * MAX_MAIN_FILE_BYTES), first)
})

t.test('what was read after a question was asked answers it, however young', async (t) => {
  const { disk, store, place, path } = await createStore(t, {}, 0)
  fs.writeFileSync(join(path, 'a.md'), 'a')
  const since = store.readCount
  const first = await store.read(place('a.md'), 10, since)
  const calls = [...disk.calls.values()].reduce((sum, count) => sum + count, 0)
  t.equal((await store.read(place('a.md'), 10, since)).content, first.content)
  t.equal([...disk.calls.values()].reduce((sum, count) => sum + count, 0), calls, 'the disk is not asked')
  t.not((await store.read(place('a.md'), 10, store.readCount)).content, first.content, 'a later question reads again')
})

t.test('K51: what a reading gives that had begun before a question was asked is no answer, whenever it ends', async (t) => {
  const { disk, store, place, path } = await createStore(t, { docs: { 'a.md': 'old' }, other: { 'a.md': 'new' } })
  let goOn = () => {}
  const waiting = new Promise<void>((resolve) => { goOn = resolve })
  const isReading = new Promise<void>((resolve) => {
    disk.intercept = (operation) => {
      if (operation !== 'read') return
      disk.intercept = () => {}
      resolve()
      return waiting
    }
  })
  const first = store.read(place('docs/a.md'), 10)
  await isReading
  fs.renameSync(join(path, 'docs'), join(path, 'before'))
  fs.renameSync(join(path, 'other'), join(path, 'docs'))
  const since = store.readCount
  goOn()
  t.equal((await first).content.utf8, 'old')
  t.equal((await store.read(place('docs/a.md'), 10, since)).content.utf8, 'new')
})

t.test('a small file is opened for reading once and read once', async (t) => {
  const { disk, store, place } = await createStore(t, { 'a.md': 'a' })
  t.match(await store.open(place('a.md')), { kind: 'content' })
  t.equal(disk.calls.get('open'), 2, 'once without touching it, once for reading')
  t.equal(disk.calls.get('read'), 1)
})

t.test('K56: answers with large files that would wait behind many others are refused at once, small files are not', async (t) => {
  let makeRoom = (_hasRoom: boolean) => {}
  const room = new Promise<boolean>((resolve) => { makeRoom = resolve })
  const { store, place } = await createStore(t, { large: 'x'.repeat(MAX_MAIN_FILE_BYTES + 1), 'a.md': 'a' }, undefined, undefined, () => room)
  const read = async () => (await store.read(place('large'), 2 * MAX_MAIN_FILE_BYTES)).content.bytes.length
  const first = Array.from({ length: MAX_LARGE_READS }, () => outcome(read))
  await t.rejects(read(), { code: 'overloaded' })
  t.equal((await store.read(place('a.md'), 10)).content.bytes.toString(), 'a')
  makeRoom(true)
  t.strictSame(new Set(await Promise.all(first)), new Set([MAX_MAIN_FILE_BYTES + 1]))
  t.equal(await read(), MAX_MAIN_FILE_BYTES + 1, 'those that have ended count no more')
})

t.test('K21: a file that is too large is refused at once, however many large ones are being read', async (t) => {
  let makeRoom = (_hasRoom: boolean) => {}
  const room = new Promise<boolean>((resolve) => { makeRoom = resolve })
  const { store, place } = await createStore(t, { 'large.txt': 'x'.repeat(MAX_MAIN_FILE_BYTES + 1), 'larger.txt': 'x'.repeat(MAX_MAIN_FILE_BYTES + 2) }, HOUR_MS, undefined, () => room)
  const first = store.read(place('large.txt'), MAX_MAIN_FILE_BYTES + 1)
  const refused = await store.read(place('larger.txt'), MAX_MAIN_FILE_BYTES + 1).catch((error: unknown) => error)
  t.match(refused, { refusal: 'too_large', size: BigInt(MAX_MAIN_FILE_BYTES + 2) })
  makeRoom(true)
  t.equal((await first).content.bytes.length, MAX_MAIN_FILE_BYTES + 1)
})

t.test('K16: a main file of 1 MiB does not wait for larger files that are being read', async (t) => {
  let makeRoom = (_hasRoom: boolean) => {}
  const room = new Promise<boolean>((resolve) => { makeRoom = resolve })
  const { store, place } = await createStore(t, { 'large.txt': 'x'.repeat(MAX_MAIN_FILE_BYTES + 1), 'main.md': 'x'.repeat(MAX_MAIN_FILE_BYTES) }, HOUR_MS, undefined, () => room)
  const first = store.read(place('large.txt'), 2 * MAX_MAIN_FILE_BYTES)
  t.equal((await store.read(place('main.md'), MAX_MAIN_FILE_BYTES)).content.bytes.length, MAX_MAIN_FILE_BYTES)
  makeRoom(true)
  t.equal((await first).content.bytes.length, MAX_MAIN_FILE_BYTES + 1)
})
