import fp from 'fastify-plugin'
import type { Connections } from './connections.ts'
import { Shutdown } from './shutdown.ts'

export interface DrainingOptions {
  readonly connections: Connections
  /** As soon as the process is leaving, each connection ends with the last answer that it is owed. */
  readonly shutdown?: Shutdown
}

/**
 * Sends the answers of one turn of the event loop together. One behind the other they find clients that are awake: waking one for each
 * costs up to half of a request's CPU time. Announces the end of each connection, so that `app.close()` returns as soon as
 * every owed answer is sent. Of several pipelined requests only the latest is answered with `Connection: close`: Node drops every
 * answer behind that one.
 */
export const draining = fp<DrainingOptions>(function draining (app, { connections, shutdown = new Shutdown() }, done) {
  let closing = false
  let held: Array<() => void> = []

  function sendHeld (): void {
    const answers = held
    held = []
    for (const send of answers) send()
  }

  app.addHook('preClose', (next) => {
    closing = true
    // For answers whose head is sent already, such as a download.
    app.server.keepAliveTimeout = 1
    next()
  })

  app.addHook('onSend', (_request, reply, payload, next) => {
    // Some answers are ready while the requests behind them are still being parsed.
    const count = held.push(() => {
      if (closing || shutdown.isLeaving) {
        if (connections.isLatest(reply.raw)) reply.header('connection', 'close')
        // Fastify ends the connection with any request that it is given after `close()`, those behind it or not.
        else reply.raw.removeHeader('connection')
      }
      // Nobody would catch an error that Node throws for a bad head.
      try {
        next(null, payload)
      } catch (error) {
        next(error as Error)
      }
    })
    if (count === 1) setImmediate(sendHeld)
  })

  done()
}, { name: 'draining' })
