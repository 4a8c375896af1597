/** Lines of one address in a minute. */
const MAX_LINES = 20

/** Addresses that are told apart; the rest count as one. */
const MAX_ADDRESSES = 10_000
const OTHERS = 'others'

const MINUTE_MS = 60_000

/** Bounds the lines of refused callers: a million guesses make twenty lines a minute, and one with the number of the rest. */
export class AuthFailures {
  #counts = new Map<string, number>()
  readonly #timer: NodeJS.Timeout
  readonly #report: (address: string, count: number) => void

  /** @param report gets the number of an address's failures in a minute that had no line */
  constructor (report: (address: string, count: number) => void) {
    this.#report = report
    this.#timer = setInterval(() => { this.flush() }, MINUTE_MS).unref()
  }

  /** Counts a failure. Whether it gets a line of its own. */
  admits (address: string): boolean {
    const key = this.#counts.has(address) || this.#counts.size < MAX_ADDRESSES ? address : OTHERS
    const count = (this.#counts.get(key) ?? 0) + 1
    this.#counts.set(key, count)
    return count <= MAX_LINES
  }

  /** Reports what had no line, and begins another minute. */
  flush (): void {
    const counts = this.#counts
    this.#counts = new Map()
    for (const [address, count] of counts) if (count > MAX_LINES) this.#report(address, count - MAX_LINES)
  }

  close (): void {
    clearInterval(this.#timer)
    this.flush()
  }
}
