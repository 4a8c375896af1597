import { createHash } from 'node:crypto'
import pLimit from 'p-limit'
import type { LeftOut } from '../../layout/layout.ts'
import { MAX_FILE_BYTES } from '../../core/shared/limits.ts'
import { foldersAbove } from '../../core/shared/paths.ts'
import { withoutEndSlashes } from '../../core/shared/text.ts'
import { decode, lastPart, parseUrl } from '../address/parts.ts'
import type { SourceCommon, SourceKind } from '../address/source-kind.ts'
import { readBody } from '../http/body.ts'
import { isUnwritable, pathProblem, type SourceEntry } from '../publish/source-tree.ts'
import { AddressError, SourceError } from '../source-error.ts'
import type { Bucket, BucketPlace } from './bucket.ts'

const MAX_DOWNLOADS = 8
const BUCKET = /^[a-z\d][a-z\d.-]{1,61}[a-z\d]$/

export interface S3Source extends SourceCommon, BucketPlace {
  readonly kind: 's3'
  /** What its keys begin with: '' or a path with a slash at its end. */
  readonly prefixPath: string
  /** Key below the prefix, written last by the upload: nothing is read before it changes. */
  readonly marker?: string | undefined
}

export const s3Kind: SourceKind<S3Source> = {
  kind: 's3',
  protocols: ['s3:'],
  description: 'A bucket: s3://bucket/prefix',
  settings: {
    endpoint: { description: 's3: the address of the service; default: Amazon' },
    region: { description: 's3: default us-east-1' },
    marker: { description: 's3: a key that is written last; nothing is read before it changes' }
  },
  intervalMs: 300_000,
  create (address, { endpoint, region, marker }) {
    const { hostname: bucket, pathname, search } = parseUrl(address, ['s3:'])
    if (!BUCKET.test(bucket) || search !== '') throw new AddressError('an address of a bucket is s3://bucket/prefix')
    if (endpoint !== undefined) checkEndpoint(endpoint)
    const path = withoutEndSlashes(decode(pathname)).replace(/^\/+/, '')
    const [name, prefixPath] = path === '' ? [bucket, ''] : [lastPart(path), `${path}/`]
    return { kind: 's3', name, layout: 'auto', bucket, prefixPath, endpoint, region, marker }
  },
  async check ({ auth, name }) {
    if (auth === undefined || auth.username !== undefined) return
    throw new AddressError(`the source ${name} needs auth.username: the id of the access key`)
  },
  /**
   * A listing costs one request for 1,000 objects. Only files of skills that changed are fetched, in the state that was
   * listed.
   */
  async fetch (source, { known, signal, env }) {
    const { changing, openBucket } = await import('./bucket.ts')
    const bucket = await openBucket(source, env, signal)
    const { revision, marker, entries, leftOut } = await look(bucket, source)
    if (known?.['revision'] === revision || (marker !== '' && known?.['marker'] === marker)) return undefined
    return {
      revision,
      memory: { revision, marker },
      path: '',
      leftOut,
      files: {
        entries,
        async read (files, use) {
          await pLimit(MAX_DOWNLOADS).map(files, async (file) => {
            const { path, id, size } = file.entry
            const bytes = await readBody(await bucket.get(source.prefixPath + path, id), MAX_FILE_BYTES)
            if (bytes.length !== size) throw changing()
            await use(file, bytes)
          })
        }
      },
      // A listing may be half of a state, during an upload, or cut by a service: all of it must still be there.
      async confirm () {
        if ((await look(bucket, source)).revision !== revision) throw changing()
      }
    }
  }
}

function checkEndpoint (text: string): void {
  try {
    parseUrl(text, ['https:', 'http:'])
  } catch {
    throw new AddressError('the endpoint of a bucket is an https:// address without credentials')
  }
}

async function look (bucket: Bucket, { prefixPath: prefix, marker: markerKey }: S3Source) {
  const objects = await bucket.list(prefix)
  const marker = objects.find(({ key }) => key === `${prefix}${markerKey ?? ''}`)
  if (markerKey !== undefined && marker === undefined) {
    throw new SourceError('not_found', 'the marker is not in the bucket')
  }
  const hash = createHash('sha256')
  const leftOut: LeftOut[] = []
  const entries: SourceEntry[] = []
  const folders = new Set(objects.flatMap(({ key }) => foldersAbove(key.slice(prefix.length))))
  // Keys are any text, of any size: those that no file system holds, and objects that are too large, are left out.
  for (const { key, etag, size } of objects.filter((object) => object !== marker)) {
    hash.update(`${key}\0${etag}\0${size}\0`)
    const path = key.slice(prefix.length)
    // A marker for an empty folder.
    if (path === '' || (path.endsWith('/') && size === 0)) continue
    const entry: SourceEntry = { path, kind: 'file', id: etag, size }
    const isBad = folders.has(path) || pathProblem(path) !== undefined || isUnwritable(entry)
    if (isBad) leftOut.push({ path: key, reason: 'unsafe_name' })
    else if (size > MAX_FILE_BYTES) leftOut.push({ path: key, reason: 'bound_reached' })
    else entries.push(entry)
  }
  return { revision: `sha256:${hash.digest('hex')}`, marker: marker?.etag ?? '', entries, leftOut }
}
