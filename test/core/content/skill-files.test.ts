import fs from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { MAX_AWAITED_BYTES, MAX_AWAITED_FILES, MAX_AWAITED_LOOKS } from '../../../src/core/limits.ts'
import type { SkillManager } from '../../../src/core/skill-manager.ts'
import { createFaultyDisk, osError, outcome, passTick, skill, skillText, startManager, until } from '../../helper/skills.ts'

const HOUR_MS = 3_600_000
/** Hashed in as many turns of the event loop as it has megabytes: enough for a test to ask things meanwhile. */
const LARGE_BYTES = 4 * MAX_AWAITED_BYTES + 1
const LARGE_READS = Math.ceil(LARGE_BYTES / 1_048_576)

const document = async (manager: SkillManager, name = 'demo') => await manager.readDocument(name, 'SKILL.md')

/** Skills with one large file each, on a disk that counts how often that is read. */
async function startLarge (t: Test, ...names: readonly string[]) {
  const root = t.testdir(Object.fromEntries(names.map((name) => [name, skill(name, { 'a.md': 'a' })])))
  const large = (name = 'demo') => join(root, name, 'large.bin')
  for (const name of names) {
    fs.writeFileSync(large(name), '')
    fs.truncateSync(large(name), LARGE_BYTES)
  }
  const disk = createFaultyDisk({ ageMs: HOUR_MS, hasProc: false })
  const reads: string[] = []
  disk.intercept = (operation, path) => { if (operation === 'read' && path.endsWith('large.bin')) reads.push(path) }
  return { root, large, disk, manager: await startManager(t, [root], { disk }), reads }
}

t.test('an answer does not wait for a large file beside it; later ones carry the revision', async (t) => {
  const { manager, reads } = await startLarge(t, 'demo')
  const first = await document(manager)
  t.equal(first.utf8, skillText('demo'))
  t.equal(first.revision, undefined)
  t.strictSame(reads, [], 'nothing of it is read before the answer')
  await until(() => reads.length === 1)
  t.equal((await document(manager)).revision, undefined, 'nor do those that come while it is read')
  t.equal((await manager.readFile('demo', 'a.md')).revision, undefined)
  await until(async () => (await document(manager)).revision !== undefined)
  const { revision } = await manager.manifest('demo')
  t.equal((await document(manager)).revision, revision)
  t.equal((await manager.readFile('demo', 'a.md')).revision, revision, 'also of files that were not asked for before')
})

t.test('the revision is worked out once, however many ask, pinned or not', async (t) => {
  const { manager, reads } = await startLarge(t, 'demo')
  for (const { revision } of await Promise.all(Array.from({ length: 20 }, () => document(manager)))) t.equal(revision, undefined)
  await until(() => reads.length === 1)
  const manifests = Promise.all(Array.from({ length: 5 }, () => manager.manifest('demo')))
  const file = manager.openFile('demo', 'large.bin')
  const archive = manager.archive('demo')
  const [{ revision } = { revision: '' }] = await manifests
  t.match(revision, /^sha256:/)
  t.equal(new Set((await manifests).map((manifest) => manifest.revision)).size, 1, 'the manifest waits, and has it')
  t.equal((await archive).revision, revision)
  const opened = await file
  if (opened.kind === 'stream') await opened.file.close()
  t.equal((await document(manager)).revision, revision)
  t.equal(reads.length, LARGE_READS, 'all of them read the large file once')
})

t.test('a skill that is within the bounds has its revision at once', async (t) => {
  const { root, large, manager } = await startLarge(t, 'demo')
  fs.truncateSync(large(), MAX_AWAITED_BYTES - Buffer.byteLength(`${skillText('demo')}a`))
  t.match((await document(manager)).revision, /^sha256:/)
  passTick(root)
  fs.truncateSync(large(), MAX_AWAITED_BYTES)
  fs.writeFileSync(join(root, 'demo/SKILL.md'), `${skillText('demo')}more`)
  t.equal((await document(manager)).revision, undefined)
})

t.test('an edit beside a large file that is known costs nothing, and is waited for', async (t) => {
  const { root, manager, reads } = await startLarge(t, 'demo')
  const before = await manager.manifest('demo')
  passTick(root)
  fs.writeFileSync(join(root, 'demo/SKILL.md'), skillText('demo').replace('demo', 'demo '))
  const { revision } = await document(manager)
  t.match(revision, /^sha256:/)
  t.not(revision, before.revision)
  t.equal(reads.length, LARGE_READS)
})

t.test('K53: while a change is worked out no answer names a revision that it is not in', async (t) => {
  const { root, large, manager, reads } = await startLarge(t, 'demo')
  const before = await manager.manifest('demo')
  t.equal((await document(manager)).revision, before.revision)
  passTick(root)
  fs.writeFileSync(large(), 'x')
  fs.truncateSync(large(), LARGE_BYTES)
  fs.writeFileSync(join(root, 'demo/a.md'), 'b')
  const changed = await manager.readFile('demo', 'a.md')
  t.equal(changed.utf8, 'b')
  t.equal(changed.revision, undefined)
  await until(() => reads.length > LARGE_READS)
  // A second change, under the work.
  passTick(root)
  fs.writeFileSync(join(root, 'demo/a.md'), 'c')
  await until(async () => (await manager.readFile('demo', 'a.md')).revision !== undefined)
  const now = await manager.manifest('demo')
  t.equal((await manager.readFile('demo', 'a.md')).revision, now.revision)
  t.not(now.revision, before.revision)
  t.equal(reads.length, 2 * LARGE_READS, 'the large file is not read again for it')
})

t.test('one skill at a time; who waits for another is not held up', async (t) => {
  const { manager, reads, large } = await startLarge(t, 'one', 'two', 'three')
  await Promise.all(['one', 'three', 'two'].map((name) => document(manager, name)))
  await until(() => reads.length === 5)
  t.strictSame(new Set(reads), new Set([large('one')]))
  const { revision } = await manager.manifest('two')
  t.equal((await document(manager, 'three')).revision, undefined, 'a manifest that is asked for is not last in the queue')
  t.equal((await document(manager, 'two')).revision, revision)
  await until(async () => (await document(manager, 'three')).revision !== undefined)
  t.match((await document(manager, 'one')).revision, /^sha256:/)
  t.equal(reads.length, 3 * LARGE_READS)
})

t.test('many files are not waited for either', async (t) => {
  const files = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`f${index}`, '']))
  const root = t.testdir({ few: skill('few', files(MAX_AWAITED_FILES - 1)), many: skill('many', files(MAX_AWAITED_FILES)) })
  const disk = createFaultyDisk({ ageMs: HOUR_MS })
  const manager = await startManager(t, [root], { disk })
  t.match((await document(manager, 'few')).revision, /^sha256:/)
  const opened = disk.calls.get('open') ?? 0
  t.equal((await document(manager, 'many')).revision, undefined)
  t.ok((disk.calls.get('open') ?? 0) <= opened + 2, 'only the document is opened')
  await until(async () => (await document(manager, 'many')).revision !== undefined)
  passTick(root)
  fs.writeFileSync(join(root, 'many/SKILL.md'), `${skillText('many')}more`)
  t.match((await document(manager, 'many')).revision, /^sha256:/, 'files that are known are only looked at')
})

t.test('more files than may be looked at are known in the end', async (t) => {
  const root = t.testdir({ demo: skill('demo') })
  for (let index = 0; index < MAX_AWAITED_LOOKS; index++) fs.writeFileSync(join(root, `demo/f${index}`), '')
  const manager = await startManager(t, [root], { disk: createFaultyDisk({ ageMs: HOUR_MS }) })
  t.equal((await document(manager)).revision, undefined)
  await until(async () => (await document(manager)).revision !== undefined)
  passTick(root)
  fs.writeFileSync(join(root, 'demo/SKILL.md'), `${skillText('demo')}more`)
  t.equal((await document(manager)).revision, undefined, 'also when all but one are known')
  await until(async () => (await document(manager)).revision !== undefined)
  t.equal((await document(manager)).revision, (await manager.manifest('demo')).revision)
})

t.test('K53: a large file that cannot be read keeps no answer back, and nothing is left unhandled', async (t) => {
  const { manager, disk, reads, large } = await startLarge(t, 'demo')
  disk.intercept = (operation, path) => {
    if (operation !== 'read' || path !== large()) return
    reads.push(path)
    throw osError('EIO')
  }
  for (let round = 1; round <= 3; round++) {
    const before = reads.length
    t.equal((await document(manager)).revision, undefined)
    await until(() => reads.length > before)
  }
  t.match(await outcome(() => manager.manifest('demo')), /SkillError/)
})

t.test('a skill that goes away while its revision is worked out is let go', async (t) => {
  const { root, large, manager, reads } = await startLarge(t, 'demo', 'other')
  await document(manager)
  await document(manager, 'other')
  await until(() => reads.length === 1)
  fs.rmSync(join(root, 'demo'), { recursive: true })
  await until(async () => (await document(manager, 'other')).revision !== undefined)
  t.ok(reads.filter((path) => path === large()).length < 5, 'what is gone is not read to its end')
})

t.test('nothing is read after close', async (t) => {
  const { manager, reads } = await startLarge(t, 'one', 'two')
  await document(manager, 'one')
  await document(manager, 'two')
  await until(() => reads.length === 1)
  await manager.close()
  const atClose = reads.length
  t.ok(atClose <= 2, `${atClose} reads`)
  t.equal((await document(manager, 'two')).revision, undefined)
  for (let turn = 0; turn < 10; turn++) await nextTurn()
  t.equal(reads.length, atClose)
})
