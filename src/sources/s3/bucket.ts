import { AwsClient } from 'aws4fetch'
import { XMLParser, XMLValidator } from 'fast-xml-parser'
import { isJsonObject, own } from '../../core/shared/json.ts'
import { encodePath } from '../../core/shared/paths.ts'
import { compareCodePoints, decodePercent } from '../../core/shared/text.ts'
import type { Environment } from '../../config/setting.ts'
import type { SourceAuth } from '../address/source-kind.ts'
import { type HttpAnswer, readBody, send, statusError } from '../http/http-client.ts'
import { readSecret } from '../secrets.ts'
import { SourceError } from '../source-error.ts'

const MAX_OBJECTS = 200_000
/** Of all pages of a listing together. */
const MAX_LISTING_BYTES = 128 * 1_048_576

/** Statuses of refusals that name their reason, such as a wrong clock or (301) a wrong region. */
const REFUSALS = [301, 400, 401, 403]
const MAX_REFUSAL_BYTES = 16_384
const REASON = /<Code>([A-Za-z]{1,64})<\/Code>/
const REGION = /^[a-z\d-]{1,32}$/

/** What a header can hold: the tag goes back to the service. */
const TAG = /^[\x20-\x7e]{1,1024}$/

export interface BucketPlace {
  readonly bucket: string
  /** Default: Amazon's of the region. */
  readonly endpoint?: string
  readonly region?: string
  readonly auth?: SourceAuth
}

interface StoredObject {
  readonly key: string
  /** Says whether an object changed. It is not a digest of its bytes. */
  readonly etag: string
  readonly size: number
}

const parser = new XMLParser({ parseTagValue: false, trimValues: false, isArray: (name) => name === 'Contents' })

/** A bucket of any service that speaks the protocol of S3, for reading. */
export class Bucket {
  readonly #base: URL
  readonly #region: string
  readonly #client: AwsClient | undefined
  readonly #env: Environment
  readonly #signal: AbortSignal

  /**
   * @param secret that of the settings; without it, the usual variables count, and without any, requests are not signed
   */
  private constructor (source: BucketPlace, secret: string | undefined, env: Environment, signal: AbortSignal) {
    const { region = env['AWS_REGION'] || 'us-east-1', auth = {}, bucket, endpoint } = source
    this.#base = new URL(endpoint ?? `https://s3.${region}.amazonaws.com/`)
    this.#base.pathname = `${this.#base.pathname.replace(/\/$/, '')}/${bucket}/`
    const [accessKeyId, secretAccessKey, sessionToken] = secret === undefined
      ? [env['AWS_ACCESS_KEY_ID'], env['AWS_SECRET_ACCESS_KEY'], env['AWS_SESSION_TOKEN']]
      : [auth.username, secret]
    this.#client = accessKeyId && secretAccessKey
      ? new AwsClient({ accessKeyId, secretAccessKey, ...sessionToken && { sessionToken }, service: 's3', region })
      : undefined
    this.#region = region
    this.#env = env
    this.#signal = signal
  }

  static async open (source: BucketPlace, env: Environment, signal: AbortSignal): Promise<Bucket> {
    return new Bucket(source, await readSecret(source.auth ?? {}, env), env, signal)
  }

  /** All objects below a prefix, sorted by key. */
  async list (prefix: string): Promise<StoredObject[]> {
    const objects: StoredObject[] = []
    let bytes = 0
    for (let token: string | undefined = ''; token !== undefined;) {
      const url = new URL(this.#base)
      const query = { 'list-type': '2', 'encoding-type': 'url', prefix, ...token && { 'continuation-token': token } }
      for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
      const page = await readBody(await this.#send(url, {}), MAX_LISTING_BYTES)
      bytes += page.length
      const { found, next } = parsePage(page.toString())
      if (next === token) throw bad('the service lists the same page again')
      if (found.some(({ key }) => !key.startsWith(prefix))) {
        throw bad('the service lists objects that were not asked for')
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

  /** @throws SourceError for an object that is not in the state of the tag */
  async get (key: string, etag: string): Promise<HttpAnswer> {
    const url = new URL(this.#base)
    url.pathname += encodePath(key)
    const answer = await this.#send(url, { 'if-match': etag }, [404, 412])
    if (answer.status === 200) return answer
    answer.body.destroy()
    throw changing()
  }

  async #send (
    { href: url }: URL, headers: Record<string, string>, accept: readonly number[] = []
  ): Promise<HttpAnswer> {
    const request = { url, env: this.#env, signal: this.#signal, accept: [...accept, ...REFUSALS] }
    // The signature covers all headers: another host gets none.
    const signed = await this.#client?.sign(url, { headers })
    const own = signed === undefined ? { headers } : { credentials: Object.fromEntries(signed.headers) }
    const answer = await send({ ...request, ...own })
    if (REFUSALS.includes(answer.status)) throw await this.#refusal(answer)
    return answer
  }

  /** The message is shown to anybody: of the answer it has the code and the region only. */
  async #refusal (answer: HttpAnswer): Promise<SourceError> {
    const error = statusError(answer.status, answer.headers, this.#client !== undefined)
    const body = await readBody(answer, MAX_REFUSAL_BYTES).catch(() => Buffer.alloc(0))
    this.#signal.throwIfAborted()
    const [, reason] = REASON.exec(body.toString()) ?? []
    const region = String(answer.headers['x-amz-bucket-region'] ?? '')
    const hint = REGION.test(region) && region !== this.#region ? `; the bucket is in the region ${region}` : ''
    return new SourceError(error.code, `${reason ? `the host refuses the request: ${reason}` : error.message}${hint}`)
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
  if (decoded && TAG.test(etag) && /^\d+$/.test(size)) return { key: decoded, etag, size: Number(size) }
  throw bad('the service lists an object without a key, tag or size that can be used')
}

export function changing (): SourceError {
  return new SourceError('changing', 'the bucket changed while it was read')
}

function bad (sentence: string): SourceError {
  return new SourceError('bad_answer', sentence)
}
