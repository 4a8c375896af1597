import type { BigIntStats } from 'node:fs'
import type { FileStamp } from '../shared/skill.ts'
import type { Disk } from './disk.ts'
import { asRefused, isInconclusive } from './refused.ts'

/** The kernel's clock ticks this slowly at most. Some file systems have whole seconds only, or every second one. */
const RACY_WINDOW_MS = 25
const COARSE_WINDOW_MS = 2_025

/** The five fields out of eighteen: an index of thousands keeps no more than it compares. */
export function stampOf (stats: BigIntStats): FileStamp {
  return { dev: stats.dev, ino: stats.ino, size: stats.size, mtimeNs: stats.mtimeNs, ctimeNs: stats.ctimeNs }
}

/** The stamp as text: the same file in the same state has the same. */
export function stateId ({ dev, ino, size, mtimeNs, ctimeNs }: FileStamp): string {
  return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`
}

/** Whether two stamps are of the same state, or both of nothing. */
export function isSameState (a: FileStamp | undefined, b: FileStamp | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  return a.ctimeNs === b.ctimeNs && a.mtimeNs === b.mtimeNs && a.size === b.size && a.ino === b.ino && a.dev === b.dev
}

/**
 * Whether the next edit is sure to change a stamp: within one tick of the clock it may stay the same ("racily
 * clean" in git's index). Every edit sets `ctime`, and nobody can put it back.
 * @param now wall clock when the stamp was taken, in milliseconds
 */
export function isSettled ({ ctimeNs }: FileStamp, now: number): boolean {
  const isCoarse = ctimeNs % 1_000_000_000n === 0n
  return now - Number(ctimeNs / 1_000_000n) > (isCoarse ? COARSE_WINDOW_MS : RACY_WINDOW_MS)
}

/** Follows links. Undefined for what is not there or may not be asked about; throws if the disk fails. */
export async function stampAt (disk: Disk, path: string): Promise<FileStamp | undefined> {
  try {
    const stats = await disk.stat(path)
    return stats && stampOf(stats)
  } catch (error) {
    if (isInconclusive(error)) throw asRefused(error)
    return undefined
  }
}
