import type { Dirent } from 'node:fs'
import { LARGE_FOLDER_BYTES } from '../ground/limits.ts'
import type { Disk } from './disk.ts'

/** Entries of a folder. */
export interface FolderPiece {
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
    yield hasReplacement(entries) ? compareBytes(entries, await disk.readdirBytes(folder)) : { entries, unnameable: [] }
    return
  }
  const reader = await disk.opendir(folder)
  try {
    for (let entries = await reader.read(); entries.length > 0; entries = await reader.read()) {
      yield hasReplacement(entries) ? await compareTypes(disk, folder, entries) : { entries, unnameable: [] }
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
function compareBytes (entries: readonly Dirent[], names: readonly Buffer[]): FolderPiece {
  const valid = new Set<string>()
  for (const bytes of names) {
    const name = bytes.toString('utf8')
    if (Buffer.from(name).equals(bytes)) valid.add(name)
  }
  return split(entries, ({ name }) => valid.has(name))
}

/** Of a large folder the bytes of all names would be too many. If `lstat` finds an entry of the same type under the decoded name, the name is real. */
async function compareTypes (disk: Disk, folder: string, entries: readonly Dirent[]): Promise<FolderPiece> {
  const valid = new Set<Dirent>()
  for (const entry of entries) {
    const stats = entry.name.includes('\uFFFD') ? await disk.lstat(`${folder}/${entry.name}`) : undefined
    const isThere = stats !== undefined && stats.isDirectory() === entry.isDirectory() && stats.isSymbolicLink() === entry.isSymbolicLink()
    if (isThere || !entry.name.includes('\uFFFD')) valid.add(entry)
  }
  return split(entries, (entry) => valid.has(entry))
}

function split (entries: readonly Dirent[], isValid: (entry: Dirent) => boolean): FolderPiece {
  return { entries: entries.filter(isValid), unnameable: entries.filter((entry) => !isValid(entry)).map(({ name }) => name) }
}
