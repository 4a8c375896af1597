import { createHash } from 'node:crypto'
import { changed } from '../disk/refused.ts'
import { CHECKED_BLOCK_BYTES } from '../shared/limits.ts'
import { OpenFile } from './open-file.ts'

const DIGEST_BYTES = 32

/** Digest of a file, and of each of its blocks, of one pass over its bytes. */
export async function digestBlocks (file: OpenFile, pause: () => Promise<void>): Promise<{ readonly digest: string, readonly blocks: Buffer }> {
  const digests: Buffer[] = []
  let block = createHash('sha256')
  let length = 0
  const onBytes = (bytes: Buffer): void => {
    for (let start = 0; start < bytes.length;) {
      const piece = bytes.subarray(start, start + CHECKED_BLOCK_BYTES - length)
      block.update(piece)
      start += piece.length
      length += piece.length
      if (length < CHECKED_BLOCK_BYTES) continue
      digests.push(block.digest())
      block = createHash('sha256')
      length = 0
    }
  }
  const { digest } = await file.checksums({ onBytes, pause })
  if (length > 0) digests.push(block.digest())
  return { digest, blocks: Buffer.concat(digests) }
}

/** An open file that gives out no block with other bytes than those that were checked, whoever writes to it meanwhile. */
export class CheckedFile extends OpenFile {
  readonly #file: OpenFile
  readonly #blocks: Buffer

  constructor (file: OpenFile, blocks: Buffer) {
    super(file.disk, file.descriptor, file.stats, file.realPath)
    this.#file = file
    this.#blocks = blocks
  }

  override async * chunks (start: number, end: number): AsyncGenerator<Buffer> {
    for (let index = Math.floor(start / CHECKED_BLOCK_BYTES); index * CHECKED_BLOCK_BYTES <= end; index++) {
      const offset = index * CHECKED_BLOCK_BYTES
      const bytes = await this.#readBlock(index)
      yield bytes.subarray(Math.max(start - offset, 0), Math.min(end - offset + 1, bytes.length))
    }
  }

  async #readBlock (index: number): Promise<Buffer> {
    const offset = index * CHECKED_BLOCK_BYTES
    const length = Math.min(CHECKED_BLOCK_BYTES, Number(this.stats.size) - offset)
    const bytes = Buffer.allocUnsafe(length)
    for (let position = 0; position < length;) {
      const count = await this.#file.disk.read(this.descriptor, bytes, position, length - position, offset + position)
      if (count === 0) throw changed('the file became shorter while it was being sent')
      position += count
    }
    const expected = this.#blocks.subarray(index * DIGEST_BYTES, (index + 1) * DIGEST_BYTES)
    if (!createHash('sha256').update(bytes).digest().equals(expected)) throw changed('the file was rewritten while it was being sent')
    return bytes
  }
}
