import { createRemoteJWKSet, customFetch, type JWTVerifyGetKey } from 'jose'
import type { CoreLog } from '../../core/shared/log.ts'

const OPENID = '/.well-known/openid-configuration'
const OAUTH = '/.well-known/oauth-authorization-server'

/** The longest wait for the metadata, and for the keys, in milliseconds. */
const TIMEOUT_MS = 5_000
/** In how many parts it is counted. */
const TIMEOUT_PARTS = 10

/** An unknown key id, or an issuer that does not answer, leads to one request in this time, in milliseconds. */
const COOLDOWN_MS = 30_000

/** Keys are read again in the background after this time, in milliseconds. */
const RELOAD_MS = 600_000

/** Largest metadata and key set, in bytes. */
const MAX_BYTES = 1_048_576

/** The keys of an issuer cannot be had. */
export class IssuerAway extends Error {}

type KeySet = ReturnType<typeof createRemoteJWKSet>

interface IssuerKeysOptions {
  readonly issuer: string
  /** Address of the keys. Default: the one in the issuer's metadata. */
  readonly uri: string | undefined
  readonly log: CoreLog
  /** Defaults: TIMEOUT_MS and COOLDOWN_MS. */
  readonly timeoutMs?: number
  readonly cooldownMs?: number
}

/** The public keys of an issuer. Those that were read once serve while it is away, and while the access file changes. */
export class IssuerKeys {
  readonly #options: Required<IssuerKeysOptions>
  /** Of the metadata, in the order in which they are tried. */
  #addresses: readonly string[]
  readonly #reload: NodeJS.Timeout
  #keys: KeySet | undefined
  #opening: Promise<KeySet> | undefined
  #text = ''
  #version = 0
  #failedAt = -Infinity
  #isAway = false

  constructor (options: IssuerKeysOptions) {
    this.#options = { timeoutMs: TIMEOUT_MS, cooldownMs: COOLDOWN_MS, ...options }
    this.#addresses = metadataOf(options.issuer)
    this.#reload = setInterval(() => { this.preload() }, RELOAD_MS).unref()
  }

  get uri (): string | undefined {
    return this.#options.uri
  }

  /** Increases whenever the keys change. */
  get version (): number {
    return this.#version
  }

  /** Whether the last attempt to read the keys failed. */
  get isAway (): boolean {
    return this.#isAway
  }

  /** @throws IssuerAway; JOSEError when no key fits the token */
  readonly find: JWTVerifyGetKey = async (header, input) => await (await this.#open())(header, input)

  /** Reads the keys ahead of the next token. */
  preload (): void {
    this.#open().then((keys) => keys.reload()).catch(() => {})
  }

  close (): void {
    clearInterval(this.#reload)
  }

  async #open (): Promise<KeySet> {
    if (this.#keys !== undefined) return this.#keys
    this.#opening ??= this.#openOnce().finally(() => { this.#opening = undefined })
    return await this.#opening
  }

  async #openOnce (): Promise<KeySet> {
    const uri = this.#options.uri ?? await this.#attempt(() => this.#discover())
    const keys = createRemoteJWKSet(new URL(uri), {
      cooldownDuration: this.#options.cooldownMs,
      // They are read again by a timer: a failure of that leaves them in place.
      cacheMaxAge: Infinity,
      [customFetch]: async (url) => await this.#attempt(() => this.#readKeys(url, startTimeout(this.#options.timeoutMs)))
    })
    await keys.reload()
    this.#keys = keys
    return keys
  }

  /** A failure is logged once, and no other attempt follows at once. */
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
      if (!this.#isAway) log.warn({ issuer, reason: reasonOf(error) }, 'the keys of an issuer of tokens cannot be read; those that were read before serve')
      this.#isAway = true
      throw new IssuerAway()
    }
  }

  async #discover (): Promise<string> {
    const { issuer, timeoutMs } = this.#options
    const signal = startTimeout(timeoutMs)
    let failure: unknown
    for (const [index, address] of this.#addresses.entries()) {
      try {
        const metadata = JSON.parse(await read(address, signal)) as { readonly issuer?: unknown, readonly jwks_uri?: unknown } | null
        // RFC 8414 §3.3.
        if (metadata?.issuer !== issuer || typeof metadata.jwks_uri !== 'string') throw new Error('the metadata are of another issuer, or name no keys')
        const uri = new URL(metadata.jwks_uri)
        // Anybody on the way could put keys of their own into an answer that is not encrypted.
        if (uri.protocol !== 'https:' && !(uri.protocol === 'http:' && issuer.startsWith('http:'))) throw new Error('the metadata name keys at an address that is not https://')
        return uri.href
      } catch (error) {
        failure = error
        if (!signal.aborted) continue
        // One that does not answer takes the time of those behind it: the next attempt begins with them.
        this.#addresses = [...this.#addresses.slice(index + 1), ...this.#addresses.slice(0, index + 1)]
        break
      }
    }
    throw failure
  }

  async #readKeys (url: string, signal: AbortSignal): Promise<Response> {
    const text = await read(url, signal)
    const set = JSON.parse(text) as { readonly keys?: unknown } | null
    if (!Array.isArray(set?.keys) || !set.keys.every((key) => typeof key === 'object' && key !== null)) throw new Error('the answer is no key set')
    if (text !== this.#text) this.#version++
    this.#text = text
    return new Response(text)
  }
}

/** Counts in parts: while this process gets no processor, one of them passes at most, since the issuer is not the one that is late. */
export function startTimeout (ms: number): AbortSignal {
  const timeout = new AbortController()
  let parts = 0
  const timer = setInterval(() => {
    if (++parts < TIMEOUT_PARTS) return
    clearInterval(timer)
    timeout.abort(new Error(`no answer within ${ms} ms`))
  }, ms / TIMEOUT_PARTS).unref()
  return timeout.signal
}

/** Addresses of an issuer's metadata: OpenID Connect appends to a path, RFC 8414 §3.1 and §5 put theirs before it. */
function metadataOf (issuer: string): readonly string[] {
  const base = issuer.replace(/\/$/, '')
  const { origin, pathname } = new URL(base)
  return [`${base}${OPENID}`, `${base}${OAUTH}`, ...pathname === '/' ? [] : [`${origin}${OAUTH}${pathname}`, `${origin}${OPENID}${pathname}`]]
}

async function read (url: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(url, { signal, redirect: 'error', headers: { accept: 'application/json, application/jwk-set+json' } })
  // Leaving the loop cancels the rest.
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (!response.ok || bytes > MAX_BYTES) break
    chunks.push(chunk)
  }
  if (!response.ok) throw new Error(`${url} was answered with ${response.status}`)
  if (bytes > MAX_BYTES) throw new Error(`${url} was answered with more than ${MAX_BYTES} bytes`)
  return Buffer.concat(chunks).toString()
}

function reasonOf (error: unknown): string {
  const { message, cause } = error instanceof Error ? error : new Error(String(error))
  return cause instanceof Error ? `${message}: ${cause.message}` : message
}
