import { createRemoteJWKSet, customFetch, decodeJwt, errors, type JWTHeaderParameters, type JWTPayload, jwtVerify } from 'jose'
import type { CoreLog } from '../core/ground/log.ts'
import type { IssuerEntry, Proof } from './policy.ts'

/** Where metadata of issuers lie (OpenID Connect Discovery, RFC 8414), behind the issuer. */
const METADATA = ['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server']

const DEFAULT_ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA']
const DEFAULT_CLOCK_TOLERANCE_S = 30

/** The longest wait for an issuer, in milliseconds. */
const TIMEOUT_MS = 5_000

/** An unknown key id, or an issuer that does not answer, leads to one request in this time, in milliseconds. */
const COOLDOWN_MS = 30_000

/** Keys are read again in the background after this time, in milliseconds. */
const RELOAD_MS = 600_000

const MAX_METADATA_BYTES = 1_048_576

/** Claims that only ID tokens have (OpenID Connect Core §3.1.3.6, §3.3.2.11). */
const ID_TOKEN_CLAIMS = ['nonce', 'at_hash', 'c_hash']

export type JwtOutcome =
  | { readonly kind: 'proof', readonly proof: Proof & { readonly kind: 'jwt' } }
  | { readonly kind: 'invalid' | 'expired' | 'unavailable' }

const INVALID: JwtOutcome = { kind: 'invalid' }

type KeySet = ReturnType<typeof createRemoteJWKSet>

/** Checks the access tokens of some issuers (RFC 9068). Keys that were read once serve while their issuer is away. */
export class JwtVerifier {
  readonly #issuers: ReadonlyMap<string, Issuer>

  constructor (entries: readonly IssuerEntry[], log: CoreLog) {
    this.#issuers = new Map(entries.map((entry) => [entry.issuer, new Issuer(entry, log)]))
  }

  /** Never throws. */
  async verify (token: string): Promise<JwtOutcome> {
    try {
      const { iss } = decodeJwt(token)
      return await this.#issuers.get(iss ?? '')?.verify(token) ?? INVALID
    } catch {
      return INVALID
    }
  }

  /** Reads the keys of all issuers ahead of the first token. */
  async preload (): Promise<void> {
    await Promise.allSettled([...this.#issuers.values()].map((issuer) => issuer.preload()))
  }

  close (): void {
    for (const issuer of this.#issuers.values()) issuer.close()
  }
}

class Issuer {
  readonly #entry: IssuerEntry
  readonly #audiences: ReadonlySet<string>
  readonly #log: CoreLog
  readonly #reload: NodeJS.Timeout
  #keys: KeySet | undefined
  #opening: Promise<KeySet> | undefined
  #failedAt = -Infinity
  #isAway = false

  constructor (entry: IssuerEntry, log: CoreLog) {
    this.#entry = entry
    this.#audiences = new Set(entry.audiences.map(comparable))
    this.#log = log
    this.#reload = setInterval(() => { void this.preload() }, RELOAD_MS).unref()
  }

  close (): void {
    clearInterval(this.#reload)
  }

  async preload (): Promise<void> {
    await this.#attempt(async () => { await (await this.#open()).reload() }).catch(() => {})
  }

  async verify (token: string): Promise<JwtOutcome> {
    const { issuer, algorithms = DEFAULT_ALGORITHMS, clock_tolerance: clockTolerance = DEFAULT_CLOCK_TOLERANCE_S } = this.#entry
    try {
      const { payload, protectedHeader } = await jwtVerify(token, async (header, input) => await this.#attempt(async () => await (await this.#open())(header, input)),
        { issuer, algorithms: [...algorithms], clockTolerance, requiredClaims: ['exp', 'aud'] })
      if (!isAccessToken(protectedHeader, payload) || !this.#isForUs(payload)) return INVALID
      return { kind: 'proof', proof: this.#proofOf(payload) }
    } catch (error) {
      if (error instanceof errors.JWTExpired) return { kind: 'expired' }
      return error instanceof IssuerAway ? { kind: 'unavailable' } : INVALID
    }
  }

  /** What fails because of the issuer is said once, and by `#fetch` not tried again at once. */
  async #attempt<T> (ask: () => Promise<T>): Promise<T> {
    try {
      const value = await ask()
      if (this.#isAway) this.#log.info({ issuer: this.#entry.issuer }, 'the keys of an issuer of tokens can be read again')
      this.#isAway = false
      return value
    } catch (error) {
      // No key fits the token: the issuer has answered.
      if (error instanceof errors.JOSEError && !(error instanceof errors.JWKSTimeout) && error.code !== 'ERR_JOSE_GENERIC') throw error
      if (error instanceof IssuerAway) throw error
      this.#failedAt = performance.now()
      if (!this.#isAway) this.#log.warn({ issuer: this.#entry.issuer, reason: reasonOf(error) }, 'the keys of an issuer of tokens cannot be read; those that were read before serve')
      this.#isAway = true
      throw new IssuerAway()
    }
  }

  async #open (): Promise<KeySet> {
    if (this.#keys !== undefined) return this.#keys
    this.#opening ??= this.#openOnce().finally(() => { this.#opening = undefined })
    return await this.#opening
  }

  async #openOnce (): Promise<KeySet> {
    const uri = this.#entry.jwks_uri ?? await this.#discover()
    const keys = createRemoteJWKSet(new URL(uri), {
      timeoutDuration: TIMEOUT_MS,
      cooldownDuration: COOLDOWN_MS,
      // They are read again by a timer: a failure of that leaves them in place.
      cacheMaxAge: Infinity,
      [customFetch]: async (url, init) => await this.#fetch(url, init)
    })
    await keys.reload()
    this.#keys = keys
    return keys
  }

  async #discover (): Promise<string> {
    const { issuer } = this.#entry
    let failure: unknown
    for (const path of METADATA) {
      try {
        const response = await this.#fetch(`${issuer.replace(/\/$/, '')}${path}`, { signal: AbortSignal.timeout(TIMEOUT_MS) })
        const text = response.ok ? await response.text() : ''
        if (text.length > MAX_METADATA_BYTES) throw new Error('the metadata are too large')
        if (!response.ok) throw new Error(`the metadata were answered with ${response.status}`)
        const metadata = JSON.parse(text) as { readonly issuer?: unknown, readonly jwks_uri?: unknown }
        // RFC 8414 §3.3.
        if (metadata.issuer !== issuer || typeof metadata.jwks_uri !== 'string') throw new Error('the metadata are of another issuer, or name no keys')
        return metadata.jwks_uri
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }

  async #fetch (url: string, init: RequestInit): Promise<Response> {
    if (performance.now() - this.#failedAt < COOLDOWN_MS) throw new IssuerAway()
    return await fetch(url, { ...init, redirect: 'error' })
  }

  #isForUs ({ aud }: JWTPayload): boolean {
    return [aud ?? []].flat().some((audience) => this.#audiences.has(comparable(audience)))
  }

  #proofOf (payload: JWTPayload): Proof & { readonly kind: 'jwt' } {
    const { issuer, groups_claim: claim = 'groups' } = this.#entry
    if (Object.hasOwn(payload, '_claim_names')) this.#log.info({ issuer, subject: payload.sub }, 'a token names its groups elsewhere; its caller is in none')
    return {
      kind: 'jwt',
      issuer,
      subject: textOf(payload.sub) ?? textOf(payload['client_id']) ?? textOf(payload['azp']) ?? '',
      groups: textsOf(claimAt(payload, claim)),
      scopes: textsOf(payload['scope'] ?? payload['scp']).flatMap((scope) => scope.split(' ')),
      expiresAt: (payload.exp ?? 0) * 1_000
    }
  }
}

/** The keys of an issuer cannot be had. */
class IssuerAway extends Error {}

/** Not an ID token, which is for the client that got it. */
function isAccessToken ({ typ }: JWTHeaderParameters, payload: JWTPayload): boolean {
  const type = typ?.toLowerCase().replace(/^application\//, '')
  if (type === 'at+jwt') return true
  return (type === undefined || type === 'jwt') && payload['typ'] !== 'ID' && !ID_TOKEN_CLAIMS.some((claim) => Object.hasOwn(payload, claim))
}

/** Without a fragment and one slash at the end. */
function comparable (audience: string): string {
  return audience.replace(/#.*$/s, '').replace(/\/$/, '')
}

/** The claim of this whole name, which may hold dots, else the one that the dots lead to. */
function claimAt (payload: JWTPayload, name: string): unknown {
  if (Object.hasOwn(payload, name)) return payload[name]
  let value: unknown = payload
  for (const part of name.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined
    value = Reflect.get(value, part)
  }
  return value
}

function textOf (value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function textsOf (value: unknown): readonly string[] {
  return [value].flat().filter((item) => typeof item === 'string')
}

function reasonOf (error: unknown): string {
  const { message, cause } = error instanceof Error ? error : new Error(String(error))
  return cause instanceof Error ? `${message}: ${cause.message}` : message
}
