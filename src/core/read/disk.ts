import fs, { type BigIntStats, type Dirent } from 'node:fs'
import { dirname, resolve as resolvePath } from 'node:path'
import { promisify } from 'node:util'
import pLimit from 'p-limit'
import { pathFrom } from '../shared/paths.ts'
import { compareCodePoints } from '../shared/text.ts'
import { errorCode } from '../shared/system-errors.ts'

type Awaitable<T> = T | Promise<T>

/** The file system calls of the core: synchronous on a local disk, with a deadline on a network disk. */
export interface Disk {
  /** Follows links. Undefined when nothing is there. */
  stat (path: string): Awaitable<BigIntStats | undefined>
  lstat (path: string): Awaitable<BigIntStats | undefined>
  realpath (path: string): Awaitable<string>
  readdir (path: string): Awaitable<Dirent[]>
  open (path: string, flags: number): Awaitable<number>
  fstat (descriptor: number): Awaitable<BigIntStats>
  readlink (path: string): Awaitable<string>
  /** Returns the number of bytes read, 0 at the end of the file. */
  read (descriptor: number, buffer: Buffer, offset: number, length: number, position: number): Awaitable<number>
  close (descriptor: number): Awaitable<void>
  /** Whether `/proc/self/fd/N` names an open file, so that the opened file itself can be checked. */
  readonly hasProc: boolean
}

/** A call to a network disk that takes longer hangs, in milliseconds. */
const DISK_ANSWER_MS = 5_000

/** Threads of libuv's pool. A call that hangs keeps one, and the log needs one. */
const POOL_THREADS = Number(process.env['UV_THREADPOOL_SIZE']) || 4

/** Calls to all network disks at a time, and those to disks that have never answered. */
const MAX_CALLS = Math.max(POOL_THREADS - 1, 1)
const MAX_FIRST_CALLS = Math.max(POOL_THREADS >> 1, 1)
const limitCalls = pLimit(MAX_CALLS)
const limitFirstCalls = pLimit(MAX_FIRST_CALLS)

let hangingCalls = 0

/** As many links as the kernel follows. */
const MAX_LINKS = 40

/** By device number. The kernel reuses these, so that there are never many. */
const networkDisks = new Map<string, Disk>()

/** Types of file systems, as the kernel names them, that depend on another machine or process and may hang. */
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
 * Creates a disk that makes its calls in the thread pool, one at a time. A call that takes longer than `answerMs` fails
 * with ETIMEDOUT. Later calls fail immediately until it returns, and also while hanging calls to other disks use up the
 * threads for them.
 */
export function createNetworkDisk (answerMs = DISK_ANSWER_MS): Disk {
  const limitLane = pLimit(1)
  let isHanging = false
  let hasAnswered = false

  const ask = <T>(call: () => Promise<T>, onLate?: (value: T) => void) => new Promise<T>((resolve, reject) => {
    if (isHanging || hangingCalls >= (hasAnswered ? MAX_CALLS : MAX_FIRST_CALLS)) throw noAnswer()
    let state: 'waiting' | 'asked' | 'late' = 'waiting'
    const timer = setTimeout(() => {
      isHanging = state === 'asked'
      if (isHanging) hangingCalls++
      state = 'late'
      reject(noAnswer())
    }, answerMs)
    const run = async (): Promise<void> => {
      if (state === 'late') return
      state = 'asked'
      timer.refresh()
      try {
        const value = await call()
        if (isHanging) onLate?.(value)
        resolve(value)
      } catch (error) {
        reject(error)
      }
      clearTimeout(timer)
      if (isHanging) hangingCalls--
      isHanging = false
      hasAnswered = true
    }
    void (hasAnswered ? limitCalls(run) : limitFirstCalls(() => limitCalls(run)))
  })
  const call = <T>(operation: () => Promise<T>, onLate?: (value: T) => void): Promise<T> =>
    limitLane(() => ask(operation, onLate))

  return {
    stat: (path) => call(() => fs.promises.stat(path, { bigint: true }).catch(undefinedIfMissing)),
    lstat: (path) => call(() => fs.promises.lstat(path, { bigint: true }).catch(undefinedIfMissing)),
    realpath: async (path) => {
      // The kernel may resolve a mount without asking its disk, which does not prove that the disk answers.
      if (!hasAnswered) await call(() => fs.promises.stat(path))
      return await call(() => fs.promises.realpath(path))
    },
    readdir: (path) => call(() => fs.promises.readdir(path, { withFileTypes: true })),
    open: (path, flags) => call(() => open(path, flags), (descriptor) => { fs.close(descriptor) }),
    fstat: (descriptor) => call(() => fstat(descriptor, { bigint: true })),
    readlink: (path) => call(() => fs.promises.readlink(path)),
    read: async (...args) => (await call(() => read(...args))).bytesRead,
    close: (descriptor) => call(() => close(descriptor)),
    hasProc: localDisk.hasProc
  }
}

/** Returns the network disk of the first folder that lies on one, else the local disk. */
export function diskOf (...folders: readonly string[]): Disk {
  const device = folders.map((folder) => networkDeviceOf(folder)).find((found) => found !== undefined)
  if (device === undefined) return localDisk
  const disk = networkDisks.get(device) ?? createNetworkDisk()
  networkDisks.set(device, disk)
  return disk
}

/** Whether a path leads to a network disk, or has one mounted below it. */
export function isOnNetwork (path: string): boolean {
  return networkDeviceOf(path) !== undefined
}

interface Mount {
  readonly point: string
  readonly device: string
  readonly isNetwork: boolean
}

/** Returns the device number of the network disk at a path, or below it. Calls local disks only. */
function networkDeviceOf (path: string, mounts = readMounts(), links = 0): string | undefined {
  if (!mounts.some(({ isNetwork }) => isNetwork)) return undefined
  const names = path.split('/')
  let device: string | undefined
  for (let count = 1; count <= names.length; count++) {
    const folder = names.slice(0, count).join('/') || '/'
    // If several file systems are mounted at one place, the last one is visible.
    const mount = mounts.findLast(({ point }) => point === folder)
    if (mount !== undefined) device = mount.isNetwork ? mount.device : undefined
    const target = device === undefined && links < MAX_LINKS ? linkTarget(folder) : undefined
    if (target !== undefined) {
      return networkDeviceOf(resolvePath(dirname(folder), target, ...names.slice(count)), mounts, links + 1)
    }
  }
  return device ?? mounts.find(({ point, isNetwork }) => isNetwork && pathFrom(path, point) !== undefined)?.device
}

/** Empty on systems without this table. */
function readMounts (): readonly Mount[] {
  let table: string
  try {
    table = fs.readFileSync('/proc/self/mountinfo', 'utf8')
  } catch {
    return []
  }
  return table.split('\n').filter((line) => line !== '').map((line) => {
    const [fields = '', rest = ''] = line.split(' - ', 2)
    const [, , device = '', , point = ''] = fields.split(' ')
    return {
      device,
      // The kernel writes blanks and backslashes of a path in octal.
      point: point.replace(/\\([0-7]{3})/g, (_all, digits: string) => String.fromCharCode(Number.parseInt(digits, 8))),
      isNetwork: NETWORK_TYPE.test(rest.split(' ', 1)[0] ?? '')
    }
  })
}

function linkTarget (path: string): string | undefined {
  try {
    return fs.readlinkSync(path)
  } catch {
    return undefined
  }
}

/** Lists a folder in sorted order, since some disks list it in another order each time. */
export async function readEntries (disk: Disk, folder: string): Promise<Dirent[]> {
  return (await disk.readdir(folder)).sort((a, b) => compareCodePoints(a.name, b.name))
}

/** Closes a descriptor that was only read: no answer depends on a failure. */
export async function closeQuietly (disk: Disk, descriptor: number): Promise<void> {
  try {
    await disk.close(descriptor)
  } catch {}
}

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
