/** The next state of a part of the service: read, checked and opened while the present one is in use. */
export interface Prepared {
  /** Makes the next state the present one, in one step. Must not throw. */
  commit (): void
}
