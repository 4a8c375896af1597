/**
 * The next state of something that is in force: read, checked and opened, while the present state goes on. Exactly one
 * of the two methods is called, once.
 */
export interface Prepared {
  /** Puts the next state in force, in one step. It must not throw. */
  commit (): void
  /** Closes what was opened for the next state: the present one stays in force. */
  discard (): Promise<void> | void
}
