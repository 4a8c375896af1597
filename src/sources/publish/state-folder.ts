import { hash, randomUUID } from 'node:crypto'
import { readFileSync, rmSync } from 'node:fs'
import { mkdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { errorCode } from '../../core/shared/system-errors.ts'
import { checkNotServed, reasonOf } from '../../operator/files.ts'
import { AddressError } from '../source-error.ts'

/** How often the holder of the lock touches it, and after how long without that it is gone, in milliseconds. */
const HEARTBEAT_MS = 15_000
const LOCK_STALE_MS = 60_000

const SETTING = 'STATE_DIR or --state-dir'

/** The folder for everything that the service writes by itself, with a lock file: one process at a time uses it. */
export class StateFolder {
  /** Absolute. */
  readonly path: string
  readonly #token = JSON.stringify({ pid: process.pid, host: hostname(), id: randomUUID() })
  #served: readonly string[] = []
  #locking: Promise<void> | undefined
  #heartbeat: NodeJS.Timeout | undefined

  /** @param path undefined for a user without a home who names none: then it cannot be used */
  constructor (path: string | undefined) {
    this.path = path ?? ''
  }

  /**
   * It may not lie in one of these folders, whose files are served.
   * @throws ConfigError when it does, and is in use
   */
  async keepApart (folders: readonly string[]): Promise<void> {
    if (this.#locking !== undefined) await checkNotServed(this.path, SETTING, folders)
    this.#served = folders
  }

  /**
   * Locks the folder until `unlock`. It is made where it is missing.
   * @throws AddressError that names the setting: another process holds the folder, or it cannot be written
   */
  async lock (): Promise<void> {
    this.#locking ??= this.#take().catch((error: unknown) => {
      this.#locking = undefined
      throw error
    })
    await this.#locking
  }

  /** The folder of one source or root: the same for the same identity, whatever the other settings. */
  folderOf (parent: 'sources' | 'verified', name: string, identity: unknown): string {
    return join(this.path, parent, `${name.slice(0, 40)}-${hash('sha256', JSON.stringify(identity)).slice(0, 12)}`)
  }

  get #lock (): string {
    return join(this.path, 'lock')
  }

  async #take (): Promise<void> {
    if (this.path === '') {
      throw new AddressError('this user has no home folder to keep state in: --state-dir or STATE_DIR names a folder')
    }
    await checkNotServed(this.path, SETTING, this.#served)
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
    process.once('exit', this.unlock)
    this.#heartbeat = setInterval(() => {
      // Somebody may have removed it.
      utimes(this.#lock, new Date(), new Date()).catch(() => this.#write()).catch(() => {})
    }, HEARTBEAT_MS).unref()
  }

  async #write (): Promise<void> {
    await writeFile(this.#lock, this.#token, { flag: 'wx', mode: 0o600 }).catch(async (error: unknown) => {
      // A full disk may have left an empty lock, which would keep everybody away.
      if (errorCode(error) !== 'EEXIST') await rm(this.#lock, { force: true })
      throw error
    })
  }

  readonly unlock = (): void => {
    clearInterval(this.#heartbeat)
    process.off('exit', this.unlock)
    this.#locking = undefined
    try {
      // Another process takes the lock over when this one was suspended.
      if (readFileSync(this.#lock, 'utf8') === this.#token) rmSync(this.#lock)
    } catch {}
  }
}

/** Whether the holder of a lock is gone: no sign of life for a minute, or a process of this machine that has ended. */
async function isStale (lock: string): Promise<boolean> {
  try {
    // The clock of this machine may have been set back.
    if (Math.abs(Date.now() - (await stat(lock)).mtimeMs) > LOCK_STALE_MS) return true
    const { pid, host } = JSON.parse(await readFile(lock, 'utf8')) as { readonly pid: number, readonly host: string }
    return host === hostname() && (pid === process.pid || !isAlive(pid))
  } catch {
    return false
  }
}

function isAlive (pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return errorCode(error) === 'EPERM'
  }
}

/** What an error of the disk at the start is to the operator. */
export function unwritable (path: string, error: unknown): AddressError {
  const problem = `the state folder ${path} cannot be written (${reasonOf(error)})`
  return new AddressError(`${problem}: --state-dir or STATE_DIR chooses another`)
}
