import type { Disk } from '../disk/disk.ts'
import { isSafeName } from '../ground/skill-name.ts'

/** The file in a listed root that names its skills. It is only ever replaced, by a rename. */
export const LISTING_FILE = 'skills.json'

/** The text of a listing: folders of skills by name, each relative to the root and never changed once it is named. */
export function listingText (folders: ReadonlyMap<string, string>): string {
  return `${JSON.stringify({ skills: Object.fromEntries(folders) })}\n`
}

/**
 * The folders that a listing names, by skill. Consumers: roots of sources, which exchange thousands of skills in one rename.
 * Skills that did not change keep folder, inode and index entry: after one change among 10,000 skills one skill is read.
 * @throws when the file is missing, or is no listing
 */
export async function readListing (disk: Disk, root: string): Promise<ReadonlyMap<string, string>> {
  const listing: unknown = JSON.parse(await readText(disk, `${root}/${LISTING_FILE}`))
  const skills = typeof listing === 'object' && listing !== null && 'skills' in listing ? listing.skills : undefined
  if (typeof skills !== 'object' || skills === null) throw new Error(`${LISTING_FILE} is no listing`)
  const folders = new Map<string, string>()
  for (const [name, path] of Object.entries(skills)) if (isSafeName(name) && typeof path === 'string') folders.set(name, path)
  return folders
}

async function readText (disk: Disk, path: string): Promise<string> {
  const descriptor = await disk.open(path, 0)
  try {
    const { size } = await disk.fstat(descriptor)
    const buffer = Buffer.alloc(Number(size))
    let length = 0
    for (let count = -1; count !== 0 && length < buffer.length; length += count) count = await disk.read(descriptor, buffer, length, buffer.length - length, length)
    return buffer.toString('utf8', 0, length)
  } finally {
    await disk.close(descriptor)
  }
}
