import { createRemoteJWKSet, customFetch, type JWTVerifyGetKey } from 'jose'
import type { CoreLog } from '../../core/shared/log.ts'

const OPENID = '/.well-known/openid-configuration'
const OAUTH = '/.well-known/oauth-authorization-server'

/** The longest wait for an answer of an issuer, in milliseconds. */
const TIMEOUT_MS = 5_000

/** An unknown key id, or an issuer that does not answer, leads to one request in this time, in milliseconds. */
const COOLDOWN_MS = 30_000

/** Keys are read again in the background after this time, in milliseconds. */
const RELOAD_MS = 600_000

/** Largest metadata and key set, in bytes. */
const MAX_BYTES = 1_048_576

/** The keys of an issuer cannot be read. */
export class IssuerAway extends Error {}

type KeySet = ReturnType<typeof createRemoteJWKSet>
type Fetch = (url: string, options: RequestInit) => Promise<Response>

interface IssuerKeysOptions {
  readonly issuer: string
  /** Address of the keys. Default: the one in the issuer's metadata. */
  readonly uri: string | undefined
  readonly log: CoreLog
  /** Default: Node's. */
  readonly fetch?: Fetch
  readonly timeoutMs?: number
  readonly cooldownMs?: number
}

/** The public keys of an issuer. Those that were read once stay in use while it is away, and while the access file changes. */
export class IssuerKeys {
  readonly #options: Required<IssuerKeysOptions>
  readonly #timer: NodeJS.Timeout
  #keys: KeySet | undefined
  #opening: Promise<KeySet> | undefined
  #failedAt = -Infinity
  #isAway = false

  constructor (options: IssuerKeysOptions) {
    this.#options = { timeoutMs: TIMEOUT_MS, cooldownMs: COOLDOWN_MS, fetch, ...options }
    this.#timer = setInterval(() => { this.reload() }, RELOAD_MS).unref()
  }

  get uri (): string | undefined {
    return this.#options.uri
  }

  /** Whether the last attempt to read the keys failed. */
  get isAway (): boolean {
    return this.#isAway
  }

  /** @throws IssuerAway; JOSEError when no key fits the token */
  readonly find: JWTVerifyGetKey = async (header, input) => await (await this.#open())(header, input)

  /** Reads the keys in the background. A failure leaves those in place that were read before. */
  reload (): void {
    this.#open().then((keys) => keys.reload()).catch(() => {})
  }

  close (): void {
    clearInterval(this.#timer)
  }

  async #open (): Promise<KeySet> {
    this.#opening ??= this.#openOnce().finally(() => { this.#opening = undefined })
    this.#keys ??= await this.#opening
    return this.#keys
  }

  async #openOnce (): Promise<KeySet> {
    if (this.#keys !== undefined) return this.#keys
    const { uri = await this.#attempt(() => this.#discover()), timeoutMs, cooldownMs } = this.#options
    const keys = createRemoteJWKSet(new URL(uri), {
      timeoutDuration: timeoutMs,
      cooldownDuration: cooldownMs,
      // They are read again by the timer, whose failures do no harm.
      cacheMaxAge: Infinity,
      [customFetch]: async (url, options) => await this.#attempt(() => this.#readKeys(url, options))
    })
    await keys.reload()
    return keys
  }

  /** A failure is logged once, and another attempt waits for the end of the cooldown: jose counts from the last success. */
  async #attempt<T> (ask: () => Promise<T>): Promise<T> {
    const { issuer, log, cooldownMs } = this.#options
    if (performance.now() - this.#failedAt < cooldownMs) throw new IssuerAway()
    try {
      const value = await ask()
      if (this.#isAway) log.info({ issuer }, 'the keys of an issuer of tokens can be read again')
      this.#isAway = false
      return value
    } catch (error) {
      this.#failedAt = performance.now()
      if (!this.#isAway) log.warn({ issuer, reason: reasonOf(error) }, 'cannot read the keys of an issuer of tokens; those that were read before stay in use')
      this.#isAway = true
      throw new IssuerAway()
    }
  }

  /** The address of the keys: what the first metadata that are good say. */
  async #discover (): Promise<string> {
    try {
      return await Promise.any(metadataOf(this.#options.issuer).map((address) => this.#readMetadata(address)))
    } catch (error) {
      throw error instanceof AggregateError ? error.errors[0] : error
    }
  }

  async #readMetadata (address: string): Promise<string> {
    const { issuer, timeoutMs } = this.#options
    const response = await this.#options.fetch(address, { redirect: 'error', signal: AbortSignal.timeout(timeoutMs), headers: { accept: 'application/json' } })
    const metadata = JSON.parse(await textOf(response, address)) as { readonly issuer?: unknown, readonly jwks_uri?: unknown } | null
    // RFC 8414 §3.3.
    if (metadata?.issuer !== issuer || typeof metadata.jwks_uri !== 'string') throw new Error(`${address} has the metadata of another issuer, or names no keys`)
    const { href, protocol } = new URL(metadata.jwks_uri)
    // Anybody on the way could put keys of their own into an answer that is not encrypted.
    if (protocol !== 'https:' && !(protocol === 'http:' && issuer.startsWith('http:'))) throw new Error(`${address} names keys at an address that is not https://`)
    return href
  }

  /** What is wrong with the answer is logged here: jose would throw, and no attempt would count as failed. */
  async #readKeys (url: string, options: RequestInit): Promise<Response> {
    const response = await this.#options.fetch(url, options)
    const text = await textOf(response, url)
    const set = JSON.parse(text) as { readonly keys?: unknown } | null
    if (!Array.isArray(set?.keys) || !set.keys.every((key) => typeof key === 'object' && key !== null)) throw new Error(`${url} has no set of keys`)
    return new Response(text)
  }
}

async function textOf (response: Response, url: string): Promise<string> {
  if (!response.ok) throw new Error(`${url} was answered with ${response.status}`)
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > MAX_BYTES) throw new Error(`${url} was answered with more than ${MAX_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/** Addresses of an issuer's metadata: OpenID Connect appends to a path, RFC 8414 §3.1 and §5 put theirs before it. */
function metadataOf (issuer: string): readonly string[] {
  const base = issuer.replace(/\/$/, '')
  const { origin, pathname } = new URL(base)
  const before = pathname === '/' ? [] : [`${origin}${OAUTH}${pathname}`, `${origin}${OPENID}${pathname}`]
  return [`${base}${OPENID}`, `${base}${OAUTH}`, ...before]
}

function reasonOf (error: unknown): string {
  const { message, cause } = error instanceof Error ? error : new Error(String(error))
  return cause instanceof Error ? `${message}: ${cause.message}` : message
}
