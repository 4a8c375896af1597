import { hash, randomBytes } from 'node:crypto'
import { readFileSync, rmSync } from 'node:fs'
import { mkdir, open, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { errorCode } from '../../core/shared/system-errors.ts'
import type { CoreLog } from '../../core/shared/log.ts'
import { whyUnwritable } from '../../config/files/files.ts'
import { AddressError, SourceError } from '../source-error.ts'

/** How often the holder of a lock shows that it lives, and after how long without that it is gone, in milliseconds. */
const LOCK_RENEW_MS = 15_000
const LOCK_STALE_MS = 60_000

/** How long a folder of a source is kept that nobody has opened since, in milliseconds. */
const UNUSED_MS = 30 * 86_400_000

/** What is kept for sources: where, by which names, and with what in it. The state folder may be one with other things in it. */
const OWN_FOLDERS = [
  { parent: 'sources', name: /-[\da-f]{12}$/, isOwn: (entries: readonly string[]) => entries.every((entry) => ['skills.json', 'skills', 'tmp'].includes(entry)) },
  { parent: 'git', name: /^[\da-f]{20}$/, isOwn: (entries: readonly string[]) => ['HEAD', 'objects', 'refs'].every((entry) => entries.includes(entry)) }
] as const

/** Place of the start in /proc/PID/stat, counted from the field behind the name. */
const START_FIELD = 19

/**
 * The folder of one source, below the state folder: the same for the same place, whatever its other settings.
 * Deleting it costs a fetch, and nothing else.
 * @param identity whatever decides what the source holds, as JSON can say it
 */
export function folderOf (stateDir: string, name: string, identity: unknown): string {
  return join(stateDir, 'sources', `${name.slice(0, 40)}-${hash('sha256', JSON.stringify(identity)).slice(0, 12)}`)
}

/** Removes what is kept for sources that no start has named for a long time. Each start of a source sets the times of its folders. */
export async function removeUnused (stateDir: string, log: CoreLog): Promise<void> {
  for (const { parent, name, isOwn } of OWN_FOLDERS) {
    const entries = await readdir(join(stateDir, parent), { withFileTypes: true }).catch(() => [])
    for (const folder of entries.filter((entry) => entry.isDirectory() && name.test(entry.name)).map((entry) => join(stateDir, parent, entry.name))) {
      try {
        if (Date.now() - (await stat(folder)).mtimeMs > UNUSED_MS && isOwn(await readdir(folder))) await rm(folder, { recursive: true, force: true })
      } catch (error) {
        // It takes room, and nothing else.
        log.warn({ path: folder, problem: errorCode(error) }, 'the folder of a source that nobody names any more cannot be removed')
      }
    }
  }
}

/** Writes a file so that nobody ever reads half of it, also after the power went. */
export async function replaceFile (path: string, text: string, tmp: string): Promise<void> {
  const temporary = join(tmp, randomBytes(8).toString('hex'))
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

/** A value that was written as JSON; undefined when it is not there, or no JSON. */
export async function readJson (path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as unknown
  } catch {
    return undefined
  }
}

/** The right to write into the state folder. */
export interface StateLock {
  /**
   * Called before each write: whoever was suspended for longer than LOCK_STALE_MS may have lost it.
   * @throws SourceError while another process holds it
   */
  confirm (): Promise<void>
  release (): Promise<void>
}

/** For folders, into which the service does not write. */
export const NO_LOCK: StateLock = { async confirm () {}, async release () {} }

/** What an error of the disk at the start is to the operator. */
export function unwritable (stateDir: string, error: unknown): AddressError {
  return new AddressError(`the state folder ${stateDir} cannot be written (${whyUnwritable(error)}): --state-dir or STATE_DIR chooses another`)
}

/**
 * Keeps other processes from writing into the state folder. A holder that died leaves a lock that is taken over.
 * @throws AddressError while another process holds it
 */
export async function lockFolder (stateDir: string): Promise<StateLock> {
  await mkdir(stateDir, { recursive: true, mode: 0o700 }).catch((error: unknown) => { throw unwritable(stateDir, error) })
  const path = join(stateDir, 'lock')
  const own = JSON.stringify({ pid: process.pid, started: await startOf(process.pid), host: hostname(), id: randomBytes(8).toString('hex') })
  for (let attempt = 0; ; attempt++) {
    try {
      await writeLock(path, own)
      break
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw unwritable(stateDir, error)
      if (attempt > 0 || await isHeld(path)) throw new AddressError(`another process uses the state folder ${stateDir}: --state-dir or STATE_DIR chooses another`)
      await rm(path, { force: true })
    }
  }
  const isOwn = async (): Promise<boolean> => await readFile(path, 'utf8').catch(() => '') === own
  const renew = async (): Promise<void> => {
    const now = new Date()
    if (await isOwn()) await utimes(path, now, now)
  }
  // The end of a process that a signal does not let wait.
  const releaseNow = (): void => {
    try {
      if (readFileSync(path, 'utf8') === own) rmSync(path)
    } catch {
      // Another process takes over what is left.
    }
  }
  process.once('exit', releaseNow)
  const timer = setInterval(() => { renew().catch(() => {}) }, LOCK_RENEW_MS).unref()
  return {
    async confirm () {
      if (await isOwn()) return
      try {
        // Somebody may have removed the state folder.
        await mkdir(stateDir, { recursive: true, mode: 0o700 })
        await writeLock(path, own)
      } catch (error) {
        throw new SourceError('disk', errorCode(error) === 'EEXIST' ? 'another process uses the state folder' : `the state folder cannot be written (${whyUnwritable(error)})`, { cause: error })
      }
    },
    async release () {
      clearInterval(timer)
      process.off('exit', releaseNow)
      if (await isOwn()) await rm(path, { force: true })
    }
  }
}

/** A lock that a full disk cuts off would keep others away, and itself. */
async function writeLock (path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(text)
  } catch (error) {
    await rm(path, { force: true })
    throw error
  } finally {
    await file.close()
  }
}

async function isHeld (path: string): Promise<boolean> {
  const holder = await readJson(path)
  const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: 0 }))
  // The clock of this machine may have been set back.
  if (Math.abs(Date.now() - mtimeMs) > LOCK_STALE_MS) return false
  if (typeof holder !== 'object' || holder === null || !('pid' in holder) || !('host' in holder)) return true
  // The process ids of another machine, or container, say nothing here.
  if (holder.host !== hostname() || typeof holder.pid !== 'number') return true
  if (holder.pid === process.pid || !isAlive(holder.pid)) return false
  // In containers, each first process has the id 1: that of a holder that died is soon another one's.
  const started = 'started' in holder ? holder.started : undefined
  return started === undefined || started === await startOf(holder.pid)
}

/** When a process began, in ticks since the start of the machine; undefined where the system does not say so. */
async function startOf (pid: number): Promise<string | undefined> {
  const line = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // The name of the program may hold blanks and brackets.
  return line.slice(line.lastIndexOf(')') + 2).split(' ')[START_FIELD]
}

function isAlive (pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errorCode(error) === 'EPERM'
  }
}
