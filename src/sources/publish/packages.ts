import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isMainFile } from '../../core/format/main-files.ts'
import { findSkills } from '../../layout/find-skills.ts'
import type { FoundSkills, LayoutTree, LeftOut } from '../../layout/layout.ts'
import { PACKAGE } from '../../layout/walk-tree.ts'
import { MAX_FILE_BYTES, MAX_PUBLISHED_BYTES } from '../../core/shared/limits.ts'
import { SourceError, type SourceErrorCode } from '../source-error.ts'
import { planOf, type PlanOptions } from './plan.ts'
import { checkEntries, MAX_ENTRIES, type SourceEntry, SourceTree, storedFiles } from './source-tree.ts'

const MAX_PACKAGES = 1_000

/** Errors that concern a single package, which is then skipped. */
const PACKAGE_FAILURES: ReadonlySet<SourceErrorCode> = new Set(['bad_archive', 'too_large', 'refused_tree'])

/**
 * Unpacks the packages that a search has found. Of two skills with one name, the one that is not packed counts. A
 * package is a folder next to it: `a.skill` is `a/`. Those without a skill are left out silently.
 * @param tmp packages with a skill are unpacked into it, and stay there
 */
export async function findPackaged (
  tree: LayoutTree, found: FoundSkills, options: PlanOptions, tmp: string, signal: AbortSignal
) {
  const leftOut: LeftOut[] = found.packages.slice(MAX_PACKAGES).map((path) => ({ path, reason: 'bound_reached' }))
  const entries: SourceEntry[] = []
  const packageOf = new Map<string, string>()
  let bytes = 0
  for (const path of found.packages.slice(0, MAX_PACKAGES)) {
    const folder = path.replace(PACKAGE, '')
    const by = packageOf.get(folder)
    const unpackedInto = await mkdtemp(join(tmp, 'package-'))
    const content = await tree.read(path, MAX_FILE_BYTES)
    const inner = content && await unpackIfGood(content, folder, unpackedInto, signal)
    const size = inner?.reduce((sum, entry) => sum + entry.size, 0) ?? 0
    const isSkill = inner?.some((entry) => isMainFile(entry.path.slice(folder.length + 1))) === true
    const isTooMuch = bytes + size > MAX_PUBLISHED_BYTES || entries.length + (inner?.length ?? 0) > MAX_ENTRIES
    if (inner === undefined) leftOut.push({ path, reason: 'bad_package' })
    else if (isSkill && by !== undefined) leftOut.push({ path, reason: 'shadowed', by })
    else if (isSkill && isTooMuch) leftOut.push({ path, reason: 'bound_reached' })
    else if (isSkill) {
      bytes += size
      packageOf.set(folder, path)
      entries.push(...inner)
      continue
    }
    // A skipped package may have unpacked to a gigabyte.
    await rm(unpackedInto, { recursive: true, force: true })
  }
  const files = storedFiles(entries)
  const packages = new SourceTree(files)
  const inside = await findSkills(packages, { ...options, layout: 'tree' })
  const paths = new Map(found.skills.map(({ name, path }) => [name, path]))
  for (const { name, path } of inside.skills) {
    const by = paths.get(name)
    if (by !== undefined) leftOut.push({ path, reason: 'shadowed', by })
  }
  const skills = await planOf(packages, inside.skills.filter(({ name }) => !paths.has(name)), options)
  return { skills, read: files.read, leftOut: [...leftOut, ...inside.leftOut] }
}

/**
 * Unpacks a package: its files, as if they lay in a folder. Returns undefined for what cannot be unpacked or published.
 * @param tmp an empty folder for them
 */
async function unpackIfGood (
  bytes: Buffer, folder: string, tmp: string, signal: AbortSignal
): Promise<readonly SourceEntry[] | undefined> {
  const { unpackArchive, withoutTopFolder } = await import('../archive/unpack.ts')
  const archive = join(tmp, 'package')
  await writeFile(archive, bytes)
  try {
    const unpacked = withoutTopFolder(await unpackArchive(archive, join(tmp, 'files'), signal))
    const entries = unpacked.map((entry) => ({ ...entry, path: `${folder}/${entry.path}` }))
    checkEntries(entries, 'the package', true)
    return entries
  } catch (error) {
    if (error instanceof SourceError && PACKAGE_FAILURES.has(error.code)) return undefined
    throw error
  } finally {
    await rm(archive, { force: true })
  }
}
