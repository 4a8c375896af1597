import fs, { type BigIntStats, type Dirent, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import pLimit from 'p-limit'
import { DISK_ANSWER_MS, MAX_DISK_CALLS } from '../shared/limits.ts'
import { errorCode, systemError } from '../shared/system-errors.ts'

/** A value, or a promise of it. Always `await` it. */
export type Awaitable<T> = T | Promise<T>

/**
 * The file system as the core sees it: the seam for tests, and for disks of two kinds. On a local disk synchronous
 * calls are 5 to 30 times cheaper than promises. On a network disk the same calls go through the thread pool, with a
 * deadline.
 */
export interface Disk {
  /** Follows links. Undefined when nothing is there. */
  stat (path: string): Awaitable<BigIntStats | undefined>
  lstat (path: string): Awaitable<BigIntStats | undefined>
  realpath (path: string): Awaitable<string>
  readdir (path: string): Awaitable<Dirent[]>
  open (path: string, flags: number): Awaitable<number>
  fstat (descriptor: number): Awaitable<BigIntStats>
  readlink (path: string): Awaitable<string>
  /** Number of bytes read, 0 at the end of the file. */
  read (descriptor: number, buffer: Buffer, offset: number, length: number, position: number): Awaitable<number>
  close (descriptor: number): Awaitable<void>
  /** Whether `/proc/self/fd/N` names an open file, so that the opened file itself can be checked. */
  readonly hasProc: boolean
}

/** Linux on x64 and arm64; not in `fs.constants`. Opens a name without touching what it names. */
export const O_PATH = 0o10000000

const DESCRIPTORS = '/proc/self/fd/'
const STAT = { bigint: true, throwIfNoEntry: false } as const
const TYPED = { withFileTypes: true } as const

/** File systems that ask another machine or a process and may never get an answer, by the kernel's names for them. */
const NETWORK_TYPE = new RegExp(`^(?:${[
  'nfs4?', 'cifs', 'smb\\w*', '9p', 'fuse(?:\\..*|blk)?', 'virtiofs', 'fakeowner', 'vboxsf', 'vmhgfs', 'prl_fs',
  'autofs', 'ceph', 'afs', 'coda', 'lustre', 'glusterfs', 'beegfs', 'gpfs', 'pvfs2', 'panfs', 'wekafs', 'gfs2', 'ocfs2'
].join('|')})$`)

/** A path that names an open file, whatever path it was found by. */
export function descriptorPath (descriptor: number): string {
  return `${DESCRIPTORS}${descriptor}`
}

export const localDisk: Disk = {
  stat: (path) => fs.statSync(path, STAT),
  lstat: (path) => fs.lstatSync(path, STAT),
  realpath: (path) => fs.realpathSync.native(path),
  readdir: (path) => fs.readdirSync(path, TYPED),
  open: (path, flags) => fs.openSync(path, flags),
  fstat: (descriptor) => fs.fstatSync(descriptor, { bigint: true }),
  readlink: (path) => fs.readlinkSync(path),
  read: (descriptor, buffer, offset, length, position) => fs.readSync(descriptor, buffer, offset, length, position),
  close: (descriptor) => { fs.closeSync(descriptor) },
  hasProc: fs.existsSync(DESCRIPTORS)
}

const realpath = promisify<string, string>(fs.realpath.native)
const open = promisify<string, number, number>(fs.open)
const fstat = promisify<number, { bigint: true }, BigIntStats>(fs.fstat)
const close = promisify<number>(fs.close)
const read = promisify<number, Buffer, number, number, number, number>(
  (descriptor, buffer, offset, length, position, done) => {
    fs.read(descriptor, buffer, offset, length, position, done)
  })

/**
 * Calls to all network disks: each of them may never return, and the thread pool keeps a thread for everything else.
 */
const enter = pLimit(MAX_DISK_CALLS)

/**
 * The disk of one root on a network. A call that takes longer than DISK_ANSWER_MS fails with ETIMEDOUT, and every other
 * call fails immediately until that one has returned: a mount that hangs delays no request twice.
 */
export function createNetworkDisk (answerMs = DISK_ANSWER_MS): Disk {
  let hanging = 0

  async function call<T> (ask: () => Promise<T>, onLate?: (value: T) => void): Promise<T> {
    if (hanging > 0) throw noAnswer()
    const answer = enter(ask)
    let timer: NodeJS.Timeout | undefined
    const deadline = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        hanging++
        reject(noAnswer())
        answer.then(onLate).catch(() => {}).finally(() => { hanging-- })
      }, answerMs)
    })
    try {
      return await Promise.race([answer, deadline])
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    stat: (path) => call(() => fs.promises.stat(path, { bigint: true }).catch(undefinedIfMissing)),
    lstat: (path) => call(() => fs.promises.lstat(path, { bigint: true }).catch(undefinedIfMissing)),
    realpath: (path) => call(() => realpath(path)),
    readdir: (path) => call(() => fs.promises.readdir(path, TYPED)),
    open: (path, flags) => call(() => open(path, flags), (descriptor) => { fs.close(descriptor) }),
    fstat: (descriptor) => call(() => fstat(descriptor, { bigint: true })),
    readlink: (path) => call(() => fs.promises.readlink(path)),
    read: (...args) => call(() => read(...args)),
    close: (descriptor) => call(() => close(descriptor)),
    hasProc: localDisk.hasProc
  }
}

/**
 * Whether a path lies on a network disk, by the kernel's table of mounts; the disk itself is not asked.
 * @param path absolute, without links
 */
export function isOnNetwork (path: string): boolean {
  let table: string
  try {
    table = readFileSync('/proc/self/mountinfo', 'utf8')
  } catch {
    return false
  }
  let best = { point: '', type: '' }
  for (const line of table.split('\n')) {
    const [fields = '', rest = ''] = line.split(' - ', 2)
    const point = unescape(fields.split(' ')[4] ?? '')
    const isAbove = path === point || path.startsWith(point.endsWith('/') ? point : `${point}/`)
    // Of several mounts at one place the last counts.
    if (isAbove && point.length >= best.point.length) best = { point, type: rest.split(' ', 1)[0] ?? '' }
  }
  return NETWORK_TYPE.test(best.type)
}

/** The kernel writes blanks and backslashes of a path in octal. */
function unescape (text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_all, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))
}

/** Closes what was read. A failure is not reported: no answer depends on it. */
export async function closeQuietly (close: () => Awaitable<void>): Promise<void> {
  try {
    await close()
  } catch {}
}

/** Undefined where nothing is, and where the disk fails. */
export async function realpathOrNothing (disk: Disk, path: string): Promise<string | undefined> {
  try {
    return await disk.realpath(path)
  } catch {
    return undefined
  }
}

function undefinedIfMissing (error: unknown): undefined {
  const code = errorCode(error)
  if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
  throw error
}

function noAnswer (): Error {
  return systemError('ETIMEDOUT', 'the disk does not answer')
}
