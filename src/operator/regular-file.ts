import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs'
import { open } from 'node:fs/promises'
import { errorCode } from '../core/shared/system-errors.ts'

/** Largest file that is read, in bytes: the tokens of 10,000 callers take less than a tenth. */
const MAX_FILE_BYTES = 16 * 1_048_576

/** Without O_NONBLOCK, opening a pipe that has no writer would not return. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK

/**
 * The bytes of a file that an operator has named.
 * @throws {Error} the disk's, or one for what is no regular file or too large: who reads a pipe may wait without end
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

/** The same, at once. */
export function readRegularFileSync (path: string): Buffer {
  const descriptor = openSync(path, FLAGS)
  try {
    check(fstatSync(descriptor))
    return readFileSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/**
 * A text for a file that is read here later.
 * @throws {Error} for one that the reader would refuse
 */
export function textForFile (text: string): string {
  if (Buffer.byteLength(text) > MAX_FILE_BYTES) throw new Error(`it would be larger than the ${MAX_FILE_BYTES} bytes that are read of it`)
  return text
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'a part of the path is no folder',
  EISDIR: 'it is a folder',
  EACCES: 'this user may not read it',
  EPERM: 'this user may not read it',
  ELOOP: 'its links lead in a circle'
}

const WRITE_REASONS: Readonly<Record<string, string>> = {
  EEXIST: 'there is a file of this name',
  ENOENT: 'there is no such folder',
  ENOTDIR: 'a part of the path is no folder',
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

/** The same of a file or folder that cannot be written. */
export function whyUnwritable (error: unknown): string {
  return reasonOf(error, WRITE_REASONS)
}

function reasonOf (error: unknown, reasons: Readonly<Record<string, string>>): string {
  const code = errorCode(error)
  if (code === '') return error instanceof Error ? error.message : String(error)
  const reason = reasons[code]
  return reason === undefined ? code : `${code}, ${reason}`
}

/** For folders, reading fails with EISDIR. */
function check (stats: Stats): void {
  if (stats.isDirectory()) return
  if (!stats.isFile()) throw new Error('it is no regular file')
  if (stats.size > MAX_FILE_BYTES) throw new Error(`it is larger than ${MAX_FILE_BYTES} bytes`)
}
