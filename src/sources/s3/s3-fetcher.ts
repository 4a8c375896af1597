import { createHash } from 'node:crypto'
import type { Environment } from '../../config/setting.ts'
import type { LeftOut } from '../../core/layout/layout.ts'
import { yieldIfNeeded } from '../../core/shared/async.ts'
import type { Fetched, Fetcher, FetchOptions } from '../fetcher.ts'
import { MAX_FILE_BYTES, MAX_NAME_BYTES } from '../../core/shared/limits.ts'
import { AddressError, SourceError } from '../source-error.ts'
import type { S3Source } from './s3-source.ts'
import { pathProblem, type SourceEntry } from '../publish/source-tree.ts'
import { Bucket } from './bucket.ts'
import type { StoredObject } from './listing.ts'
import { foldersAbove } from '../../core/shared/paths.ts'

const INTERVAL_MS = 300_000
const MAX_DOWNLOADS = 16

/**
 * Follows the objects below a prefix. A listing costs one request for 1,000 objects; only files of skills that changed are fetched,
 * each in the state that was listed. With a marker, one conditional request shows that nothing changed.
 */
export function createS3Fetcher (source: S3Source, env: Environment): Fetcher {
  return {
    intervalMs: INTERVAL_MS,
    async check () {
      const { auth, name } = source
      if (auth !== undefined && auth.username === undefined) throw new AddressError(`the source ${name} needs auth.username: the id of the access key`)
      return undefined
    },
    async fetch ({ known, signal }: FetchOptions): Promise<Fetched | undefined> {
      const bucket = await Bucket.open(source, env, signal)
      const prefix = source.prefixPath === '' ? '' : `${source.prefixPath}/`
      const markerKey = source.marker === undefined ? undefined : prefix + source.marker
      const marker = markerKey === undefined ? undefined : await bucket.changedTag(markerKey, known?.['marker'])
      if (markerKey !== undefined && marker === undefined) return undefined
      const objects = (await bucket.list(prefix)).filter(({ key }) => key !== markerKey)
      const revision = await revisionOf(objects)
      if (known?.['revision'] === revision && known['marker'] === marker) return undefined
      const { entries, leftOut, byPath } = await toEntries(objects, prefix.length)
      return {
        revision,
        memory: { revision, ...marker !== undefined && { marker } },
        path: '',
        leftOut,
        // A listing may be half of a state, during an upload, or cut by a service: everything listed must still be there afterwards.
        async confirm () {
          const isStill = markerKey === undefined ? await revisionOf(await bucket.list(prefix)) === revision : await bucket.changedTag(markerKey, marker) === undefined
          if (!isStill) throw new SourceError('changing', 'the bucket changed while it was read')
        },
        files: {
          entries,
          async write (files, signal) {
            await forEachLimited(files, async ({ entry, path }) => {
              signal.throwIfAborted()
              await bucket.save(objectOf(byPath, entry), path)
            })
          },
          read: (entry) => bucket.read(objectOf(byPath, entry))
        }
      }
    }
  }
}

function objectOf (byPath: ReadonlyMap<string, StoredObject>, { path }: SourceEntry): StoredObject {
  const object = byPath.get(path)
  if (object === undefined) throw new SourceError('internal', 'an object was not listed')
  return object
}

/** The revision of a listing, equal on each replica. */
async function revisionOf (objects: readonly StoredObject[]): Promise<string> {
  const hash = createHash('sha256')
  for (const { key, etag, size } of objects) {
    hash.update(`${key}\0${etag}\0${size}\0`)
    await yieldIfNeeded()
  }
  return `sha256:${hash.digest('hex')}`
}

/** Keys are any text, of any size: those that no file system holds, and objects that are too large, are left out one by one. */
async function toEntries (objects: readonly StoredObject[], prefixLength: number): Promise<{ entries: SourceEntry[], leftOut: LeftOut[], byPath: Map<string, StoredObject> }> {
  const leftOut: LeftOut[] = []
  const byPath = new Map<string, StoredObject>()
  const folders = new Set<string>()
  for (const object of objects) {
    await yieldIfNeeded()
    const path = object.key.slice(prefixLength)
    // A marker for an empty folder.
    if (path === '' || (path.endsWith('/') && object.size === 0)) continue
    const isUsable = pathProblem(path) === undefined && !path.split('/').some((segment) => Buffer.byteLength(segment) > MAX_NAME_BYTES)
    if (!isUsable || object.size > MAX_FILE_BYTES) {
      leftOut.push({ path: object.key, reason: isUsable ? 'bound_reached' : 'unsafe_name' })
      continue
    }
    byPath.set(path, object)
    for (const folder of foldersAbove(path)) folders.add(folder)
  }
  const entries: SourceEntry[] = []
  for (const [path, { etag, size }] of byPath) {
    await yieldIfNeeded()
    if (folders.has(path)) leftOut.push({ path, reason: 'unsafe_name' })
    else entries.push({ path, kind: 'file', id: `${etag}-${size}`, size })
  }
  return { entries, leftOut, byPath }
}

async function forEachLimited<T> (items: Iterable<T>, use: (item: T) => Promise<void>): Promise<void> {
  const rest = items[Symbol.iterator]()
  await Promise.all(Array.from({ length: MAX_DOWNLOADS }, async () => {
    for (let next = rest.next(); next.done !== true; next = rest.next()) await use(next.value)
  }))
}
