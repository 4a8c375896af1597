import type { IncomingMessage } from 'node:http'
import { decodePercent, MASK } from '../core/shared/text.ts'
import { TARGET_ORIGIN } from '../http/problem.ts'
import { digestOf, isWellFormed } from './secret.ts'

/** A token in a query is refused: it would be in logs (RFC 6750 §5.3). */
const TOKEN_NAME = /^(?:access_)?token$/i

/** A name without a value is matched too: else a long one would take the square of its length. */
const PARAMETER = /([?&]([^=&#]*))(=[^&#]*)?/g

const DISCOVERY = /^\/\.well-known\/(?:agent-skills|skills)\//

/**
 * Takes the secrets out of targets before anything else reads them: routes, logs and problems see none. Private
 * discovery is `/t/SECRET/.well-known/…`, for clients that send no header; its requests go on without `/t/SECRET`.
 */
export class Links {
  readonly #prefix: string
  readonly #isLink: (digest: string) => boolean
  readonly #digests = new WeakMap<IncomingMessage, string>()
  readonly #withToken = new WeakSet<IncomingMessage>()

  /** @param isLink whether a digest is that of a link */
  constructor (basePath: string, isLink: (digest: string) => boolean) {
    this.#prefix = `${basePath}/t/`
    this.#isLink = isLink
  }

  /** The target without secrets. */
  rewrite (request: IncomingMessage): string {
    const { url = '/' } = request
    // The check of the host needs the origin later.
    const start = url.startsWith('/') ? 0 : TARGET_ORIGIN.exec(url)?.[0].length ?? 0
    const hasQuery = url.includes('?')
    if (!hasQuery && !url.startsWith(this.#prefix, start)) return url
    let target = url
    if (hasQuery) {
      target = url.replace(PARAMETER, (parameter, head: string, name: string, value?: string) =>
        value !== undefined && TOKEN_NAME.test(decodePercent(name) ?? name) ? `${head}=${MASK}` : parameter)
      if (target !== url) this.#withToken.add(request)
    }
    const isLink = target.startsWith(this.#prefix, start)
    if (isLink) target = target.slice(0, start) + this.#open(request, target.slice(start))
    // Fastify has kept the target for callers that want the original one.
    if (target !== url) Object.assign(request, { originalUrl: target })
    return target
  }

  /** The digest of the link that a request came through. */
  digestOf (request: IncomingMessage): string | undefined {
    return this.#digests.get(request)
  }

  hasTokenInQuery (request: IncomingMessage): boolean {
    return this.#withToken.has(request)
  }

  #open (request: IncomingMessage, target: string): string {
    const start = this.#prefix.length
    const end = target.indexOf('/', start)
    const [secret, rest] = end === -1 ? [target.slice(start), ''] : [target.slice(start, end), target.slice(end)]
    // The same work for every secret.
    const digest = digestOf(secret)
    const isGood = this.#isLink(digest) && isWellFormed('link', secret)
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    if (!isGood || !isRead || !DISCOVERY.test(rest)) return `${this.#prefix}${MASK}${rest}`
    this.#digests.set(request, digest)
    return this.#prefix.slice(0, -'/t/'.length) + rest
  }
}
