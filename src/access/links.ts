import type { IncomingMessage } from 'node:http'
import { MASK, SECRET_PREFIXES } from '../secrets.ts'
import { TARGET_ORIGIN } from '../http/problem.ts'
import { digestOf } from './secret.ts'

/** The form of a link's secret, by which logs recognise and mask it. */
const LINK = new RegExp(`^${SECRET_PREFIXES.link}\\w{38}$`)

const DISCOVERY = /^\/\.well-known\/(?:agent-skills|skills)\//

/**
 * Takes the secret of a link out of the target of a request, so that routes, logs and problems do not see it. Returns
 * the new target, and the digest of the secret if the link exists. Private discovery is `/t/SECRET/.well-known/…`, for
 * clients that send no header.
 * @param links by the digests of their secrets
 */
export function openLink (
  { method = '', url = '/' }: IncomingMessage, basePath: string, links: ReadonlyMap<string, unknown>
): { readonly target: string, readonly link?: string } {
  // The origin stays: the check of the host needs it.
  const prefix = `${TARGET_ORIGIN.exec(url)?.[0] ?? ''}${basePath}`
  if (!url.startsWith(`${prefix}/t/`)) return { target: url }
  const [, secret = '', rest = ''] = /^([^/]*)(.*)$/s.exec(url.slice(`${prefix}/t/`.length)) ?? []
  // Computed for every secret: the time of an answer tells nothing.
  const link = digestOf(secret)
  const isGood = links.has(link) && LINK.test(secret)
  const isOpened = isGood && ['GET', 'HEAD'].includes(method) && DISCOVERY.test(rest)
  return isOpened ? { target: prefix + rest, link } : { target: `${prefix}/t/${MASK}${rest}` }
}
