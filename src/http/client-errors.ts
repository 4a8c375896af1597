import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { ConnectionError, FastifyInstance } from 'fastify'
import { pendingResponses } from './connections.ts'
import type { HttpProblemCode } from '../schemas/problem.ts'
import { securityHeaders } from './headers.ts'
import { HttpProblem, PROBLEM_MEDIA_TYPE, toProblem } from './problem.ts'

const problemOfError: ReadonlyMap<string, HttpProblemCode> = new Map([
  ['ERR_HTTP_REQUEST_TIMEOUT', 'request_timeout'],
  ['HPE_HEADER_OVERFLOW', 'headers_too_large']
])

const refused = new WeakSet<Socket>()

/**
 * Fastify's `clientErrorHandler`: what never becomes a whole request (400, 408, 431) gets a problem, and ends its
 * connection. The answers to the requests before it go out first.
 */
export function answerClientError (this: FastifyInstance, error: ConnectionError, socket: Socket): void {
  // Node reports what follows the first error too.
  if (refused.has(socket)) return
  refused.add(socket)
  if (!socket.writable) {
    socket.destroy()
    return
  }
  this.log.info({ code: error.code, address: socket.remoteAddress }, 'request refused')
  const code = problemOfError.get(error.code) ?? 'bad_request'
  const last = pendingResponses(socket).findLast(({ req }) => req.complete)
  if (last === undefined) refuse(socket, code)
  else last.once('close', () => { refuse(socket, code) })
}

function refuse (socket: Socket, code: HttpProblemCode): void {
  const [current] = pendingResponses(socket)
  // A head in the middle of an answer would become part of its body.
  if (socket.writable && current?.headersSent !== true) socket.write(renderProblem(new HttpProblem(code)))
  socket.destroySoon()
}

function renderProblem (error: HttpProblem): string {
  const problem = toProblem(error, '/')
  const body = JSON.stringify(problem)
  const headers = Object.entries({
    ...securityHeaders,
    'cache-control': 'no-store',
    connection: 'close',
    'content-type': PROBLEM_MEDIA_TYPE,
    'content-length': Buffer.byteLength(body),
    date: new Date().toUTCString()
  }).map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${headers}\r\n${body}`
}
