import { hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { lazyCode } from '../core/files/load-code.ts'
import { Lazy } from '../core/shared/async.ts'
import type { CoreLog } from '../core/shared/log.ts'
import { peerOf } from '../http/request/client-address.ts'
import { hasSeveral } from '../http/request/several.ts'
import type { JwtVerifier } from './jwt/verifier.ts'
import { type Policy, type Proof, type Refused, refused } from './policy.ts'
import { digestOf } from './secret.ts'

/** Longest Authorization header that is read, in characters. */
const MAX_HEADER_CHARACTERS = 8_192

/** Headers with tokens of the access file that are remembered: a holder may write one in many ways. */
const MAX_KNOWN_HEADERS = 10_000

const BEARER = /^bearer +([\w.~+/-]+=*) *$/i
const JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/
const MAX_NAME_CHARACTERS = 256
const MAX_PROXY_GROUPS = 500

export type Authentication = Proof | Refused

const ANONYMOUS: Proof = { kind: 'anonymous' }

const loadVerifier = lazyCode(() => import('./jwt/verifier.ts'))

/** Finds out who sent a request. Only the digest of a secret is kept. */
export class Authenticator {
  readonly #policy: Policy
  /** jose is loaded for the first issuer. */
  readonly #loading: Lazy<JwtVerifier> | undefined
  #verifier: JwtVerifier | undefined
  /** By the digest of the whole header. */
  readonly #known = new Map<string, Proof>()
  /**
   * By connection, the digest of the last header, and a request with it once it has come twice. Where all requests of a connection have
   * the same, a digest for each would be half of what a token costs. Nothing here holds the request, and with it the token.
   */
  readonly #last = new WeakMap<Socket, { digest: string, request: WeakRef<IncomingMessage> | undefined }>()

  /** @param before that of the policy before: keys of issuers stay */
  constructor (policy: Policy, log: CoreLog, before?: Authenticator) {
    this.#policy = policy
    if (policy.issuers.length === 0) {
      before?.close()
      return
    }
    const verifier = before === undefined ? undefined : before.#verifier
    if (verifier === undefined) before?.close()
    this.#loading = new Lazy(async () => {
      const { JwtVerifier } = await loadVerifier()
      this.#verifier = new JwtVerifier(policy.issuers, log, verifier)
      // An issuer may not answer now: the next token asks again.
      this.#verifier.preload()
      return this.#verifier
    })
    // Code that cannot be loaded now is asked for again by the next token.
    void this.#loading.get().catch(() => {})
  }

  /** Issuers whose keys could not be read at the last attempt. */
  get issuersAway (): number {
    return this.#verifier?.issuersAway ?? 0
  }

  close (): void {
    void this.#loading?.peek().then((verifier) => { verifier?.close() })
  }

  /** Synchronous, unless a signature has to be checked. */
  authenticate (request: IncomingMessage): Authentication | Promise<Authentication> {
    const { authorization } = request.headers
    if (authorization === undefined) return this.#fromProxy(request) ?? ANONYMOUS
    if (hasSeveral(request, 'authorization') || authorization.length > MAX_HEADER_CHARACTERS) return refused('invalid_credentials')
    const digest = this.#digestOf(request, authorization)
    const known = this.#known.get(digest) ?? this.#verifier?.remembered(digest)
    if (known !== undefined) return this.#unlessExpired(known)
    const [, token] = BEARER.exec(authorization) ?? []
    if (token === undefined) return refused(/^bearer\b/i.test(authorization) ? 'invalid_credentials' : 'unauthenticated')
    const proof = this.#policy.proofOfSecret('token', digestOf(token))
    if (proof !== undefined) {
      if (this.#known.size === MAX_KNOWN_HEADERS) this.#known.clear()
      this.#known.set(digest, proof)
      return this.#unlessExpired(proof)
    }
    if (this.#loading === undefined || !JWT.test(token)) return refused('invalid_token')
    return this.#loading.get().then((verifier) => verifier.verify(token, digest))
  }

  /** The digest of the whole header, as it came. To hash a part of it takes three times as long, as checks of its form do. */
  #digestOf (request: IncomingMessage, authorization: string): string {
    const last = this.#last.get(request.socket)
    if (last?.request?.deref()?.headers.authorization === authorization) return last.digest
    // Hex takes longer than base64.
    const digest = hash('sha256', authorization, 'base64')
    // Behind a proxy the requests of a connection may be those of many callers: a reference for each would cost more than it saves.
    if (last === undefined) this.#last.set(request.socket, { digest, request: undefined })
    else {
      last.request = last.digest === digest ? new WeakRef(request) : undefined
      last.digest = digest
    }
    return digest
  }

  #unlessExpired (proof: Proof): Authentication {
    const { expiresAt = Infinity } = this.#policy.principalOf(proof) ?? {}
    return expiresAt <= Date.now() ? refused('token_expired') : proof
  }

  /** What an authenticating proxy says, if the connection is its. Anybody may send such headers, so others' count for nothing. */
  #fromProxy (request: IncomingMessage): Authentication | undefined {
    const { proxy } = this.#policy
    if (proxy?.isPeer(peerOf(request)) !== true) return undefined
    const user = request.headers[proxy.userHeader]
    if (user === undefined) return undefined
    // A second line, or a blank name, was added by the caller.
    if (typeof user !== 'string' || user.trim() === '' || user.length > MAX_NAME_CHARACTERS) return refused('invalid_credentials')
    if (hasSeveral(request, proxy.userHeader) || hasSeveral(request, proxy.groupsHeader)) return refused('invalid_credentials')
    const groups = String(request.headers[proxy.groupsHeader] ?? '').split(/[,|;]/).map((group) => group.trim()).filter((group) => group !== '')
    return groups.length > MAX_PROXY_GROUPS ? refused('invalid_credentials') : { kind: 'proxy', user: user.trim(), groups, terms: proxy.terms }
  }
}
