import type { IncomingMessage } from 'node:http'
import { errors } from 'jose'
import { LRUCache } from 'lru-cache'
import type { CoreLog } from '../core/shared/log.ts'
import type { Principal } from '../http/callers.ts'
import { hasSeveral } from '../http/headers.ts'
import { peerOf } from '../http/request/client-address.ts'
import type { Refusal } from './challenge.ts'
import { IssuerKeys, type ReadJson } from './issuer-keys.ts'
import type { Policy } from './policy.ts'
import { digestOf } from './secret.ts'
import { explainRefusal, issuerOf, verifyToken } from './verifier.ts'

/** Longest Authorization header that is read, in characters. */
const MAX_HEADER_CHARACTERS = 8_192

/** How many callers of issuers are remembered, and for how long, in milliseconds. */
const MAX_REMEMBERED = 10_000
const REMEMBERED_MS = 60_000

const BEARER = /^bearer +([\w.~+/-]+=*) *$/i

/** A token there would be in logs and histories (RFC 6750 §2.3). */
const TOKEN_IN_QUERY = /[?&]access_token=/i
const MAX_NAME_CHARACTERS = 256
const MAX_PROXY_GROUPS = 500

/** Finds out who sent a request, under one policy. Of secrets only digests are kept. */
export class Authenticator {
  readonly policy: Policy
  /** In the order of the issuers. */
  readonly keys: readonly IssuerKeys[]
  readonly #log: CoreLog
  /** Callers whose signatures were checked, by the digests of their tokens. */
  readonly #verified = new LRUCache<string, Principal>({ max: MAX_REMEMBERED, ttl: REMEMBERED_MS })

  /** @param known keys of the policy before: those of issuers that are the same stay */
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
   * @param link digest of the link that the request came through
   * @param session token of a person who has signed in to the pages
   */
  async authenticate (
    request: IncomingMessage, link: string | undefined, session?: string
  ): Promise<Principal | Refusal> {
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
    if (known !== undefined) return unlessExpired(known, 'token_expired')
    const found = await this.#verify(token)
    if (typeof found !== 'string') this.#verified.set(digest, found)
    return found
  }

  /** A refused token of a known issuer is logged with the reason, and without the token. */
  async #verify (token: string): Promise<Principal | Refusal> {
    const issuer = issuerOf(token)
    const index = this.policy.issuers.findIndex((entry) => entry.issuer === issuer)
    const [entry, keys] = [this.policy.issuers[index], this.keys[index]]
    if (entry === undefined || keys === undefined) return 'invalid_token'
    try {
      const identity = await verifyToken(token, entry, keys).catch(async (error: unknown) => {
        // The issuer may have another key under the same id by now.
        const isOther = error instanceof errors.JWSSignatureVerificationFailed && await keys.refresh()
        if (!isOther) throw error
        return await verifyToken(token, entry, keys)
      })
      return this.policy.admit(identity)
    } catch (error) {
      const [refusal, reason] = explainRefusal(error)
      this.#log.info({ issuer, reason }, 'a token was refused')
      return refusal
    }
  }

  /** What an authenticating proxy says, if the connection comes from it. Anybody may send such headers. */
  #fromProxy (request: IncomingMessage): Principal | Refusal | undefined {
    const { proxy } = this.policy
    if (proxy?.isPeer(peerOf(request)) !== true) return undefined
    const user = request.headers[proxy.userHeader]
    if (user === undefined) return undefined
    const groups = String(request.headers[proxy.groupsHeader] ?? '').split(/[,|;]/)
      .map((group) => group.trim()).filter((group) => group !== '')
    // A second line, or a blank name, was added by the caller.
    const isForged = [proxy.userHeader, proxy.groupsHeader].some((name) => hasSeveral(request, name))
    const name = typeof user === 'string' && user.length <= MAX_NAME_CHARACTERS ? user.trim() : ''
    if (isForged || name === '' || groups.length > MAX_PROXY_GROUPS) return 'invalid_credentials'
    return this.policy.admit({ kind: 'proxy', id: `proxy:${name}`, name, groups, scopes: proxy.scopes })
  }
}

function unlessExpired (found: Principal | Refusal, refusal: Refusal): Principal | Refusal {
  return typeof found === 'string' || (found.expiresAt ?? Infinity) > Date.now() ? found : refusal
}
