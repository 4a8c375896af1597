import { setImmediate as nextTurn } from 'node:timers/promises'
import { lazyCode } from '../../core/files/load-code.ts'

const loadLibrary = lazyCode(() => import('./schema-library.ts'))
const loadProtocol = lazyCode(() => import('./protocol-schemas.ts'))

/**
 * Loads the largest parts of the SDK before any other, each in a turn of the event loop of its own: whoever asks meanwhile waits
 * for one part.
 */
export async function loadSchemas (): Promise<void> {
  await loadLibrary()
  await nextTurn()
  await loadProtocol()
  await nextTurn()
}
