import { promisify } from 'node:util'
import type { Readable } from 'node:stream'
import yauzl from 'yauzl'
import { refused, type UnpackedFiles } from './unpacked-files.ts'

const SYMLINK = 0o120000
const REGULAR = 0o100000
const FILE_TYPE = 0o170000
const MAX_LINK_BYTES = 4_096

/** By the central directory. Sizes and checksums are verified by the reader, and entries that overlap are refused by it. */
export async function unpackZip (path: string, into: UnpackedFiles): Promise<void> {
  const zip = await promisify<string, yauzl.Options, yauzl.ZipFile>(yauzl.open)(path, { lazyEntries: true, strictFileNames: true, validateEntrySizes: true, autoClose: false })
  try {
    let end = 0
    const ranges: Array<readonly [start: number, end: number]> = []
    for (let entry = await nextEntry(zip); entry !== undefined; entry = await nextEntry(zip)) {
      const { fileName, compressedSize, relativeOffsetOfLocalHeader: start } = entry
      ranges.push([start, start + compressedSize])
      if (entry.isEncrypted()) throw refused(fileName, 'is encrypted')
      const mode = entry.externalFileAttributes >>> 16
      const type = mode & FILE_TYPE
      if (fileName.endsWith('/')) continue
      if (type !== 0 && type !== REGULAR && type !== SYMLINK) throw refused(fileName, 'is no file')
      const content = await open(zip, entry)
      if (type === SYMLINK) into.addLink(fileName, await textOf(content))
      else await into.addFile(fileName, content)
    }
    for (const [start, stop] of ranges.sort(([a], [b]) => a - b)) {
      if (start < end) throw refused('', 'overlaps another entry')
      end = stop
    }
  } finally {
    zip.close()
  }
}

async function nextEntry (zip: yauzl.ZipFile): Promise<yauzl.Entry | undefined> {
  return await new Promise((resolve, reject) => {
    const done = (): void => {
      zip.removeListener('entry', onEntry)
      zip.removeListener('end', onEnd)
      zip.removeListener('error', onError)
    }
    const onEntry = (entry: yauzl.Entry): void => {
      done()
      resolve(entry)
    }
    const onEnd = (): void => {
      done()
      resolve(undefined)
    }
    const onError = (error: Error): void => {
      done()
      reject(error)
    }
    zip.once('entry', onEntry).once('end', onEnd).once('error', onError)
    zip.readEntry()
  })
}

async function open (zip: yauzl.ZipFile, entry: yauzl.Entry): Promise<Readable> {
  return await new Promise((resolve, reject) => {
    zip.openReadStream(entry, (error, stream) => { error ? reject(error) : resolve(stream) })
  })
}

async function textOf (content: Readable): Promise<string> {
  let text = ''
  for await (const chunk of content) {
    text += String(chunk)
    if (text.length > MAX_LINK_BYTES) break
  }
  return text
}
