import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, readdir, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { foldersAbove } from '../core/shared/paths.ts'
import { errorCode } from '../core/shared/system-errors.ts'

/** Name of the temporary file in the tree: new bytes are written to it, and it is then renamed. */
const TEMPORARY = '.skillserve-new'

export interface OutputFile {
  /** Path below the folder, with `/` between segments. */
  readonly path: string
  /** `sha256:<hex>` of the bytes. */
  readonly digest: string
  /** In bytes. */
  readonly size: number
  readonly chunks: () => AsyncIterable<Uint8Array> | Iterable<Uint8Array>
}

interface TreeOptions {
  /** Folders in the tree that belong to the export: files that are no longer part of it are removed. */
  readonly owned: readonly string[]
  /** Whether a file may stay although it is no longer part of the tree. */
  readonly mayStay: (path: string) => boolean
}

/** Returns the names of the direct children of a folder, without the temporary file of a killed export. */
export async function namesIn (folder: string): Promise<string[]> {
  return (await readdir(folder).catch(nothingThere)).filter((name) => name !== TEMPORARY)
}

/**
 * Writes these files into a folder in the given order, indexes last, and removes files of earlier exports. A file with
 * the same bytes is not touched, so that tools which compare times upload nothing again.
 */
export async function writeTree (
  folder: string, files: readonly OutputFile[], { owned, mayStay }: TreeOptions
): Promise<{ readonly written: number, readonly removed: number }> {
  const present = new Set(files.map(({ path }) => path))
  const existing = (await Promise.all(owned.map((name) => filesBelow(folder, name)))).flat()
  const stale = existing.filter((path) => !present.has(path) && !mayStay(path))
  const folders = new Set([...present].flatMap(foldersAbove))
  // Old files whose path is a folder in the new tree, or that lie below a path which is now a file.
  const inTheWay = stale.filter((path) => folders.has(path) || foldersAbove(path).some((each) => present.has(each)))
  for (const path of inTheWay) await removeFile(folder, path)
  const temporary = join(folder, TEMPORARY)
  let written = 0
  try {
    for (const { path, digest, size, chunks } of files) {
      const target = join(folder, path)
      if (await digestOf(target, size) !== digest) {
        await mkdir(dirname(target), { recursive: true })
        await writeFile(temporary, chunks())
        await rename(temporary, target)
        written++
      }
    }
  } finally {
    await rm(temporary, { force: true })
  }
  for (const path of stale) if (!inTheWay.includes(path)) await removeFile(folder, path)
  return { written, removed: stale.length }
}

async function filesBelow (folder: string, name: string): Promise<string[]> {
  const entries = await readdir(join(folder, name), { recursive: true, withFileTypes: true }).catch(nothingThere)
  return entries.filter((entry) => !entry.isDirectory())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll(sep, '/'))
}

/** Removes a file, and its parent folders that have become empty. */
async function removeFile (folder: string, path: string): Promise<void> {
  await rm(join(folder, path))
  for (const above of foldersAbove(path).reverse()) {
    try {
      await rmdir(join(folder, above))
    } catch {
      return
    }
  }
}

/** Computes the digest of a file; returns undefined if there is no file of this size. */
async function digestOf (path: string, size: number): Promise<string | undefined> {
  const hash = createHash('sha256')
  try {
    if ((await stat(path)).size !== size) return undefined
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
