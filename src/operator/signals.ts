/**
 * Puts other listeners in the place of those that some signals have. The old ones are removed last: a signal without a
 * listener is lost, also one that has been sent and not been delivered yet.
 * @param add adds the new listeners
 */
export function replaceListeners<T> (signals: readonly NodeJS.Signals[], add: () => T): T {
  const before = signals.map((signal) => ({ signal, listeners: process.listeners(signal) }))
  const added = add()
  for (const { signal, listeners } of before) for (const listener of listeners) process.off(signal, listener)
  return added
}
