import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createNetworkDisk, type Disk } from '../../../src/core/read/disk.ts'
import { walkSkill } from '../../../src/core/read/walk.ts'
import { createFaultyDisk, skill, skills, startManager, until } from '../../helper/skills.ts'

const ANSWER_MS = 200

t.test('K54: a disk that hangs keeps one thread; those that have answered go on', async (t) => {
  const fifos = ['1', '2', '3'].map((name) => join(t.testdirName, name))
  t.testdir({ file: '' })
  execFileSync('mkfifo', fifos)
  // Opening a FIFO hangs until somebody opens its other end.
  const opened: Array<Promise<unknown>> = []
  const disks = fifos.map(() => createNetworkDisk(ANSWER_MS))
  const asked = (disk: Disk | undefined, path: string) => Promise.resolve(disk?.open(path, fs.constants.O_RDONLY))
  const proven = createNetworkDisk(ANSWER_MS)
  t.ok(await proven.stat(t.testdirName))

  for (const [index, fifo] of fifos.entries()) {
    // Of those behind the first call none has started, and none hangs.
    for (let call = 0; call < 5; call++) opened.push(t.rejects(asked(disks[index], fifo), { code: 'ETIMEDOUT' }))
  }
  await Promise.all(opened)
  for (const disk of disks) await t.rejects(Promise.resolve(disk.stat(t.testdirName)), { code: 'ETIMEDOUT' })
  t.ok(await proven.stat(t.testdirName), 'a disk that has answered before')
  await fs.promises.access(t.testdirName)
  t.pass('other work has a thread')

  // The first two ask, the third found no thread for a disk that has never answered.
  for (const fifo of fifos.slice(0, 2)) fs.closeSync(fs.openSync(fifo, fs.constants.O_RDWR))
  for (const fifo of fifos.slice(0, 2)) fs.closeSync(fs.openSync(fifo, fs.constants.O_WRONLY | fs.constants.O_NONBLOCK))
  for (const disk of disks) {
    await until(async () => await Promise.resolve(disk.stat(t.testdirName)).then(() => true, () => false))
  }
})

t.test('K53: a disk that lists its folders in another order each time has one state', async (t) => {
  const files = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`${index}.md`, `${index}`]))
  const folder = fs.realpathSync(t.testdir({ a: skill('a', files) }))
  const disk = createFaultyDisk()
  const { readdir } = disk
  disk.readdir = async (path) => (await readdir(path)).sort(() => Math.random() - 0.5)
  const walks = await Promise.all(Array.from({ length: 5 }, () => walkSkill(disk, join(folder, 'a'), undefined)))
  t.equal(new Set(walks.map(({ fingerprint }) => fingerprint)).size, 1)
})

t.test('K51: a list asks one stat for each root and link, and lists nothing', async (t) => {
  const names = Array.from({ length: 10 }, (_, index) => `skill-${index}`)
  const base = fs.realpathSync(t.testdir({ store: skills(...names), root: {} }))
  for (const name of names) fs.symlinkSync(`../store/${name}`, join(base, 'root', name))
  const disk = createFaultyDisk({ ageMs: 60_000 })
  const manager = await startManager(t, [join(base, 'root')], { disk, linkTargets: [join(base, 'store')] })
  disk.calls.clear()
  t.strictSame(await manager.list(), [...names].sort())
  t.strictSame(Object.fromEntries(disk.calls), { stat: 1 + names.length })
  fs.rmSync(join(base, 'store/skill-3'), { recursive: true })
  t.notMatch((await manager.list()).join(), 'skill-3', 'a link that dangles now')
  fs.cpSync(join(base, 'store/skill-4'), join(base, 'store/skill-3'), { recursive: true })
  t.match((await manager.list()).join(), 'skill-3', 'and leads to a folder again')
})
