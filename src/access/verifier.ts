import { decodeJwt, errors, type JWTHeaderParameters, type JWTPayload, jwtVerify } from 'jose'
import { own } from '../core/shared/json.ts'
import type { CoreLog } from '../core/shared/log.ts'
import type { Principal } from '../http/callers.ts'
import type { Refusal } from './challenge.ts'
import { IssuerAway, IssuerKeys } from './issuer-keys.ts'
import type { IssuerEntry, Policy } from './policy.ts'

/** RFC 9864 calls EdDSA with the curve Ed25519 by the name of the curve. */
const DEFAULT_ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519']
const DEFAULT_CLOCK_TOLERANCE_S = 30

/** Claims that only ID tokens have (OpenID Connect Core §3.1.3.6, §3.3.2.11). */
const ID_TOKEN_CLAIMS = ['nonce', 'at_hash', 'c_hash']

/** Why a token is refused, for the log. */
class TokenRefused extends Error {}

class WrongAudience extends TokenRefused {}

/** Checks access tokens (RFC 9068) of the issuers of one policy. */
export class JwtVerifier {
  readonly #policy: Policy
  readonly #log: CoreLog
  readonly #keys: ReadonlyMap<IssuerEntry, IssuerKeys>

  /** @param before of the policy before: the keys of issuers that are the same stay */
  constructor (policy: Policy, log: CoreLog, before?: JwtVerifier) {
    this.#policy = policy
    this.#log = log
    const known = [...before === undefined ? [] : before.#keys]
    this.#keys = new Map(policy.issuers.map((entry) => {
      const [, keys] = known.find(([{ issuer, jwks_uri: uri }]) =>
        issuer === entry.issuer && uri === entry.jwks_uri) ?? []
      return [entry, keys ?? new IssuerKeys(entry, log)]
    }))
  }

  /** Issuers whose keys could not be read at the last attempt. */
  get issuersAway (): number {
    return [...this.#keys.values()].filter(({ isAway }) => isAway).length
  }

  /** Never throws. A refused token of a known issuer is logged with the reason, and without the token. */
  async verify (token: string): Promise<Principal | Refusal> {
    const issuer = issuerOf(token)
    const [entry, keys] = [...this.#keys].find(([each]) => each.issuer === issuer) ?? []
    if (entry === undefined || keys === undefined) return 'invalid_token'
    try {
      return this.#principalOf(await check(token, entry, keys), entry)
    } catch (error) {
      const [refusal, reason] = explain(error)
      this.#log.info({ issuer, reason }, 'a token was refused')
      return refusal
    }
  }

  #principalOf (payload: JWTPayload, entry: IssuerEntry): Principal {
    const { issuer, groups = [], scopes = [] } = entry
    const name = textOf(payload.sub) ?? textOf(payload['client_id']) ?? textOf(payload['azp']) ?? ''
    // As tokens of Entra do.
    if (Object.hasOwn(payload, '_claim_names')) {
      this.#log.info({ issuer, subject: name }, 'a token names its groups elsewhere; its caller is in none')
    }
    return this.#policy.admit({
      kind: 'jwt',
      id: `jwt:${issuer}#${name}`,
      name,
      groups: [...textsOf(claimAt(payload, entry.groups_claim ?? 'groups')), ...groups],
      // A stream goes on for as long as its token would open another.
      expiresAt: ((payload.exp ?? 0) + clockToleranceOf(entry)) * 1_000
    }, [...textsOf(payload['scope'] ?? payload['scp']).flatMap((scope) => scope.split(' ')), ...scopes])
  }
}

function issuerOf (token: string): string {
  try {
    return decodeJwt(token).iss ?? ''
  } catch {
    return ''
  }
}

function clockToleranceOf ({ clock_tolerance: tolerance = DEFAULT_CLOCK_TOLERANCE_S }: IssuerEntry): number {
  return tolerance
}

/** The claims of an access token for this service. */
async function check (token: string, entry: IssuerEntry, keys: IssuerKeys): Promise<JWTPayload> {
  const { issuer, audiences, algorithms = DEFAULT_ALGORITHMS } = entry
  const clockTolerance = clockToleranceOf(entry)
  const { payload, protectedHeader } = await jwtVerify(token, keys.find, {
    issuer, algorithms: [...algorithms], clockTolerance, requiredClaims: ['exp', 'aud']
  })
  checkIsAccessToken(protectedHeader, payload)
  // jose checks `nbf` alone, which not every issuer sets.
  if ((payload.iat ?? 0) > Date.now() / 1_000 + clockTolerance) throw new TokenRefused('it was issued in the future')
  const accepted = audiences.map(comparable)
  if (![payload.aud ?? []].flat().some((audience) => accepted.includes(comparable(audience)))) {
    throw new WrongAudience('its audience is not in the list of audiences')
  }
  return payload
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
  return own(payload, name) ?? name.split('.').reduce<unknown>(own, payload)
}

function textOf (value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function textsOf (value: unknown): readonly string[] {
  return [value].flat().filter((item) => typeof item === 'string')
}
