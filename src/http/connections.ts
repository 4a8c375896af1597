import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import fp from 'fastify-plugin'
import type { Shutdown } from './shutdown.ts'

/** Pipelined requests of one connection that may wait for the answers before theirs. */
const MAX_WAITING_REQUESTS = 16

/** How long a connection that has sent no request may still do so once the server closes: Node does not end it. */
const UNUSED_MS = 1_000

/** The answers that each connection waits for, in order, with what starts their handlers. */
const pending = new WeakMap<Socket, Map<ServerResponse, () => void>>()

/** The answers that a client still waits for, in the order of its requests. */
export function pendingResponses (socket: Socket): ServerResponse[] {
  return [...pending.get(socket)?.keys() ?? []]
}

/**
 * Handles the requests of one connection one after the other, and closes a connection that sends too many ahead: Node
 * would handle the thousands that fit into a packet at once. Registered first.
 */
export const connections = fp<{ readonly shutdown: Pick<Shutdown, 'isStopping'> }>((app, { shutdown }, done) => {
  const unused = new Set<Socket>()
  app.server.on('connection', (socket: Socket) => {
    unused.add(socket)
    socket.once('close', () => { unused.delete(socket) })
  })
  app.addHook('onRequest', (request, reply, next) => {
    const { socket } = request.raw
    unused.delete(socket)
    const waiting = pending.get(socket) ?? new Map<ServerResponse, () => void>()
    pending.set(socket, waiting.set(reply.raw, next))
    if (waiting.size > MAX_WAITING_REQUESTS + 1) socket.destroy()
    reply.raw.once('close', () => {
      waiting.delete(reply.raw)
      const [start] = waiting.values()
      if (!socket.destroyed) start?.()
    })
    if (waiting.size === 1) next()
  })
  app.addHook('onSend', (_request, reply, payload, next) => {
    if (shutdown.isStopping) reply.header('connection', 'close')
    next(null, payload)
  })
  app.addHook('preClose', async () => {
    // For answers whose head is sent already, such as a download.
    app.server.keepAliveTimeout = 1
    for (const socket of unused) socket.setTimeout(UNUSED_MS)
  })
  done()
}, { name: 'connections' })
