import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { ConnectionError, FastifyInstance } from 'fastify'
import { pendingResponses } from './connections.ts'
import { securityHeaders } from './headers.ts'
import { HttpProblem, PROBLEM_MEDIA_TYPE, toProblem } from './problem.ts'

const PROBLEMS = {
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
  HPE_HEADER_OVERFLOW: 'headers_too_large'
} as const

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
  const refuse = (): void => {
    // A head in the middle of an answer would become part of its body.
    const isFree = pendingResponses(socket)[0]?.headersSent !== true
    if (socket.writable && isFree) socket.write(renderProblem(error.code))
    socket.destroySoon()
  }
  const last = pendingResponses(socket).findLast(({ req }) => req.complete)
  if (last === undefined) refuse()
  else last.once('close', refuse)
}

function renderProblem (code: string): string {
  const problem = toProblem(new HttpProblem(PROBLEMS[code as keyof typeof PROBLEMS] ?? 'bad_request'), '/')
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
