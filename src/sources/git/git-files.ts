import { isUtf8 } from 'node:buffer'
import { writeFile } from 'node:fs/promises'
import type { LeftOut } from '../../core/layout/layout.ts'
import { MAX_FILE_BYTES, MAX_LINK_BYTES } from '../../core/shared/limits.ts'
import type { SourceEntry, SourceFiles } from '../publish/source-tree.ts'
import { SourceError } from '../source-error.ts'

interface RunOptions {
  readonly onOutput?: (chunk: Buffer) => Promise<void>
  readonly input?: Iterable<string>
}

/** Runs git in the store of a repository. */
export type RunInStore = (args: readonly string[], more?: RunOptions) => Promise<Buffer>

const NEWLINE = 0x0a
/** More files are left to the system to write out: measured, 20,000 flushes take a minute. */
const MAX_FLUSHED_FILES = 500

interface CommitFiles {
  readonly files: SourceFiles
  readonly leftOut: readonly LeftOut[]
}

/**
 * The files of a commit. Blobs are read as they are, without a checkout. No attribute, filter or line-end setting of
 * the repository changes a byte, and nothing but what is published is written.
 */
export async function readCommit (run: RunInStore, commit: string, path: string): Promise<CommitFiles> {
  const { entries, leftOut } = parseListing(await run(['ls-tree', '-r', '-l', '-z', '--full-tree', commit]))
  const isPart = (entry: { readonly path: string }): boolean => path === '' || `${entry.path}/`.startsWith(`${path}/`)
  if (path !== '' && !entries.some(isPart)) {
    throw new SourceError('path_not_found', `commit ${commit} has no folder ${JSON.stringify(path)}`)
  }
  const links = entries.filter(({ kind, size }) => kind === 'link' && size <= MAX_LINK_BYTES)
  const targets = new Map<string, string>()
  await readBlobs(run, links, async ({ id }, bytes) => { targets.set(id, bytes.toString()) })
  const all = entries.map((entry) => entry.kind === 'link' ? { ...entry, target: targets.get(entry.id) ?? '' } : entry)
  return { files: filesOf(run, all), leftOut: leftOut.filter(isPart) }
}

function filesOf (run: RunInStore, entries: readonly SourceEntry[]): SourceFiles {
  return {
    entries,
    async write (files, signal) {
      const wanted = [...files].map(({ entry, path }) => ({ id: entry.id, path }))
      const flush = wanted.length <= MAX_FLUSHED_FILES
      await readBlobs(run, wanted, async ({ path }, bytes) => {
        signal.throwIfAborted()
        await writeFile(path, bytes, { flag: 'wx', mode: 0o644, flush })
      })
    },
    async read (entry) {
      let content: Buffer = Buffer.alloc(0)
      await readBlobs(run, [entry], async (_, bytes) => { content = bytes })
      return content
    }
  }
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
    // A name that is not UTF-8 has U+FFFD in its path, and would be published as another name.
    if (isUtf8(listing.subarray(tab + 1, end))) entries.push({ path, kind, id, size: Number(size) || 0 })
    else leftOut.push({ path, reason: 'unsafe_name' })
  }
  return { entries, leftOut }
}

/** Reads blobs one after the other through one process of git, in the order of their ids. */
async function readBlobs<T extends { readonly id: string }> (
  run: RunInStore, blobs: readonly T[], use: (blob: T, bytes: Buffer) => Promise<void>
): Promise<void> {
  if (blobs.length === 0) return
  const rest = blobs[Symbol.iterator]()
  let pieces: Buffer[] = []
  let length = 0
  let wanted = 0
  const onOutput = async (chunk: Buffer): Promise<void> => {
    pieces.push(chunk)
    length += chunk.length
    if (length < wanted) return
    let bytes = Buffer.concat(pieces)
    wanted = 0
    for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE)) {
      // Head, bytes, and a line end.
      wanted = end + 1 + sizeIn(bytes.toString('latin1', 0, end)) + 1
      if (bytes.length < wanted) break
      const next = rest.next()
      if (next.done !== true) await use(next.value, bytes.subarray(end + 1, wanted - 1))
      bytes = bytes.subarray(wanted)
      wanted = 0
    }
    pieces = [bytes]
    length = bytes.length
  }
  await run(['cat-file', '--batch', '--buffer'], { input: blobs.map(({ id }) => `${id}\n`), onOutput })
  if (rest.next().done !== true) throw new SourceError('internal', 'git gave fewer files than it lists')
}

/** @param head `<id> <type> <size>` */
function sizeIn (head: string): number {
  const [, type, size] = head.split(' ')
  if (type !== 'blob') throw new SourceError('internal', 'the store has not all files of a commit')
  if (Number(size) > MAX_FILE_BYTES) throw new SourceError('too_large', `a file is larger than ${MAX_FILE_BYTES} bytes`)
  return Number(size)
}
