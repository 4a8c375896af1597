import fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createLocalDisk } from '../../../src/core/disk/disk.ts'
import { CheckedFile, digestBlocks } from '../../../src/core/files/checked-file.ts'
import { openInside } from '../../../src/core/files/open-inside.ts'
import { sha256 } from '../../../src/core/shared/digest.ts'
import { CHECKED_BLOCK_BYTES } from '../../../src/core/shared/limits.ts'

const pause = async (): Promise<void> => {}

for (const size of [0, 1, CHECKED_BLOCK_BYTES - 1, CHECKED_BLOCK_BYTES, CHECKED_BLOCK_BYTES + 1, 5 * CHECKED_BLOCK_BYTES + 7]) {
  t.test(`K95: a checked file of ${size} bytes gives any range of them, and no block that was written since`, async (t) => {
    const bytes = Buffer.alloc(size, 'checked ')
    const folder = t.testdir({ file: bytes })
    const file = await openInside(createLocalDisk(), folder, 'file')
    t.teardown(() => file.close())
    const { digest, blocks } = await digestBlocks(file, pause)
    t.equal(digest, sha256(bytes))
    const checked = new CheckedFile(file, blocks)
    const read = async (start: number, end: number): Promise<Buffer> => {
      const pieces: Buffer[] = []
      for await (const piece of checked.chunks(start, end)) pieces.push(piece)
      return Buffer.concat(pieces)
    }
    for (const [start, end] of [[0, size - 1], [0, 0], [size - 1, size - 1], [CHECKED_BLOCK_BYTES - 1, CHECKED_BLOCK_BYTES], [1, size - 2]] as const) {
      if (start >= 0 && end < size && start <= end) t.ok((await read(start, end)).equals(bytes.subarray(start, end + 1)), `${start}-${end}`)
    }
    if (size === 0) return
    const descriptor = fs.openSync(join(folder, 'file'), 'r+')
    fs.writeSync(descriptor, 'X', size - 1)
    fs.closeSync(descriptor)
    const given: Buffer[] = []
    await t.rejects(async () => { for await (const piece of checked.chunks(0, size - 1)) given.push(piece) }, { message: 'changed' })
    t.equal(Buffer.concat(given).length, Math.floor((size - 1) / CHECKED_BLOCK_BYTES) * CHECKED_BLOCK_BYTES, 'the blocks before are as they were')
    fs.truncateSync(join(folder, 'file'), 0)
    await t.rejects(read(0, 0), { message: 'changed' })
  })
}
