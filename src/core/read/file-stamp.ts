import type { BigIntStats } from 'node:fs'
import type { Disk } from './disk.ts'
import { asRefused, isInconclusive } from './refused.ts'

/** The `stat` fields that identify a state, as text: if two are equal, so are the bytes, or the names in the folder. */
export type FileStamp = string

/** The kernel's clock ticks this slowly at most. Some file systems have whole seconds only, or every second one. */
const RACY_WINDOW_MS = 25
const COARSE_WINDOW_MS = 2_025

export function stampOf ({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): FileStamp {
  return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`
}

/**
 * Whether the next edit is sure to change the stamp, if there is one: within one tick of the clock it may stay the same
 * ("racily clean" in git's index). Every edit sets `ctime`, and nobody can put it back.
 * @param now wall clock when the stamp was taken, in milliseconds
 */
export function isSettled (stamp: FileStamp | undefined, now: number): boolean {
  if (stamp === undefined) return true
  const changedAt = stamp.slice(stamp.lastIndexOf(':') + 1)
  const isCoarse = changedAt.endsWith('000000000')
  return now - Number(changedAt) / 1e6 > (isCoarse ? COARSE_WINDOW_MS : RACY_WINDOW_MS)
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
