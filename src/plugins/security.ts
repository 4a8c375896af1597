import type { IncomingMessage } from 'node:http'
import fp from 'fastify-plugin'
import { hasSeveral, securityHeaders } from '../http/headers.ts'
import { HttpProblem, TARGET_ORIGIN } from '../http/problem.ts'
import { hostOf, isLoopback } from '../http/request/hosts.ts'

interface SecurityOptions {
  readonly loopbackOnly: boolean
  /** Host names normalized by `parseHost`. Empty: only `loopbackOnly` restricts. */
  readonly allowedHosts: readonly string[]
}

/** Sets the headers of every answer, and refuses requests to another host (DNS rebinding). */
export const security = fp<SecurityOptions>(async function security (app, { loopbackOnly, allowedHosts }) {
  const isOpen = !loopbackOnly && allowedHosts.length === 0
  /** The last allowed authority: most requests name the same one, which is then not parsed again. */
  let lastAllowed: string | undefined

  function hostProblem (request: IncomingMessage): HttpProblem | undefined {
    const { headers: { host }, httpVersion, url = '' } = request
    // RFC 9112 §3.2.
    if (hasSeveral(request, 'host') || (host === undefined && httpVersion !== '1.0')) {
      return new HttpProblem('bad_request', 'Send exactly one Host header')
    }
    // If the target is absolute, its authority replaces the Host header.
    const authority = TARGET_ORIGIN.exec(url)?.[0].replace(/^.*?:\/\//, '') ?? host
    if (authority !== undefined && authority === lastAllowed) return undefined
    const name = hostOf(authority ?? '')
    const isAllowed = isOpen
      ? name !== undefined || authority === undefined
      : name !== undefined && (allowedHosts.includes(name) || (loopbackOnly && isLoopback(name)))
    if (isAllowed) {
      lastAllowed = authority
      return undefined
    }
    if (isOpen) return new HttpProblem('bad_request', 'The host of the request is not a host and port')
    return new HttpProblem('host_not_allowed')
  }

  app.addHook('onRequest', (request, reply, next) => {
    reply.headers({ ...securityHeaders, 'x-request-id': request.id })
    next(framingProblem(request.raw) ?? hostProblem(request.raw))
  })
}, { name: 'security' })

/** Refuses HTTP versions and codings that Node accepts but other programs read differently (RFC 9112 §6.1). */
function framingProblem ({ httpVersionMajor, headers: { 'transfer-encoding': coding = 'chunked' } }: IncomingMessage) {
  const close = { connection: 'close' }
  if (httpVersionMajor !== 1) return new HttpProblem('bad_request', 'Only HTTP/1.x is supported', close)
  if (coding.toLowerCase() === 'chunked') return undefined
  return new HttpProblem('transfer_encoding_unsupported', undefined, close)
}
