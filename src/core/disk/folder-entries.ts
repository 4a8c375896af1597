import type { Dirent } from 'node:fs'
import type { Disk } from './disk.ts'

/** Size of a folder, in bytes, from which it is read in pieces. On ext4 that is one of some 30,000 entries, which take 30 ms at once. */
export const LARGE_FOLDER_BYTES = 1_048_576

/** Entries of a folder. */
interface FolderPiece {
  readonly entries: readonly Dirent[]
  /** Names that are not UTF-8, with U+FFFD for what is not: nothing can be opened by them. */
  readonly unnameable: readonly string[]
}

/**
 * The entries of a folder: of a small one all together, of a large one in pieces. The caller may let others run between two
 * pieces.
 * @param size of the folder, in bytes
 */
export async function * entriesIn (disk: Disk, folder: string, size: bigint): AsyncGenerator<FolderPiece> {
  if (size <= LARGE_FOLDER_BYTES) {
    const entries = await disk.readdir(folder)
    yield hasReplacement(entries) ? await compareBytes(disk, folder, entries) : { entries, unnameable: [] }
    return
  }
  const taken = new Set<string>()
  const reader = await disk.opendir(folder)
  try {
    for (let entries = await reader.read(); entries.length > 0; entries = await reader.read()) {
      yield hasReplacement(entries) ? await compareTypes(disk, folder, entries, taken) : { entries, unnameable: [] }
    }
  } finally {
    await reader.close()
  }
}

/** Node shows bytes that are not UTF-8 as U+FFFD. A name with that character is either really called so, or no name to open. */
function hasReplacement (entries: readonly Dirent[]): boolean {
  return entries.some(({ name }) => name.includes('\uFFFD'))
}

/** Only the bytes tell for sure. */
async function compareBytes (disk: Disk, folder: string, entries: readonly Dirent[]): Promise<FolderPiece> {
  const valid = new Set<string>()
  for (const bytes of await disk.readdirBytes(folder)) {
    const name = bytes.toString('utf8')
    if (Buffer.from(name).equals(bytes)) valid.add(name)
  }
  const named = split(entries, ({ name }) => valid.has(name))
  if (new Set(named.entries.map(({ name }) => name)).size === named.entries.length) return named
  const distinct = await compareTypes(disk, folder, named.entries, new Set())
  return { entries: distinct.entries, unnameable: [...named.unnameable, ...distinct.unnameable] }
}

/**
 * Of a large folder the bytes of all names would be too many. If `lstat` finds an entry of the same type under the decoded name, the
 * name is real. Of several names that are decoded alike, only one is.
 * @param taken names that are real, in earlier pieces too
 */
async function compareTypes (disk: Disk, folder: string, entries: readonly Dirent[], taken: Set<string>): Promise<FolderPiece> {
  const valid = new Set<Dirent>()
  for (const entry of entries) {
    const stats = entry.name.includes('\uFFFD') ? await disk.lstat(`${folder}/${entry.name}`) : undefined
    const isThere = stats !== undefined && stats.isDirectory() === entry.isDirectory() && stats.isSymbolicLink() === entry.isSymbolicLink()
    if (!entry.name.includes('\uFFFD')) valid.add(entry)
    else if (isThere && !taken.has(entry.name)) {
      taken.add(entry.name)
      valid.add(entry)
    }
  }
  return split(entries, (entry) => valid.has(entry))
}

function split (entries: readonly Dirent[], isValid: (entry: Dirent) => boolean): FolderPiece {
  return { entries: entries.filter(isValid), unnameable: entries.filter((entry) => !isValid(entry)).map(({ name }) => name) }
}
