import { AwsClient } from 'aws4fetch'
import { encodePath } from '../../core/shared/paths.ts'
import type { Environment } from '../../config/setting.ts'
import { type HttpAnswer, readBody, saveBody, send, statusError } from '../http/http-client.ts'
import { MAX_FILE_BYTES } from '../../core/shared/limits.ts'
import { readSecret } from '../secrets.ts'
import { SourceError } from '../source-error.ts'
import { MAX_PAGE_BYTES, parsePage, type StoredObject } from './listing.ts'
import type { S3Source } from './s3-source.ts'

const MAX_OBJECTS = 200_000
const MAX_PAGES = 10_000
/** Of all keys and tags together: an entry may be sixteen times as long as the longest key of an honest service. */
const MAX_LISTING_CHARACTERS = 64 * 1_048_576

/** Statuses of refusals that name their reason, such as a clock that is wrong; 301 without an address is that of a wrong region. */
const REFUSALS = [301, 400, 401, 403]
/** Largest refusal that is read, in bytes. */
const MAX_REFUSAL_BYTES = 16_384
const REASON = /<Code>([A-Za-z]{1,64})<\/Code>/
const REGION = /^[a-z\d-]{1,32}$/

/** A bucket of any service that speaks the protocol of S3, for reading. */
export class Bucket {
  readonly #base: URL
  readonly #region: string
  readonly #client: AwsClient | undefined
  readonly #signal: AbortSignal

  private constructor (base: URL, region: string, client: AwsClient | undefined, signal: AbortSignal) {
    this.#base = base
    this.#region = region
    this.#client = client
    this.#signal = signal
  }

  /** Credentials come from the source's settings, else from the usual variables; without any, the bucket is asked as anybody. */
  static async open (source: S3Source, env: Environment, signal: AbortSignal): Promise<Bucket> {
    const { region = env['AWS_REGION'] || 'us-east-1', auth = {}, bucket, endpoint = `https://s3.${region}.amazonaws.com/` } = source
    const base = new URL(endpoint)
    base.pathname = `${base.pathname.replace(/\/$/, '')}/${bucket}/`
    const secret = await readSecret(auth, env)
    const accessKeyId = secret === undefined ? env['AWS_ACCESS_KEY_ID'] : auth.username
    const secretAccessKey = secret ?? env['AWS_SECRET_ACCESS_KEY']
    const sessionToken = secret === undefined ? env['AWS_SESSION_TOKEN'] : undefined
    if (!accessKeyId || !secretAccessKey) return new Bucket(base, region, undefined, signal)
    return new Bucket(base, region, new AwsClient({ accessKeyId, secretAccessKey, ...sessionToken && { sessionToken }, service: 's3', region }), signal)
  }

  /** All objects below a prefix, sorted by key. */
  async list (prefix: string): Promise<StoredObject[]> {
    const objects: StoredObject[] = []
    const tokens = new Set<string>()
    let token: string | undefined
    let characters = 0
    do {
      const url = new URL(this.#base)
      url.search = new URLSearchParams({ 'list-type': '2', 'encoding-type': 'url', prefix, ...token !== undefined && { 'continuation-token': token } }).toString().replaceAll('+', '%20')
      const { objects: page, next } = await parsePage((await readBody(await this.#send(url, {}), MAX_PAGE_BYTES)).toString())
      for (const object of page) {
        if (!object.key.startsWith(prefix)) throw new SourceError('bad_answer', 'the service lists objects that were not asked for')
        objects.push(object)
        characters += object.key.length + object.etag.length
      }
      if (characters > MAX_LISTING_CHARACTERS) throw new SourceError('too_large', `the keys below the prefix have more than ${MAX_LISTING_CHARACTERS} characters together`)
      if (objects.length > MAX_OBJECTS) throw new SourceError('too_large', `the bucket has more than ${MAX_OBJECTS} objects below the prefix`)
      token = next
      // A service that repeats a page would be listed for ever.
      if (token !== undefined && (tokens.has(token) || tokens.size === MAX_PAGES)) throw new SourceError('bad_answer', 'the service does not go on with its listing')
      if (token !== undefined) tokens.add(token)
    } while (token !== undefined)
    objects.sort((a, b) => a.key < b.key ? -1 : a.key > b.key ? 1 : 0)
    if (objects.some(({ key }, index) => key === objects[index + 1]?.key)) throw new SourceError('bad_answer', 'the service lists an object twice')
    return objects
  }

  /** The bytes of an object in the state that was listed. */
  async read (object: StoredObject): Promise<Buffer> {
    const bytes = await readBody(await this.#get(object), MAX_FILE_BYTES)
    if (bytes.length !== object.size) throw changing()
    return bytes
  }

  /** Writes the bytes of an object in the state that was listed. Many are large at a time, and none is ever in memory. */
  async save (object: StoredObject, path: string): Promise<void> {
    const { size } = await saveBody(await this.#get(object), path, MAX_FILE_BYTES, true)
    if (size !== object.size) throw changing()
  }

  async #get ({ key, etag }: StoredObject): Promise<HttpAnswer> {
    const answer = await this.#send(this.#urlOf(key), { 'if-match': etag }, [404, 412])
    if (answer.status !== 200) throw changing()
    return answer
  }

  /** The tag of one object; undefined while it is the one that is known. */
  async changedTag (key: string, known: string | undefined): Promise<string | undefined> {
    const answer = await this.#send(this.#urlOf(key), known === undefined ? {} : { 'if-none-match': known }, known === undefined ? [404] : [304, 404])
    answer.body.destroy()
    if (answer.status === 304) return undefined
    if (answer.status === 404) throw new SourceError('not_found', 'the marker is not in the bucket')
    const etag = answer.headers.get('etag')
    if (etag === null) throw new SourceError('bad_answer', 'the service gives no tag of the marker')
    return etag === known ? undefined : etag
  }

  #urlOf (key: string): URL {
    const url = new URL(this.#base)
    url.pathname += encodePath(key)
    return url
  }

  async #send (url: URL, headers: Readonly<Record<string, string>>, accept: readonly number[] = []): Promise<HttpAnswer> {
    const request = { url: url.href, signal: this.#signal, accept: [...accept, ...REFUSALS] }
    // The signature covers all headers: another host gets none.
    const signed = await this.#client?.sign(url.href, { headers: { ...headers } })
    const answer = await send({ ...request, ...signed === undefined ? { headers } : { credentials: Object.fromEntries(signed.headers) } })
    if (REFUSALS.includes(answer.status)) throw await this.#refusal(answer)
    return answer
  }

  /** The message is shown to anybody: of the answer it has the code and the region only. */
  async #refusal (answer: HttpAnswer): Promise<SourceError> {
    const error = statusError(answer.status, answer.headers)
    const region = answer.headers.get('x-amz-bucket-region') ?? this.#region
    const remedy = region === this.#region || !REGION.test(region) ? '' : `; the bucket is in the region ${region}, which the key region or the variable AWS_REGION has to name`
    try {
      const [, reason] = REASON.exec((await readBody(answer, MAX_REFUSAL_BYTES)).toString()) ?? []
      return new SourceError(error.code, `${reason === undefined ? error.message : `the host refuses the request: ${reason}`}${remedy}`)
    } catch {
      this.#signal.throwIfAborted()
      return error
    }
  }
}

function changing (): SourceError {
  return new SourceError('changing', 'the bucket changed while it was read')
}
