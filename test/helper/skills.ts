import fs, { type BigIntStats } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Test } from 'tap'
import { createLocalDisk, type Disk } from '../../src/core/disk/disk.ts'
import { SkillError } from '../../src/core/errors.ts'
import type { CatalogSkill } from '../../src/core/skill.ts'
import { createSkillManager, type SkillManager, type SkillManagerOptions } from '../../src/core/skill-manager.ts'

/** A valid main file. */
export function skillText (name: string, body = `Instructions of ${name}.\n`): string {
  return `---\nname: ${name}\ndescription: What ${name} is for\n---\n${body}`
}

/** A folder for `t.testdir`; made anew each time: tap takes one object in two places for a cycle. */
export function skill (name: string, files: Readonly<Record<string, unknown>> = {}) {
  return { 'SKILL.md': skillText(name), ...files }
}

export function skills (...names: readonly string[]): Record<string, ReturnType<typeof skill>> {
  return Object.fromEntries(names.map((name) => [name, skill(name)]))
}

/** A manager without a watcher, closed with the test. */
export function createManager (t: Test, projectRoots: readonly string[], options: Partial<SkillManagerOptions> = {}): SkillManager {
  const manager = createSkillManager({ projectRoots, watcher: false, ...options })
  t.teardown(() => manager.close())
  return manager
}

/** The same, started and indexed. */
export async function startManager (t: Test, projectRoots: readonly string[], options: Partial<SkillManagerOptions> = {}): Promise<SkillManager> {
  const manager = createManager(t, projectRoots, options)
  await manager.initialize()
  return manager
}

/** The skill with this frontmatter name, else of this folder name; undefined when there is none. */
export async function findByDisplayName (manager: SkillManager, name: string): Promise<CatalogSkill | undefined> {
  try {
    return await manager.readByDisplayName(name, ({ skill }) => skill)
  } catch (error) {
    if (error instanceof SkillError && error.code === 'skill_not_found') return undefined
    throw error
  }
}

/** Takes turns of the event loop until something holds; makes the test fail when it never does. */
export async function until (holds: () => boolean | Promise<boolean>, deadlineMs = 30_000): Promise<void> {
  const start = performance.now()
  while (!await holds()) {
    if (performance.now() - start > deadlineMs) throw new Error(`still not so after ${deadlineMs} ms: ${holds.toString()}`)
    await nextTurn()
  }
}

/** Returns when the clock of file timestamps has moved on, so that the next change is stamped later than all before. */
export function passTick (folder: string): void {
  const probe = join(folder, 'tick')
  fs.writeFileSync(probe, '')
  const { ctimeNs } = fs.statSync(probe, { bigint: true })
  while (fs.statSync(probe, { bigint: true }).ctimeNs === ctimeNs) fs.writeFileSync(probe, '')
  fs.rmSync(probe)
}

/** An error as the operating system gives it, with a text that no answer may hold. */
export function osError (code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: leaked text, open '/leaked/path'`), { code, errno: -1, syscall: 'open' })
}

export type DiskOperation = 'stat' | 'lstat' | 'realpath' | 'readdir' | 'readdirBytes' | 'open' | 'fstat' | 'readlink' | 'read' | 'close'

/** Called before each operation: may throw, change the disk, or keep it waiting. A descriptor's path is the one it was opened by. */
export type Interceptor = (operation: DiskOperation, path: string) => void | Promise<void>

export interface FaultyDisk extends Disk {
  intercept: Interceptor
  /** How often each operation was asked for. */
  readonly calls: Map<DiskOperation, number>
}

export interface FaultyDiskOptions {
  readonly disk?: Disk
  readonly hasProc?: boolean
  /** Shows every timestamp as this much older, so that what was written just now counts as settled and is kept. */
  readonly ageMs?: number
}

/** A disk that does what a test says, else what the real one does. */
export function createFaultyDisk ({ disk = createLocalDisk(), hasProc = disk.hasProc, ageMs = 0 }: FaultyDiskOptions = {}): FaultyDisk {
  const paths = new Map<number, string>()
  const calls = new Map<DiskOperation, number>()
  const age = BigInt(ageMs) * 1_000_000n

  function aged (stats: BigIntStats): BigIntStats
  function aged (stats: BigIntStats | undefined): BigIntStats | undefined
  function aged (stats: BigIntStats | undefined): BigIntStats | undefined {
    if (stats !== undefined) {
      stats.ctimeNs -= age
      stats.mtimeNs -= age
    }
    return stats
  }

  function opened (descriptor: number, path: string): number {
    paths.set(descriptor, path)
    return descriptor
  }

  /** Synchronous as long as nobody makes it wait, like the disk below. */
  function run<T> (operation: DiskOperation, path: string, act: () => T | Promise<T>): T | Promise<T> {
    calls.set(operation, (calls.get(operation) ?? 0) + 1)
    const wait = faulty.intercept(operation, path)
    return wait instanceof Promise ? wait.then(act) : act()
  }

  function then<T, U> (value: T | Promise<T>, map: (value: T) => U): U | Promise<U> {
    return value instanceof Promise ? value.then(map) : map(value)
  }

  const faulty: FaultyDisk = {
    intercept: () => {},
    calls,
    hasProc,
    stat: (path) => run('stat', path, () => then(disk.stat(path), (stats) => aged(stats))),
    lstat: (path) => run('lstat', path, () => then(disk.lstat(path), (stats) => aged(stats))),
    realpath: (path) => run('realpath', path, () => disk.realpath(path)),
    readdir: (path) => run('readdir', path, () => disk.readdir(path)),
    readdirBytes: (path) => run('readdirBytes', path, () => disk.readdirBytes(path)),
    open: (path, flags) => run('open', path, () => then(disk.open(path, flags), (descriptor) => opened(descriptor, path))),
    fstat: (descriptor) => run('fstat', paths.get(descriptor) ?? '', () => then(disk.fstat(descriptor), (stats) => aged(stats))),
    readlink: (path) => run('readlink', path, () => disk.readlink(path)),
    read: (descriptor, buffer, offset, length, position) =>
      run('read', paths.get(descriptor) ?? '', () => disk.read(descriptor, buffer, offset, length, position)),
    close: (descriptor) => run('close', paths.get(descriptor) ?? '', () => disk.close(descriptor))
  }
  return faulty
}

/** Fails one operation on the paths that end so. */
export function failing (operation: DiskOperation, ending: string, code: string): Interceptor {
  return (asked, path) => {
    if (asked === operation && path.endsWith(ending)) throw osError(code)
  }
}

export function countDescriptors (): number {
  return fs.readdirSync('/proc/self/fd').length
}

/** What a promise came to, as text: to compare answers and refusals alike. */
export async function outcome (question: () => unknown): Promise<unknown> {
  try {
    return await question()
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : error
  }
}
