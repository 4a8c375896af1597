import fp from 'fastify-plugin'
import type { HttpSocket } from './http-socket.ts'

export interface DrainingOptions {
  /** Whether the process has been told to stop: from then on each answer is the last of its connection. */
  readonly isDraining?: () => boolean
}

/**
 * Lets `app.close()` return as soon as every answer that is owed has been given. Node's own `closeIdleConnections`,
 * which closing calls, cuts an answer that is written but not yet read by a slow client, spares a client that connected
 * and sent nothing, and leaves one that becomes idle later to its keep-alive time. Nothing here costs a request
 * more than a look at two flags.
 */
export const draining = fp<DrainingOptions>(function draining (app, { isDraining = () => false }, done) {
  const sockets = new Set<HttpSocket>()
  let closing = false

  app.server.on('connection', (socket: HttpSocket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })

  app.server.closeIdleConnections = () => {
    for (const socket of sockets) if (!owesAnswer(socket)) socket.destroy()
  }

  app.addHook('preClose', (next) => {
    closing = true
    // For answers whose head is out already, such as a download.
    app.server.keepAliveTimeout = 1
    next()
  })

  app.addHook('onSend', (_request, reply, payload, next) => {
    if (closing || isDraining()) reply.header('connection', 'close')
    next(null, payload)
  })

  done()
}, { name: 'draining', fastify: '5.x' })

function owesAnswer (socket: HttpSocket): boolean {
  return (socket._httpMessage ?? null) !== null || socket.writableLength > 0
}
