/** Pseudo-random choices that a seed repeats. */
export interface Random {
  /** A whole number from 0 up to, and without, `bound`. */
  below (bound: number): number
  /** True once in `times`, on average. */
  oneIn (times: number): boolean
  pick<T> (values: readonly [T, ...T[]]): T
  pick<T> (values: readonly T[]): T | undefined
}

/** Mulberry32: 32 bits of state, good enough to choose among faults. */
export function createRandom (seed: number): Random {
  let state = seed >>> 0
  const below = (bound: number): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor(((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32 * bound)
  }
  return { below, oneIn: (times) => below(times) === 0, pick: (values: readonly unknown[]) => values[below(values.length)] as never }
}
