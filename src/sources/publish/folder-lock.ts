import { randomUUID } from 'node:crypto'
import { readFileSync, rmSync } from 'node:fs'
import { link, mkdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { errorCode } from '../../core/shared/system-errors.ts'

/** Interval at which an owner touches its lock, and age at which an untouched lock is stale, in milliseconds. */
const HEARTBEAT_MS = 15_000
const LOCK_STALE_MS = 60_000

const OwnerSchema = Type.Object({
  pid: Type.Integer({ minimum: 1 }), host: Type.String(), id: Type.String({ pattern: '^[\\w-]{1,64}$' })
})

/** The locks of this process: a container's first process has the same number after each restart. */
const held = new Map<string, FolderLock>()

function releaseAll (): void {
  for (const lock of held.values()) lock.release()
}

interface Owner {
  readonly id: string
  /** `process 123 on host vm` */
  readonly name: string
  readonly isStale: boolean
}

/**
 * Lets one process at a time own a folder. The lock file names its owner. If the owner has ended, its lock is replaced
 * by a rename, which only one process at a time can do.
 */
export class FolderLock {
  readonly #folder: string
  readonly #onLost: () => void
  #id: string | undefined
  #heartbeat: NodeJS.Timeout | undefined

  /** @param onLost is called when another process has taken the lock over */
  constructor (folder: string, onLost: () => void = () => {}) {
    this.#folder = folder
    this.#onLost = onLost
  }

  get #path (): string {
    return join(this.#folder, 'lock')
  }

  /**
   * Takes the lock, unless this object has it.
   * @returns the name of the owner, if another process has it
   */
  async acquire (): Promise<string | undefined> {
    if (await this.isOurs()) return undefined
    const id = randomUUID()
    // The id is set before the lock exists, since the process may end immediately afterwards.
    this.#id = id
    held.set(id, this)
    // One listener for all locks.
    process.off('exit', releaseAll).once('exit', releaseAll)
    let owner: string | undefined = 'unknown'
    try {
      owner = await this.#take(id)
    } finally {
      if (owner !== undefined) this.#forget()
    }
    if (owner === undefined) this.#heartbeat = setInterval(() => { void this.#beat() }, HEARTBEAT_MS).unref()
    return owner
  }

  /** Returns whether this object owns the lock: while a process is suspended, another one may take the lock. */
  async isOurs (): Promise<boolean> {
    if (this.#id === undefined) return false
    const owner = await ownerOf(this.#path)
    if (owner?.id === this.#id) return true
    this.#forget()
    // If the folder was removed, the lock is gone, but no other process has taken it.
    if (owner !== undefined) this.#onLost()
    return false
  }

  readonly release = (): void => {
    const id = this.#id
    this.#forget()
    if (id === undefined) return
    try {
      if (parseStateFile(OwnerSchema, readFileSync(this.#path, 'utf8'))?.id === id) rmSync(this.#path)
    } catch {}
  }

  #forget (): void {
    clearInterval(this.#heartbeat)
    if (this.#id !== undefined) held.delete(this.#id)
    this.#id = undefined
    if (held.size === 0) process.off('exit', releaseAll)
  }

  async #beat (): Promise<void> {
    const now = new Date()
    if (await this.isOurs()) await utimes(this.#path, now, now).catch(() => {})
  }

  /**
   * Creates the lock, or replaces the lock of an owner that has ended. Each lock has a claim of its own, which one
   * process gets. A claim whose process has ended is claimed likewise.
   * @returns the name of the owner, if it is another process
   */
  async #take (id: string): Promise<string | undefined> {
    const own = `${this.#path}.${id}`
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    // The file is complete before it is linked, so that nobody can read half a lock.
    await writeFile(own, JSON.stringify({ pid: process.pid, host: hostname(), id }), { flag: 'wx', mode: 0o600 })
    const used = [own]
    const claims: string[] = []
    try {
      let name = this.#path
      let stale: Owner | undefined
      while (!await linkNew(own, name)) {
        const owner = await ownerOf(name)
        if (owner?.isStale !== true) return owner?.name ?? 'another process'
        stale ??= owner
        name = `${this.#path}.after-${owner.id}`
        claims.unshift(name)
      }
      if (stale === undefined) return undefined
      used.unshift(...claims)
      // Since the lock was read, another process may have replaced it and removed its claim.
      const owner = await ownerOf(this.#path)
      if (owner?.id !== stale.id) return owner?.name ?? 'another process'
      await rename(own, this.#path)
      return undefined
    } finally {
      for (const file of used) await rm(file, { force: true })
    }
  }
}

/** Gives a file a further name. Returns false if something has this name. */
async function linkNew (file: string, name: string): Promise<boolean> {
  try {
    await link(file, name)
    return true
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false
    throw error
  }
}

/** Reads the owner that a lock names; undefined if there is no lock. What is no lock is stale when it is old. */
async function ownerOf (path: string): Promise<Owner | undefined> {
  try {
    const owner = parseStateFile(OwnerSchema, await readFile(path, 'utf8'))
    // The absolute value is used, since the clock may have been set back.
    const isOld = Math.abs(Date.now() - (await stat(path)).mtimeMs) > LOCK_STALE_MS
    if (owner === undefined) return { id: 'unknown', name: 'another process', isStale: isOld }
    const { pid, host, id } = owner
    return { id, name: `process ${pid} on host ${host}`, isStale: isOld || (host === hostname() && hasEnded(pid, id)) }
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Parses a file of the state folder. Returns undefined if it is damaged, or of another version. */
export function parseStateFile<T extends TSchema> (schema: T, text: string): Static<T> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return Value.Check(schema, value) ? value : undefined
  } catch {
    return undefined
  }
}

function hasEnded (pid: number, id: string): boolean {
  if (pid === process.pid) return !held.has(id)
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return errorCode(error) !== 'EPERM'
  }
}
