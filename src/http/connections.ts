import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import fp from 'fastify-plugin'
import type { Shutdown } from './shutdown.ts'

/** Pipelined requests of one connection that may wait for the answers before theirs. */
const MAX_WAITING_REQUESTS = 16

/**
 * How long a connection that has sent no request yet may still do so once the server closes: Node does not count it as
 * idle.
 */
const UNUSED_MS = 1_000

interface Exchange {
  readonly response: ServerResponse
  /** Lets the request pass to its handler. */
  readonly start: () => void
}

/**
 * The requests of each connection that have no complete answer yet, in their order: only the first is being handled.
 */
const exchanges = new WeakMap<Socket, Exchange[]>()

/** The answers that a client still waits for, in the order of its requests. */
export function pendingResponses (socket: Socket): ServerResponse[] {
  return exchanges.get(socket)?.map(({ response }) => response) ?? []
}

/**
 * Handles the requests of one connection one after the other, and closes a connection that sends too many ahead. Node
 * calls the handler for each of the thousands that fit into a packet, and their files would stay open after the client
 * has left. Registered first.
 */
export const connections = fp<{ readonly shutdown: Shutdown }>(function connections (app, { shutdown }, done) {
  const unused = new Set<Socket>()
  let isClosing = false
  app.server.on('connection', (socket: Socket) => {
    if (isClosing) socket.setTimeout(UNUSED_MS)
    unused.add(socket)
    socket.once('close', () => { unused.delete(socket) })
  })

  app.addHook('onRequest', (request, reply, next) => {
    const { socket } = request.raw
    unused.delete(socket)
    let pending = exchanges.get(socket)
    if (pending === undefined) exchanges.set(socket, pending = [])
    pending.push({ response: reply.raw, start: next })
    if (pending.length > MAX_WAITING_REQUESTS + 1) socket.destroy()
    reply.raw.once('close', () => {
      pending.shift()
      if (!socket.destroyed) pending[0]?.start()
    })
    if (pending.length === 1) next()
  })

  app.addHook('onSend', (_request, reply, payload, next) => {
    if (shutdown.isStopping) reply.header('connection', 'close')
    next(null, payload)
  })
  app.addHook('preClose', async () => {
    isClosing = true
    // For answers whose head is sent already, such as a download.
    app.server.keepAliveTimeout = 1
    for (const socket of unused) socket.setTimeout(UNUSED_MS)
  })
  done()
}, { name: 'connections' })
