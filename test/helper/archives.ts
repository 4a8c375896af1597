import { buffer } from 'node:stream/consumers'
import { crc32, deflateRawSync, gzipSync } from 'node:zlib'
import { type Header, pack } from 'tar-stream'

/** Archives of tests need no compression. */
const FAST = { level: 1 }
/** Of the thousands of empty files that some archives have. */
const EMPTY = deflateRawSync('')

/** A tar archive; a string is a file's text, an object a header. */
export async function tarOf (
  entries: ReadonlyArray<readonly [name: string, content: string | Buffer | Partial<Header>]>
): Promise<Buffer> {
  const tar = pack()
  for (const [name, content] of entries) {
    if (typeof content === 'string' || Buffer.isBuffer(content)) tar.entry({ name }, content)
    else tar.entry({ name, ...content } as Header)
  }
  tar.finalize()
  return await buffer(tar)
}

export async function tarGzOf (...entries: Parameters<typeof tarOf>): Promise<Buffer> {
  return gzipSync(await tarOf(...entries), FAST)
}

export interface ZipEntry {
  readonly name: string | Buffer
  readonly bytes: Buffer
  /** What the headers say instead of the truth. */
  readonly claimed?: number
  readonly mode?: number
  readonly flags?: number
  readonly isStored?: boolean
}

/** Returns a ZIP whose headers may differ from its contents. */
export function zipOf (entries: readonly ZipEntry[]): Buffer {
  const locals: Buffer[] = []
  const central: Buffer[] = []
  let offset = 0
  for (const { name, bytes, claimed = bytes.length, mode = 0o100644, flags = 0x800, isStored = false } of entries) {
    const packed = isStored ? bytes : bytes.length === 0 ? EMPTY : deflateRawSync(bytes, FAST)
    const nameBytes = Buffer.from(name as string)
    const common = Buffer.alloc(26)
    common.writeUInt16LE(20, 0)
    common.writeUInt16LE(flags, 2)
    common.writeUInt16LE(isStored ? 0 : 8, 4)
    common.writeUInt32LE(crc32(bytes), 10)
    common.writeUInt32LE(packed.length, 14)
    common.writeUInt32LE(claimed, 18)
    common.writeUInt16LE(nameBytes.length, 22)
    const local = Buffer.concat([Buffer.from('PK\u0003\u0004'), common, nameBytes, packed])
    const tail = Buffer.alloc(14)
    tail.writeUInt32LE((mode << 16) >>> 0, 6)
    tail.writeUInt32LE(offset, 10)
    central.push(Buffer.concat([Buffer.from('PK\u0001\u0002'), Buffer.from([20, 3]), common, tail, nameBytes]))
    locals.push(local)
    offset += local.length
  }
  const end = Buffer.alloc(18)
  end.writeUInt16LE(entries.length, 4)
  end.writeUInt16LE(entries.length, 6)
  end.writeUInt32LE(Buffer.concat(central).length, 8)
  end.writeUInt32LE(offset, 12)
  return Buffer.concat([...locals, ...central, Buffer.from('PK\u0005\u0006'), end])
}

/** Returns a correct ZIP with any names. */
export function zipOfTexts (entries: ReadonlyArray<readonly [name: string, text: string, mode?: number]>): Buffer {
  return zipOf(
    entries.map(([name, text, mode]) => ({ name, bytes: Buffer.from(text), ...mode !== undefined && { mode } })))
}
