import { Readable } from 'node:stream'
import { crc32 } from 'node:zlib'
import { type Entry, openPromise, type ZipFile } from 'yauzl'
import { MAX_LINK_BYTES } from '../publish/limits.ts'
import { refused, type UnpackedFiles } from './unpacked-files.ts'

const SYMLINK = 0o120000
const REGULAR = 0o100000
const FILE_TYPE = 0o170000

/** Sizes and checksum follow the bytes of the entry. */
const SIZES_FOLLOW = 0x8
/** In the place of a size that another field has. */
const SIZE_ELSEWHERE = 0xffff_ffff

/** By the central directory, with which the header of each entry has to agree. */
export async function unpackZip (path: string, into: UnpackedFiles): Promise<void> {
  const zip = await openPromise(path, { lazyEntries: true, strictFileNames: true, validateEntrySizes: true, autoClose: false })
  try {
    const ranges: Array<readonly [start: number, end: number]> = []
    for await (const entry of zip.eachEntry()) {
      const { fileName, compressedSize, uncompressedSize, relativeOffsetOfLocalHeader: start } = entry
      ranges.push([start, await dataStart(zip, entry) + compressedSize])
      if (entry.isEncrypted()) throw refused(fileName, 'is encrypted')
      const type = (entry.externalFileAttributes >>> 16) & FILE_TYPE
      if (fileName.endsWith('/')) {
        if (uncompressedSize > 0) throw refused(fileName, 'is a folder with bytes')
        into.addFolder(fileName)
        continue
      }
      if (type !== 0 && type !== REGULAR && type !== SYMLINK) throw refused(fileName, 'is no file')
      const content = checked(await zip.openReadStreamPromise(entry), entry)
      if (type === SYMLINK) into.addLink(fileName, await textOf(content))
      else await into.addFile(fileName, content)
    }
    let end = 0
    for (const [start, stop] of ranges.sort(([a], [b]) => a - b)) {
      if (start < end) throw refused('', 'overlaps another entry')
      end = stop
    }
  } finally {
    zip.close()
  }
}

/** Other programs read the header in front of the bytes, and would find another archive. */
async function dataStart (zip: ZipFile, entry: Entry): Promise<number> {
  const local = await zip.readLocalFileHeaderPromise(entry)
  const isSame = local.fileName.equals(entry.fileNameRaw) && local.compressionMethod === entry.compressionMethod && (
    (local.generalPurposeBitFlag & SIZES_FOLLOW) !== 0 || (['crc32', 'compressedSize', 'uncompressedSize'] as const).every((key) => local[key] === entry[key] || local[key] === SIZE_ELSEWHERE))
  if (!isSame) throw refused(entry.fileName, 'is another file in the header of its bytes')
  return local.fileDataStart
}

/** The reader checks sizes, and leaves checksums to its caller. */
function checked (content: Readable, { fileName, crc32: expected }: Entry): Readable {
  return Readable.from((async function * () {
    let sum = 0
    for await (const chunk of content as AsyncIterable<Buffer>) {
      sum = crc32(chunk, sum)
      yield chunk
    }
    if (sum !== expected) throw refused(fileName, 'has other bytes than its checksum says')
  })())
}

async function textOf (content: Readable): Promise<string> {
  let text = ''
  for await (const chunk of content) {
    text += String(chunk)
    if (text.length > MAX_LINK_BYTES) break
  }
  return text
}
