import { getHeapStatistics } from 'node:v8'

/** From this limit of the heap on, in bytes, a bound is what it says. A container of 512 MB gives a process half of that, or less. */
const FULL_HEAP_BYTES = 1_073_741_824

/**
 * A bound of bytes or requests that are held, for the heap that this process may have. With a heap of 256 MB and the bounds of a large one,
 * 300 clients that read nothing filled it. The process collected garbage without end, and answered nobody for a minute.
 * @param heapBytes the limit of the heap
 */
export function fitHeap (bound: number, heapBytes = getHeapStatistics().heap_size_limit): number {
  return Math.floor(bound * Math.min(1, heapBytes / FULL_HEAP_BYTES))
}

/** Options of a cache with this many entries at most. With `max`, it would take the room for all of them when it is made. */
export function atMost (entries: number): { readonly maxSize: number, readonly sizeCalculation: () => number } {
  return { maxSize: entries, sizeCalculation: () => 1 }
}
