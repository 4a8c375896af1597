import { type Awaitable, createSlicer } from '../shared/async.ts'
import { sha256 } from '../shared/digest.ts'
import type { Signature } from '../shared/skill.ts'
import type { Disk } from './disk.ts'
import { pathBelow } from './paths.ts'
import { asRefused, isUnknown } from './refused.ts'
import { isSameOrMissing, isTrustworthy, signatureOf, stateId } from './signature.ts'

/**
 * The states that something was made from, by path below a folder; '' is the folder. Undefined stands for nothing there,
 * or nothing that may be read. What was made from them is valid while `holds` says so.
 */
export type Observed = Iterable<readonly [path: string, state: Signature | undefined]>

/** Links followed. Undefined for what is not there or may not be read. */
type Stat = (path: string) => Awaitable<Signature | undefined>

const FIELDS = 5

/** Observed states to be kept: each takes 40 bytes instead of the 200 of an object with five bigints. */
export class PackedObserved implements Observed {
  readonly paths: readonly string[]
  readonly #fields: BigInt64Array

  constructor (observed: ReadonlyMap<string, Signature | undefined>) {
    this.paths = [...observed.keys()]
    this.#fields = new BigInt64Array(observed.size * FIELDS)
    let offset = 0
    for (const state of observed.values()) {
      if (state !== undefined) this.#fields.set([state.dev, state.ino, state.size, state.mtimeNs, state.ctimeNs], offset)
      offset += FIELDS
    }
  }

  * [Symbol.iterator] (): Generator<readonly [path: string, state: Signature | undefined]> {
    for (const [index, path] of this.paths.entries()) yield [path, this.#stateAt(index * FIELDS)]
  }

  #stateAt (offset: number): Signature | undefined {
    const [dev = 0n, ino = 0n, size = 0n, mtimeNs = 0n, ctimeNs = 0n] = this.#fields.subarray(offset, offset + FIELDS)
    // No file has inode and change time 0.
    if (ino === 0n && ctimeNs === 0n) return undefined
    return { dev: BigInt.asUintN(64, dev), ino: BigInt.asUintN(64, ino), size, mtimeNs, ctimeNs }
  }
}

/** A `Stat` that asks the disk each time. */
export function statOf (disk: Disk): Stat {
  return (path) => signatureAt(disk, path)
}

/**
 * Undefined for what is not there or may not be read.
 * @throws {RefusedError} `io_error`: a disk that fails says neither
 */
export async function signatureAt (disk: Disk, path: string): Promise<Signature | undefined> {
  try {
    const stats = await disk.stat(path)
    return stats && signatureOf(stats)
  } catch (error) {
    if (isUnknown(error)) throw asRefused(error)
    return undefined
  }
}

/** Whether the disk still has all observed states: the only test of whether something derived from files is still valid. Works in slices. */
export async function holds (stat: Stat, base: string, observed: Observed): Promise<boolean> {
  const yieldIfNeeded = createSlicer()
  for (const [path, before] of observed) {
    if (!isSameOrMissing(await stat(pathBelow(base, path)), before)) return false
    await yieldIfNeeded()
  }
  return true
}

/** Whether the next edit is sure to change one of these states, which were read at `now` (wall clock, milliseconds). */
export function areTrustworthy (observed: Observed, now: number): boolean {
  for (const [, state] of observed) if (state !== undefined && !isTrustworthy(state, now)) return false
  return true
}

/** Stands for all states: two that are equal are of the same states. */
export function fingerprintOf (observed: Observed): string {
  const parts: string[] = []
  for (const [path, state] of observed) parts.push(path, state === undefined ? '' : stateId(state))
  return sha256(parts.map((part) => `${part}\0`).join(''))
}

/** Latest `ctime` of the states, in milliseconds. */
export function latestChange (observed: Observed): number {
  let latest = 0n
  for (const [, state] of observed) if (state !== undefined && state.ctimeNs > latest) latest = state.ctimeNs
  return Number(latest / 1_000_000n)
}
