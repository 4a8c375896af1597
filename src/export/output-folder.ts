import { createHash, randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, readdir, readFile, rename, rm, rmdir, stat, unlink } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { errorCode } from '../core/shared/system-errors.ts'
import { sha256 } from '../core/shared/digest.ts'
import { isFolder } from '../config/files/files.ts'

/** Files that are written at the same time: as many calls to the disk as Node has threads, several times over. */
const WRITTEN_TOGETHER = 16

/** Files up to this size, in bytes, are read whole. */
const MAX_READ_BYTES = 1_048_576

/** The name of a file until it is whole: its own, random bytes in hexadecimal digits, and this ending. */
const PART = '.part'
const PART_BYTES = 6
/** The same of the files directly in the folder. */
const REST = /^(?:_headers|manifest\.json|\.skillserve-unfinished)\.[\da-f]{12}\.part$/

/** A file of an export. */
export interface OutputFile {
  /** Below the folder, `/` between segments. */
  readonly path: string
  /** `sha256:<hex>` of the bytes. */
  readonly digest: string
  /** In bytes. */
  readonly size: number
  readonly chunks: () => AsyncIterable<Uint8Array> | Iterable<Uint8Array>
}

/**
 * The folder that an export is written to. Each file takes its place in one step. A file that is there with the same bytes is not
 * touched, so that tools which compare times or bytes upload nothing again.
 */
export class OutputFolder {
  readonly #folder: string
  readonly #made = new Set<string>()

  /** @param folder absolute path */
  constructor (folder: string) {
    this.#folder = folder
  }

  /** Whether the file was written, and not there already. */
  async write ({ path, digest, size, chunks }: OutputFile): Promise<boolean> {
    const target = join(this.#folder, path)
    if (await digestOf(target, size) === digest) return false
    await this.#make(dirname(target))
    const part = `${target}.${randomBytes(PART_BYTES).toString('hex')}${PART}`
    try {
      const file = await open(part, 'wx')
      try {
        for await (const chunk of chunks()) await file.writeFile(chunk)
      } finally {
        await file.close()
      }
      await takePlace(part, target)
    } catch (error) {
      await rm(part, { force: true })
      throw error
    }
    return true
  }

  /**
   * Writes many files, WRITTEN_TOGETHER at a time, and returns how many were not there already.
   * @param onDone receives how many are there
   */
  async writeAll (files: readonly OutputFile[], onDone?: (done: number) => void): Promise<number> {
    const due = files.values()
    let [written, done] = [0, 0]
    const work = async (): Promise<void> => {
      for (const file of due) {
        if (await this.write(file)) written++
        onDone?.(++done)
      }
    }
    await Promise.all(Array.from({ length: WRITTEN_TOGETHER }, work))
    return written
  }

  async #make (folder: string): Promise<void> {
    if (this.#made.has(folder)) return
    await mkdir(folder, { recursive: true }).catch(async (error: unknown) => {
      if (!isOneOf(error, ['EEXIST', 'ENOTDIR'])) throw error
      await this.#removeFileAbove(folder)
      await mkdir(folder, { recursive: true })
    })
    this.#made.add(folder)
  }

  /** An earlier export has a file where this one has a folder. */
  async #removeFileAbove (folder: string): Promise<void> {
    let path = this.#folder
    for (const segment of relative(this.#folder, folder).split(sep)) {
      path = join(path, segment)
      // Another file of the same folder may do so at the same time.
      if (!await isFolder(path)) return await unlink(path).catch(() => {})
    }
  }

  /** Paths of all files below a folder of the export; none when it is not there. */
  async list (folder: string): Promise<string[]> {
    const entries = await readdir(join(this.#folder, folder), { recursive: true, withFileTypes: true }).catch(nothingThere)
    return entries.filter((entry) => !entry.isDirectory())
      .map(({ parentPath, name }) => relative(this.#folder, join(parentPath, name)).replaceAll(sep, '/'))
      .sort()
  }

  /** Names of what is directly in the folder, without what a write of ours that was killed has left; none when it is not there. */
  async names (): Promise<string[]> {
    return (await readdir(this.#folder).catch(nothingThere)).filter((name) => !isRest(name))
  }

  /** Removes what writes that were killed have left directly in the folder. */
  async removeRests (): Promise<void> {
    for (const name of (await readdir(this.#folder).catch(nothingThere)).filter(isRest)) await rm(join(this.#folder, name), { force: true })
  }

  /** The text of a file; empty when it cannot be read. */
  async read (path: string): Promise<string> {
    return await readFile(join(this.#folder, path), 'utf8').catch(() => '')
  }

  /** Removes a file, and the folders that are empty then. */
  async remove (path: string): Promise<void> {
    await rm(join(this.#folder, path))
    for (let folder = dirname(path); folder !== '.'; folder = dirname(folder)) {
      try {
        await rmdir(join(this.#folder, folder))
      } catch {
        return
      }
    }
  }
}

function isRest (name: string): boolean {
  return REST.test(name)
}

function isOneOf (error: unknown, codes: readonly string[]): boolean {
  return codes.includes(errorCode(error))
}

/** An earlier export may have a folder where this one has a file. */
async function takePlace (part: string, target: string): Promise<void> {
  await rename(part, target).catch(async (error: unknown) => {
    if (!isOneOf(error, ['EISDIR', 'ENOTEMPTY', 'EEXIST'])) throw error
    await rm(target, { recursive: true })
    await rename(part, target)
  })
}

/** The digest of a file of this size; undefined when there is none. */
async function digestOf (path: string, size: number): Promise<string | undefined> {
  const hash = createHash('sha256')
  try {
    if ((await stat(path)).size !== size) return undefined
    if (size <= MAX_READ_BYTES) return sha256(await readFile(path))
    for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) hash.update(chunk)
  } catch {
    return undefined
  }
  return `sha256:${hash.digest('hex')}`
}

function nothingThere (error: unknown): [] {
  if (errorCode(error) === 'ENOENT') return []
  throw error
}
