import { AwsClient } from 'aws4fetch'
import { MAX_FILE_BYTES } from '../../core/shared/limits.ts'
import { encodePath } from '../../core/shared/paths.ts'
import { compareCodePoints } from '../../core/shared/text.ts'
import type { Environment } from '../../config/setting.ts'
import { type HttpAnswer, readBody, saveBody, send, statusError } from '../http/http-client.ts'
import { readSecret } from '../secrets.ts'
import { SourceError } from '../source-error.ts'
import { MAX_PAGE_BYTES, parsePage, type StoredObject } from './listing.ts'
import type { S3Source } from './s3-source.ts'

const MAX_OBJECTS = 200_000
const MAX_PAGES = 10_000
/** Of all keys and tags together. */
const MAX_LISTING_CHARACTERS = 64 * 1_048_576

/** Statuses of refusals that name their reason, such as a wrong clock or (301) a wrong region. */
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
  readonly #env: Environment
  readonly #signal: AbortSignal

  private constructor (
    base: URL, region: string, client: AwsClient | undefined, env: Environment, signal: AbortSignal
  ) {
    this.#base = base
    this.#region = region
    this.#client = client
    this.#env = env
    this.#signal = signal
  }

  /** Credentials come from the settings, else from the usual variables; without any, requests are not signed. */
  static async open (source: S3Source, env: Environment, signal: AbortSignal): Promise<Bucket> {
    const { region = env['AWS_REGION'] || 'us-east-1', auth = {}, bucket } = source
    const base = new URL(source.endpoint ?? `https://s3.${region}.amazonaws.com/`)
    base.pathname = `${base.pathname.replace(/\/$/, '')}/${bucket}/`
    const secret = await readSecret(auth, env)
    const accessKeyId = secret === undefined ? env['AWS_ACCESS_KEY_ID'] : auth.username
    const secretAccessKey = secret ?? env['AWS_SECRET_ACCESS_KEY']
    const sessionToken = secret === undefined ? env['AWS_SESSION_TOKEN'] : undefined
    const client = accessKeyId && secretAccessKey
      ? new AwsClient({ accessKeyId, secretAccessKey, ...sessionToken && { sessionToken }, service: 's3', region })
      : undefined
    return new Bucket(base, region, client, env, signal)
  }

  /** All objects below a prefix, sorted by key. */
  async list (prefix: string): Promise<StoredObject[]> {
    const objects: StoredObject[] = []
    const tokens = new Set<string>()
    let characters = 0
    for (let token: string | undefined = ''; token !== undefined;) {
      // A service that repeats a page would be listed for ever.
      if (tokens.has(token) || tokens.size === MAX_PAGES) throw bad('the service does not go on with its listing')
      tokens.add(token)
      const url = new URL(this.#base)
      const continuation = token === '' ? {} : { 'continuation-token': token }
      const query = new URLSearchParams({ 'list-type': '2', 'encoding-type': 'url', prefix, ...continuation })
      url.search = query.toString().replaceAll('+', '%20')
      const page = parsePage((await readBody(await this.#send(url, {}), MAX_PAGE_BYTES)).toString())
      for (const object of page.objects) {
        if (!object.key.startsWith(prefix)) throw bad('the service lists objects that were not asked for')
        objects.push(object)
        characters += object.key.length + object.etag.length
      }
      if (characters > MAX_LISTING_CHARACTERS) {
        const limit = `${MAX_LISTING_CHARACTERS} characters together`
        throw new SourceError('too_large', `the keys below the prefix have more than ${limit}`)
      }
      if (objects.length > MAX_OBJECTS) {
        throw new SourceError('too_large', `the bucket has more than ${MAX_OBJECTS} objects below the prefix`)
      }
      token = page.next
    }
    objects.sort((a, b) => compareCodePoints(a.key, b.key))
    const isTwice = objects.some(({ key }, index) => key === objects[index + 1]?.key)
    if (isTwice) throw bad('the service lists an object twice')
    return objects
  }

  /** The bytes of an object in the state that was listed. */
  async read (object: StoredObject): Promise<Buffer> {
    const bytes = await readBody(await this.#get(object), MAX_FILE_BYTES)
    if (bytes.length !== object.size) throw changing()
    return bytes
  }

  /** Writes the bytes of an object in the state that was listed. */
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
    const headers: Record<string, string> = known === undefined ? {} : { 'if-none-match': known }
    const answer = await this.#send(this.#urlOf(key), headers, known === undefined ? [404] : [304, 404])
    answer.body.destroy()
    if (answer.status === 304) return undefined
    if (answer.status === 404) throw new SourceError('not_found', 'the marker is not in the bucket')
    const etag = answer.headers.get('etag')
    if (etag === null) throw bad('the service gives no tag of the marker')
    return etag === known ? undefined : etag
  }

  #urlOf (key: string): URL {
    const url = new URL(this.#base)
    url.pathname += encodePath(key)
    return url
  }

  async #send (
    { href: url }: URL, headers: Readonly<Record<string, string>>, accept: readonly number[] = []
  ): Promise<HttpAnswer> {
    const request = { url, env: this.#env, signal: this.#signal, accept: [...accept, ...REFUSALS] }
    // The signature covers all headers: another host gets none.
    const signed = await this.#client?.sign(url, { headers: { ...headers } })
    const own = signed === undefined ? { headers } : { credentials: Object.fromEntries(signed.headers) }
    const answer = await send({ ...request, ...own })
    if (REFUSALS.includes(answer.status)) throw await this.#refusal(answer)
    return answer
  }

  /** The message is shown to anybody: of the answer it has the code and the region only. */
  async #refusal (answer: HttpAnswer): Promise<SourceError> {
    const error = statusError(answer.status, answer.headers, this.#client !== undefined)
    const region = answer.headers.get('x-amz-bucket-region') ?? this.#region
    const remedy = region === this.#region || !REGION.test(region)
      ? ''
      : `; the bucket is in the region ${region}, which the key region or the variable AWS_REGION has to name`
    const body = await readBody(answer, MAX_REFUSAL_BYTES).catch(() => Buffer.alloc(0))
    this.#signal.throwIfAborted()
    const [, reason] = REASON.exec(body.toString()) ?? []
    const sentence = reason === undefined ? error.message : `the host refuses the request: ${reason}`
    return new SourceError(error.code, `${sentence}${remedy}`)
  }
}

function changing (): SourceError {
  return new SourceError('changing', 'the bucket changed while it was read')
}

function bad (sentence: string): SourceError {
  return new SourceError('bad_answer', sentence)
}
