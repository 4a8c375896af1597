import type { Socket } from 'node:net'
import fp from 'fastify-plugin'

export interface StalledResponsesOptions {
  /** Time that any response may take to leave, in milliseconds. Default 60 s. */
  readonly graceMs?: number
  /** The slowest that a longer one may leave, in bytes per second. Default 8 KiB/s. */
  readonly bytesPerSecond?: number
  /** Pause between two looks at the connections, in milliseconds. Default 5 s. */
  readonly intervalMs?: number
}

/** Since when a socket has held data that its client has not taken, and how much had left by then. */
interface Pending {
  readonly since: number
  readonly sent: number
}

/**
 * Ends connections whose client takes a response too slowly, or not at all. `connectionTimeout` does not: to it a
 * steady drip of some bytes is activity. A look at all connections now and then costs a request nothing.
 */
export const stalledResponses = fp<StalledResponsesOptions>(function stalledResponses (app, options, done) {
  const { graceMs = 60_000, bytesPerSecond = 8192, intervalMs = 5000 } = options
  const connections = new Map<Socket, Pending | undefined>()

  app.server.on('connection', (socket: Socket) => {
    connections.set(socket, undefined)
    socket.once('close', () => connections.delete(socket))
  })

  const sweep = setInterval(() => {
    const now = performance.now()
    for (const [socket, pending] of connections) {
      if (socket.writableLength === 0) connections.set(socket, undefined)
      else if (pending === undefined) connections.set(socket, { since: now, sent: socket.bytesWritten - socket.writableLength })
      else if (now - pending.since > graceMs + (socket.bytesWritten - pending.sent) * 1000 / bytesPerSecond) socket.destroy()
    }
  }, intervalMs).unref()

  app.addHook('onClose', (_app, next) => {
    clearInterval(sweep)
    next()
  })

  done()
}, { name: 'stalled-responses', fastify: '5.x' })
