import { createHash, randomBytes } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { pipeline } from 'node:stream/promises'

/** A file of an export. */
export interface OutputFile {
  /** Below the folder, `/` between segments. */
  readonly path: string
  /** `sha256:<hex>` of the bytes. */
  readonly digest: string
  readonly chunks: () => AsyncIterable<Uint8Array> | Iterable<Uint8Array>
}

/**
 * The folder that an export is written to. Each file takes its place in one step, and a file that is there with the same bytes is
 * not touched, so that tools which compare times or bytes upload nothing again.
 */
export class OutputFolder {
  readonly #folder: string

  /** @param folder absolute path */
  constructor (folder: string) {
    this.#folder = folder
  }

  /** Whether the file was written, and not there already. */
  async write ({ path, digest, chunks }: OutputFile): Promise<boolean> {
    const target = join(this.#folder, path)
    if (await digestOf(target) === digest) return false
    await mkdir(dirname(target), { recursive: true })
    const part = `${target}.${randomBytes(6).toString('hex')}.part`
    try {
      const hash = createHash('sha256')
      await pipeline(chunks, async function * (source: AsyncIterable<Uint8Array>) {
        for await (const chunk of source) {
          hash.update(chunk)
          yield chunk
        }
      }, createWriteStream(part, { flags: 'wx' }))
      if (`sha256:${hash.digest('hex')}` !== digest) throw new Error(`${path} changed while it was exported`)
      await rename(part, target)
    } catch (error) {
      await rm(part, { force: true })
      throw error
    }
    return true
  }

  /** Paths of all files below a folder of the export; none when it is not there. */
  async list (folder: string): Promise<string[]> {
    const entries = await readdir(join(this.#folder, folder), { recursive: true, withFileTypes: true }).catch(nothingThere)
    return entries.filter((entry) => !entry.isDirectory())
      .map(({ parentPath, name }) => relative(this.#folder, join(parentPath, name)).replaceAll(sep, '/'))
      .sort()
  }

  /** Names of what is directly in the folder; none when it is not there. */
  async names (): Promise<string[]> {
    return (await readdir(this.#folder, { withFileTypes: true }).catch(nothingThere)).map(({ name }) => name)
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

async function digestOf (path: string): Promise<string | undefined> {
  const hash = createHash('sha256')
  try {
    for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) hash.update(chunk)
  } catch {
    return undefined
  }
  return `sha256:${hash.digest('hex')}`
}

function nothingThere (error: unknown): [] {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
  throw error
}
