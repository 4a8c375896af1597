import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ConnectionError, FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { HttpProblem, PROBLEM_MEDIA_TYPE, toProblem } from './problem.ts'
import type { Shutdown } from './shutdown.ts'

/** Pipelined requests of one connection that may wait for the answer before theirs. */
const MAX_WAITING_REQUESTS = 16

/** How long clients with an open connection have to receive `Connection: close` before the port is closed. */
const ANNOUNCE_MS = 200

/** How long a connection without any request stays open once the server closes; Node does not close it. */
const UNUSED_MS = 1_000

/** How long clients may take to receive their last answers. */
const DRAIN_DEADLINE_MS = 8_000

/** The unfinished answers of each connection, in order, with the functions that start their handlers. */
const answers = new WeakMap<Socket, Map<ServerResponse, () => void>>()

function openAnswers (socket: Socket): ServerResponse[] {
  return [...answers.get(socket)?.keys() ?? []]
}

/**
 * Handles the requests of a connection one after the other: when a connection ends, Node does not close an answer that
 * waits behind another one, and its file would stay open. Closes connections that send too many requests ahead, and all
 * of them when the server closes.
 */
export const connections = fp<{ readonly shutdown: Pick<Shutdown, 'isStopping'> }>((app, { shutdown }, done) => {
  const sockets = new Set<Socket>()
  app.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => { sockets.delete(socket) })
  })
  app.addHook('onRequest', (request, reply, next) => {
    const { socket } = request.raw
    const open = answers.get(socket) ?? new Map<ServerResponse, () => void>()
    answers.set(socket, open.set(reply.raw, next))
    if (open.size > MAX_WAITING_REQUESTS + 1) socket.destroy()
    reply.raw.once('close', () => {
      open.delete(reply.raw)
      const [start] = open.values()
      if (!socket.destroyed) start?.()
    })
    if (open.size === 1) next()
  })
  // Node would also destroy a connection whose answer has ended but has not fully reached its client.
  app.server.closeIdleConnections = () => {
    for (const socket of sockets) if (socket.bytesRead > 0 && openAnswers(socket).length === 0) socket.destroy()
  }
  let deadline: NodeJS.Timeout | undefined
  app.addHook('preClose', async () => {
    deadline = setTimeout(() => {
      app.log.warn('closing the connections that are still open, 8 s after the stop began')
      app.server.closeAllConnections()
    }, DRAIN_DEADLINE_MS)
    if (shutdown.isStopping && sockets.size > 0) await sleep(ANNOUNCE_MS)
    // Node then closes connections after answers whose head was sent without `Connection: close`, such as downloads.
    app.server.keepAliveTimeout = 1
    for (const socket of sockets) if (socket.bytesRead === 0) socket.setTimeout(UNUSED_MS)
  })
  app.addHook('onClose', async () => { clearTimeout(deadline) })
  done()
}, { name: 'connections' })

const PROBLEMS = { ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout', HPE_HEADER_OVERFLOW: 'headers_too_large' } as const

/** Fastify's `clientErrorHandler`: answers bytes that never become a whole request (400, 408, 431) with a problem. */
export function answerClientError (this: FastifyInstance, error: ConnectionError, socket: Socket): void {
  // Node also reports errors that follow the first one.
  if (!socket.writable) return
  this.log.info({ code: error.code, address: socket.remoteAddress }, 'malformed HTTP request')
  const open = openAnswers(socket)
  // Complete requests before the error are still answered; the last answer closes the connection.
  const last = open.findLast(({ req }) => req.complete)
  if (last !== undefined) {
    last.once('close', () => { socket.destroySoon() })
    return
  }
  const code = PROBLEMS[error.code as keyof typeof PROBLEMS] ?? 'bad_request'
  const problem = toProblem(new HttpProblem(code), '/')
  const body = JSON.stringify(problem)
  const lines = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`, 'x-content-type-options: nosniff',
    'cache-control: no-store', 'connection: close', `content-type: ${PROBLEM_MEDIA_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`, '', body
  ]
  // A head in the middle of an answer would become part of its body.
  if (open.every(({ headersSent }) => !headersSent)) socket.write(lines.join('\r\n'))
  socket.destroySoon()
}
