import type { Dirent } from 'node:fs'
import { createSlicer } from '../async.ts'
import { withoutInvalidUtf8 } from './utf8-names.ts'
import type { Disk } from './disk.ts'
import { isHiddenFile, isHiddenPath } from './relative-path.ts'
import { placeOf, signatureAt } from './observed.ts'
import { signatureOf } from './signature.ts'
import { asRefused, RefusedError } from './open-inside.ts'
import type { Signature } from '../skill.ts'

/** A walk through a skill: what it looked at, and the prefixes of the folders that it came through, '' first. */
export interface Walk {
  readonly base: string
  readonly seen: Map<string, Signature | undefined>
  readonly folders: string[]
  readonly signal: AbortSignal | undefined
}

/** @param signal ends it, with an error */
export function startWalk (base: string, signal?: AbortSignal): Walk {
  return { base, seen: new Map(), folders: [''], signal }
}

/** Files and links of a skill, hidden ones left out. */
export async function * entriesOf (disk: Disk, { base, seen, folders, signal }: Walk): AsyncGenerator<{ readonly path: string, readonly entry: Dirent }> {
  const yieldIfNeeded = createSlicer()
  for (const prefix of folders) {
    for (const entry of await listFolder(disk, base, prefix, seen)) {
      const path = prefix + entry.name
      if (isHiddenPath([entry.name])) continue
      if (entry.isDirectory()) folders.push(`${path}/`)
      else if (!isHiddenFile(entry.name) && (entry.isFile() || entry.isSymbolicLink())) yield { path, entry }
      await yieldIfNeeded()
      signal?.throwIfAborted()
    }
  }
}

/** Sees what a manifest would be made from, and opens nothing. */
export async function lookThrough (disk: Disk, base: string): Promise<Walk> {
  const walk = startWalk(base)
  for await (const { path } of entriesOf(disk, walk)) walk.seen.set(path, await signatureAt(disk, placeOf(base, path)))
  return walk
}

export function insideOf ({ base, folders }: Walk): readonly string[] {
  return folders.slice(1).map((prefix) => placeOf(base, prefix.slice(0, -1)))
}

async function listFolder (disk: Disk, base: string, prefix: string, seen: Map<string, Signature | undefined>): Promise<readonly Dirent[]> {
  const path = prefix.slice(0, -1)
  const place = placeOf(base, path)
  let signature: Signature | undefined
  try {
    const stats = await disk.stat(place)
    signature = stats && signatureOf(stats)
    if (signature === undefined) throw new RefusedError('not_found')
    return await withoutInvalidUtf8(disk, place, await disk.readdir(place))
  } catch (error) {
    const refused = asRefused(error)
    // A folder inside that is not there or may not be read has no files; the skill's own folder has to be there.
    if (prefix === '' || refused.refusal === 'io_error') throw refused
    // It was there a moment ago, and may be back by the time that everything is seen again.
    if (signature !== undefined && refused.refusal === 'not_found') throw new RefusedError('io_error', refused)
    return []
  } finally {
    seen.set(path, signature)
  }
}
