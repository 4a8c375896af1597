import { randomUUID } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createUnpackedFiles } from '../archive/unpacked-files.ts'
import { unpackArchive } from '../archive/unpack.ts'
import { isMainFile } from '../../core/format/main-files.ts'
import type { LeftOut } from '../../core/layout/layout.ts'
import { RefusedError } from '../../core/read/refused.ts'
import { PACKAGE } from '../../core/layout/walk-tree.ts'
import { SourceError } from '../source-error.ts'
import { MAX_FILE_BYTES, MAX_PUBLISHED_BYTES } from './limits.ts'
import { isUnwritable } from './plan.ts'
import { checkEntries, MAX_ENTRIES, type SourceEntry, type SourceFiles } from './source-tree.ts'
import { baseName, foldersAbove, folderOf } from '../../core/shared/paths.ts'

const MAX_PACKAGES = 1_000

interface ExpandedFiles {
  readonly files: SourceFiles
  readonly leftOut: readonly LeftOut[]
}

/**
 * The same files, and packages of skills as folders beside them: `a.skill` as `a/`. A package inside of a skill is a file of that
 * skill. One that cannot be unpacked is left out, and the rest of the source stays.
 */
export async function expandPackages (files: SourceFiles, tmp: string, signal: AbortSignal): Promise<ExpandedFiles> {
  const skills = new Set(files.entries.filter(({ path }) => isMainFile(baseName(path))).map(({ path }) => folderOf(path)))
  const packages = files.entries.filter(({ kind, path, size }) => kind === 'file' && size <= MAX_FILE_BYTES && PACKAGE.test(path) && !isBelow(path, skills))
  if (packages.length === 0) return { files, leftOut: [] }
  const folders = new Set(files.entries.flatMap(({ path }) => foldersAbove(path)))
  const { files: unpacked, leftOut } = await unpackPackages(
    packages.filter(({ path }) => !folders.has(folderOfPackage(path))).map((entry) => ({ path: entry.path, read: () => files.read(entry) })), new Set(files.entries.map(({ path }) => path)), tmp, signal)
  const inner = new Set(unpacked.entries)
  return {
    leftOut,
    files: {
      entries: [...files.entries, ...unpacked.entries],
      async write (wanted, signal) {
        const all = [...wanted]
        await unpacked.write(all.filter(({ entry }) => inner.has(entry)), signal)
        const own = all.filter(({ entry }) => !inner.has(entry))
        if (own.length > 0) await files.write(own, signal)
      },
      read: (entry) => (inner.has(entry) ? unpacked : files).read(entry)
    }
  }
}

/** A file that may be a package. */
interface PackageFile {
  readonly path: string
  /** Undefined when it cannot be read, or leads out of the source. */
  read (): Promise<Buffer | undefined>
}

/**
 * What packages hold, each in a folder of its name where the package lies. Those without a skill are left out silently: an
 * archive may be anything. One that cannot be published costs nothing but itself.
 * @param taken paths of files beside them
 * @param tmp those with a skill are unpacked into it, and stay there
 */
export async function unpackPackages (packages: readonly PackageFile[], taken: ReadonlySet<string>, tmp: string, signal: AbortSignal): Promise<ExpandedFiles> {
  const leftOut: LeftOut[] = packages.slice(MAX_PACKAGES).map(({ path }) => ({ path, reason: 'bound_reached' }))
  const owners = new Map<SourceEntry, readonly [owner: SourceFiles, entry: SourceEntry]>()
  const packageOf = new Map<string, string>()
  let bytes = 0
  const leaveOut = async (folder: string, item: LeftOut): Promise<void> => {
    leftOut.push(item)
    await remove(folder)
  }
  for (const { path, read } of packages.slice(0, MAX_PACKAGES)) {
    const content = await readIfStill(read)
    // Nothing is said of what lies outside of the source, and whether it is there.
    if (content === undefined) continue
    const folder = join(tmp, randomUUID())
    const unpacked = content === 'changed' ? undefined : await unpackIfGood(content, folder, signal)
    const skillFolder = folderOfPackage(path)
    const placed = unpacked?.entries.map((inner) => ({ ...inner, path: `${skillFolder}/${inner.path}` })) ?? []
    const size = placed.reduce((sum, { size }) => sum + size, 0)
    const by = packageOf.get(skillFolder)
    if (unpacked?.entries.some(({ path }) => isMainFile(path)) === false) await remove(folder)
    else if (unpacked === undefined || taken.has(skillFolder) || !await isPublishable(placed)) await leaveOut(folder, { path, reason: 'bad_package' })
    else if (by !== undefined) await leaveOut(folder, { path, reason: 'shadowed', by })
    else if (bytes + size > MAX_PUBLISHED_BYTES || taken.size + owners.size + placed.length > MAX_ENTRIES) await leaveOut(folder, { path, reason: 'bound_reached' })
    else {
      bytes += size
      packageOf.set(skillFolder, path)
      for (const [index, inner] of unpacked.entries.entries()) owners.set(placed[index] ?? inner, [unpacked, inner])
    }
  }
  const ownerOf = (entry: SourceEntry): readonly [owner: SourceFiles, entry: SourceEntry] => {
    const owner = owners.get(entry)
    if (owner === undefined) throw new SourceError('internal', 'a file of a package was not unpacked')
    return owner
  }
  return {
    leftOut,
    files: {
      entries: [...owners.keys()],
      async write (wanted, signal) {
        for (const { entry, path } of wanted) {
          const [owner, inner] = ownerOf(entry)
          await owner.write([{ entry: inner, path }], signal)
        }
      },
      read: async (entry) => {
        const [owner, inner] = ownerOf(entry)
        return await owner.read(inner)
      }
    }
  }
}

export function folderOfPackage (path: string): string {
  return path.replace(PACKAGE, '')
}

async function readIfStill (read: PackageFile['read']): Promise<Buffer | 'changed' | undefined> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof RefusedError) return 'changed'
    throw error
  }
}

/** Undefined for what is no archive. */
async function unpackIfGood (bytes: Buffer, folder: string, signal: AbortSignal): Promise<SourceFiles | undefined> {
  try {
    return await unpack(bytes, folder, signal)
  } catch (error) {
    if (error instanceof SourceError && (error.code === 'bad_archive' || error.code === 'too_large')) return undefined
    throw error
  }
}

async function isPublishable (entries: readonly SourceEntry[]): Promise<boolean> {
  try {
    await checkEntries(entries, 'the package')
    return !entries.some((entry) => isUnwritable({ path: entry.path, entry }))
  } catch {
    return false
  }
}

async function unpack (bytes: Buffer, folder: string, signal: AbortSignal): Promise<SourceFiles> {
  await mkdir(folder)
  const archive = join(folder, 'package')
  await writeFile(archive, bytes, { flag: 'wx' })
  const unpacked = await createUnpackedFiles(folder, signal)
  await unpackArchive(archive, unpacked, signal)
  await remove(archive)
  return unpacked.files(true)
}

/** What is not published takes no room: of a thousand packages, each may unpack to a gigabyte. */
async function remove (path: string): Promise<void> {
  await rm(path, { recursive: true, force: true })
}

/** A skill at the top is the top, and has all files: packages beside other skills count all the same. */
function isBelow (path: string, skills: ReadonlySet<string>): boolean {
  return foldersAbove(path).some((folder) => skills.has(folder))
}
