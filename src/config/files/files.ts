import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs'
import { chmod, chown, open, readlink, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, resolve, sep } from 'node:path'
import { errorCode } from '../../core/shared/system-errors.ts'

/** Largest file that is read, in bytes: the tokens of 10,000 callers take less than a tenth. */
const MAX_FILE_BYTES = 16 * 1_048_576

/** Without O_NONBLOCK, opening a pipe that has no writer would not return. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK

/**
 * The bytes of a file that an operator has named.
 * @throws {Error} of the system, or for what is not a regular file or too large
 */
export async function readRegularFile (path: string): Promise<Buffer> {
  const file = await open(path, FLAGS)
  try {
    check(await file.stat())
    return await file.readFile()
  } finally {
    await file.close()
  }
}

/** Reads a file as `readRegularFile` does, synchronously. */
export function readRegularFileSync (path: string): Buffer {
  const descriptor = openSync(path, FLAGS)
  try {
    check(fstatSync(descriptor))
    return readFileSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** For directories, reading fails with EISDIR. */
function check (stats: Stats): void {
  if (stats.isDirectory()) return
  if (!stats.isFile()) throw new Error('it is not a regular file')
  if (stats.size > MAX_FILE_BYTES) throw new Error(`it is larger than ${MAX_FILE_BYTES} bytes`)
}

/**
 * Writes a file that readers see whole or not at all. A link stays a link, and a file keeps its mode.
 * @throws {Error} of the system, or for what `readRegularFile` would refuse to read
 */
export async function replaceFile (path: string, text: string): Promise<void> {
  textForFile(text)
  const target = await realPathOf(path)
  const stats = await stat(target).catch(() => undefined)
  // By root, `--out /dev/stdout` would replace the device.
  if (stats?.isFile() === false && !stats.isDirectory()) throw new Error('it is not a regular file')
  const temporary = `${target}.${process.pid}.tmp`
  try {
    await writeFile(temporary, text, { flush: true })
    if (stats !== undefined) {
      await chmod(temporary, stats.mode)
      // Only root may give a file away.
      await chown(temporary, stats.uid, stats.gid).catch(() => {})
    }
    await rename(temporary, target)
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {})
    throw error
  }
}

/**
 * A text for a file that is read here later.
 * @throws {Error} for one that the reader would refuse
 */
export function textForFile (text: string): string {
  if (Buffer.byteLength(text) <= MAX_FILE_BYTES) return text
  throw new Error(`it would be larger than the ${MAX_FILE_BYTES} bytes that are read of it`)
}

export async function isFolder (path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() === true
}

/** Where a file or folder is, or would be made. A link that leads nowhere yet is followed. */
export async function realPathOf (path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    const parent = dirname(path)
    if (parent === path) return path
    // Of links in a circle, the code is another.
    const target = errorCode(error) === 'ENOENT' ? await readlink(path).catch(() => undefined) : undefined
    if (target !== undefined) return await realPathOf(resolve(await realPathOf(parent), target))
    return resolve(await realPathOf(parent), path.slice(parent.length).replace(/^[/\\]+/, ''))
  }
}

export function isWithin (path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'a part of the path is not a folder',
  EISDIR: 'it is a folder',
  EACCES: 'this user may not read it',
  EPERM: 'this user may not read it',
  ELOOP: 'its links lead in a circle'
}

const WRITE_REASONS: Readonly<Record<string, string>> = {
  EEXIST: 'there is a file of this name',
  ENOENT: 'there is no such folder',
  ENOTDIR: 'a part of the path is not a folder',
  EISDIR: 'it is a folder',
  EACCES: 'this user may not write there',
  EPERM: 'this user may not write there',
  ELOOP: 'its links lead in a circle',
  EROFS: 'its disk is read-only',
  ENOSPC: 'its disk is full',
  EDQUOT: 'the quota of this user is used up',
  EMFILE: 'the process may not open more files, ulimit -n is the limit'
}

/** Why a file that an operator has named cannot be read: `ENOENT, there is no such file`. */
export function whyUnreadable (error: unknown): string {
  return reasonOf(error, REASONS)
}

/** Why a file or folder that an operator has named cannot be written. */
export function whyUnwritable (error: unknown): string {
  return reasonOf(error, WRITE_REASONS)
}

function reasonOf (error: unknown, reasons: Readonly<Record<string, string>>): string {
  const code = errorCode(error)
  if (code === '') return error instanceof Error ? error.message : String(error)
  const reason = reasons[code]
  return reason === undefined ? code : `${code}, ${reason}`
}
