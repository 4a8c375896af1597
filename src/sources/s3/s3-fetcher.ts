import { createHash } from 'node:crypto'
import pLimit from 'p-limit'
import type { Environment } from '../../config/setting.ts'
import type { LeftOut } from '../../core/layout/layout.ts'
import { MAX_FILE_BYTES, MAX_NAME_BYTES } from '../../core/shared/limits.ts'
import { foldersAbove } from '../../core/shared/paths.ts'
import type { Fetcher } from '../fetcher.ts'
import { pathProblem, type SourceEntry } from '../publish/source-tree.ts'
import { AddressError, SourceError } from '../source-error.ts'
import { Bucket } from './bucket.ts'
import type { StoredObject } from './listing.ts'
import type { S3Source } from './s3-source.ts'

const INTERVAL_MS = 300_000
const MAX_DOWNLOADS = 16

/**
 * Follows the objects below a prefix. A listing costs one request for 1,000 objects; only files of skills that changed
 * are fetched, each in the state that was listed. With a marker, one conditional request tells that nothing changed.
 */
export function createS3Fetcher (source: S3Source, env: Environment): Fetcher {
  return {
    intervalMs: INTERVAL_MS,
    async check () {
      const { auth, name } = source
      if (auth === undefined || auth.username !== undefined) return undefined
      throw new AddressError(`the source ${name} needs auth.username: the id of the access key`)
    },
    async fetch ({ known, signal }) {
      const bucket = await Bucket.open(source, env, signal)
      const prefix = source.prefixPath === '' ? '' : `${source.prefixPath}/`
      const markerKey = source.marker === undefined ? undefined : prefix + source.marker
      const marker = markerKey === undefined ? undefined : await bucket.changedTag(markerKey, known?.['marker'])
      if (markerKey !== undefined && marker === undefined) return undefined
      const objects = (await bucket.list(prefix)).filter(({ key }) => key !== markerKey)
      const revision = revisionOf(objects)
      if (known?.['revision'] === revision && known['marker'] === marker) return undefined
      const { entries, leftOut, byPath } = toEntries(objects, prefix.length)
      const objectOf = ({ path }: SourceEntry): StoredObject => {
        const object = byPath.get(path)
        if (object === undefined) throw new SourceError('internal', 'an object was not listed')
        return object
      }
      return {
        revision,
        memory: { revision, ...marker !== undefined && { marker } },
        path: '',
        leftOut,
        // A listing may be half of a state, during an upload, or cut by a service: all of it must still be there.
        async confirm () {
          const isStill = markerKey === undefined
            ? revisionOf(await bucket.list(prefix)) === revision
            : await bucket.changedTag(markerKey, marker) === undefined
          if (!isStill) throw new SourceError('changing', 'the bucket changed while it was read')
        },
        files: {
          entries,
          async write (files, signal) {
            const inTurn = pLimit(MAX_DOWNLOADS)
            await inTurn.map(files, async ({ entry, path }) => {
              signal.throwIfAborted()
              await bucket.save(objectOf(entry), path)
            })
          },
          read: (entry) => bucket.read(objectOf(entry))
        }
      }
    }
  }
}

/** The same for the same listing, on each replica. */
function revisionOf (objects: readonly StoredObject[]): string {
  const hash = createHash('sha256')
  for (const { key, etag, size } of objects) hash.update(`${key}\0${etag}\0${size}\0`)
  return `sha256:${hash.digest('hex')}`
}

/** Keys are any text, of any size: those that no file system holds, and objects that are too large, are left out. */
function toEntries (objects: readonly StoredObject[], prefixLength: number) {
  const leftOut: LeftOut[] = []
  const byPath = new Map<string, StoredObject>()
  for (const object of objects) {
    const path = object.key.slice(prefixLength)
    // A marker for an empty folder.
    if (path === '' || (path.endsWith('/') && object.size === 0)) continue
    const isLong = path.split('/').some((segment) => Buffer.byteLength(segment) > MAX_NAME_BYTES)
    if (isLong || pathProblem(path) !== undefined) leftOut.push({ path: object.key, reason: 'unsafe_name' })
    else if (object.size > MAX_FILE_BYTES) leftOut.push({ path: object.key, reason: 'bound_reached' })
    else byPath.set(path, object)
  }
  const folders = new Set([...byPath.keys()].flatMap(foldersAbove))
  const entries: SourceEntry[] = []
  for (const [path, { etag, size }] of byPath) {
    if (folders.has(path)) leftOut.push({ path, reason: 'unsafe_name' })
    else entries.push({ path, kind: 'file', id: `${etag}-${size}`, size })
  }
  return { entries, leftOut, byPath }
}
