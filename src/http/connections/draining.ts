import type { IncomingMessage } from 'node:http'
import fp from 'fastify-plugin'
import type { HttpSocket } from './http-socket.ts'

export interface DrainingOptions {
  /** Whether the process has been told to stop: from then on each connection ends with the last answer that it is owed. */
  readonly isDraining?: () => boolean
}

/**
 * Lets `app.close()` return as soon as every answer that is owed has been given. Node's own `closeIdleConnections`,
 * which closing calls, cuts an answer that is written but not yet read by a slow client, spares a client that connected
 * and sent nothing, and leaves one that becomes idle later to its keep-alive time. Of pipelined requests, only the latest
 * is told `Connection: close`: Node drops whatever is behind an answer that says so.
 */
export const draining = fp<DrainingOptions>(function draining (app, { isDraining = () => false }, done) {
  /** Open connections, each with the latest request that was received on it. */
  const connections = new Map<HttpSocket, IncomingMessage | undefined>()
  let closing = false

  app.server.on('connection', (socket: HttpSocket) => {
    connections.set(socket, undefined)
    socket.once('close', () => connections.delete(socket))
  })

  // Not a hook: what is refused early reaches none.
  app.server.on('request', (request: IncomingMessage) => {
    if (connections.has(request.socket)) connections.set(request.socket, request)
  })

  app.server.closeIdleConnections = () => {
    for (const socket of connections.keys()) if (!owesAnswer(socket)) socket.destroy()
  }

  app.addHook('preClose', (next) => {
    closing = true
    // For answers whose head is out already, such as a download.
    app.server.keepAliveTimeout = 1
    next()
  })

  app.addHook('onSend', ({ raw }, reply, payload, next) => {
    if (!closing && !isDraining()) return next(null, payload)
    // Some answers are made while the requests behind them are still being parsed.
    setImmediate(() => {
      const last = connections.get(raw.socket)
      if (last === undefined || last === raw) reply.header('connection', 'close')
      next(null, payload)
    })
  })

  done()
}, { name: 'draining', fastify: '5.x' })

function owesAnswer (socket: HttpSocket): boolean {
  return (socket._httpMessage ?? null) !== null || socket.writableLength > 0
}
