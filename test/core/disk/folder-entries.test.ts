import fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createLocalDisk, createNetworkDisk } from '../../../src/core/disk/disk.ts'
import { LARGE_FOLDER_BYTES, entriesIn } from '../../../src/core/disk/folder-entries.ts'
import { countOpenBelow, createFaultyDisk } from '../../helper/skills.ts'

const LARGE = BigInt(LARGE_FOLDER_BYTES + 1)

t.test('a folder of any size has all its entries, the names that are not UTF-8 apart', async (t) => {
  const names = [...Array.from({ length: 2_500 }, (_, index) => `file-${index}`), '\uFFFD']
  const folder = t.testdir(Object.fromEntries(names.map((name) => [name, ''])))
  fs.writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff])]), '')
  fs.mkdirSync(Buffer.concat([Buffer.from(`${folder}/odd`), Buffer.from([0xfe])]))
  for (const disk of [createLocalDisk(), createNetworkDisk()]) {
    for (const size of [0n, LARGE]) {
      const found: string[] = []
      const unnameable: string[] = []
      let pieces = 0
      for await (const piece of entriesIn(disk, folder, size)) {
        pieces++
        found.push(...piece.entries.map(({ name }) => name))
        unnameable.push(...piece.unnameable)
      }
      t.same(found.sort(), names.toSorted())
      t.same(unnameable.sort(), ['odd\uFFFD', '\uFFFD'].sort())
      t.equal(pieces, size === 0n ? 1 : 3, 'pieces of a thousand')
    }
  }
})

t.test('K43: of names that are decoded alike, only the one that is UTF-8 is an entry', async (t) => {
  const folder = t.testdir({ 'a\uFFFD': {}, 'b\uFFFD': '' })
  // Before and after the real ones, in whichever order the disk lists them.
  for (const byte of [0xfd, 0xfe, 0xff]) {
    fs.writeFileSync(Buffer.concat([Buffer.from(`${folder}/a`), Buffer.from([byte])]), '')
    fs.writeFileSync(Buffer.concat([Buffer.from(`${folder}/b`), Buffer.from([byte])]), '')
  }
  for (const disk of [createLocalDisk(), createNetworkDisk()]) {
    for (const size of [0n, LARGE]) {
      for await (const { entries, unnameable } of entriesIn(disk, folder, size)) {
        t.same(entries.map((entry) => `${entry.name} ${entry.isDirectory()}`).sort(), ['a\uFFFD true', 'b\uFFFD false'])
        t.same(unnameable.toSorted(), [...Array.from({ length: 3 }, () => 'a\uFFFD'), ...Array.from({ length: 3 }, () => 'b\uFFFD')])
      }
    }
  }
})

t.test('a reader that ends early leaves nothing open', async (t) => {
  const folder = t.testdir({ a: '', b: '' })
  const reader = entriesIn(createLocalDisk(), folder, LARGE)
  t.match(await reader.next(), { done: false, value: { entries: { length: 2 } } })
  await reader.return(undefined)
  const disk = createFaultyDisk()
  await t.rejects(async () => { for await (const piece of entriesIn(disk, join(folder, 'gone'), LARGE)) t.fail(String(piece)) }, { code: 'ENOENT' })
  t.equal(countOpenBelow(folder), 0)
})
