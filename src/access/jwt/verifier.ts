import { decodeJwt, errors, type JWTHeaderParameters, type JWTPayload, jwtVerify, type JWTVerifyOptions, type JWTVerifyResult } from 'jose'
import type { CoreLog } from '../../core/shared/log.ts'
import { type IssuerEntry, termsOf } from '../entries.ts'
import { type Proof, type Refusal, type Refused, refused } from '../policy.ts'
import { IssuerAway, IssuerKeys } from './issuer-keys.ts'

/** RFC 9864 calls EdDSA with the curve Ed25519 by the name of the curve. */
const DEFAULT_ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519']
const DEFAULT_CLOCK_TOLERANCE_S = 30

/** Claims that only ID tokens have (OpenID Connect Core §3.1.3.6, §3.3.2.11). */
const ID_TOKEN_CLAIMS = ['nonce', 'at_hash', 'c_hash']

export type JwtProof = Proof & { readonly kind: 'jwt' }

/** Why a token is refused: for the log, with what its caller gets. */
class TokenRefused extends Error {
  readonly refusal: Refusal

  constructor (refusal: Refusal, reason: string) {
    super(reason)
    this.refusal = refusal
  }
}

/** Checks the access tokens of some issuers (RFC 9068). */
export class JwtVerifier {
  readonly #issuers: ReadonlyMap<string, Issuer>

  /** @param before keeps the keys of issuers that are the same, and is not used any more */
  constructor (entries: readonly IssuerEntry[], log: CoreLog, before?: JwtVerifier) {
    const known = new Map([...before === undefined ? [] : before.#issuers].map(([issuer, { keys }]) => [issuer, keys]))
    this.#issuers = new Map(entries.map((entry) => {
      const { issuer, jwks_uri: uri } = entry
      const keys = known.get(issuer)
      if (keys?.uri === uri) known.delete(issuer)
      return [issuer, new Issuer(entry, keys?.uri === uri && keys !== undefined ? keys : new IssuerKeys({ issuer, uri, log }), log)]
    }))
    for (const keys of known.values()) keys.close()
    // An issuer may not answer now: the next token asks again.
    for (const { keys } of this.#issuers.values()) keys.reload()
  }

  /** Issuers whose keys could not be read at the last attempt. */
  get issuersAway (): number {
    return [...this.#issuers.values()].filter(({ keys }) => keys.isAway).length
  }

  /** Never throws. */
  async verify (token: string): Promise<JwtProof | Refused> {
    try {
      return await this.#issuers.get(decodeJwt(token).iss ?? '')?.verify(token) ?? refused('invalid_token')
    } catch {
      return refused('invalid_token')
    }
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
    const options = { issuer, algorithms: [...algorithms], clockTolerance: this.#clockTolerance, requiredClaims: ['exp', 'aud'] }
    try {
      const { payload, protectedHeader } = await this.#check(token, options)
      checkIsAccessToken(protectedHeader, payload)
      // jose checks `nbf` alone, which not every issuer sets.
      if ((payload.iat ?? 0) > Date.now() / 1_000 + this.#clockTolerance) throw new TokenRefused('invalid_token', 'it was issued in the future')
      if (![payload.aud ?? []].flat().some((audience) => this.#audiences.has(comparable(audience)))) {
        throw new TokenRefused('wrong_audience', 'its audience is not in the list of audiences')
      }
      return this.#proofOf(payload)
    } catch (error) {
      const { refusal, reason } = explain(error)
      this.#log.info({ issuer, reason }, 'a token was refused')
      return refused(refusal)
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
      throw new errors.JWSSignatureVerificationFailed()
    }
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

function explain (error: unknown): { readonly refusal: Refusal, readonly reason: string } {
  if (error instanceof TokenRefused) return { refusal: error.refusal, reason: error.message }
  if (error instanceof errors.JWTExpired) return { refusal: 'token_expired', reason: 'it has expired' }
  if (error instanceof IssuerAway) return { refusal: 'issuer_unavailable', reason: 'the keys of the issuer cannot be read' }
  // The messages of jose name claims and headers, and quote no values.
  return { refusal: 'invalid_token', reason: error instanceof errors.JOSEError ? error.message : 'it cannot be read' }
}

/**
 * Refuses ID tokens, which are for the client that got them. A type decides before the list of claims: Keycloak puts `nonce`
 * into access tokens too, whose payload says `typ: Bearer`.
 */
function checkIsAccessToken ({ typ }: JWTHeaderParameters, payload: JWTPayload): void {
  const type = typ?.toLowerCase().replace(/^application\//, '')
  if (type === 'at+jwt') return
  if (type !== undefined && type !== 'jwt') throw new TokenRefused('invalid_token', 'its header has another type than at+jwt and JWT')
  if (payload['typ'] === 'Bearer') return
  if (payload['typ'] === 'ID' || ID_TOKEN_CLAIMS.some((claim) => Object.hasOwn(payload, claim))) throw new TokenRefused('invalid_token', 'it is an ID token')
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
