import { AwsClient } from 'aws4fetch'
import { XMLParser, XMLValidator } from 'fast-xml-parser'
import { isJsonObject, own } from '../../core/shared/json.ts'
import { encodePath } from '../../core/shared/paths.ts'
import { compareCodePoints, decodePercent } from '../../core/shared/text.ts'
import type { Environment } from '../../operator/setting.ts'
import type { SourceAuth } from '../address/source-kind.ts'
import { readBody } from '../http/body.ts'
import { statusError } from '../http/failures.ts'
import { type HttpAnswer, send } from '../http/http-client.ts'
import { readSecret } from '../secrets.ts'
import { SourceError } from '../source-error.ts'

const MAX_OBJECTS = 200_000
/** Of all pages of a listing together. */
const MAX_LISTING_BYTES = 128 * 1_048_576

/** Statuses of refusals that name their reason, such as a wrong clock or (301) a wrong region. */
const REFUSALS = [301, 400, 401, 403]
const MAX_REFUSAL_BYTES = 16_384
const REASON = /<Code>([A-Za-z]{1,64})<\/Code>/

export interface BucketPlace {
  readonly bucket: string
  /** Default: Amazon's of the region. */
  readonly endpoint?: string | undefined
  readonly region?: string | undefined
  readonly auth?: SourceAuth
}

interface StoredObject {
  readonly key: string
  /** Says whether an object changed. It is not a digest of its bytes. */
  readonly etag: string
  readonly size: number
}

const parser = new XMLParser({ parseTagValue: false, trimValues: false, isArray: (name) => name === 'Contents' })

export type Bucket = Awaited<ReturnType<typeof openBucket>>

/**
 * A bucket of any service that speaks the protocol of S3, for reading. Credentials come from the settings, else from
 * the usual variables; without any, requests are not signed.
 */
export async function openBucket (place: BucketPlace, env: Environment, signal: AbortSignal) {
  const { region = env['AWS_REGION'] || 'us-east-1', auth = {}, bucket } = place
  const base = new URL(place.endpoint ?? `https://s3.${region}.amazonaws.com/`)
  base.pathname = `${base.pathname.replace(/\/$/, '')}/${bucket}/`
  const secret = await readSecret(auth, env)
  const [accessKeyId, secretAccessKey, sessionToken] = secret === undefined
    ? [env['AWS_ACCESS_KEY_ID'], env['AWS_SECRET_ACCESS_KEY'], env['AWS_SESSION_TOKEN']]
    : [auth.username, secret]
  const client = accessKeyId && secretAccessKey
    ? new AwsClient({ accessKeyId, secretAccessKey, ...sessionToken && { sessionToken }, service: 's3', region })
    : undefined

  return {
    /** All objects below a prefix, sorted by key. */
    async list (prefix: string): Promise<readonly StoredObject[]> {
      const objects: StoredObject[] = []
      let bytes = 0
      for (let token: string | undefined = ''; token !== undefined;) {
        const url = new URL(base)
        const query = { 'list-type': '2', 'encoding-type': 'url', prefix, ...token && { 'continuation-token': token } }
        for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
        const page = await readBody(await ask(url, {}), MAX_LISTING_BYTES)
        bytes += page.length
        const { found, next } = parsePage(page.toString())
        if (next === token || found.some(({ key }) => !key.startsWith(prefix))) {
          throw bad('the service lists something else than what was asked for')
        }
        objects.push(...found)
        if (bytes > MAX_LISTING_BYTES || objects.length > MAX_OBJECTS) {
          const limits = `${MAX_OBJECTS} objects, or a listing of more than ${MAX_LISTING_BYTES} bytes`
          throw new SourceError('too_large', `the bucket has more than ${limits}, below the prefix`)
        }
        token = next
      }
      return objects.sort((a, b) => compareCodePoints(a.key, b.key))
    },

    /** @throws SourceError for an object that is not in the state of the tag */
    async get (key: string, etag: string): Promise<HttpAnswer> {
      const url = new URL(base)
      url.pathname += encodePath(key)
      const answer = await ask(url, { 'if-match': etag }, [404, 412])
      if (answer.status === 200) return answer
      answer.body.destroy()
      throw changing()
    }
  }

  async function ask ({ href: url }: URL, headers: Record<string, string>, accept: number[] = []): Promise<HttpAnswer> {
    // The signature covers all headers: another host gets none.
    const signed = await client?.sign(url, { headers })
    const own = signed === undefined ? { headers } : { credentials: Object.fromEntries(signed.headers) }
    const answer = await send({ url, env, signal, accept: [...accept, ...REFUSALS], ...own })
    if (!REFUSALS.includes(answer.status)) return answer
    const body = await readBody(answer, MAX_REFUSAL_BYTES).catch(() => Buffer.alloc(0))
    signal.throwIfAborted()
    // The message is shown to anybody: of the answer it has the code only.
    const [, reason] = REASON.exec(body.toString()) ?? []
    const { code, message } = statusError(answer.status, answer.headers, client !== undefined)
    throw new SourceError(code, reason === undefined ? message : `the host refuses the request: ${reason}`)
  }
}

/** @throws SourceError for a page that contradicts itself: one that ends too early would remove skills */
function parsePage (text: string): { readonly found: readonly StoredObject[], readonly next: string | undefined } {
  const listing = XMLValidator.validate(text) === true ? own(parser.parse(text), 'ListBucketResult') : undefined
  if (!isJsonObject(listing)) throw bad('the service gives no listing')
  const { Contents: entries = [], EncodingType: encoding, IsTruncated: more, NextContinuationToken: next } = listing
  const isLast = String(more).toLowerCase() === 'false'
  if (!isLast && (String(more).toLowerCase() !== 'true' || typeof next !== 'string' || next === '')) {
    throw bad('the service does not say how its listing goes on')
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
  throw bad('the service lists an object without a key, tag or size that can be used')
}

export function changing (): SourceError {
  return new SourceError('changing', 'the bucket changed while it was read')
}

function bad (sentence: string): SourceError {
  return new SourceError('bad_answer', sentence)
}
