import { decodeJwt, errors, type JWTHeaderParameters, type JWTPayload, jwtVerify, type JWTVerifyOptions } from 'jose'
import type { CoreLog } from '../core/shared/log.ts'
import type { IssuerEntry } from './entries.ts'
import { IssuerAway, IssuerKeys } from './issuer-keys.ts'
import { type JwtProof, type Refusal, type Refused, refused } from './policy.ts'

/** RFC 9864 calls EdDSA with the curve Ed25519 by the name of the curve. */
const DEFAULT_ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519']
const DEFAULT_CLOCK_TOLERANCE_S = 30

/** Claims that only ID tokens have (OpenID Connect Core §3.1.3.6, §3.3.2.11). */
const ID_TOKEN_CLAIMS = ['nonce', 'at_hash', 'c_hash']

/** Why a token is refused, for the log. */
class TokenRefused extends Error {}

class WrongAudience extends TokenRefused {}

/** Checks the access tokens of some issuers (RFC 9068). */
export class JwtVerifier {
  readonly #entries: ReadonlyMap<string, IssuerEntry>
  readonly #keys = new Map<string, IssuerKeys>()
  readonly #log: CoreLog

  /** @param before keeps the keys of issuers that are the same, and is not used any more */
  constructor (entries: readonly IssuerEntry[], log: CoreLog, before?: JwtVerifier) {
    const known = before === undefined ? new Map<string, IssuerKeys>() : before.#keys
    this.#entries = new Map(entries.map((entry) => [entry.issuer, entry]))
    this.#log = log
    for (const { issuer, jwks_uri: uri } of entries) {
      const old = known.get(issuer)
      const keys = old !== undefined && old.uri === uri ? old : new IssuerKeys(issuer, uri, log)
      this.#keys.set(issuer, keys)
      // An issuer may not answer now: the next token asks again.
      keys.reload()
    }
    for (const [issuer, keys] of known) if (this.#keys.get(issuer) !== keys) keys.close()
  }

  /** Issuers whose keys could not be read at the last attempt. */
  get issuersAway (): number {
    return [...this.#keys.values()].filter(({ isAway }) => isAway).length
  }

  close (): void {
    for (const keys of this.#keys.values()) keys.close()
  }

  /** Never throws. A refused token of a known issuer is logged with the reason, and without the token. */
  async verify (token: string): Promise<JwtProof | Refused> {
    const issuer = issuerOf(token)
    const [entry, keys] = [this.#entries.get(issuer), this.#keys.get(issuer)]
    if (entry === undefined || keys === undefined) return refused('invalid_token')
    try {
      const proof = await check(token, entry, keys)
      if (proof.areGroupsElsewhere) {
        this.#log.info({ issuer, subject: proof.subject }, 'a token names its groups elsewhere; its caller is in none')
      }
      return proof
    } catch (error) {
      const [refusal, reason] = explain(error)
      this.#log.info({ issuer, reason }, 'a token was refused')
      return refused(refusal)
    }
  }
}

function issuerOf (token: string): string {
  try {
    return decodeJwt(token).iss ?? ''
  } catch {
    return ''
  }
}

async function check (token: string, entry: IssuerEntry, keys: IssuerKeys): Promise<JwtProof> {
  const { issuer, audiences, algorithms = DEFAULT_ALGORITHMS } = entry
  const clockTolerance = entry.clock_tolerance ?? DEFAULT_CLOCK_TOLERANCE_S
  const options = { issuer, algorithms: [...algorithms], clockTolerance, requiredClaims: ['exp', 'aud'] }
  const { payload, protectedHeader } = await verify(token, keys, options)
  checkIsAccessToken(protectedHeader, payload)
  // jose checks `nbf` alone, which not every issuer sets.
  const latest = Date.now() / 1_000 + clockTolerance
  if ((payload.iat ?? 0) > latest) throw new TokenRefused('it was issued in the future')
  const accepted = new Set(audiences.map(comparable))
  if (![payload.aud ?? []].flat().some((audience) => accepted.has(comparable(audience)))) {
    throw new WrongAudience('its audience is not in the list of audiences')
  }
  return {
    kind: 'jwt',
    entry,
    subject: textOf(payload.sub) ?? textOf(payload['client_id']) ?? textOf(payload['azp']) ?? '',
    groups: textsOf(claimAt(payload, entry.groups_claim ?? 'groups')),
    areGroupsElsewhere: Object.hasOwn(payload, '_claim_names'),
    scopes: textsOf(payload['scope'] ?? payload['scp']).flatMap((scope) => scope.split(' ')),
    // A stream goes on for as long as its token would open another.
    expiresAt: ((payload.exp ?? 0) + clockTolerance) * 1_000
  }
}

/** A token need not name its key: those that fit it are tried one after the other, as jose's documentation shows. */
async function verify (token: string, keys: IssuerKeys, options: JWTVerifyOptions) {
  try {
    return await jwtVerify(token, keys.find, options)
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

function explain (error: unknown): readonly [refusal: Refusal, reason: string] {
  if (error instanceof WrongAudience) return ['wrong_audience', error.message]
  if (error instanceof errors.JWTExpired) return ['token_expired', 'it has expired']
  if (error instanceof IssuerAway) return ['issuer_unavailable', 'the keys of the issuer cannot be read']
  // The messages of jose name claims and headers, and quote no values.
  const isTold = error instanceof TokenRefused || error instanceof errors.JOSEError
  return ['invalid_token', isTold ? error.message : 'it cannot be read']
}

/**
 * Refuses ID tokens, which are for the client that got them. A type decides before the list of claims: Keycloak before
 * 25 puts `nonce` into access tokens too, whose payload says `typ: Bearer`.
 */
function checkIsAccessToken ({ typ }: JWTHeaderParameters, payload: JWTPayload): void {
  const type = typ?.toLowerCase().replace(/^application\//, '')
  if (type === 'at+jwt') return
  if (type !== undefined && type !== 'jwt') throw new TokenRefused('its header has a type other than at+jwt and JWT')
  if (payload['typ'] === 'Bearer') return
  const isIdToken = payload['typ'] === 'ID' || ID_TOKEN_CLAIMS.some((claim) => Object.hasOwn(payload, claim))
  if (isIdToken) throw new TokenRefused('it is an ID token')
}

/** Without a fragment and one slash at the end. */
function comparable (audience: string): string {
  return audience.replace(/#.*$/s, '').replace(/\/$/, '')
}

/** The claim of this whole name, which may hold dots, else the one that the dots lead to. */
function claimAt (payload: JWTPayload, name: string): unknown {
  if (Object.hasOwn(payload, name)) return payload[name]
  return name.split('.').reduce<unknown>((value, part) => {
    const isThere = typeof value === 'object' && value !== null && Object.hasOwn(value, part)
    return isThere ? Reflect.get(value, part) : undefined
  }, payload)
}

function textOf (value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function textsOf (value: unknown): readonly string[] {
  return [value].flat().filter((item) => typeof item === 'string')
}
