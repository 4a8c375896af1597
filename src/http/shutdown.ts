import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'

/** When the process ends in any case: below the ten seconds that Docker waits. */
const STOP_DEADLINE_MS = 9_000
const CHECK_MS = 20

/** Collects what the process has opened, and closes it at the end. */
export class Shutdown {
  readonly #closers: Array<() => unknown> = []

  /**
   * True from the first signal on: the service is not ready, and answers with `Connection: close`, so that balancers
   * notice.
   */
  isStopping = false

  /** How long a signal leaves the service listening, so that balancers notice. 0 until it listens. */
  delaySeconds = 0

  /** Adds what is open. It is closed before what was added earlier, which it may use. */
  add (close: () => unknown): void {
    this.#closers.push(close)
  }

  /** Closes each once, one after the other. */
  async close (): Promise<void> {
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) await close()
  }

  /** Closes everything. Returns by the deadline, or kills the process. */
  async drain (log: Pick<FastifyBaseLogger, 'info'>): Promise<void> {
    const deadline = performance.now() + STOP_DEADLINE_MS
    await Promise.race([this.close().then(() => { log.info('stopped') }), sleep(STOP_DEADLINE_MS)])
    // exit() waits for calls to the file system, lines of the log included: one below a dead mount never returns.
    while (process.getActiveResourcesInfo().some((resource) => resource.startsWith('FSReq'))) {
      if (performance.now() > deadline) process.kill(process.pid, 'SIGKILL')
      await sleep(CHECK_MS)
    }
  }
}
