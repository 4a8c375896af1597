import { setImmediate as nextTurn } from 'node:timers/promises'
import fs from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createLocalDisk, createNetworkDisk } from '../../../src/core/disk/disk.ts'
import { PollPhase } from '../../../src/core/disk/poll-phase.ts'
import { createFaultyDisk, failing } from '../../helper/skills.ts'

function createFile (t: Test) {
  const file = join(t.testdir({ file: 'a' }), 'file')
  const disk = createFaultyDisk()
  return { file, disk, count: () => disk.calls.get('stat') ?? 0, stats: new PollPhase() }
}

t.test('K51: nothing is remembered outside of a phase', async (t) => {
  const { file, disk, count, stats } = createFile(t)
  t.equal((await stats.stat(disk, file))?.size, 1n)
  fs.writeFileSync(file, 'abc')
  t.equal((await stats.stat(disk, file))?.size, 3n)
  t.equal(count(), 2)
})

t.test('requests of one phase share a stat, also of what is not there', async (t) => {
  const { file, disk, count, stats } = createFile(t)
  stats.begin({})
  const first = stats.stat(disk, file)
  stats.begin({})
  t.equal(stats.stat(disk, file), first)
  t.equal(stats.stat(disk, `${file}-missing`), undefined)
  t.equal(stats.stat(disk, `${file}-missing`), undefined)
  t.equal(count(), 2)
})

t.test('K51: the phase ends with the poll phase', async (t) => {
  const { file, disk, count, stats } = createFile(t)
  const connection = {}
  stats.begin(connection)
  await stats.stat(disk, file)
  fs.writeFileSync(file, 'abc')
  await nextTurn()
  t.equal((await stats.stat(disk, file))?.size, 3n, 'outside')
  stats.begin(connection)
  t.equal((await stats.stat(disk, file))?.size, 3n, 'in the next one')
  t.equal(count(), 3)
})

t.test('K51: a second request of one connection sees the disk anew', async (t) => {
  const { file, disk, stats } = createFile(t)
  const connection = {}
  stats.begin(connection)
  t.equal((await stats.stat(disk, file))?.size, 1n)
  fs.writeFileSync(file, 'abc')
  stats.begin({})
  t.equal((await stats.stat(disk, file))?.size, 1n, 'one of another connection was sent before the phase began')
  stats.begin(connection)
  t.equal((await stats.stat(disk, file))?.size, 3n)
  fs.writeFileSync(file, 'abcde')
  stats.begin(connection)
  t.equal((await stats.stat(disk, file))?.size, 5n, 'and a third')
})

t.test('a comparison always asks the disk, and what it finds counts for the phase', async (t) => {
  const { file, disk, stats } = createFile(t)
  stats.begin({})
  await stats.stat(disk, file)
  fs.writeFileSync(file, 'abc')
  t.equal((await stats.statNow(disk, file))?.size, 3n)
  t.equal((await stats.stat(disk, file))?.size, 3n)
})

t.test('what may not be seen is not there', async (t) => {
  const { file, disk, stats } = createFile(t)
  disk.intercept = failing('stat', 'file', 'EACCES')
  t.equal(await stats.stat(disk, file), undefined)
  const network = createFaultyDisk({ disk: createNetworkDisk() })
  network.intercept = async () => { throw new Error('gone') }
  t.equal(await stats.stat(network, file), undefined)
})

t.test('K51: answers of a network disk are not remembered: they come in a later phase', async (t) => {
  const { file, stats } = createFile(t)
  const disk = createFaultyDisk({ disk: createNetworkDisk() })
  stats.begin({})
  t.equal((await stats.stat(disk, file))?.size, 1n)
  fs.writeFileSync(file, 'abc')
  stats.begin({})
  t.equal((await stats.stat(disk, file))?.size, 3n)
  t.equal(await stats.stat(disk, `${file}-missing`), undefined)
})

t.test('a disk that does not answer at once is not asked where nobody waits', async (t) => {
  const { file, disk, count, stats } = createFile(t)
  t.equal(stats.statAtOnce(createLocalDisk(), file)?.size, 1n)
  t.equal(stats.statAtOnce(createLocalDisk(), `${file}-missing`), undefined)
  t.equal(stats.statAtOnce(disk, file), undefined)
  t.equal(count(), 0)
})
