import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { foldersAbove } from '../core/shared/paths.ts'
import { errorCode } from '../core/shared/system-errors.ts'

/** New bytes are written to this file of the tree, and renamed from there. */
const TEMPORARY = '.skillserve-new'

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

interface TreeOptions {
  /** Folders of the tree in which files that are not in it any more are removed. */
  readonly owned: readonly string[]
  /** Whether a file that is not in the tree any more stays. */
  readonly mayStay: (path: string) => boolean
}

/** Names of what is directly in a folder, without what an export that was killed has left. */
export async function namesIn (folder: string): Promise<string[]> {
  return (await readdir(folder).catch(nothingThere)).filter((name) => name !== TEMPORARY)
}

/** The text of a file; empty when it cannot be read. */
export async function readText (path: string): Promise<string> {
  return await readFile(path, 'utf8').catch(() => '')
}

/**
 * Makes a folder hold these files, in the given order: what lists others comes last. A file with the same bytes is not
 * touched, so that tools which compare times upload nothing again.
 */
export async function writeTree (
  folder: string, files: readonly OutputFile[], { owned, mayStay }: TreeOptions
): Promise<{ readonly written: number, readonly removed: number }> {
  const present = new Set(files.map(({ path }) => path))
  const existing = (await Promise.all(owned.map((name) => filesBelow(folder, name)))).flat()
  const stale = existing.filter((path) => !present.has(path) && !mayStay(path))
  const folders = new Set([...present].flatMap(foldersAbove))
  // Files where the new tree has a folder, and files below what is a file in the new tree.
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

/** Removes a file, and the folders that are empty then. */
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

/** The digest of a file of this size; undefined when there is none. */
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
