import fs, { type BigIntStats, type Dir, type Dirent } from 'node:fs'
import { promisify } from 'node:util'
import type { Awaitable } from '../shared/async.ts'
import { errorCode } from '../shared/system-errors.ts'

/**
 * The file system as the core sees it: the seam for tests, and for disks of two kinds. A local disk answers at once:
 * on it synchronous calls are 5 to 30 times cheaper than promises. A network disk may take any time, so there the
 * same calls go through the thread pool and nobody else waits. Callers `await` both.
 */
export interface Disk {
  /** Follows links. Undefined when nothing is there. */
  stat (path: string): Awaitable<BigIntStats | undefined>
  lstat (path: string): Awaitable<BigIntStats | undefined>
  realpath (path: string): Awaitable<string>
  readdir (path: string): Awaitable<Dirent[]>
  /** For folders of any size: `readdir` of a million names takes a second. Whoever opens it closes it. */
  opendir (path: string): Awaitable<FolderReader>
  /** The same names as bytes: tells a name that is not UTF-8 from one that holds U+FFFD. */
  readdirBytes (path: string): Awaitable<Buffer[]>
  open (path: string, flags: number): Awaitable<number>
  fstat (descriptor: number): Awaitable<BigIntStats>
  readlink (path: string): Awaitable<string>
  /** Number of bytes read, 0 at the end of the file. */
  read (descriptor: number, buffer: Buffer, offset: number, length: number, position: number): Awaitable<number>
  close (descriptor: number): Awaitable<void>
  /** Whether `stat` answers synchronously. */
  readonly answersAtOnce?: boolean
  /** Whether `/proc/self/fd/N` names an open file, so that the opened file itself can be checked. */
  readonly hasProc: boolean
}

/** A folder that is read in pieces. */
export interface FolderReader {
  /** The next entries; none at the end. */
  read (): Awaitable<readonly Dirent[]>
  close (): Awaitable<void>
}

/** Linux on x64 and arm64; not in `fs.constants`. Opens a name without touching what it names. */
export const O_PATH = 0o10000000

const DESCRIPTORS = '/proc/self/fd/'

/** A path of what is open, whatever path it was found by. */
export function descriptorPath (descriptor: number): string {
  return `${DESCRIPTORS}${descriptor}`
}

export function isDescriptorPath (path: string): boolean {
  return path.startsWith(DESCRIPTORS)
}

/** Entries that are read together: they take a millisecond or two. */
const PIECE_ENTRIES = 1_000

const STAT = { bigint: true, throwIfNoEntry: false } as const
const TYPED = { withFileTypes: true } as const

export function createLocalDisk (): Disk {
  return {
    stat: (path) => fs.statSync(path, STAT),
    lstat: (path) => fs.lstatSync(path, STAT),
    realpath: (path) => fs.realpathSync.native(path),
    readdir: (path) => fs.readdirSync(path, TYPED),
    opendir: (path) => {
      const folder = fs.opendirSync(path, { bufferSize: PIECE_ENTRIES })
      return { read: () => readPiece(folder), close: () => { folder.closeSync() } }
    },
    readdirBytes: (path) => fs.readdirSync(path, 'buffer'),
    open: (path, flags) => fs.openSync(path, flags),
    fstat: (descriptor) => fs.fstatSync(descriptor, { bigint: true }),
    readlink: (path) => fs.readlinkSync(path),
    read: (descriptor, buffer, offset, length, position) => fs.readSync(descriptor, buffer, offset, length, position),
    close: (descriptor) => fs.closeSync(descriptor),
    answersAtOnce: true,
    hasProc: hasProc()
  }
}

export function createNetworkDisk (): Disk {
  const open = promisify<string, number, number>(fs.open)
  const fstat = promisify<number, { bigint: true }, BigIntStats>(fs.fstat)
  const close = promisify<number>(fs.close)
  const read = promisify<number, Buffer, number, number, number, number>((descriptor, buffer, offset, length, position, done) =>
    fs.read(descriptor, buffer, offset, length, position, done))
  return {
    stat: (path) => fs.promises.stat(path, { bigint: true }).catch(undefinedIfMissing),
    lstat: (path) => fs.promises.lstat(path, { bigint: true }).catch(undefinedIfMissing),
    realpath: promisify<string, string>(fs.realpath.native),
    readdir: (path) => fs.promises.readdir(path, TYPED),
    opendir: async (path) => {
      const folder = await fs.promises.opendir(path, { bufferSize: PIECE_ENTRIES })
      return { read: () => readPieceLater(folder), close: () => folder.close() }
    },
    readdirBytes: (path) => fs.promises.readdir(path, 'buffer'),
    open,
    fstat: (descriptor) => fstat(descriptor, { bigint: true }),
    readlink: (path) => fs.promises.readlink(path),
    read,
    close,
    hasProc: hasProc()
  }
}

function readPiece (folder: Dir): Dirent[] {
  const entries: Dirent[] = []
  for (let entry = folder.readSync(); entry !== null; entry = folder.readSync()) {
    if (entries.push(entry) === PIECE_ENTRIES) break
  }
  return entries
}

async function readPieceLater (folder: Dir): Promise<Dirent[]> {
  const entries: Dirent[] = []
  for (let entry = await folder.read(); entry !== null; entry = await folder.read()) {
    if (entries.push(entry) === PIECE_ENTRIES) break
  }
  return entries
}

/** Closes what was read. No answer depends on that, so a disk that fails then, or hangs, fails nothing. */
export async function closeQuietly (close: () => Awaitable<void>): Promise<void> {
  try {
    await close()
  } catch {}
}

/** Undefined where nothing is, and where the disk does not say. */
export async function realpathOrNothing (disk: Disk, path: string): Promise<string | undefined> {
  try {
    return await disk.realpath(path)
  } catch {
    return undefined
  }
}

/** What `throwIfNoEntry: false` does, for other calls; Node 20 throws where a part of the path is no folder. */
export function undefinedIfMissing (error: unknown): undefined {
  const code = errorCode(error)
  if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
  throw error
}

function hasProc (): boolean {
  return fs.existsSync(DESCRIPTORS)
}
