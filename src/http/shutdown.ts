import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'

/** When the process ends in any case: below the ten seconds that Docker waits. */
const STOP_DEADLINE_MS = 9_000

/** The end of the process: what is open, and whether it is being closed. */
export class Shutdown {
  readonly #closers: Array<() => unknown> = []

  /** The service is not ready, and answers each time with `Connection: close`, so that balancers notice. */
  isStopping = false

  /** How long a signal leaves the service listening, so that balancers notice. 0 until it listens. */
  delaySeconds = 0

  /** What is open, to be closed in the reverse order: nothing is closed before what uses it. */
  add (close: () => unknown): void {
    this.#closers.push(close)
  }

  /** Closes each once, one after the other. */
  async close (): Promise<void> {
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) await close()
  }

  /** Closes everything. Returns by the deadline, or kills the process. */
  async drain (log: Pick<FastifyBaseLogger, 'info'>): Promise<void> {
    const deadline = sleep(STOP_DEADLINE_MS, false)
    const closed = this.close().then(() => { log.info('stopped') })
    await Promise.race([closed, deadline])
    // exit() waits for calls to the file system: one below a dead mount never returns.
    if (!await Promise.race([fileSystemIdle(), deadline])) process.kill(process.pid, 'SIGKILL')
  }
}

/** Resolves when no call to the file system is under way, lines of the log included. */
async function fileSystemIdle (): Promise<true> {
  while (process.getActiveResourcesInfo().some((resource) => resource.startsWith('FSReq'))) await sleep(20)
  return true
}
