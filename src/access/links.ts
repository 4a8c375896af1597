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
  readonly #basePath: string
  readonly #isLink: (digest: string) => boolean
  readonly #digests = new WeakMap<IncomingMessage, string>()

  /** @param isLink whether a digest is that of a link */
  constructor (basePath: string, isLink: (digest: string) => boolean) {
    this.#basePath = basePath
    this.#isLink = isLink
  }

  /** The target without a secret. */
  readonly rewrite = (request: IncomingMessage): string => {
    const { method = '', url = '/' } = request
    // The check of the host needs the origin later.
    const [origin = ''] = TARGET_ORIGIN.exec(url) ?? []
    const prefix = `${origin}${this.#basePath}`
    if (!url.startsWith(`${prefix}/t/`)) return url
    const [, secret = '', rest = ''] = /^([^/]*)(.*)$/s.exec(url.slice(`${prefix}/t/`.length)) ?? []
    // The same work for every secret.
    const digest = digestOf(secret)
    const isGood = this.#isLink(digest) && LINK.test(secret)
    const isOpened = isGood && ['GET', 'HEAD'].includes(method) && DISCOVERY.test(rest)
    if (isOpened) this.#digests.set(request, digest)
    const target = `${prefix}${isOpened ? '' : `/t/${MASK}`}${rest}`
    // Fastify has kept the target for callers that want the original one.
    Object.assign(request, { originalUrl: target })
    return target
  }

  /** The digest of the link that a request came through. */
  digestOf (request: IncomingMessage): string | undefined {
    return this.#digests.get(request)
  }
}
