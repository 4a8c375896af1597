import { decodeJwt, errors, type JWTHeaderParameters, type JWTPayload, jwtVerify } from 'jose'
import { own } from '../core/shared/json.ts'
import { quote } from '../operator/setting.ts'
import type { Refusal } from './challenge.ts'
import { type IssuerKeys, IssuerUnavailable } from './issuer-keys.ts'
import type { Identity, IssuerEntry } from './policy.ts'

/** Claims that only ID tokens have (OpenID Connect Core §3.1.3.6, §3.3.2.11). */
const ID_TOKEN_CLAIMS = ['nonce', 'at_hash', 'c_hash']

/** What the text of a token says, unchecked. */
export function issuerOf (token: string): string | undefined {
  try {
    return decodeJwt(token).iss
  } catch {
    return undefined
  }
}

/**
 * Checks an access token (RFC 9068) for this service.
 * @throws what `explainRefusal` explains
 */
export async function verifyToken (token: string, entry: IssuerEntry, keys: IssuerKeys): Promise<Identity> {
  const { issuer, algorithms, clock_tolerance: clockTolerance } = entry
  // Issuers write the address of a service with and without a slash at its end.
  const audience = entry.audiences.map((text) => text.replace(/\/$/, '')).flatMap((text) => [text, `${text}/`])
  const { payload, protectedHeader } = await jwtVerify(token, keys.find, {
    issuer, audience, algorithms: [...algorithms], clockTolerance, requiredClaims: ['exp']
  })
  checkIsAccessToken(protectedHeader, payload)
  // jose checks `nbf` alone, which not every issuer sets.
  const isFromFuture = (payload.iat ?? 0) > Date.now() / 1_000 + clockTolerance
  if (isFromFuture) throw new errors.JWTInvalid('it was issued in the future')
  const [name = ''] = textsOf([payload.sub, payload['client_id'], payload['azp']]).filter((text) => text !== '')
  return {
    kind: 'jwt',
    id: `jwt:${issuer}#${name}`,
    name,
    groups: [...textsOf(claimAt(payload, entry.groups_claim)), ...entry.groups],
    scopes: [...textsOf(payload['scope'] ?? payload['scp']).flatMap((scope) => scope.split(' ')), ...entry.scopes],
    // A stream goes on for as long as its token would open another.
    expiresAt: ((payload.exp ?? 0) + clockTolerance) * 1_000
  }
}

/** Why a token was refused: for its caller, and for the log. */
export function explainRefusal (error: unknown): readonly [refusal: Refusal, reason: string] {
  if (error instanceof errors.JWTClaimValidationFailed && error.claim === 'aud') {
    return ['wrong_audience', `audience ${quote(String(error.payload.aud))} is not in the list of audiences`]
  }
  if (error instanceof errors.JWTExpired) return ['token_expired', 'it has expired']
  if (error instanceof IssuerUnavailable) return ['issuer_unavailable', 'the keys of the issuer cannot be read']
  return ['invalid_token', error instanceof errors.JOSEError ? error.message : 'it cannot be read']
}

/**
 * Refuses ID tokens, which are for the client that got them. A type decides before the list of claims: Keycloak before
 * 25 puts `nonce` into access tokens too, whose payload says `typ: Bearer`.
 */
function checkIsAccessToken ({ typ }: JWTHeaderParameters, payload: JWTPayload): void {
  const type = typ?.toLowerCase().replace(/^application\//, '')
  if (type === 'at+jwt') return
  if (type !== undefined && type !== 'jwt') throw new errors.JWTInvalid('its type is neither at+jwt nor JWT')
  if (payload['typ'] === 'Bearer') return
  const isIdToken = payload['typ'] === 'ID' || ID_TOKEN_CLAIMS.some((claim) => Object.hasOwn(payload, claim))
  if (isIdToken) throw new errors.JWTInvalid('it is an ID token')
}

/** The claim of this whole name, which may hold dots, else the one that the dots lead to. */
function claimAt (payload: JWTPayload, name: string): unknown {
  return own(payload, name) ?? name.split('.').reduce<unknown>(own, payload)
}

function textsOf (value: unknown): readonly string[] {
  return [value].flat().filter((item) => typeof item === 'string')
}
