import { type IncomingMessage, STATUS_CODES } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { ConnectionError, FastifyBaseLogger, FastifyInstance } from 'fastify'
import type { HttpProblemCode } from '../../schemas/problem.ts'
import type { CorsHeaders } from '../cors.ts'
import { securityHeaders } from '../headers.ts'
import { HttpProblem, noteRefusal, PROBLEM_MEDIA_TYPE, RETRY_AFTER_SECONDS, toProblem } from '../problem.ts'
import { plainAddress } from '../request/client-address.ts'
import type { Connections } from './connections.ts'

const REQUEST_LINE = /^[A-Z]+ (\S+)/
/** The parser says the same of a line that ends wrongly. */
const VERSIONED = /^[A-Z]+ \S+ HTTP\/(?!1\.[01])\d\.\d/

/** All that any route takes. */
const METHODS = 'GET, HEAD, POST'

const problemOfError: ReadonlyMap<string, HttpProblemCode> = new Map([
  ['ERR_HTTP_REQUEST_TIMEOUT', 'request_timeout'],
  ['HPE_HEADER_OVERFLOW', 'headers_too_large']
])

/**
 * Fastify's `clientErrorHandler`: what never becomes a whole request (400, 408, 431) gets a problem for an answer, and is the
 * last on its connection. The answers to the requests before it go out first.
 */
export function answerClientErrors (connections: Connections, corsHeaders: CorsHeaders): (this: FastifyInstance, error: ConnectionError, socket: Socket) => void {
  const refused = new WeakSet<Socket>()

  return function answerClientError (error, socket) {
    if (!socket.writable) {
      socket.destroy()
      return
    }
    // Node reports again what comes behind the first error.
    if (refused.has(socket)) return
    refused.add(socket)
    this.log.info({ code: error.code, address: plainAddress(socket.remoteAddress ?? '') }, 'request refused')

    endWith(new HttpProblem(problemOf(error)), requestTarget(error), socket, connections, corsHeaders)
  }
}

/** Node's `connect`: without a listener it cuts off whoever takes the service for a proxy. */
export function answerConnect (connections: Connections, log: FastifyBaseLogger | undefined): (request: IncomingMessage, socket: Duplex) => void {
  return function answerConnect ({ url = '/' }, socket) {
    if (!(socket instanceof Socket)) return
    log?.info({ code: 'CONNECT', address: plainAddress(socket.remoteAddress ?? '') }, 'request refused')
    // Node has taken its own listeners away: an error without one would end the process.
    socket.on('error', () => {}).resume()
    endWith(new HttpProblem('method_not_allowed', `This service is no proxy; it takes ${METHODS}`, { allow: METHODS }), url, socket, connections)
  }
}

/**
 * Node's `timeout` of a connection on which nothing moves: without a listener it is cut off. An answer that is still being made is not given
 * up in silence. What it needs may be there when its client asks again.
 */
export function answerTimeouts (connections: Connections, ms: number, corsHeaders: CorsHeaders): (socket: Socket) => void {
  return function answerTimeout (socket) {
    const [current] = connections.owedTo(socket)
    if (current?.req.complete !== true || current.headersSent || !socket.writable) {
      socket.destroy()
      return
    }
    refuse(new HttpProblem('not_ready', `The answer was not made within ${ms / 1000} s; try again soon`, { 'retry-after': String(RETRY_AFTER_SECONDS) }), current.req.url ?? '/', socket, connections, corsHeaders)
  }
}

/** Sends a problem as the last answer on a connection, after those to the requests before it. */
function endWith (problem: HttpProblem, target: string, socket: Socket, connections: Connections, corsHeaders?: CorsHeaders): void {
  const before = connections.owedTo(socket).findLast(({ req }) => req.complete)
  if (before === undefined) refuse(problem, target, socket, connections, corsHeaders)
  else before.once('finish', () => { refuse(problem, target, socket, connections, corsHeaders) })
}

/** Sends a problem in place of the answer that a connection is owed, and ends it. */
function refuse (problem: HttpProblem, target: string, socket: Socket, connections: Connections, corsHeaders?: CorsHeaders): void {
  // A head in the middle of the response that is being sent would become part of its body.
  const [current] = connections.owedTo(socket)
  if (socket.writable && current?.headersSent !== true) {
    const { head, body } = renderProblem(problem, target, current && corsHeaders?.(current.req))
    socket.write(current?.req.method === 'HEAD' ? head : head + body)
    if (current !== undefined) noteRefusal(current, problem.code)
  }
  socket.destroySoon()
}

function problemOf ({ code, rawPacket }: ConnectionError): HttpProblemCode {
  if (code === 'HPE_INVALID_VERSION' && VERSIONED.test(headOf(rawPacket))) return 'http_version_not_supported'
  return problemOfError.get(code) ?? 'bad_request'
}

/** The target of the request, where the error came with its first line. */
function requestTarget ({ rawPacket }: ConnectionError): string {
  return REQUEST_LINE.exec(headOf(rawPacket))?.[1] ?? '/'
}

/** Node hands over a Buffer; Fastify's type says otherwise. */
function headOf (packet: unknown): string {
  return Buffer.isBuffer(packet) ? packet.toString('latin1', 0, 2048) : ''
}

function renderProblem (error: HttpProblem, target: string, more: Readonly<Record<string, string>> = {}): { readonly head: string, readonly body: string } {
  const problem = toProblem(error, target)
  const body = JSON.stringify(problem)
  const headers = Object.entries({
    ...securityHeaders,
    ...error.headers,
    ...more,
    'cache-control': 'no-store',
    connection: 'close',
    'content-type': PROBLEM_MEDIA_TYPE,
    'content-length': Buffer.byteLength(body),
    date: new Date().toUTCString()
  }).map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return { head: `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${headers}\r\n`, body }
}
