import { createSlicer } from '../async.ts'
import type { Disk } from './disk.ts'
import { sha256 } from '../digest.ts'
import { isSameState, isSettled, signatureOf, stateId } from './signature.ts'
import type { Signature } from '../skill.ts'

/**
 * What was looked at in a folder, by path below it, '' for itself; undefined where nothing was, or nothing that may be seen.
 * What was made of it holds while all of it is as it was.
 */
export type Seen = Iterable<readonly [path: string, state: Signature | undefined]>

const FIELDS = 5

/** The same, to be kept: a signature takes 40 bytes instead of the 200 of an object with five bigints. */
export class PackedSeen implements Seen {
  readonly paths: readonly string[]
  readonly #fields: BigInt64Array
  #print: string | undefined

  constructor (seen: ReadonlyMap<string, Signature | undefined>) {
    this.paths = [...seen.keys()]
    this.#fields = new BigInt64Array(seen.size * FIELDS)
    let offset = 0
    for (const state of seen.values()) {
      if (state !== undefined) this.#fields.set([state.dev, state.ino, state.size, state.mtimeNs, state.ctimeNs], offset)
      offset += FIELDS
    }
  }

  /** See `printOf`. */
  get print (): string {
    this.#print ??= printOf(this)
    return this.#print
  }

  * [Symbol.iterator] (): Generator<readonly [path: string, state: Signature | undefined]> {
    for (const [index, path] of this.paths.entries()) yield [path, this.#stateAt(index * FIELDS)]
  }

  #stateAt (offset: number): Signature | undefined {
    const [dev = 0n, ino = 0n, size = 0n, mtimeNs = 0n, ctimeNs = 0n] = this.#fields.subarray(offset, offset + FIELDS)
    // Nothing on a disk is like this.
    if (ino === 0n && ctimeNs === 0n) return undefined
    return { dev: BigInt.asUintN(64, dev), ino: BigInt.asUintN(64, ino), size, mtimeNs, ctimeNs }
  }
}

/** Where a path of `Seen` is on the disk. */
export function placeOf (base: string, path: string): string {
  return path === '' ? base : `${base}/${path}`
}

/** Undefined for what is not there or may not be seen. */
export async function signatureAt (disk: Disk, place: string): Promise<Signature | undefined> {
  try {
    const stats = await disk.stat(place)
    return stats && signatureOf(stats)
  } catch {
    return undefined
  }
}

/** Everything that was seen, seen again: links followed, so that a target's change counts. */
export async function isUnchanged (disk: Disk, base: string, seen: Seen): Promise<boolean> {
  const yieldIfNeeded = createSlicer()
  for (const [path, before] of seen) {
    const now = await signatureAt(disk, placeOf(base, path))
    if (now === undefined || before === undefined ? now !== before : !isSameState(now, before)) return false
    await yieldIfNeeded()
  }
  return true
}

/** Whether all of it, seen at `seenAt` (wall clock, milliseconds), can be trusted to change with the next edit: see `isSettled`. */
export function isAllSettled (seen: Seen, seenAt: number): boolean {
  for (const [, state] of seen) if (state !== undefined && !isSettled(state, seenAt)) return false
  return true
}

/** Stands for all of it: two that are equal were of the same states. */
export function printOf (seen: Seen): string {
  const parts: string[] = []
  for (const [path, state] of seen) parts.push(path, state === undefined ? '' : stateId(state))
  return sha256(parts.map((part) => `${part}\0`).join(''))
}

/** Latest `ctime` among them, in milliseconds. */
export function latestChange (seen: Seen): number {
  let latest = 0n
  for (const [, state] of seen) if (state !== undefined && state.ctimeNs > latest) latest = state.ctimeNs
  return Number(latest / 1_000_000n)
}
