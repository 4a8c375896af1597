import fs, { type BigIntStats, type Dirent } from 'node:fs'
import { promisify } from 'node:util'
import pLimit from 'p-limit'
import { errorCode } from '../shared/system-errors.ts'

type Awaitable<T> = T | Promise<T>

/** The file system as the core sees it: synchronous on a local disk, with a deadline on a network disk. */
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

/** How long a call to a network disk may take before it counts as failed, in milliseconds. */
const DISK_ANSWER_MS = 5_000

/** Calls to all network disks: each may never return, and the thread pool keeps a thread for everything else. */
const enter = pLimit(3)

/** File systems that ask another machine or a process and may never get an answer, by the kernel's names for them. */
const NETWORK_TYPE = new RegExp(`^(?:${[
  'nfs4?', 'cifs', 'smb\\w*', '9p', 'fuse(?:\\..*|blk)?', 'virtiofs', 'fakeowner', 'vboxsf', 'vmhgfs', 'prl_fs',
  'autofs', 'ceph', 'afs', 'coda', 'lustre', 'glusterfs', 'beegfs', 'gpfs', 'pvfs2', 'panfs', 'wekafs', 'gfs2', 'ocfs2'
].join('|')})$`)

export const localDisk: Disk = {
  stat: (path) => fs.statSync(path, { bigint: true, throwIfNoEntry: false }),
  lstat: (path) => fs.lstatSync(path, { bigint: true, throwIfNoEntry: false }),
  realpath: (path) => fs.realpathSync.native(path),
  readdir: (path) => fs.readdirSync(path, { withFileTypes: true }),
  open: (path, flags) => fs.openSync(path, flags),
  fstat: (descriptor) => fs.fstatSync(descriptor, { bigint: true }),
  readlink: (path) => fs.readlinkSync(path),
  read: (descriptor, buffer, offset, length, position) => fs.readSync(descriptor, buffer, offset, length, position),
  close: (descriptor) => { fs.closeSync(descriptor) },
  hasProc: fs.existsSync('/proc/self/fd/')
}

const open = promisify(fs.open)
const fstat = promisify<number, { bigint: true }, BigIntStats>(fs.fstat)
const read = promisify(fs.read)
const close = promisify(fs.close)

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
    realpath: (path) => call(() => fs.promises.realpath(path)),
    readdir: (path) => call(() => fs.promises.readdir(path, { withFileTypes: true })),
    open: (path, flags) => call(() => open(path, flags), (descriptor) => { fs.close(descriptor) }),
    fstat: (descriptor) => call(() => fstat(descriptor, { bigint: true })),
    readlink: (path) => call(() => fs.promises.readlink(path)),
    read: async (...args) => (await call(() => read(...args))).bytesRead,
    close: (descriptor) => call(() => close(descriptor)),
    hasProc: localDisk.hasProc
  }
}

/** Whether a path without links lies on a network disk, by the kernel's table of mounts: the disk is not asked. */
export function isOnNetwork (path: string): boolean {
  let table: string
  try {
    table = fs.readFileSync('/proc/self/mountinfo', 'utf8')
  } catch {
    return false
  }
  let best = { point: '', type: '' }
  for (const line of table.split('\n')) {
    const [fields = '', rest = ''] = line.split(' - ', 2)
    // The kernel writes blanks and backslashes of a path in octal.
    const point = (fields.split(' ')[4] ?? '').replace(/\\([0-7]{3})/g,
      (_all, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))
    const isAbove = path === point || path.startsWith(point.endsWith('/') ? point : `${point}/`)
    // Of several mounts at one place the last counts.
    if (isAbove && point.length >= best.point.length) best = { point, type: rest.split(' ', 1)[0] ?? '' }
  }
  return NETWORK_TYPE.test(best.type)
}

/** Closes what was read. A failure is not reported: no answer depends on it. */
export async function closeQuietly (disk: Disk, descriptor: number): Promise<void> {
  try {
    await disk.close(descriptor)
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
  return Object.assign(new Error('the disk does not answer'), { code: 'ETIMEDOUT' })
}
