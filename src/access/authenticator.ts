import { hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { LRUCache } from 'lru-cache'
import type { CoreLog } from '../core/shared/log.ts'
import { peerOf } from '../http/request/client-address.ts'
import { hasSeveral } from '../http/request/several.ts'
import { JwtVerifier } from './jwt/verifier.ts'
import { type Policy, type Proof, type Refused, refused } from './policy.ts'
import { digestOf } from './secret.ts'

/** Longest Authorization header that is read, in characters. */
const MAX_HEADER_CHARACTERS = 8_192

/** How many proofs are remembered, and those of issuers for how long, in milliseconds: a signature costs more than most answers. */
const MAX_REMEMBERED = 10_000
const REMEMBERED_MS = 60_000

const BEARER = /^bearer +([\w.~+/-]+=*) *$/i
const JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/
const MAX_NAME_CHARACTERS = 256
const MAX_PROXY_GROUPS = 500

export type Authentication = Proof | Refused

const ANONYMOUS: Proof = { kind: 'anonymous' }

/** Finds out who sent a request. Of secrets only digests are kept. */
export class Authenticator {
  readonly #policy: Policy
  readonly #verifier: JwtVerifier | undefined
  /** By the digest of the whole header. */
  readonly #proofs = new LRUCache<string, Proof>({ maxSize: MAX_REMEMBERED, sizeCalculation: () => 1 })

  /** @param before that of the policy before, which is not used any more: keys of issuers stay */
  constructor (policy: Policy, log: CoreLog, before?: Authenticator) {
    this.#policy = policy
    if (policy.issuers.length > 0) this.#verifier = new JwtVerifier(policy.issuers, log, before === undefined ? undefined : before.#verifier)
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
    if (authorization === undefined) return this.#fromProxy(request) ?? ANONYMOUS
    if (hasSeveral(request, 'authorization') || authorization.length > MAX_HEADER_CHARACTERS) return refused('invalid_credentials')
    const digest = hash('sha256', authorization, 'base64')
    const known = this.#proofs.get(digest)
    if (known !== undefined) return this.#unlessExpired(known)
    const [, token] = BEARER.exec(authorization) ?? []
    if (token === undefined) return refused(/^bearer\b/i.test(authorization) ? 'invalid_credentials' : 'unauthenticated')
    const proof = this.#policy.proofOfSecret('token', digestOf(token))
    if (proof !== undefined) {
      this.#proofs.set(digest, proof)
      return this.#unlessExpired(proof)
    }
    return this.#verifier === undefined || !JWT.test(token) ? refused('invalid_token') : this.#verify(this.#verifier, token, digest)
  }

  async #verify (verifier: JwtVerifier, token: string, digest: string): Promise<Authentication> {
    const outcome = await verifier.verify(token)
    if (outcome.kind === 'jwt') this.#proofs.set(digest, outcome, { ttl: REMEMBERED_MS })
    return outcome
  }

  #unlessExpired (proof: Proof): Authentication {
    const { expiresAt = Infinity } = this.#policy.principalOf(proof) ?? {}
    return expiresAt <= Date.now() ? refused('token_expired') : proof
  }

  /** What an authenticating proxy says, if the connection comes from it. Anybody may send such headers. */
  #fromProxy (request: IncomingMessage): Authentication | undefined {
    const { proxy } = this.#policy
    if (proxy?.isPeer(peerOf(request)) !== true) return undefined
    const user = request.headers[proxy.userHeader]
    if (user === undefined) return undefined
    // A second line, or a blank name, was added by the caller.
    if (typeof user !== 'string' || user.trim() === '' || user.length > MAX_NAME_CHARACTERS) return refused('invalid_credentials')
    if (hasSeveral(request, proxy.userHeader) || hasSeveral(request, proxy.groupsHeader)) return refused('invalid_credentials')
    const groups = String(request.headers[proxy.groupsHeader] ?? '').split(/[,|;]/).map((group) => group.trim()).filter((group) => group !== '')
    if (groups.length > MAX_PROXY_GROUPS) return refused('invalid_credentials')
    return { kind: 'proxy', user: user.trim(), groups, terms: proxy.terms }
  }
}
