import { isUtf8 } from 'node:buffer'
import type { LeftOut } from '../../layout/layout.ts'
import { MAX_LINK_BYTES } from '../../core/shared/limits.ts'
import type { SourceEntry, SourceFiles } from '../publish/source-tree.ts'
import { DamagedStoreError, type ReadOutput, wholeOutput } from './git-command.ts'

/** Runs git in the store of a repository. */
export type RunInStore = <T>(args: readonly string[], read: ReadOutput<T>, input?: string) => Promise<T>

/**
 * Lists the files of a commit. Blobs are read as they are, without a checkout: no attribute, filter or line-end setting
 * of the repository changes a byte.
 */
export async function readCommit (run: RunInStore, commit: string, path: string) {
  const listing = await run(['ls-tree', '-r', '-l', '-z', '--full-tree', commit], wholeOutput)
  const { entries, leftOut } = parseListing(listing)
  const links = entries.flatMap((entry) => entry.kind === 'link' && entry.size <= MAX_LINK_BYTES ? [{ entry }] : [])
  const targets = new Map<SourceEntry, string>()
  await readBlobs(run, links, async ({ entry }, bytes) => { targets.set(entry, bytes.toString()) })
  const files: SourceFiles = {
    entries: entries.map((entry) => entry.kind === 'link' ? { ...entry, target: targets.get(entry) ?? '' } : entry),
    read: (wanted, use) => readBlobs(run, wanted, use)
  }
  return { files, leftOut: leftOut.filter((item) => path === '' || item.path.startsWith(`${path}/`)) }
}

/** `<mode> <type> <id> <size>\t<path>\0` */
function parseListing (listing: Buffer): { entries: SourceEntry[], leftOut: LeftOut[] } {
  const entries: SourceEntry[] = []
  const leftOut: LeftOut[] = []
  for (let start = 0, end = 0; start < listing.length; start = end + 1) {
    end = listing.indexOf(0, start)
    const tab = listing.indexOf('\t', start)
    const [mode = '', , id = '', size = ''] = listing.toString('latin1', start, tab).split(/ +/)
    const path = listing.toString('utf8', tab + 1, end)
    const kind = mode === '160000' ? 'submodule' : mode === '120000' ? 'link' : 'file'
    // A name that is not UTF-8 would be published under another name, with U+FFFD.
    if (isUtf8(listing.subarray(tab + 1, end))) entries.push({ path, kind, id, size: Number(size) || 0 })
    else leftOut.push({ path, reason: 'unsafe_name' })
  }
  return { entries, leftOut }
}

/** Reads blobs one after the other with a single git process. */
async function readBlobs<T extends { readonly entry: SourceEntry }> (
  run: RunInStore, blobs: readonly T[], use: (blob: T, bytes: Buffer) => Promise<void>
): Promise<void> {
  if (blobs.length === 0) return
  await run(['cat-file', '--batch', '--buffer'], async (output) => {
    const take = byteReader(output)
    for (const blob of blobs) {
      const { id, size } = blob.entry
      const head = `${id} blob ${size}\n`
      const bytes = await take(head.length + size + 1)
      if (bytes.toString('latin1', 0, head.length) !== head) {
        throw new DamagedStoreError('disk', 'the copy of the repository lacks files of the commit')
      }
      await use(blob, bytes.subarray(head.length, -1))
    }
  }, blobs.map(({ entry }) => `${entry.id}\n`).join(''))
}

/** Returns a function that reads the next bytes of a stream. */
function byteReader (stream: AsyncIterable<Buffer>): (length: number) => Promise<Buffer> {
  const chunks = stream[Symbol.asyncIterator]()
  let rest: Buffer = Buffer.alloc(0)
  return async (length) => {
    const parts = [rest]
    for (let missing = length - rest.length; missing > 0;) {
      const next = await chunks.next()
      if (next.done === true) throw new DamagedStoreError('disk', 'git ended before all files of the commit')
      parts.push(next.value)
      missing -= next.value.length
    }
    if (parts.length > 1) rest = Buffer.concat(parts)
    const bytes = rest.subarray(0, length)
    rest = rest.subarray(length)
    return bytes
  }
}
