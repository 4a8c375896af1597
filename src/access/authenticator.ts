import type { IncomingMessage } from 'node:http'
import { decodeJwt, errors, type JWTHeaderParameters, type JWTPayload, jwtVerify } from 'jose'
import { LRUCache } from 'lru-cache'
import { own } from '../core/shared/json.ts'
import type { CoreLog } from '../core/shared/log.ts'
import type { Principal } from '../http/callers.ts'
import { hasSeveral } from '../http/headers.ts'
import { peerOf } from '../http/request/client-address.ts'
import { quote } from '../operator/setting.ts'
import type { Refusal } from './challenge.ts'
import { IssuerKeys, IssuerUnavailable, type ReadJson } from './issuer-keys.ts'
import type { Identity, IssuerEntry, Policy } from './policy.ts'
import { digestOf } from './secret.ts'

/** Longest `Authorization` header that is read, in characters. */
const MAX_HEADER_CHARACTERS = 8_192

/** Number of verified token callers that are cached, and the time for which they are, in milliseconds. */
const MAX_REMEMBERED = 10_000
const REMEMBERED_MS = 60_000

const BEARER = /^bearer +([\w.~+/-]+=*) *$/i

/** A token in the query, which would end up in logs and browser histories (RFC 6750 §2.3). */
const TOKEN_IN_QUERY = /[?&]access_token=/i
const MAX_NAME_CHARACTERS = 256
const MAX_PROXY_GROUPS = 500

/** Claims that only ID tokens have (OpenID Connect Core §3.1.3.6, §3.3.2.11). */
const ID_TOKEN_CLAIMS = ['nonce', 'at_hash', 'c_hash']

/** Finds the caller of a request by one policy. It keeps digests of secrets, and no secret. */
export class Authenticator {
  readonly policy: Policy
  /** The keys of each issuer, in the order of the access file. */
  readonly keys: readonly IssuerKeys[]
  readonly #log: CoreLog
  /** Callers whose JWT was verified, by the digest of the token. */
  readonly #verified = new LRUCache<string, Principal>({ max: MAX_REMEMBERED, ttl: REMEMBERED_MS })

  /** @param known keys of the policy before; the new one reuses those of the same issuers */
  constructor (policy: Policy, log: CoreLog, readJson: ReadJson, known: readonly IssuerKeys[] = []) {
    this.policy = policy
    this.#log = log
    this.keys = policy.issuers.map((entry) =>
      known.find((keys) => keys.isOf(entry)) ?? new IssuerKeys(entry, log, readJson))
  }

  findToken (token: string): Principal | Refusal {
    return unlessExpired(this.policy.tokens.get(digestOf(token)) ?? 'invalid_token', 'token_expired')
  }

  /**
   * @param link digest of the secret in the path, if the request came through a link
   * @param session token in the cookie of a person who has signed in to the pages
   * @returns a promise only for a JWT that is not known yet
   */
  authenticate (
    request: IncomingMessage, link: string | undefined, session?: string
  ): Principal | Refusal | Promise<Principal | Refusal> {
    const { url = '', headers: { authorization } } = request
    if (TOKEN_IN_QUERY.test(url)) return 'invalid_credentials'
    if (session !== undefined) return this.findToken(session)
    if (link !== undefined) {
      const holder = authorization === undefined ? this.policy.links.get(link) : 'invalid_credentials'
      return unlessExpired(holder ?? 'unauthenticated', 'unauthenticated')
    }
    if (authorization === undefined) return this.#fromProxy(request) ?? this.policy.anonymous ?? 'unauthenticated'
    if (hasSeveral(request, 'authorization') || authorization.length > MAX_HEADER_CHARACTERS) {
      return 'invalid_credentials'
    }
    const [, token] = BEARER.exec(authorization) ?? []
    if (token === undefined) return /^bearer\b/i.test(authorization) ? 'invalid_credentials' : 'unauthenticated'
    const digest = digestOf(token)
    const known = this.policy.tokens.get(digest) ?? this.#verified.get(digest)
    return known === undefined ? this.#verify(token, digest) : unlessExpired(known, 'token_expired')
  }

  /** Verifies a JWT. Logs why a token of a known issuer is refused, without the token. */
  async #verify (token: string, digest: string): Promise<Principal | Refusal> {
    const issuer = issuerOf(token)
    const index = this.policy.issuers.findIndex((entry) => entry.issuer === issuer)
    const [entry, keys] = [this.policy.issuers[index], this.keys[index]]
    if (entry === undefined || keys === undefined) return 'invalid_token'
    try {
      const identity = await verifyToken(token, entry, keys).catch(async (error: unknown) => {
        // The issuer may have replaced the key and kept its id.
        const isOther = error instanceof errors.JWSSignatureVerificationFailed && await keys.refresh()
        if (!isOther) throw error
        return await verifyToken(token, entry, keys)
      })
      const principal = this.policy.admit(identity)
      this.#verified.set(digest, principal)
      return principal
    } catch (error) {
      const [refusal, reason] = explainRefusal(error)
      this.#log.info({ issuer, reason }, 'a token was refused')
      return refusal
    }
  }

  /** Reads the caller from the headers of an authenticating proxy, if the connection comes from a listed peer. */
  #fromProxy (request: IncomingMessage): Principal | Refusal | undefined {
    const { proxy } = this.policy
    if (proxy?.isPeer(peerOf(request)) !== true) return undefined
    const user = request.headers[proxy.userHeader]
    if (user === undefined) return undefined
    const groups = String(request.headers[proxy.groupsHeader] ?? '').split(/[,|;]/)
      .map((group) => group.trim()).filter((group) => group !== '')
    // The proxy sends one line with a name; the caller has added what differs.
    const isForged = [proxy.userHeader, proxy.groupsHeader].some((name) => hasSeveral(request, name))
    const name = typeof user === 'string' && user.length <= MAX_NAME_CHARACTERS ? user.trim() : ''
    if (isForged || name === '' || groups.length > MAX_PROXY_GROUPS) return 'invalid_credentials'
    return this.policy.admit({ kind: 'proxy', id: `proxy:${name}`, name, groups, scopes: proxy.scopes })
  }
}

function unlessExpired (found: Principal | Refusal, refusal: Refusal): Principal | Refusal {
  return typeof found === 'string' || (found.expiresAt ?? Infinity) > Date.now() ? found : refusal
}

/** Reads the issuer from a token that was not verified yet. */
function issuerOf (token: string): string | undefined {
  try {
    return decodeJwt(token).iss
  } catch {
    return undefined
  }
}

/**
 * Checks an access token (RFC 9068) for this service.
 * @throws an error for `explainRefusal`
 */
async function verifyToken (token: string, entry: IssuerEntry, keys: IssuerKeys): Promise<Identity> {
  const { issuer, algorithms, clock_tolerance: clockTolerance } = entry
  // Issuers write the address of a service with and without a slash at its end.
  const audience = entry.audiences.map((text) => text.replace(/\/$/, '')).flatMap((text) => [text, `${text}/`])
  const { payload, protectedHeader } = await jwtVerify(token, keys.find, {
    issuer, audience, algorithms: [...algorithms], clockTolerance, requiredClaims: ['exp']
  })
  checkIsAccessToken(protectedHeader, payload)
  // jose checks `nbf`, which not every issuer sets, and not `iat`.
  const isFromFuture = (payload.iat ?? 0) > Date.now() / 1_000 + clockTolerance
  if (isFromFuture) throw new errors.JWTInvalid('it was issued in the future')
  const [name = ''] = textsOf([payload.sub, payload['client_id'], payload['azp']]).filter((text) => text !== '')
  return {
    kind: 'jwt',
    id: `jwt:${issuer}#${name}`,
    name,
    groups: [...textsOf(claimAt(payload, entry.groups_claim)), ...entry.groups],
    scopes: [...textsOf(payload['scope'] ?? payload['scp']).flatMap((scope) => scope.split(' ')), ...entry.scopes],
    // With the tolerance: a stream lasts as long as new requests with its token are accepted.
    expiresAt: ((payload.exp ?? 0) + clockTolerance) * 1_000
  }
}

/** Explains why a token was refused, to the caller and in the log. */
function explainRefusal (error: unknown): readonly [refusal: Refusal, reason: string] {
  if (error instanceof errors.JWTClaimValidationFailed && error.claim === 'aud') {
    return ['wrong_audience', `audience ${quote(String(error.payload.aud))} is not in the list of audiences`]
  }
  if (error instanceof errors.JWTExpired) return ['token_expired', 'it has expired']
  if (error instanceof IssuerUnavailable) return ['issuer_unavailable', 'the keys of the issuer cannot be read']
  return ['invalid_token', error instanceof errors.JOSEError ? error.message : 'it cannot be read']
}

/**
 * Refuses ID tokens, which are meant for the client that got them. The `typ` is checked before the claims, since
 * Keycloak before 25 puts `nonce` into access tokens too, whose payload has `typ: Bearer`.
 */
function checkIsAccessToken ({ typ }: JWTHeaderParameters, payload: JWTPayload): void {
  const type = typ?.toLowerCase().replace(/^application\//, '')
  if (type === 'at+jwt') return
  if (type !== undefined && type !== 'jwt') throw new errors.JWTInvalid('its type is neither at+jwt nor JWT')
  if (payload['typ'] === 'Bearer') return
  const isIdToken = payload['typ'] === 'ID' || ID_TOKEN_CLAIMS.some((claim) => Object.hasOwn(payload, claim))
  if (isIdToken) throw new errors.JWTInvalid('it is an ID token')
}

/** Reads the claim of this name. A name with dots is also a path into nested claims. */
function claimAt (payload: JWTPayload, name: string): unknown {
  return own(payload, name) ?? name.split('.').reduce<unknown>(own, payload)
}

function textsOf (value: unknown): readonly string[] {
  return [value].flat().filter((item) => typeof item === 'string')
}
