import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'

/** Longest time until the process ends: less than the ten seconds that Docker waits. */
const STOP_DEADLINE_MS = 9_000
const CHECK_MS = 20

/** Closes everything that the process has opened, when it ends. */
export class Shutdown {
  readonly #closers: Array<() => unknown> = []

  /**
   * True from the first signal on: the service is not ready, and answers with `Connection: close`, so that load
   * balancers notice.
   */
  isStopping = false

  /** How long the service keeps listening after a signal, so that load balancers notice. 0 until it listens. */
  delaySeconds = 0

  /** Adds a function that closes something. The last one added is closed first, since it may use those before. */
  add (close: () => unknown): void {
    this.#closers.push(close)
  }

  /** Closes everything, one after the other. */
  async close (): Promise<void> {
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) await close()
  }

  /** Closes everything; kills the process if that takes longer than the deadline. */
  async drain (log: Pick<FastifyBaseLogger, 'info'>): Promise<void> {
    const deadline = performance.now() + STOP_DEADLINE_MS
    await Promise.race([this.close().then(() => { log.info('stopped') }), sleep(STOP_DEADLINE_MS)])
    // exit() waits for file system calls, log lines included, and on a dead mount they never return.
    while (process.getActiveResourcesInfo().some((resource) => resource.startsWith('FSReq'))) {
      if (performance.now() > deadline) process.kill(process.pid, 'SIGKILL')
      await sleep(CHECK_MS)
    }
  }
}
