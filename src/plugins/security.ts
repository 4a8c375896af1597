import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { securityHeaders } from '../http/headers.ts'
import { hostOf, isLoopback, parseHost } from '../http/request/hosts.ts'
import { HttpProblem } from '../http/problem.ts'
import { hasSeveral, protocolProblem, targetAuthority } from '../http/request/protocol.ts'

export interface SecurityOptions {
  /** The service is bound to a loopback address. */
  readonly loopbackOnly: boolean
  /** Names and addresses; brackets, ports and case do not count. Empty: no restriction beyond `loopbackOnly`. */
  readonly allowedHosts: readonly string[]
}

/**
 * The check of the request's host against DNS rebinding. On a loopback address loopback names and those of `allowedHosts`
 * pass, elsewhere exactly those of `allowedHosts`, or any when the list is empty.
 * @throws {Error} when an entry of `allowedHosts` is not a host
 */
function createHostCheck (options: SecurityOptions): (request: IncomingMessage) => HttpProblem | undefined {
  const { loopbackOnly } = options
  const allowed = new Set(options.allowedHosts.map((entry) => {
    const name = parseHost(entry)
    if (name === undefined) throw new Error(`Not a host name: '${entry}'`)
    return name
  }))

  // Clients keep to one name: the value that was accepted last needs no parsing.
  let accepted: string | undefined

  return function check (request) {
    const { headers: { host }, url } = request
    const target = targetAuthority(url)
    if (host !== undefined && host === accepted && target === undefined && !hasSeveral(request, 'host')) return undefined
    if (host === undefined && request.httpVersion !== '1.0') return new HttpProblem('bad_request', 'Send exactly one Host header')
    // RFC 9112 §3.2.
    if (hasSeveral(request, 'host')) return new HttpProblem('bad_request', 'Send exactly one Host header')
    const problem = refuse(target ?? host)
    if (problem === undefined && target === undefined) accepted = host
    return problem
  }

  function refuse (authority: string | undefined): HttpProblem | undefined {
    const name = authority === undefined ? undefined : hostOf(authority)
    if (loopbackOnly || allowed.size > 0) {
      const accepted = name !== undefined && ((loopbackOnly && isLoopback(name)) || allowed.has(name))
      return accepted ? undefined : new HttpProblem('host_not_allowed')
    }
    return authority !== undefined && name === undefined ? new HttpProblem('bad_request', 'The host of the request is not a host and port') : undefined
  }
}

/** Registered first: its hook refuses a request before any other hook runs, and sets the headers of every answer. */
export const security = fp(async function security (app: FastifyInstance, options: SecurityOptions) {
  const check = createHostCheck(options)

  app.addHook('onRequest', (request, reply, next) => {
    reply.headers(securityHeaders).header('x-request-id', request.id)
    const problem = protocolProblem(request.raw) ?? check(request.raw)
    if (problem === undefined) next()
    else next(problem)
  })
}, { name: 'security' })
