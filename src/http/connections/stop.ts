import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { FastifyBaseLogger } from 'fastify'
import { readBacklog } from './accept-backlog.ts'
import type { Closers } from './shutdown.ts'

/** Time for clients with an open connection to receive `Connection: close` before the port is closed, in milliseconds. */
const ANNOUNCE_MS = 200

/** Running requests may go on this long once the drain has begun, in milliseconds; then their connections are cut. */
const DRAIN_DEADLINE_MS = 8_000

/** When the process ends whatever hangs, in milliseconds after the drain has begun: below the ten seconds that Docker waits. */
const STOP_DEADLINE_MS = 9_000

/** Pause between two checks for calls to the file system that have not returned, in milliseconds. */
const RECHECK_MS = 20

/**
 * Drains and closes everything; returns by the deadline in any case, or kills the process.
 * @param opening what is open already, or is the last to be opened
 */
export async function stop (opening: Promise<{ readonly app: { readonly server: Server } }>, logger: Pick<FastifyBaseLogger, 'info' | 'warn'>, closers: Closers): Promise<void> {
  const deadline = sleep(STOP_DEADLINE_MS)
  await Promise.race([close(), deadline])
  // A call to the file system that never returns holds a thread. The cause is a dead network mount, below skills or below the log.
  // exit() would wait for that thread.
  const isFree = await Promise.race([fileSystemIdle(), deadline.then(() => false)])
  if (!isFree) process.kill(process.pid, 'SIGKILL')

  async function close (): Promise<void> {
    const parts = await opening.catch(() => undefined)
    if (parts !== undefined) await leaveClients(parts.app.server)
    await closers.close()
    logger.info('stopped')
  }

  async function leaveClients (server: Server): Promise<void> {
    setTimeout(() => {
      logger.warn('cutting the connections that are still open')
      server.closeAllConnections()
    }, DRAIN_DEADLINE_MS)
    const connections = await promisify(server.getConnections.bind(server))()
    if (connections > 0) await sleep(ANNOUNCE_MS)
    await readBacklog(server)
  }
}

/** Resolves with true when no call to the file system is under way, lines of the log included. */
async function fileSystemIdle (): Promise<true> {
  while (process.getActiveResourcesInfo().some((resource) => resource.startsWith('FSReq'))) await sleep(RECHECK_MS)
  return true
}
