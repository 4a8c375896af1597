import fp from 'fastify-plugin'
import type { Connections } from './connections.ts'
import { Shutdown } from './shutdown.ts'

export interface DrainingOptions {
  readonly connections: Connections
  /** As soon as the process is leaving, each connection ends with the last answer that it is owed. */
  readonly shutdown?: Shutdown
}

/**
 * Announces the end of each connection, so that `app.close()` returns as soon as every owed answer is sent. Of several
 * pipelined requests only the latest is answered with `Connection: close`: Node drops every answer behind that one.
 */
export const draining = fp<DrainingOptions>(function draining (app, { connections, shutdown = new Shutdown() }, done) {
  let closing = false

  app.addHook('preClose', (next) => {
    closing = true
    // For answers whose head is sent already, such as a download.
    app.server.keepAliveTimeout = 1
    next()
  })

  app.addHook('onSend', (_request, reply, payload, next) => {
    if (!closing && !shutdown.isLeaving) return next(null, payload)
    // Some answers are ready while the requests behind them are still being parsed.
    setImmediate(() => {
      if (connections.isLatest(reply.raw)) reply.header('connection', 'close')
      // Fastify ends the connection with any request that it is given after `close()`, those behind it or not.
      else reply.raw.removeHeader('connection')
      next(null, payload)
    })
  })

  done()
}, { name: 'draining', fastify: '5.x' })
