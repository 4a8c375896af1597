import { createLocalJWKSet, createRemoteJWKSet, customFetch, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import type { CoreLog } from '../core/shared/log.ts'

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

/** The public keys of an issuer. Those that were read once stay in use while it is away. */
export class IssuerKeys {
  readonly issuer: string
  /** Address of the keys in the access file; undefined for the one in the issuer's metadata. */
  readonly uri: string | undefined
  /** Whether the last attempt to read the keys failed. */
  isAway = false
  readonly #log: CoreLog
  readonly #timer: NodeJS.Timeout
  #keys: Promise<KeySet> | undefined
  #failedAt = -Infinity

  constructor (issuer: string, uri: string | undefined, log: CoreLog) {
    this.issuer = issuer
    this.uri = uri
    this.#log = log
    this.#timer = setInterval(() => { this.reload() }, RELOAD_MS).unref()
  }

  /** @throws IssuerAway; JOSEError when no key fits the token */
  readonly find: JWTVerifyGetKey = async (header, input) => await (await this.#open())(header, input)

  /** Reads the keys in the background. After a failure the keys that were read before are used. */
  reload (): void {
    this.#open().then((keys) => keys.reload()).catch(() => {})
  }

  close (): void {
    clearInterval(this.#timer)
  }

  #open (): Promise<KeySet> {
    this.#keys ??= this.#create().catch((error: unknown) => {
      this.#keys = undefined
      throw error
    })
    return this.#keys
  }

  async #create (): Promise<KeySet> {
    return createRemoteJWKSet(new URL(this.uri ?? await this.#attempt(() => this.#discover())), {
      timeoutDuration: TIMEOUT_MS,
      cooldownDuration: COOLDOWN_MS,
      // The timer reads them again, whose failures do no harm.
      cacheMaxAge: Infinity,
      [customFetch]: async (url, options) => await this.#attempt(async () => {
        const set = await readJson(url, options)
        // Throws for what is not a set of keys: jose would throw later, and the attempt would not count as failed.
        createLocalJWKSet(set as JSONWebKeySet)
        return Response.json(set)
      })
    })
  }

  /** Logs a failure once, and fails immediately during the cooldown after it: jose counts from the last success. */
  async #attempt<T> (ask: () => Promise<T>): Promise<T> {
    const { issuer } = this
    if (performance.now() - this.#failedAt < COOLDOWN_MS) throw new IssuerAway()
    try {
      const value = await ask()
      if (this.isAway) this.#log.info({ issuer }, 'the keys of an issuer of tokens can be read again')
      this.isAway = false
      return value
    } catch (error) {
      this.#failedAt = performance.now()
      const details = { issuer, reason: reasonOf(error) }
      const message = 'cannot read the keys of an issuer of tokens; those that were read before stay in use'
      if (!this.isAway) this.#log.warn(details, message)
      this.isAway = true
      throw new IssuerAway()
    }
  }

  /** The address of the keys: what the first metadata that are good say. */
  async #discover (): Promise<string> {
    try {
      return await Promise.any(metadataOf(this.issuer).map((address) => this.#readMetadata(address)))
    } catch (error) {
      throw error instanceof AggregateError ? error.errors[0] : error
    }
  }

  async #readMetadata (address: string): Promise<string> {
    const options = { redirect: 'error', signal: AbortSignal.timeout(TIMEOUT_MS) } as const
    const metadata = await readJson(address, options) as { issuer?: unknown, jwks_uri?: unknown } | null
    // RFC 8414 §3.3.
    if (metadata?.issuer !== this.issuer || typeof metadata.jwks_uri !== 'string') {
      throw new Error(`${address} has the metadata of another issuer, or names no keys`)
    }
    const { href, protocol } = new URL(metadata.jwks_uri)
    // Anybody on the way could put keys of their own into an answer that is not encrypted.
    if (protocol === 'https:' || (protocol === 'http:' && this.issuer.startsWith('http:'))) return href
    throw new Error(`${address} names keys at an address that is not https://`)
  }
}

async function readJson (url: string, options: RequestInit): Promise<unknown> {
  const response = await fetch(url, options)
  if (!response.ok) throw new Error(`${url} was answered with ${response.status}`)
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > MAX_BYTES) throw new Error(`${url} was answered with more than ${MAX_BYTES} bytes`)
    chunks.push(chunk)
  }
  return JSON.parse(Buffer.concat(chunks).toString())
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
