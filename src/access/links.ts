import type { IncomingMessage } from 'node:http'
import { MASK, SECRET_PREFIXES } from '../core/shared/text.ts'
import { TARGET_ORIGIN } from '../http/problem.ts'
import { digestOf } from './secret.ts'

/** Logs can tell such a secret from other texts. */
const LINK = new RegExp(`^${SECRET_PREFIXES.link}\\w{38}$`)

const DISCOVERY = /^\/\.well-known\/(?:agent-skills|skills)\//

/**
 * Takes the secrets out of targets before anything else reads them: routes, logs and problems see none. Private
 * discovery is `/t/SECRET/.well-known/…`, for clients that send no header; its requests go on without `/t/SECRET`.
 */
export class Links {
  readonly #prefix: string
  readonly #isLink: (digest: string) => boolean
  readonly #digests = new WeakMap<IncomingMessage, string>()

  /** @param isLink whether a digest is that of a link */
  constructor (basePath: string, isLink: (digest: string) => boolean) {
    this.#prefix = `${basePath}/t/`
    this.#isLink = isLink
  }

  /** The target without a secret. */
  rewrite (request: IncomingMessage): string {
    const { url = '/' } = request
    // The check of the host needs the origin later.
    const start = url.startsWith('/') ? 0 : TARGET_ORIGIN.exec(url)?.[0].length ?? 0
    if (!url.startsWith(this.#prefix, start)) return url
    const target = url.slice(0, start) + this.#open(request, url.slice(start))
    // Fastify has kept the target for callers that want the original one.
    Object.assign(request, { originalUrl: target })
    return target
  }

  /** The digest of the link that a request came through. */
  digestOf (request: IncomingMessage): string | undefined {
    return this.#digests.get(request)
  }

  #open (request: IncomingMessage, target: string): string {
    const start = this.#prefix.length
    const end = target.indexOf('/', start)
    const [secret, rest] = end === -1 ? [target.slice(start), ''] : [target.slice(start, end), target.slice(end)]
    // The same work for every secret.
    const digest = digestOf(secret)
    const isGood = this.#isLink(digest) && LINK.test(secret)
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    if (!isGood || !isRead || !DISCOVERY.test(rest)) return `${this.#prefix}${MASK}${rest}`
    this.#digests.set(request, digest)
    return this.#prefix.slice(0, -'/t/'.length) + rest
  }
}
