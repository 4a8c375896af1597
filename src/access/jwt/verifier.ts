import { decodeJwt, errors, type JWTHeaderParameters, type JWTPayload, jwtVerify, type JWTVerifyOptions, type JWTVerifyResult } from 'jose'
import { LRUCache } from 'lru-cache'
import { atMost } from '../../core/shared/heap.ts'
import type { CoreLog } from '../../core/shared/log.ts'
import { type IssuerEntry, termsOf } from '../entries.ts'
import { type Proof, type Refused, refused } from '../policy.ts'
import { IssuerAway, IssuerKeys } from './issuer-keys.ts'

/** RFC 9864 calls EdDSA with the curve Ed25519 by the name of the curve. */
const DEFAULT_ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519']
const DEFAULT_CLOCK_TOLERANCE_S = 30

/** Verified tokens are remembered: how many, and how long at most, in milliseconds. A check of a signature costs more than most answers. */
const MAX_REMEMBERED = 10_000
const REMEMBERED_MS = 60_000

/** Claims that only ID tokens have (OpenID Connect Core §3.1.3.6, §3.3.2.11). */
const ID_TOKEN_CLAIMS = ['nonce', 'at_hash', 'c_hash']

type JwtProof = Proof & { readonly kind: 'jwt' }

const INVALID = refused('invalid_token')

/** Checks the access tokens of some issuers (RFC 9068). */
export class JwtVerifier {
  readonly #issuers: ReadonlyMap<string, Issuer>
  readonly #verified = new LRUCache<string, { readonly proof: JwtProof, readonly keys: IssuerKeys, readonly version: number }>(atMost(MAX_REMEMBERED))

  /** @param before keeps the keys of issuers that are the same, and is of no more use */
  constructor (entries: readonly IssuerEntry[], log: CoreLog, before?: JwtVerifier) {
    const issuersBefore = before === undefined ? new Map<string, Issuer>() : before.#issuers
    this.#issuers = new Map(entries.map((entry) => {
      const { issuer, jwks_uri: uri } = entry
      const known = issuersBefore.get(issuer)?.keys
      const keys = known?.uri === uri ? known : undefined
      return [issuer, new Issuer(entry, keys ?? new IssuerKeys({ issuer, uri, log }), log)]
    }))
    const kept = new Set([...this.#issuers.values()].map(({ keys }) => keys))
    for (const { keys } of issuersBefore.values()) if (!kept.has(keys)) keys.close()
  }

  /** Issuers whose keys could not be read at the last attempt. */
  get issuersAway (): number {
    return [...this.#issuers.values()].filter(({ keys }) => keys.isAway).length
  }

  /** The proof of a header that was verified a moment ago, by its digest. */
  remembered (digest: string): JwtProof | undefined {
    const found = this.#verified.get(digest)
    if (found === undefined || found.keys.version !== found.version || found.proof.expiresAt <= Date.now()) return undefined
    return found.proof
  }

  /**
   * Never throws.
   * @param digest of the whole header
   */
  async verify (token: string, digest: string): Promise<JwtProof | Refused> {
    try {
      const { iss } = decodeJwt(token)
      const issuer = this.#issuers.get(iss ?? '')
      if (issuer === undefined) return INVALID
      const { keys } = issuer
      const { version } = keys
      const outcome = await issuer.verify(token)
      if (outcome.kind === 'jwt') this.#verified.set(digest, { proof: outcome, keys, version }, { ttl: REMEMBERED_MS })
      return outcome
    } catch {
      return INVALID
    }
  }

  /** Reads the keys of all issuers ahead of the first token. */
  preload (): void {
    for (const { keys } of this.#issuers.values()) keys.preload()
  }

  close (): void {
    for (const { keys } of this.#issuers.values()) keys.close()
  }
}

class Issuer {
  readonly keys: IssuerKeys
  readonly #entry: IssuerEntry
  readonly #clockTolerance: number
  readonly #terms: string
  readonly #audiences: ReadonlySet<string>
  readonly #log: CoreLog

  constructor (entry: IssuerEntry, keys: IssuerKeys, log: CoreLog) {
    this.keys = keys
    this.#entry = entry
    this.#clockTolerance = entry.clock_tolerance ?? DEFAULT_CLOCK_TOLERANCE_S
    this.#terms = termsOf(entry)
    this.#audiences = new Set(entry.audiences.map(comparable))
    this.#log = log
  }

  async verify (token: string): Promise<JwtProof | Refused> {
    const { issuer, algorithms = DEFAULT_ALGORITHMS } = this.#entry
    try {
      const { payload, protectedHeader } = await this.#check(token, { issuer, algorithms: [...algorithms], clockTolerance: this.#clockTolerance, requiredClaims: ['exp', 'aud'] })
      if (!isAccessToken(protectedHeader, payload) || this.#isOfFuture(payload)) return INVALID
      if (!this.#isForUs(payload)) return refused('wrong_audience')
      return this.#proofOf(payload)
    } catch (error) {
      if (error instanceof errors.JWTExpired) return refused('token_expired')
      return error instanceof IssuerAway ? refused('issuer_unavailable') : INVALID
    }
  }

  /** A token need not name its key: those that fit it are tried one after the other. */
  async #check (token: string, options: JWTVerifyOptions): Promise<JWTVerifyResult> {
    try {
      return await jwtVerify(token, this.keys.find, options)
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
      for await (const key of error) {
        try {
          return await jwtVerify(token, key, options)
        } catch (failure) {
          if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure
        }
      }
      throw error
    }
  }

  /** jose checks `nbf` alone, which not every issuer sets. */
  #isOfFuture ({ iat = 0 }: JWTPayload): boolean {
    return iat > Date.now() / 1_000 + this.#clockTolerance
  }

  #isForUs ({ aud }: JWTPayload): boolean {
    return [aud ?? []].flat().some((audience) => this.#audiences.has(comparable(audience)))
  }

  #proofOf (payload: JWTPayload): JwtProof {
    const { issuer, groups_claim: claim = 'groups' } = this.#entry
    if (Object.hasOwn(payload, '_claim_names')) this.#log.info({ issuer, subject: payload.sub }, 'a token names its groups elsewhere; its caller is in none')
    return {
      kind: 'jwt',
      issuer,
      subject: textOf(payload.sub) ?? textOf(payload['client_id']) ?? textOf(payload['azp']) ?? '',
      groups: textsOf(claimAt(payload, claim)),
      scopes: textsOf(payload['scope'] ?? payload['scp']).flatMap((scope) => scope.split(' ')),
      // A stream goes on for as long as its token would open another.
      expiresAt: ((payload.exp ?? 0) + this.#clockTolerance) * 1_000,
      terms: this.#terms
    }
  }
}

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
