import { setImmediate as nextTurn } from 'node:timers/promises'

/**
 * Loads the largest parts of the SDK before any other, each in a turn of the event loop of its own: whoever asks meanwhile waits
 * for one part.
 */
export async function loadSchemas (): Promise<void> {
  await import('./schema-library.ts')
  await nextTurn()
  await import('./protocol-schemas.ts')
  await nextTurn()
}
