import { buffer } from 'node:stream/consumers'
import { crc32, gzipSync } from 'node:zlib'
import { type Header, pack } from 'tar-stream'

/** A tar archive; a string is a file's text, an object a header. */
export async function tarOf (entries: ReadonlyArray<readonly [name: string, content: string | Buffer | Partial<Header>]>): Promise<Buffer> {
  const tar = pack()
  for (const [name, content] of entries) {
    if (typeof content === 'string' || Buffer.isBuffer(content)) tar.entry({ name }, content)
    else tar.entry({ name, ...content } as Header)
  }
  tar.finalize()
  return await buffer(tar)
}

export async function tarGzOf (...entries: Parameters<typeof tarOf>): Promise<Buffer> {
  return gzipSync(await tarOf(...entries))
}

/** A ZIP archive of stored entries, with any names. */
export function zipOf (entries: ReadonlyArray<readonly [name: string, content: string, mode?: number]>): Buffer {
  const local: Buffer[] = []
  const central: Buffer[] = []
  let offset = 0
  for (const [name, content, mode = 0o100644] of entries) {
    const bytes = Buffer.from(content)
    const label = Buffer.from(name)
    const common = Buffer.alloc(26)
    common.writeUInt16LE(20, 0)
    common.writeUInt16LE(0x800, 2)
    common.writeUInt32LE(crc32(bytes), 10)
    common.writeUInt32LE(bytes.length, 14)
    common.writeUInt32LE(bytes.length, 18)
    common.writeUInt16LE(label.length, 22)
    const head = Buffer.concat([Buffer.from('PK\x03\x04'), common, label, bytes])
    const tail = Buffer.alloc(14)
    tail.writeUInt32LE((mode << 16) >>> 0, 6)
    tail.writeUInt32LE(offset, 10)
    central.push(Buffer.concat([Buffer.from('PK\x01\x02'), Buffer.from([20, 3]), common, tail, label]))
    local.push(head)
    offset += head.length
  }
  const directory = Buffer.concat(central)
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.writeUInt16LE(entries.length, 8)
  end.writeUInt16LE(entries.length, 10)
  end.writeUInt32LE(directory.length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...local, directory, end])
}
