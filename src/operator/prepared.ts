/**
 * The next state of a part of the service: read, checked and opened while the present one is in use. Either `commit` or
 * `discard` is called, once.
 */
export interface Prepared {
  /** Makes the next state the present one, in one step. Must not throw. */
  commit (): void
  /** Closes everything that was opened for the next state; the present one stays in use. */
  discard (): Promise<void> | void
}
