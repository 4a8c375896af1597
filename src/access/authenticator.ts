import { hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { LRUCache } from 'lru-cache'
import type { CoreLog } from '../core/shared/log.ts'
import { peerOf } from '../http/request/client-address.ts'
import { hasSeveral } from '../http/request/several.ts'
import { type Caller, type Policy, type Proof, type Refused, refused, unlessExpired } from './policy.ts'
import { digestOf } from './secret.ts'
import { JwtVerifier } from './verifier.ts'

/** Longest Authorization header that is read, in characters. */
const MAX_HEADER_CHARACTERS = 8_192

/** How many callers are remembered, and those of issuers for how long, in milliseconds. */
const MAX_REMEMBERED = 10_000
const REMEMBERED_MS = 60_000

const BEARER = /^bearer +([\w.~+/-]+=*) *$/i
const JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/
const MAX_NAME_CHARACTERS = 256
const MAX_PROXY_GROUPS = 500

export type Authentication = Caller | Refused

/** Finds out who sent a request, under one policy. Of secrets only digests are kept. */
export class Authenticator {
  readonly #policy: Policy
  readonly #verifier: JwtVerifier | undefined
  /** By the digest of the whole header. */
  readonly #callers = new LRUCache<string, Caller>({ max: MAX_REMEMBERED })

  /** @param before that of the policy before, which is not used any more: keys of issuers stay */
  constructor (policy: Policy, log: CoreLog, before?: Authenticator) {
    this.#policy = policy
    if (policy.issuers.length > 0) this.#verifier = new JwtVerifier(policy.issuers, log, before && before.#verifier)
    else before?.close()
  }

  /** Issuers whose keys could not be read at the last attempt. */
  get issuersAway (): number {
    return this.#verifier?.issuersAway ?? 0
  }

  close (): void {
    this.#verifier?.close()
  }

  /** Synchronous, unless a signature has to be checked. */
  authenticate (request: IncomingMessage): Authentication | Promise<Authentication> {
    const { authorization } = request.headers
    if (authorization === undefined) return this.#fromProxy(request) ?? this.#policy.authenticate({ kind: 'anonymous' })
    if (hasSeveral(request, 'authorization') || authorization.length > MAX_HEADER_CHARACTERS) {
      return refused('invalid_credentials')
    }
    const digest = hash('sha256', authorization, 'base64')
    const known = this.#callers.get(digest)
    if (known !== undefined) return unlessExpired(known)
    const [, token] = BEARER.exec(authorization) ?? []
    const isBearer = /^bearer\b/i.test(authorization)
    if (token === undefined) return refused(isBearer ? 'invalid_credentials' : 'unauthenticated')
    const found = this.#remember(digest, { kind: 'token', digest: digestOf(token) })
    const isOther = found.kind === 'refused' && found.refusal === 'invalid_token'
    if (!isOther || this.#verifier === undefined || !JWT.test(token)) return found
    return this.#verifier.verify(token).then((proof) => this.#remember(digest, proof))
  }

  #remember (digest: string, proof: Proof | Refused): Authentication {
    if (proof.kind === 'refused') return proof
    const found = this.#policy.authenticate(proof)
    if (found.kind === 'caller') this.#callers.set(digest, found, proof.kind === 'jwt' ? { ttl: REMEMBERED_MS } : {})
    return found
  }

  /** What an authenticating proxy says, if the connection comes from it. Anybody may send such headers. */
  #fromProxy (request: IncomingMessage): Authentication | undefined {
    const { proxy } = this.#policy
    if (proxy?.isPeer(peerOf(request)) !== true) return undefined
    const user = request.headers[proxy.userHeader]
    if (user === undefined) return undefined
    const groups = String(request.headers[proxy.groupsHeader] ?? '').split(/[,|;]/)
      .map((group) => group.trim()).filter((group) => group !== '')
    // A second line, or a blank name, was added by the caller.
    const isForged = [proxy.userHeader, proxy.groupsHeader].some((name) => hasSeveral(request, name))
    const name = typeof user === 'string' && user.length <= MAX_NAME_CHARACTERS ? user.trim() : ''
    if (isForged || name === '' || groups.length > MAX_PROXY_GROUPS) return refused('invalid_credentials')
    return this.#policy.authenticate({ kind: 'proxy', user: name, groups, proxy: proxy.text })
  }
}
