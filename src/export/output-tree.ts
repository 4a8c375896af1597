import { createHash, randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import pLimit from 'p-limit'
import { errorCode } from '../core/shared/system-errors.ts'

/** Files that are read or written at the same time. */
const CONCURRENCY = 16

/** New files are written below this folder of the tree, and renamed from there. */
const TEMPORARY = '.skillserve-'

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
  readonly onWritten?: (done: number) => void
}

/** Names of what is directly in a folder, without leftovers of an export that was killed. */
export async function namesIn (folder: string): Promise<string[]> {
  return (await readdir(folder).catch(nothingThere)).filter((name) => !name.startsWith(TEMPORARY))
}

/** The text of a file; empty when it cannot be read. */
export async function readText (path: string): Promise<string> {
  return await readFile(path, 'utf8').catch(() => '')
}

/**
 * Makes a folder hold these files. All new bytes are on the disk before the first file is replaced; then files take
 * their places in the given order. A file with the same bytes is not touched, so that tools which compare times upload
 * nothing again.
 */
export async function writeTree (
  folder: string, files: readonly OutputFile[], { owned, mayStay, onWritten }: TreeOptions
): Promise<{ readonly written: number, readonly removed: number }> {
  await mkdir(folder, { recursive: true })
  for (const name of await readdir(folder)) {
    if (name.startsWith(TEMPORARY)) await rm(join(folder, name), { recursive: true })
  }
  const temporary = join(folder, TEMPORARY + randomBytes(6).toString('hex'))
  await mkdir(temporary)
  try {
    let done = 0
    const isNew = await pLimit(CONCURRENCY).map(files, async ({ path, digest, size, chunks }, index) => {
      const isPresent = await digestOf(join(folder, path), size) === digest
      if (!isPresent) await writeFile(join(temporary, String(index)), chunks())
      onWritten?.(++done)
      return !isPresent
    })
    const present = new Set(files.map(({ path }) => path))
    const existing = (await Promise.all(owned.map((name) => filesBelow(folder, name)))).flat()
    const stale = existing.filter((path) => !present.has(path) && !mayStay(path))
    const inTheWay = conflicting(stale, present)
    for (const path of inTheWay) await removeFile(folder, path)
    for (const [index, { path }] of files.entries()) {
      if (isNew[index] !== true) continue
      await mkdir(dirname(join(folder, path)), { recursive: true })
      await rename(join(temporary, String(index)), join(folder, path))
    }
    for (const path of stale) if (!inTheWay.has(path)) await removeFile(folder, path)
    return { written: isNew.filter(Boolean).length, removed: stale.length }
  } finally {
    await rm(temporary, { recursive: true, force: true })
  }
}

/** Files where the new tree has a folder, and files below what is a file in the new tree. */
function conflicting (stale: readonly string[], present: ReadonlySet<string>): ReadonlySet<string> {
  const folders = new Set([...present].flatMap(foldersAbove))
  return new Set(stale.filter((path) => folders.has(path) || foldersAbove(path).some((each) => present.has(each))))
}

/** `a`, `a/b` for `a/b/c`. */
function foldersAbove (path: string): string[] {
  const segments = path.split('/').slice(0, -1)
  return segments.map((_, index) => segments.slice(0, index + 1).join('/'))
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
