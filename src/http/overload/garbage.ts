import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { fitHeap } from '../../core/shared/heap.ts'

/** The heap is measured once for so many bytes, and may grow by so many before garbage is collected. */
const MEASURED_AFTER_BYTES = 4 * 1_048_576
const MAX_GROWTH_BYTES = 96 * 1_048_576

/** What tells how much memory is in use, in bytes, and collects garbage. */
interface Heap {
  used (): number
  collect (): void
}

/**
 * Bounds the garbage of large answers and of requests that wait, for `AnswerMemory` and `Connections`. V8 lets a heap of 40 MB grow to
 * hundreds where there is much memory, and collects late on a busy machine. Measured with 300 clients that read nothing: tool calls for 8 MB
 * took 938 MB, and pages of the catalog 1,268 MB. With `Garbage` the figures are 419 and 445 MB. A collection stops the process for 20 to 200 ms.
 */
export class Garbage {
  readonly #heap: Heap
  readonly #maxGrowth: number
  #answered = 0
  /** The least that was in use since the last collection. */
  #least = Infinity

  constructor (heap: Heap = v8Heap(), maxGrowth = fitHeap(MAX_GROWTH_BYTES)) {
    this.#heap = heap
    this.#maxGrowth = maxGrowth
  }

  /** @param bytes that an answer or request takes, and leaves behind */
  add (bytes: number): void {
    this.#answered += bytes
    if (this.#answered < MEASURED_AFTER_BYTES) return
    this.#answered = 0
    const used = this.#heap.used()
    this.#least = Math.min(this.#least, used)
    if (used - this.#least < this.#maxGrowth) return
    this.#heap.collect()
    this.#least = this.#heap.used()
  }
}

export function v8Heap (): Heap {
  let collect: (() => void) | undefined
  return {
    used () {
      const { used_heap_size: texts, external_memory: buffers } = getHeapStatistics()
      return texts + buffers
    },
    collect () {
      if (collect === undefined) {
        setFlagsFromString('--expose-gc')
        collect = runInNewContext('gc') as () => void
      }
      collect()
    }
  }
}
