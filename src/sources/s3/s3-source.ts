import { createHash } from 'node:crypto'
import { AwsClient } from 'aws4fetch'
import { XMLParser, XMLValidator } from 'fast-xml-parser'
import pLimit from 'p-limit'
import { isJsonObject, own } from '../../core/shared/json.ts'
import { MAX_FILE_BYTES } from '../../core/shared/limits.ts'
import { encodePath, foldersAbove } from '../../core/shared/paths.ts'
import { compareCodePoints, decodePercent } from '../../core/shared/text.ts'
import type { LeftOut } from '../../layout/layout.ts'
import type { Environment } from '../../operator/setting.ts'
import type { Fetched, FetchOptions, S3Source } from '../address/source-kind.ts'
import { readBody } from '../http/body.ts'
import { type HttpAnswer, send } from '../http/http-client.ts'
import { isUnwritable, pathProblem, type SourceEntry } from '../publish/source-tree.ts'
import { readSecret, type RequestHeaders } from '../secrets.ts'
import { AddressError, SourceError, statusError } from '../source-error.ts'

const MAX_DOWNLOADS = 8
const MAX_OBJECTS = 200_000
/** Limit for all pages of a listing together. */
const MAX_LISTING_BYTES = 128 * 1_048_576

/** Statuses whose body has a reason, such as a wrong clock or (301) a wrong region. */
const REFUSALS = [301, 400, 401, 403]
const MAX_REFUSAL_BYTES = 16_384
const REASON = /<Code>([A-Za-z]{1,64})<\/Code>/

interface StoredObject {
  readonly key: string
  /** Changes with the object. It is not a digest of its bytes. */
  readonly etag: string
  readonly size: number
}

const parser = new XMLParser({ parseTagValue: false, trimValues: false, isArray: (name) => name === 'Contents' })

/** Sends a request for an object, or for the bucket with an empty key. */
type Ask = Awaited<ReturnType<typeof openBucket>>

/** @throws AddressError for a secret without the id of its key */
export async function check ({ auth, name }: S3Source): Promise<void> {
  if (auth === undefined || auth.username !== undefined) return
  throw new AddressError(`source "${name}" needs auth.username: the id of the access key`)
}

/**
 * Lists a bucket, which costs one request for 1,000 objects. Only files of skills that changed are fetched, in the
 * state that was listed.
 */
export async function fetch (source: S3Source, { known, signal, env }: FetchOptions): Promise<Fetched | undefined> {
  const ask = await openBucket(source, env, signal)
  const { revision, marker, entries, leftOut } = await listBucket(ask, source)
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
          const answer = await ask(source.prefixPath + path, {}, { 'if-match': id }, [404, 412])
          if (answer.status !== 200) {
            answer.body.destroy()
            throw changedError()
          }
          const bytes = await readBody(answer, MAX_FILE_BYTES)
          if (bytes.length !== size) throw changedError()
          await use(file, bytes)
        })
      }
    },
    // During an upload, or if the service cuts it, a listing may show half a state, so it is compared once more.
    async confirm () {
      if ((await listBucket(ask, source)).revision !== revision) throw changedError()
    }
  }
}

async function listBucket (ask: Ask, { prefixPath: prefix, marker: markerKey }: S3Source) {
  const objects = await listObjects(ask, prefix)
  const marker = objects.find(({ key }) => key === `${prefix}${markerKey ?? ''}`)
  if (markerKey !== undefined && marker === undefined) {
    throw new SourceError('not_found', 'the marker is not in the bucket')
  }
  const hash = createHash('sha256')
  const leftOut: LeftOut[] = []
  const entries: SourceEntry[] = []
  const folders = new Set(objects.flatMap(({ key }) => foldersAbove(key.slice(prefix.length))))
  // Keys are arbitrary text: objects are skipped if no file system can store their key, or if they are too large.
  for (const { key, etag, size } of objects.filter((object) => object !== marker)) {
    hash.update(`${key}\0${etag}\0${size}\0`)
    const path = key.slice(prefix.length)
    // Marker of an empty folder.
    if (path === '' || (path.endsWith('/') && size === 0)) continue
    const entry: SourceEntry = { path, kind: 'file', id: etag, size }
    const isBad = folders.has(path) || pathProblem(path) !== undefined || isUnwritable(entry)
    if (isBad) leftOut.push({ path: key, reason: 'unsafe_name' })
    else if (size > MAX_FILE_BYTES) leftOut.push({ path: key, reason: 'bound_reached' })
    else entries.push(entry)
  }
  return { revision: `sha256:${hash.digest('hex')}`, marker: marker?.etag ?? '', entries, leftOut }
}

/**
 * Opens a bucket of any service that speaks the protocol of S3, for reading. Credentials come from the settings, else
 * from the usual variables; without any, requests are not signed.
 */
async function openBucket (source: S3Source, env: Environment, signal: AbortSignal) {
  const { region = env['AWS_REGION'] || 'us-east-1', auth = {}, bucket, endpoint } = source
  const base = new URL(endpoint ?? `https://s3.${region}.amazonaws.com/`)
  base.pathname = `${base.pathname.replace(/\/$/, '')}/${bucket}/`
  const secret = await readSecret(auth, env)
  const [accessKeyId, secretAccessKey, sessionToken] = secret === undefined
    ? [env['AWS_ACCESS_KEY_ID'], env['AWS_SECRET_ACCESS_KEY'], env['AWS_SESSION_TOKEN']]
    : [auth.username, secret]
  const client = accessKeyId && secretAccessKey
    ? new AwsClient({ accessKeyId, secretAccessKey, ...sessionToken && { sessionToken }, service: 's3', region })
    : undefined

  return async (
    key: string, query: RequestHeaders, headers: RequestHeaders = {}, accept: readonly number[] = []
  ): Promise<HttpAnswer> => {
    const url = new URL(base)
    url.pathname += encodePath(key)
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    // The signature covers all headers, so all of them are credentials, and another host gets none.
    const signed = await client?.sign(url.href, { headers })
    const own = signed === undefined ? { headers } : { credentials: Object.fromEntries(signed.headers) }
    const answer = await send({ url: url.href, env, signal, accept: [...accept, ...REFUSALS], ...own })
    if (!REFUSALS.includes(answer.status)) return answer
    const body = await readBody(answer, MAX_REFUSAL_BYTES).catch(() => Buffer.alloc(0))
    signal.throwIfAborted()
    // Everybody may see the message, so it only has the code from the answer.
    const [, reason] = REASON.exec(body.toString()) ?? []
    const { code, message } = statusError(answer.status, answer.headers, client !== undefined)
    throw new SourceError(code, reason === undefined ? message : `the host refuses the request: ${reason}`)
  }
}

/** Lists all objects below a prefix, sorted by key. */
async function listObjects (ask: Ask, prefix: string): Promise<readonly StoredObject[]> {
  const objects: StoredObject[] = []
  let bytes = 0
  for (let token: string | undefined = ''; token !== undefined;) {
    const query = { 'list-type': '2', 'encoding-type': 'url', prefix, ...token && { 'continuation-token': token } }
    const page = await readBody(await ask('', query), MAX_LISTING_BYTES)
    bytes += page.length
    const { found, next } = parsePage(page.toString())
    if (next === token || found.some(({ key }) => !key.startsWith(prefix))) {
      throw badAnswer('the listing of the bucket does not match the request')
    }
    objects.push(...found)
    if (bytes > MAX_LISTING_BYTES || objects.length > MAX_OBJECTS) {
      const limits = `${MAX_OBJECTS} objects, or a listing of more than ${MAX_LISTING_BYTES} bytes`
      throw new SourceError('too_large', `the bucket has more than ${limits}, below the prefix`)
    }
    token = next
  }
  return objects.sort((a, b) => compareCodePoints(a.key, b.key))
}

/** @throws SourceError if the page contradicts itself: a listing that ends too early would remove skills */
function parsePage (text: string): { readonly found: readonly StoredObject[], readonly next: string | undefined } {
  const listing = XMLValidator.validate(text) === true ? own(parser.parse(text), 'ListBucketResult') : undefined
  if (!isJsonObject(listing)) throw badAnswer('the host sent no listing of the bucket')
  const { Contents: entries = [], EncodingType: encoding, IsTruncated: more, NextContinuationToken: next } = listing
  const isLast = String(more).toLowerCase() === 'false'
  if (!isLast && (String(more).toLowerCase() !== 'true' || typeof next !== 'string' || next === '')) {
    throw badAnswer('the listing of the bucket is cut off, without a token for the rest')
  }
  const found = (entries as readonly unknown[]).map((entry) => toObject(entry, encoding === 'url'))
  return { found, next: isLast ? undefined : String(next) }
}

function toObject (entry: unknown, isEncoded: boolean): StoredObject {
  const key = String(own(entry, 'Key') ?? '')
  const etag = String(own(entry, 'ETag')).replaceAll('&quot;', '"')
  const size = String(own(entry, 'Size'))
  const decoded = isEncoded ? decodePercent(key.replaceAll('+', ' ')) : key
  if (decoded && /^[\x20-\x7e]+$/.test(etag) && /^\d+$/.test(size)) return { key: decoded, etag, size: Number(size) }
  throw badAnswer('the listing of the bucket has an object without a valid key, ETag or size')
}

function changedError (): SourceError {
  return new SourceError('changing', 'the bucket changed while it was read')
}

function badAnswer (sentence: string): SourceError {
  return new SourceError('bad_answer', sentence)
}
