import type { BigIntStats } from 'node:fs'
import { RACY_WINDOW_MS, TIMESTAMP_STEP_MS } from '../shared/limits.ts'
import type { Signature } from '../shared/skill.ts'
import type { Disk } from './disk.ts'
import { asRefused, isUnknown } from './refused.ts'

const SECOND_NS = 1_000_000_000n
const RACY_WINDOW_NS = BigInt(RACY_WINDOW_MS) * 1_000_000n
/** Of a file system that knows no parts of a second. */
const COARSE_WINDOW_NS = RACY_WINDOW_NS + BigInt(TIMESTAMP_STEP_MS) * 1_000_000n

/** The five fields out of eighteen: an index of thousands keeps no more than it compares. */
export function signatureOf (stats: BigIntStats): Signature {
  return { dev: stats.dev, ino: stats.ino, size: stats.size, mtimeNs: stats.mtimeNs, ctimeNs: stats.ctimeNs }
}

/** The signature as text: the same file in the same state has the same. */
export function stateId ({ dev, ino, size, mtimeNs, ctimeNs }: Signature): string {
  return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`
}

/** `ctime` first: every change moves it, also one that puts size and `mtime` back. */
export function isSameState (a: Signature, b: Signature): boolean {
  return a.ctimeNs === b.ctimeNs && a.ino === b.ino && a.mtimeNs === b.mtimeNs && a.size === b.size && a.dev === b.dev
}

/** As `isSameState`, where nothing may be there. */
export function isSameOrMissing (a: Signature | undefined, b: Signature | undefined): boolean {
  return a === undefined || b === undefined ? a === b : isSameState(a, b)
}

/**
 * Whether the next edit is sure to change a signature. A signature younger than RACY_WINDOW_MS may stay the same: the
 * kernel's clock ticks that slowly ("racily clean" in git's index). Some file systems have whole seconds only, or
 * every second one. An `mtime` to come was set by `tar` or `touch`, and an edit sets another.
 * @param now wall clock when the signature was taken, in milliseconds
 */
export function isTrustworthy ({ ctimeNs, mtimeNs }: Signature, now: number): boolean {
  const nowNs = BigInt(now) * 1_000_000n
  const latest = ctimeNs > mtimeNs || mtimeNs > nowNs ? ctimeNs : mtimeNs
  return nowNs - latest > (latest % SECOND_NS === 0n ? COARSE_WINDOW_NS : RACY_WINDOW_NS)
}

/**
 * Follows links. Undefined for what is not there or may not be asked about.
 * @throws {RefusedError} `io_error`, `no_answer`: a disk that fails says neither
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
