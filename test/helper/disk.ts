import type { BigIntStats } from 'node:fs'
import { localDisk, type Disk } from '../../src/core/read/disk.ts'

/** An error as the operating system gives it, with a text that no answer may hold. */
export function osError (code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: leaked text, open '/leaked/path'`), { code, errno: -1, syscall: 'open' })
}

export type DiskOperation = 'stat' | 'lstat' | 'realpath' | 'readdir' | 'open' | 'fstat' | 'readlink' | 'read' | 'close'

/**
 * Called before each operation: may throw, change the disk, or keep it waiting.
 * @param path of the call; for a descriptor, the one that it was opened by
 * @param file the same, but of a descriptor that was opened by the number of another, `/proc/self/fd/N`, the path of that one
 */
export type Interceptor = (operation: DiskOperation, path: string, file: string) => void | Promise<void>

interface Named {
  readonly path: string
  readonly file: string
}

export interface FaultyDisk extends Disk {
  intercept: Interceptor
  /** How often each operation was asked for. */
  readonly calls: Map<DiskOperation, number>
}

export interface FaultyDiskOptions {
  readonly disk?: Disk
  /** Default: everything is left to the disk. */
  readonly intercept?: Interceptor
  readonly hasProc?: boolean
  /** Shows every timestamp as this much older, so that what was written just now counts as settled and is kept. */
  readonly ageMs?: number
  /** Shows timestamps as coarse as this, as file systems without parts of a second do. */
  readonly stepMs?: number
}

/** A disk that does what a test says, else what the real one does. */
export function createFaultyDisk ({ disk = localDisk, intercept = () => {}, hasProc = disk.hasProc, ageMs = 0, stepMs = 0 }: FaultyDiskOptions = {}): FaultyDisk {
  const opened = new Map<number, Named>()
  const calls = new Map<DiskOperation, number>()
  const age = BigInt(ageMs) * 1_000_000n
  const step = BigInt(stepMs) * 1_000_000n

  function shown (time: bigint): bigint {
    return (step === 0n ? time : time - time % step) - age
  }

  function aged (stats: BigIntStats): BigIntStats
  function aged (stats: BigIntStats | undefined): BigIntStats | undefined
  function aged (stats: BigIntStats | undefined): BigIntStats | undefined {
    if (stats !== undefined) {
      stats.ctimeNs = shown(stats.ctimeNs)
      stats.mtimeNs = shown(stats.mtimeNs)
    }
    return stats
  }

  function named (path: string): Named {
    const number = /^\/proc\/self\/fd\/(\d+)$/.exec(path)?.[1]
    return { path, file: number === undefined ? path : nameOf(Number(number)).file }
  }

  function nameOf (descriptor: number): Named {
    return opened.get(descriptor) ?? { path: '', file: '' }
  }

  /** Synchronous as long as nobody makes it wait, like the disk below. */
  function run<T> (operation: DiskOperation, { path, file }: Named, act: () => T | Promise<T>): T | Promise<T> {
    calls.set(operation, (calls.get(operation) ?? 0) + 1)
    const wait = faulty.intercept(operation, path, file)
    return wait instanceof Promise ? wait.then(act) : act()
  }

  function then<T, U> (value: T | Promise<T>, map: (value: T) => U): U | Promise<U> {
    return value instanceof Promise ? value.then(map) : map(value)
  }

  const faulty: FaultyDisk = {
    intercept,
    calls,
    hasProc,
    stat: (path) => run('stat', { path, file: path }, () => then(disk.stat(path), (stats) => aged(stats))),
    lstat: (path) => run('lstat', { path, file: path }, () => then(disk.lstat(path), (stats) => aged(stats))),
    realpath: (path) => run('realpath', { path, file: path }, () => disk.realpath(path)),
    readdir: (path) => run('readdir', { path, file: path }, () => disk.readdir(path)),
    open (path, flags) {
      const name = named(path)
      return run('open', name, () => then(disk.open(path, flags), (descriptor) => {
        opened.set(descriptor, name)
        return descriptor
      }))
    },
    fstat: (descriptor) => run('fstat', nameOf(descriptor), () => then(disk.fstat(descriptor), (stats) => aged(stats))),
    readlink: (path) => run('readlink', { path, file: path }, () => disk.readlink(path)),
    read: (descriptor, buffer, offset, length, position) =>
      run('read', nameOf(descriptor), () => disk.read(descriptor, buffer, offset, length, position)),
    close: (descriptor) => run('close', nameOf(descriptor), () => disk.close(descriptor))
  }
  return faulty
}

/** Fails one operation on the paths that end so. */
export function failing (operation: DiskOperation, ending: string, code: string): Interceptor {
  return (asked, path) => {
    if (asked === operation && path.endsWith(ending)) throw osError(code)
  }
}

/** A disk that lists the folder of one skill after `release`: until then the first index is not complete. */
export function holdListing (name: string): { readonly disk: FaultyDisk, release (): void } {
  let release = () => {}
  const released = new Promise<void>((resolve) => { release = resolve })
  const disk = createFaultyDisk({ intercept: (operation, path) => operation === 'readdir' && path.endsWith(`/${name}`) ? released : undefined })
  return { disk, release }
}
