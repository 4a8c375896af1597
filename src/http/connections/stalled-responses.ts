import type { Socket } from 'node:net'
import fp from 'fastify-plugin'
import type { Connections } from './connections.ts'

export interface StalledResponsesOptions {
  readonly connections: Connections
  /** Time that any response may take to leave, in milliseconds. Default 60 s. */
  readonly graceMs?: number
  /** The slowest that a longer one may leave, in bytes per second. Default 8 KiB/s. */
  readonly bytesPerSecond?: number
  /** Pause between two checks of all connections, in milliseconds. Default 5 s. */
  readonly intervalMs?: number
}

/** Since when a socket has held data that its client has not taken, and how much had left by then. */
interface Pending {
  readonly since: number
  readonly sent: number
}

/**
 * Ends connections whose client takes a response too slowly, or not at all. Node's `timeout` counts a steady drip of some
 * bytes as activity. One check of all connections every five seconds adds nothing to a request.
 */
export const stalledResponses = fp<StalledResponsesOptions>(function stalledResponses (app, options, done) {
  const { connections, graceMs = 60_000, bytesPerSecond = 8192, intervalMs = 5000 } = options
  const stalled = new WeakMap<Socket, Pending>()

  const sweep = setInterval(() => {
    const now = performance.now()
    for (const socket of connections.sockets) {
      const pending = stalled.get(socket)
      if (socket.writableLength === 0) stalled.delete(socket)
      else if (pending === undefined) stalled.set(socket, { since: now, sent: socket.bytesWritten - socket.writableLength })
      else if (now - pending.since > graceMs + (socket.bytesWritten - pending.sent) * 1000 / bytesPerSecond) socket.destroy()
    }
  }, intervalMs).unref()

  app.addHook('onClose', (_app, next) => {
    clearInterval(sweep)
    next()
  })

  done()
}, { name: 'stalled-responses' })
