import type { Dirent } from 'node:fs'
import { createSlicer } from '../async.ts'
import type { Signature } from '../skill.ts'
import type { Disk } from './disk.ts'
import { pathBelow, signatureAt } from './observed.ts'
import { asRefused, changed, RefusedError } from './refused.ts'
import { isHiddenFile, isHiddenPath } from './relative-path.ts'
import { signatureOf } from './signature.ts'
import { withoutInvalidUtf8 } from './utf8-names.ts'

/** A walk through a skill: the states it observed, and the prefixes of the folders that it passed, '' first. */
export interface Walk {
  readonly base: string
  readonly observed: Map<string, Signature | undefined>
  readonly folders: string[]
  readonly signal: AbortSignal | undefined
}

/** @param signal ends it, with an error */
export function startWalk (base: string, signal?: AbortSignal): Walk {
  return { base, observed: new Map(), folders: [''], signal }
}

/** Files and links of a skill, hidden ones left out. */
export async function * entriesOf (disk: Disk, { base, observed, folders, signal }: Walk): AsyncGenerator<{ readonly path: string, readonly entry: Dirent }> {
  const yieldIfNeeded = createSlicer()
  for (const prefix of folders) {
    for (const entry of await listFolder(disk, base, prefix, observed)) {
      const path = prefix + entry.name
      if (isHiddenPath([entry.name])) continue
      if (entry.isDirectory()) folders.push(`${path}/`)
      else if (!isHiddenFile(entry.name) && (entry.isFile() || entry.isSymbolicLink())) yield { path, entry }
      await yieldIfNeeded()
      signal?.throwIfAborted()
    }
  }
}

/** Observes what a manifest would be made from, and opens nothing. */
export async function observeAll (disk: Disk, base: string, signal?: AbortSignal): Promise<Walk> {
  const walk = startWalk(base, signal)
  for await (const { path } of entriesOf(disk, walk)) walk.observed.set(path, await signatureAt(disk, pathBelow(base, path)))
  return walk
}

/** Real paths of the folders below the skill's own. */
export function foldersInside ({ base, folders }: Walk): readonly string[] {
  return folders.slice(1).map((prefix) => pathBelow(base, prefix.slice(0, -1)))
}

async function listFolder (disk: Disk, base: string, prefix: string, observed: Map<string, Signature | undefined>): Promise<readonly Dirent[]> {
  const path = prefix.slice(0, -1)
  const folder = pathBelow(base, path)
  let signature: Signature | undefined
  try {
    const stats = await disk.stat(folder)
    signature = stats && signatureOf(stats)
    if (signature === undefined) throw new RefusedError('not_found')
    return await withoutInvalidUtf8(disk, folder, await disk.readdir(folder))
  } catch (error) {
    const refused = asRefused(error)
    // A folder inside that is not there or may not be read has no files; the skill's own folder has to be there.
    if (prefix === '' || refused.refusal === 'io_error') throw refused
    // It was there a moment ago, and may be back when everything is compared again.
    if (signature !== undefined && refused.refusal === 'not_found') throw changed('a folder went away while it was listed')
    return []
  } finally {
    observed.set(path, signature)
  }
}
