import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { FastifyBaseLogger } from 'fastify'

/** Time for clients with an open connection to receive `Connection: close` before the port is closed. */
const ANNOUNCE_MS = 200

/** When connections that are still open are cut, after the drain has begun. */
const DRAIN_DEADLINE_MS = 8_000

/** When the process ends in any case: below the ten seconds that Docker waits. */
const STOP_DEADLINE_MS = 9_000

/** Pause between two checks for calls to the file system that have not returned. */
const RECHECK_MS = 20

/** The end of the process: what is open, and whether it is being closed. */
export class Shutdown {
  readonly #closers: Array<() => unknown> = []
  #isStopping = false

  get isStopping (): boolean {
    return this.#isStopping
  }

  /**
   * What is open, to be closed in the reverse order: nothing is closed before what uses it.
   * @throws {Error} while the process stops; what is added is closed all the same
   */
  add (close: () => unknown): void {
    this.#closers.push(close)
    if (this.#isStopping) throw new Error('the process ends while it starts')
  }

  /**
   * The service is not ready from now on. It still answers, each time with `Connection: close`, so that balancers
   * notice before the port closes. Resolves after the delay.
   */
  async begin (delayMs = 0): Promise<void> {
    this.#isStopping = true
    if (delayMs > 0) await sleep(delayMs)
  }

  /** Closes each once, one after the other. */
  async close (): Promise<void> {
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) await close()
  }

  /**
   * Drains and closes everything. Returns by the deadline, or kills the process.
   * @param opening what is open already, or is the last to be opened
   */
  async drain (
    opening: Promise<{ readonly app: { readonly server: Server } }>, log: Pick<FastifyBaseLogger, 'info' | 'warn'>
  ): Promise<void> {
    const deadline = sleep(STOP_DEADLINE_MS, false)
    const close = async (): Promise<void> => {
      const server = (await opening.catch(() => undefined))?.app.server
      if (server !== undefined) await announce(server, log)
      await this.close()
      log.info('stopped')
    }
    await Promise.race([close(), deadline])
    // exit() waits for calls to the file system: one below a dead mount never returns.
    if (!await Promise.race([fileSystemIdle(), deadline])) process.kill(process.pid, 'SIGKILL')
  }
}

async function announce (server: Server, log: Pick<FastifyBaseLogger, 'warn'>): Promise<void> {
  setTimeout(() => {
    log.warn('cutting the connections that are still open')
    server.closeAllConnections()
  }, DRAIN_DEADLINE_MS)
  if (await promisify(server.getConnections.bind(server))() > 0) await sleep(ANNOUNCE_MS)
}

/** Resolves when no call to the file system is under way, lines of the log included. */
async function fileSystemIdle (): Promise<true> {
  while (process.getActiveResourcesInfo().some((resource) => resource.startsWith('FSReq'))) await sleep(RECHECK_MS)
  return true
}
