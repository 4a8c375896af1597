import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { FastifyBaseLogger } from 'fastify'
import type { Closers } from './shutdown.ts'

/**
 * Time for clients with an open connection to receive `Connection: close` before the port is closed, in milliseconds.
 */
const ANNOUNCE_MS = 200

/** When connections that are still open are cut, in milliseconds after the drain has begun. */
const DRAIN_DEADLINE_MS = 8_000

/**
 * When the process ends in any case, in milliseconds after the drain has begun: below the ten seconds that Docker
 * waits.
 */
const STOP_DEADLINE_MS = 9_000

/** Pause between two checks for calls to the file system that have not returned, in milliseconds. */
const RECHECK_MS = 20

/**
 * Drains and closes everything. Returns by the deadline, or kills the process.
 * @param opening what is open already, or is the last to be opened
 */
export async function stop (
  opening: Promise<{ readonly app: { readonly server: Server } }>,
  logger: Pick<FastifyBaseLogger, 'info' | 'warn'>,
  closers: Closers
): Promise<void> {
  const deadline = sleep(STOP_DEADLINE_MS)
  await Promise.race([close(), deadline])
  // exit() waits for calls to the file system: one below a dead mount never returns.
  const isFree = await Promise.race([fileSystemIdle(), deadline.then(() => false)])
  if (!isFree) process.kill(process.pid, 'SIGKILL')

  async function close (): Promise<void> {
    const server = (await opening.catch(() => undefined))?.app.server
    if (server !== undefined) await announce(server)
    await closers.close()
    logger.info('stopped')
  }

  async function announce (server: Server): Promise<void> {
    setTimeout(() => {
      logger.warn('cutting the connections that are still open')
      server.closeAllConnections()
    }, DRAIN_DEADLINE_MS)
    if (await promisify(server.getConnections.bind(server))() > 0) await sleep(ANNOUNCE_MS)
  }
}

/** Resolves when no call to the file system is under way, lines of the log included. */
async function fileSystemIdle (): Promise<true> {
  while (process.getActiveResourcesInfo().some((resource) => resource.startsWith('FSReq'))) await sleep(RECHECK_MS)
  return true
}
