import { constants, type Stats } from 'node:fs'
import { chmod, chown, open, readlink, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { isOnNetwork } from '../core/read/disk.ts'
import { errorCode } from '../core/shared/system-errors.ts'
import { ConfigError } from './setting.ts'

/** Largest file that is read, in bytes: the tokens of 10,000 callers take less than a tenth. */
const MAX_FILE_BYTES = 16 * 1_048_576

/** Without O_NONBLOCK, opening a pipe without a writer would never return. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK

/**
 * Reads a file that an operator has named.
 * @throws {Error} of the system, for a file that is not regular, and for one that is too large
 */
export async function readRegularFile (path: string): Promise<Buffer> {
  const file = await open(path, FLAGS)
  try {
    const stats = await file.stat()
    // Folders are not refused here: reading one fails with EISDIR.
    if (!stats.isFile() && !stats.isDirectory()) throw new Error('it is not a regular file')
    if (stats.size > MAX_FILE_BYTES) throw new Error(`it is larger than ${MAX_FILE_BYTES} bytes`)
    return await file.readFile()
  } finally {
    await file.close()
  }
}

/**
 * Replaces the content of a file atomically. A link stays a link, and the file keeps its owner and mode.
 * @param shown the path as errors show it
 * @throws ConfigError if the file cannot be written
 */
export async function replaceFile (path: string, text: string, shown = path): Promise<void> {
  try {
    const target = await realPathOf(path)
    const stats = await stat(target).catch(() => undefined)
    // For root, `--out /dev/stdout` would replace the device.
    if (stats?.isFile() === false && !stats.isDirectory()) throw new Error('it is not a regular file')
    await replaceEntry(target, text, stats)
  } catch (error) {
    throw new ConfigError(`${shown} cannot be written (${reasonOf(error)})`, { cause: error })
  }
}

/**
 * Replaces the file or link of this name.
 * @param like has the owner and mode of the file
 */
export async function replaceEntry (path: string, text: string, like?: Stats): Promise<void> {
  // A hidden name, since the folder may be a skill that is served.
  const temporary = join(dirname(path), `.#${basename(path)}.${process.pid}`)
  try {
    await writeFile(temporary, text, { flag: 'wx', flush: true })
    if (like !== undefined) {
      await chmod(temporary, like.mode)
      // Only root may change the owner of a file.
      await chown(temporary, like.uid, like.gid).catch(() => {})
    }
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {})
    throw error
  }
}

/** Returns the real path of a file or folder that may not exist yet. Dangling links are followed. */
async function realPathOf (path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    const parent = dirname(path)
    if (parent === path) return path
    // Links in a circle fail with ELOOP.
    const target = errorCode(error) === 'ENOENT' ? await readlink(path).catch(() => undefined) : undefined
    if (target !== undefined) return await realPathOf(resolve(await realPathOf(parent), target))
    return resolve(await realPathOf(parent), path.slice(parent.length).replace(/^[/\\]+/, ''))
  }
}

export function isWithin (path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)
}

/** Returns a path relative to the working folder, with `/` on every platform; outside of it, the absolute path. */
export function shownPath (cwd: string, path: string): string {
  const shown = relative(cwd, path)
  if (shown === '') return '.'
  return (shown.startsWith('..') ? path : shown).split(sep).join('/')
}

/**
 * Refuses a file of the service inside a folder of skills: it would be served, and authors could write it.
 * @param setting that names the path
 * @param folders those of the skills, and those into which links may lead
 * @throws ConfigError for a path inside one of them
 */
export async function checkNotServed (path: string, setting: string, folders: readonly string[]): Promise<void> {
  const real = await realPathOf(path)
  for (const folder of folders) {
    // A network disk might never answer, so it is not checked.
    if (!isWithin(real, isOnNetwork(folder) ? folder : await realPathOf(folder))) continue
    const place = `${JSON.stringify(path)} is inside ${JSON.stringify(folder)}, whose files are served`
    throw new ConfigError(`${setting}: ${place}: choose a place outside all folders of skills`)
  }
}

/** Returns why a file cannot be read or written: `ENOENT: no such file or directory`. */
export function reasonOf (error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  // The message ends with resolved paths, which the operator has not written.
  return errorCode(error) === '' ? message : message.replace(/, .*$/s, '')
}
