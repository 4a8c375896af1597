import type { Dirent } from 'node:fs'
import type { Disk } from './disk.ts'

/**
 * Node shows bytes that are not UTF-8 as U+FFFD. A name with that character is therefore either really called so, or
 * cannot be opened by its string: only the bytes tell.
 */
export async function withoutInvalidUtf8 (disk: Disk, folder: string, entries: Dirent[]): Promise<Dirent[]> {
  if (!entries.some(({ name }) => name.includes('\uFFFD'))) return entries
  const valid = new Set<string>()
  for (const bytes of await disk.readdirBytes(folder)) {
    const name = bytes.toString('utf8')
    if (Buffer.from(name).equals(bytes)) valid.add(name)
  }
  return entries.filter(({ name }) => valid.has(name))
}
