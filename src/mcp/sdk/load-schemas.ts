import { setImmediate as nextTurn } from 'node:timers/promises'
import { lazyCode } from '../../core/files/load-code.ts'

const loadLibrary = lazyCode(() => import('./schema-library.ts'))
const loadProtocol = lazyCode(() => import('./protocol-schemas.ts'))
const loadValidator = lazyCode(() => import('./json-schema-validator.ts'))

/**
 * Loads the largest parts of the SDK before any other, each in a turn of the event loop of its own. Whoever asks meanwhile waits
 * for one part.
 */
export async function loadSchemas (): Promise<void> {
  const library = await loadLibrary()
  await nextTurn()
  rehearse(library)
  await nextTurn()
  await loadProtocol()
  await nextTurn()
  await loadValidator()
  await nextTurn()
}

/** Makes schemas of the frequent kinds: compiling the code for them takes a quarter of the turn that makes those of the protocol. */
function rehearse ({ array, enum: oneOf, int, literal, looseObject, string, union }: Awaited<ReturnType<typeof loadLibrary>>): void {
  looseObject({ a: string().optional(), b: array(oneOf(['x'])) }).extend({ c: union([literal('x'), int()]) })
}
