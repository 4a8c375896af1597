import { isUtf8 } from 'node:buffer'
import { writeFile } from 'node:fs/promises'
import type { LeftOut } from '../../core/layout/layout.ts'
import { SourceError } from '../source-error.ts'
import type { SourceEntry, SourceFiles } from '../publish/source-tree.ts'
import { MAX_FILE_BYTES, MAX_LINK_BYTES } from '../../core/shared/limits.ts'

/** Runs git in the store of a repository. */
export type RunInStore = (args: readonly string[], more?: { readonly onOutput?: (chunk: Buffer) => Promise<void>, readonly input?: Iterable<string> }) => Promise<Buffer>

const NEWLINE = 0x0a
/** More files are left to the system to write out: measured, 20,000 flushes take a minute. */
const MAX_FLUSHED_FILES = 500

/**
 * The files of a commit. Blobs are read as they are, without a checkout. No attribute, filter or line-end setting of the
 * repository changes a byte, and nothing but what is published is written.
 */
export async function readCommit (run: RunInStore, commit: string, path: string): Promise<{ readonly files: SourceFiles, readonly leftOut: readonly LeftOut[] }> {
  const { entries, leftOut } = parseListing(await run(['ls-tree', '-r', '-l', '-z', '--full-tree', commit]))
  const isPart = (entry: { readonly path: string }): boolean => path === '' || entry.path === path || entry.path.startsWith(`${path}/`)
  if (path !== '' && !entries.some(isPart)) throw new SourceError('path_not_found', `commit ${commit} has no folder ${JSON.stringify(path)}`)
  const links = entries.filter(({ kind, size }) => kind === 'link' && size <= MAX_LINK_BYTES)
  const targets = new Map<string, string>()
  await readBlobs(run, links.map(({ id }) => id), async (index, bytes) => { targets.set(links[index]?.id ?? '', bytes.toString()) })
  return { files: filesOf(run, entries.map((entry) => entry.kind === 'link' ? { ...entry, target: targets.get(entry.id) ?? '' } : entry)), leftOut: leftOut.filter(isPart) }
}

function filesOf (run: RunInStore, entries: readonly SourceEntry[]): SourceFiles {
  return {
    entries,
    async write (files, signal) {
      const wanted = [...files]
      await readBlobs(run, wanted.map(({ entry }) => entry.id), async (index, bytes) => {
        signal.throwIfAborted()
        const file = wanted[index]
        if (file !== undefined) await writeFile(file.path, bytes, { flag: 'wx', mode: 0o644, flush: wanted.length <= MAX_FLUSHED_FILES })
      })
    },
    async read (entry) {
      let content: Buffer | undefined
      await readBlobs(run, [entry.id], async (_, bytes) => { content = bytes })
      return content ?? Buffer.alloc(0)
    }
  }
}

/** `<mode> <type> <id> <size>\t<path>\0` */
function parseListing (listing: Buffer): { readonly entries: readonly SourceEntry[], readonly leftOut: readonly LeftOut[] } {
  const entries: SourceEntry[] = []
  const leftOut: LeftOut[] = []
  for (let start = 0; start < listing.length;) {
    const end = listing.indexOf(0, start)
    const tab = listing.indexOf('\t', start)
    const [mode = '', , id = '', size = ''] = listing.toString('latin1', start, tab).split(/ +/)
    const path = listing.toString('utf8', tab + 1, end)
    // A name that is not UTF-8 has U+FFFD in its path, and would be published as another name.
    if (!isUtf8(listing.subarray(tab + 1, end))) leftOut.push({ path, reason: 'unsafe_name' })
    else entries.push({ path, kind: mode === '160000' ? 'submodule' : mode === '120000' ? 'link' : 'file', id, size: Number(size) || 0 })
    start = end + 1
  }
  return { entries, leftOut }
}

/** Reads blobs one after the other through one process of git, in the order of their ids. */
async function readBlobs (run: RunInStore, ids: readonly string[], use: (index: number, bytes: Buffer) => Promise<void>): Promise<void> {
  if (ids.length === 0) return
  let index = 0
  let rest: Buffer[] = []
  let length = 0
  let missing: number | undefined
  await run(['cat-file', '--batch', '--buffer'], {
    input: ids.map((id) => `${id}\n`),
    onOutput: async (chunk) => {
      rest.push(chunk)
      length += chunk.length
      while (missing === undefined || length >= missing) {
        const bytes = rest.length === 1 ? rest[0] ?? chunk : Buffer.concat(rest)
        const end = bytes.indexOf(NEWLINE)
        rest = [bytes]
        if (end === -1) return
        const [, type, size = ''] = bytes.toString('latin1', 0, end).split(' ')
        if (type !== 'blob') throw new SourceError('internal', 'the store has not all files of a commit')
        if (Number(size) > MAX_FILE_BYTES) throw new SourceError('too_large', `a file is larger than ${MAX_FILE_BYTES} bytes`)
        // Head, bytes, and a line end.
        const whole = end + 1 + Number(size) + 1
        missing = whole
        if (length < whole) return
        await use(index++, bytes.subarray(end + 1, whole - 1))
        rest = [bytes.subarray(whole)]
        length -= whole
        missing = undefined
        if (length === 0) return
      }
    }
  })
  if (index !== ids.length) throw new SourceError('internal', 'git gave fewer files than it lists')
}
