import { hash, randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { mkdir, open, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { isJsonObject } from '../../core/shared/json.ts'
import type { CoreLog } from '../../core/shared/log.ts'
import { errorCode } from '../../core/shared/system-errors.ts'
import { whyUnwritable } from '../../config/files/files.ts'
import { AddressError, SourceError } from '../source-error.ts'

/**
 * How often the holder of the lock shows that it lives, and after how long without that it is gone, in milliseconds.
 */
const HEARTBEAT_MS = 15_000
const LOCK_STALE_MS = 60_000

/** How long a folder is kept that no start has used, in milliseconds. */
const UNUSED_MS = 30 * 86_400_000

const isPublished = (entries: readonly string[]): boolean =>
  entries.every((entry) => ['skills.json', 'skills', 'tmp', 'cache'].includes(entry))

/** What the service keeps here: the state folder may hold other things as well. */
const OWN_FOLDERS = [
  { parent: 'sources', name: /-[\da-f]{12}$/, isOwn: isPublished },
  { parent: 'verified', name: /-[\da-f]{12}$/, isOwn: isPublished }
] as const

/**
 * The folder for everything that the service writes by itself. One process at a time uses it; deleting it costs a
 * fetch.
 */
export class StateFolder {
  /** Absolute. */
  readonly path: string
  readonly #check: (path: string) => Promise<void>
  readonly #token = JSON.stringify({ pid: process.pid, host: hostname(), id: randomUUID() })
  readonly #releaseNow = (): void => { if (this.#users > 0) rmSync(this.#lock, { force: true }) }
  #users = 0
  #locking: Promise<void> | undefined
  #heartbeat: NodeJS.Timeout | undefined

  /**
   * @param path undefined for a user without a home who names none: then it cannot be used
   * @param check called before the folder is used; throws a ConfigError where nothing may be written
   */
  constructor (path: string | undefined, check: (path: string) => Promise<void> = async () => {}) {
    this.path = path ?? ''
    this.#check = check
  }

  /**
   * Locks the folder, which is made where it is missing. The returned function gives it back; the last user unlocks it.
   * @throws AddressError that names the setting: another process holds the folder, or it cannot be written
   */
  async acquire (): Promise<() => Promise<void>> {
    this.#users++
    try {
      await (this.#locking ??= this.#take())
    } catch (error) {
      this.#users--
      this.#locking = undefined
      throw error
    }
    let isHeld = true
    return async () => {
      if (isHeld && --this.#users === 0) await this.#release()
      isHeld = false
    }
  }

  /**
   * Called before a fetch: the lock may have been taken over while this process was suspended, or removed.
   * @throws SourceError while another process holds it
   */
  async confirm (): Promise<void> {
    if (await this.#isOwn()) return
    try {
      await mkdir(this.path, { recursive: true, mode: 0o700 })
      await this.#write()
    } catch (error) {
      const reason = errorCode(error) === 'EEXIST'
        ? 'another process uses the state folder'
        : `the state folder cannot be written (${whyUnwritable(error)})`
      throw new SourceError('disk', reason, { cause: error })
    }
  }

  /** The folder of one source or root: the same for the same identity, whatever the other settings. */
  folderOf (parent: 'sources' | 'verified', name: string, identity: unknown): string {
    return join(this.path, parent, `${name.slice(0, 40)}-${hash('sha256', JSON.stringify(identity)).slice(0, 12)}`)
  }

  /** Removes what no start has used for a long time. */
  async removeUnused (log: CoreLog): Promise<void> {
    for (const { parent, name, isOwn } of OWN_FOLDERS) {
      const entries = await readdir(join(this.path, parent), { withFileTypes: true }).catch(() => [])
      for (const entry of entries.filter((entry) => entry.isDirectory() && name.test(entry.name))) {
        const path = join(this.path, parent, entry.name)
        try {
          const isUnused = Date.now() - (await stat(path)).mtimeMs > UNUSED_MS
          if (isUnused && isOwn(await readdir(path))) await rm(path, { recursive: true, force: true })
        } catch (error) {
          log.warn({ path, problem: errorCode(error) }, 'an unused folder of the state folder cannot be removed')
        }
      }
    }
  }

  get #lock (): string {
    return join(this.path, 'lock')
  }

  async #take (): Promise<void> {
    if (this.path === '') {
      throw new AddressError('this user has no home folder to keep state in: --state-dir or STATE_DIR names a folder')
    }
    await this.#check(this.path)
    await mkdir(this.path, { recursive: true, mode: 0o700 })
      .catch((error: unknown) => { throw unwritable(this.path, error) })
    try {
      if (await isStale(this.#lock)) await rm(this.#lock, { force: true })
      await this.#write()
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw unwritable(this.path, error)
      const sentence = `another process uses the state folder ${this.path}: --state-dir or STATE_DIR chooses another`
      throw new AddressError(sentence)
    }
    process.once('exit', this.#releaseNow)
    this.#heartbeat = setInterval(() => { this.#beat().catch(() => {}) }, HEARTBEAT_MS).unref()
  }

  async #beat (): Promise<void> {
    const now = new Date()
    if (await this.#isOwn()) await utimes(this.#lock, now, now)
  }

  async #release (): Promise<void> {
    clearInterval(this.#heartbeat)
    process.off('exit', this.#releaseNow)
    this.#locking = undefined
    if (await this.#isOwn()) await rm(this.#lock, { force: true })
  }

  async #isOwn (): Promise<boolean> {
    return await readFile(this.#lock, 'utf8').catch(() => '') === this.#token
  }

  async #write (): Promise<void> {
    try {
      await writeFile(this.#lock, this.#token, { flag: 'wx', mode: 0o600 })
    } catch (error) {
      // A full disk may have left an empty lock, which would keep everybody away.
      if (errorCode(error) !== 'EEXIST') await rm(this.#lock, { force: true })
      throw error
    }
  }
}

/** Whether the holder of a lock is gone: no sign of life for a minute, or a process of this machine that has ended. */
async function isStale (lock: string): Promise<boolean> {
  const stats = await stat(lock).catch(() => undefined)
  if (stats === undefined) return false
  // The clock of this machine may have been set back.
  if (Math.abs(Date.now() - stats.mtimeMs) > LOCK_STALE_MS) return true
  const holder = await readJson(lock)
  if (!isJsonObject(holder) || holder['host'] !== hostname() || typeof holder['pid'] !== 'number') return false
  return holder['pid'] === process.pid || !isAlive(holder['pid'])
}

function isAlive (pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errorCode(error) === 'EPERM'
  }
}

/** What an error of the disk at the start is to the operator. */
export function unwritable (path: string, error: unknown): AddressError {
  const problem = `the state folder ${path} cannot be written (${whyUnwritable(error)})`
  return new AddressError(`${problem}: --state-dir or STATE_DIR chooses another`)
}

/** Writes a file so that nobody ever reads half of it, also after a power failure. */
export async function replaceFile (path: string, text: string, tmp: string): Promise<void> {
  const temporary = join(tmp, randomUUID())
  try {
    await writeFile(temporary, text, { flag: 'wx', flush: true })
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
  const folder = await open(dirname(path))
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** A value that was written as JSON; undefined when it is not there, or not JSON. */
export async function readJson (path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as unknown
  } catch {
    return undefined
  }
}
