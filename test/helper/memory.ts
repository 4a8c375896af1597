import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')

/** Collects all garbage of the process. */
const collectGarbage = runInNewContext('gc') as () => void

/** What the heap takes more for each of so many things that are kept, in bytes. */
export function heapOfEach<T> (count: number, make: (index: number) => T): number {
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  const kept = Array.from({ length: count }, (_, index) => make(index))
  collectGarbage()
  return (process.memoryUsage().heapUsed - before) / kept.length
}

/** Bytes of heap, and of buffers outside of it, that are in use. */
export function usedMemory (): number {
  collectGarbage()
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
