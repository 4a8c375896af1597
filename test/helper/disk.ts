import type { BigIntStats } from 'node:fs'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type Disk, localDisk } from '../../src/core/read/disk.ts'
import type { ProcessOwner } from './process.ts'

/** Returns an error of the operating system, with a text that no answer may contain. */
export function osError (code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: leaked text, open '/leaked/path'`), { code, errno: -1, syscall: 'open' })
}

export type DiskOperation = 'stat' | 'lstat' | 'realpath' | 'readdir' | 'open' | 'fstat' | 'readlink' | 'read' | 'close'

/**
 * Called before each operation: may throw, change the disk, or keep it waiting.
 * @param path of the call; for a descriptor, the one that it was opened by
 * @param file the same, but of a descriptor that was opened by the number of another, `/proc/self/fd/N`, the path of
 * that one
 */
export type Interceptor = (operation: DiskOperation, path: string, file: string) => void | Promise<void>

interface Named {
  readonly path: string
  readonly file: string
}

export interface FaultyDisk extends Disk {
  intercept: Interceptor
  /** Number of calls by operation. */
  readonly calls: Map<DiskOperation, number>
}

export interface FaultyDiskOptions {
  readonly disk?: Disk
  /** Called before each operation. Default: nothing. */
  readonly intercept?: Interceptor
  readonly hasProc?: boolean
  /** Makes every timestamp older by this, so that a new file counts as settled and its content is kept. */
  readonly ageMs?: number
  /** Rounds timestamps down, as file systems without fractions of a second do. */
  readonly stepMs?: number
}

/** Creates a disk that a test can make fail; otherwise it is the real one. */
export function createFaultyDisk ({
  disk = localDisk, intercept = () => {}, hasProc = disk.hasProc, ageMs = 0, stepMs = 0
}: FaultyDiskOptions = {}): FaultyDisk {
  const opened = new Map<number, Named>()
  const calls = new Map<DiskOperation, number>()
  const nameOf = (descriptor: number): Named => opened.get(descriptor) ?? { path: '', file: '' }
  const shown = (time: bigint): bigint => time - (stepMs === 0 ? 0n : time % BigInt(stepMs * 1e6)) - BigInt(ageMs * 1e6)

  function aged<T extends BigIntStats | undefined> (stats: T): T {
    if (stats !== undefined) Object.assign(stats, { ctimeNs: shown(stats.ctimeNs), mtimeNs: shown(stats.mtimeNs) })
    return stats
  }

  async function run<T> (operation: DiskOperation, named: string | Named, act: () => T | Promise<T>): Promise<T> {
    const { path, file } = typeof named === 'string' ? { path: named, file: named } : named
    calls.set(operation, (calls.get(operation) ?? 0) + 1)
    await faulty.intercept(operation, path, file)
    return await act()
  }

  const faulty: FaultyDisk = {
    intercept,
    calls,
    hasProc,
    stat: async (path) => aged(await run('stat', path, () => disk.stat(path))),
    lstat: async (path) => aged(await run('lstat', path, () => disk.lstat(path))),
    realpath: (path) => run('realpath', path, () => disk.realpath(path)),
    readdir: (path) => run('readdir', path, () => disk.readdir(path)),
    async open (path, flags) {
      const number = /^\/proc\/self\/fd\/(\d+)$/.exec(path)?.[1]
      const name = { path, file: number === undefined ? path : nameOf(Number(number)).file }
      const descriptor = await run('open', name, () => disk.open(path, flags))
      opened.set(descriptor, name)
      return descriptor
    },
    fstat: async (descriptor) => aged(await run('fstat', nameOf(descriptor), () => disk.fstat(descriptor))),
    readlink: (path) => run('readlink', path, () => disk.readlink(path)),
    read: (descriptor, ...rest) => run('read', nameOf(descriptor), () => disk.read(descriptor, ...rest)),
    close: (descriptor) => run('close', nameOf(descriptor), () => disk.close(descriptor))
  }
  return faulty
}

/** Makes one operation fail for paths that end so. */
export function failing (operation: DiskOperation, ending: string, code: string): Interceptor {
  return (asked, path) => {
    if (asked === operation && path.endsWith(ending)) throw osError(code)
  }
}

const SWAPPER = `
  import fs from 'node:fs'
  const [path, aside, link] = process.argv.slice(1)
  let swaps = 0
  process.on('message', () => { process.send(swaps, () => { process.exit() }) })
  process.send('ready')
  for (;;) {
    try {
      for (const [from, to] of [[path, aside], [link, path], [path, link], [aside, path]]) fs.renameSync(from, to)
    } catch {
      process.exit(1)
    }
    if (++swaps % 100 === 0) await new Promise(setImmediate)
  }`

/**
 * A process that swaps `path` with `link` and back, over and over by rename: neither is missing for long.
 * @param aside a free name on the same disk
 * @returns ends it, and returns how often it swapped; rejects if it never did, or not until then
 */
export async function startSwapper (
  t: ProcessOwner, path: string, aside: string, link: string
): Promise<() => Promise<number>> {
  const swapper = spawn(process.execPath, ['--input-type=module', '-e', SWAPPER, path, aside, link], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc']
  })
  t.teardown(() => { swapper.kill('SIGKILL') })
  await once(swapper, 'message')
  return async () => {
    if (swapper.exitCode !== null) throw new Error(`the swapper ended with ${swapper.exitCode}`)
    swapper.send('stop')
    const [swaps] = await once(swapper, 'message') as [number]
    if (swaps === 0) throw new Error('the swapper never swapped')
    await once(swapper, 'close')
    return swaps
  }
}
