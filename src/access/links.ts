import type { IncomingMessage } from 'node:http'
import { MASK, SECRET_PREFIXES } from '../secrets.ts'
import { TARGET_ORIGIN } from '../http/problem.ts'
import { digestOf } from './secret.ts'

/** Logs can tell such a secret from other texts. */
const LINK = new RegExp(`^${SECRET_PREFIXES.link}\\w{38}$`)

const DISCOVERY = /^\/\.well-known\/(?:agent-skills|skills)\//

/**
 * The target of a request without a secret, so that routes, logs and problems see none, and the digest of the link that
 * the request came through. Private discovery is `/t/SECRET/.well-known/…`, for clients that send no header.
 * @param links by the digests of their secrets
 */
export function openLink (
  { method = '', url = '/' }: IncomingMessage, basePath: string, links: ReadonlyMap<string, unknown>
): { readonly target: string, readonly link?: string } {
  // The check of the host needs the origin later.
  const prefix = `${TARGET_ORIGIN.exec(url)?.[0] ?? ''}${basePath}`
  if (!url.startsWith(`${prefix}/t/`)) return { target: url }
  const [, secret = '', rest = ''] = /^([^/]*)(.*)$/s.exec(url.slice(`${prefix}/t/`.length)) ?? []
  // The same work for every secret.
  const link = digestOf(secret)
  const isGood = links.has(link) && LINK.test(secret)
  const isOpened = isGood && ['GET', 'HEAD'].includes(method) && DISCOVERY.test(rest)
  return isOpened ? { target: prefix + rest, link } : { target: `${prefix}/t/${MASK}${rest}` }
}
