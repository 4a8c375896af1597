import fp from 'fastify-plugin'
import type { Connections } from './connections.ts'

export interface DrainingOptions {
  readonly connections: Connections
  /** Whether the process has received a signal to stop. From then on each connection ends with the last answer that it is owed. */
  readonly isDraining?: () => boolean
}

/**
 * Announces the end of each connection, so that `app.close()` returns as soon as every owed answer is sent. Of several
 * pipelined requests only the latest is answered with `Connection: close`: Node drops every answer behind that one.
 */
export const draining = fp<DrainingOptions>(function draining (app, { connections, isDraining = () => false }, done) {
  let closing = false

  app.addHook('preClose', (next) => {
    closing = true
    // For answers whose head is sent already, such as a download.
    app.server.keepAliveTimeout = 1
    next()
  })

  app.addHook('onSend', (_request, reply, payload, next) => {
    if (!closing && !isDraining()) return next(null, payload)
    // Some answers are ready while the requests behind them are still being parsed.
    setImmediate(() => {
      if (connections.isLatest(reply.raw)) reply.header('connection', 'close')
      next(null, payload)
    })
  })

  done()
}, { name: 'draining', fastify: '5.x' })
