import { randomUUID } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isMainFile } from '../../core/format/main-files.ts'
import { findSkills } from '../../core/layout/find-skills.ts'
import type { FoundSkill, FoundSkills, LayoutOptions, LayoutTree, LeftOut } from '../../core/layout/layout.ts'
import { PACKAGE } from '../../core/layout/walk-tree.ts'
import { MAX_FILE_BYTES, MAX_PUBLISHED_BYTES } from '../../core/shared/limits.ts'
import { baseName, folderOf } from '../../core/shared/paths.ts'
import { unpackArchive, withoutTopFolder } from '../archive/unpack.ts'
import { SourceError } from '../source-error.ts'
import { isUnwritable } from './plan.ts'
import { checkEntries, MAX_ENTRIES, type SourceEntry, SourceTree, storedFiles } from './source-tree.ts'

const MAX_PACKAGES = 1_000

/** What packages hold, in folders next to them: `a.skill` as `a/`. */
interface UnpackedPackages {
  readonly entries: readonly SourceEntry[]
  readonly leftOut: readonly LeftOut[]
}

/** Skills in packages. */
interface PackagedSkills {
  readonly skills: readonly FoundSkill[]
  readonly tree: SourceTree
  readonly leftOut: readonly LeftOut[]
}

/**
 * The skills of the packages that a search has found. Of two skills with one name, the one that is not packed counts.
 * @param tmp packages with a skill are unpacked into it, and stay there
 */
export async function findPackaged (
  tree: LayoutTree, found: FoundSkills, options: LayoutOptions, tmp: string, signal: AbortSignal
): Promise<PackagedSkills> {
  const { entries, leftOut } = await unpackPackages(tree, found.packages, tmp, signal)
  const packages = new SourceTree(storedFiles(entries))
  const inside = await findSkills(packages, { ...options, layout: 'tree' })
  const paths = new Map(found.skills.map(({ name, path }) => [name, path]))
  const shadowed = inside.skills.flatMap(({ name, path }): LeftOut[] => {
    const by = paths.get(name)
    return by === undefined ? [] : [{ path, reason: 'shadowed', by }]
  })
  const skills = inside.skills.filter(({ name }) => !paths.has(name))
  return { skills, tree: packages, leftOut: [...leftOut, ...inside.leftOut, ...shadowed] }
}

/**
 * Those without a skill are left out silently: an archive may be anything. One that cannot be published costs nothing
 * but itself.
 */
async function unpackPackages (
  tree: LayoutTree, paths: readonly string[], tmp: string, signal: AbortSignal
): Promise<UnpackedPackages> {
  const leftOut: LeftOut[] = paths.slice(MAX_PACKAGES).map((path) => ({ path, reason: 'bound_reached' }))
  const entries: SourceEntry[] = []
  const packageOf = new Map<string, string>()
  let bytes = 0
  for (const path of paths.slice(0, MAX_PACKAGES)) {
    const folder = path.replace(PACKAGE, '')
    const tmpFolder = join(tmp, `package-${randomUUID()}`)
    const content = await tree.read(path, MAX_FILE_BYTES)
    const inner = content && await unpackIfGood(content, tmpFolder, signal)
    // Of the others, one may unpack to a gigabyte.
    const leaveOut = async (item?: LeftOut): Promise<void> => {
      if (item !== undefined) leftOut.push(item)
      await rm(tmpFolder, { recursive: true, force: true })
    }
    if (inner?.some((entry) => isMainFile(entry.path)) === false) {
      await leaveOut()
      continue
    }
    const placed = inner?.map((entry) => ({ ...entry, path: `${folder}/${entry.path}` })) ?? []
    const size = placed.reduce((sum, entry) => sum + entry.size, 0)
    const isTaken = (await tree.entries(folderOf(path))).some(({ name }) => name === baseName(folder))
    const by = isTaken ? folder : packageOf.get(folder)
    if (inner === undefined || !isPublishable(placed)) await leaveOut({ path, reason: 'bad_package' })
    else if (by !== undefined) await leaveOut({ path, reason: 'shadowed', by })
    else if (bytes + size > MAX_PUBLISHED_BYTES || entries.length + placed.length > MAX_ENTRIES) {
      await leaveOut({ path, reason: 'bound_reached' })
    } else {
      bytes += size
      packageOf.set(folder, path)
      entries.push(...placed)
    }
  }
  return { entries, leftOut }
}

/** Undefined for what cannot be unpacked. */
async function unpackIfGood (
  bytes: Buffer, folder: string, signal: AbortSignal
): Promise<readonly SourceEntry[] | undefined> {
  await mkdir(folder)
  const archive = join(folder, 'package')
  await writeFile(archive, bytes, { flag: 'wx' })
  try {
    return withoutTopFolder(await unpackArchive(archive, join(folder, 'files'), signal))
  } catch (error) {
    if (error instanceof SourceError && (error.code === 'bad_archive' || error.code === 'too_large')) return undefined
    throw error
  } finally {
    await rm(archive, { force: true })
  }
}

function isPublishable (entries: readonly SourceEntry[]): boolean {
  try {
    checkEntries(entries, 'the package')
    return !entries.some((entry) => isUnwritable({ path: entry.path, entry }))
  } catch {
    return false
  }
}
