import type { BigIntStats } from 'node:fs'
import type { Disk } from './disk.ts'
import { asRefused, isInconclusive } from './refused.ts'

/** The `stat` fields that identify a state, as text. Equal stamps mean equal bytes, or equal names in a folder. */
export type FileStamp = string

/** Slowest tick of the kernel's clock, and of file systems that store times in steps of one or two seconds. */
const RACY_WINDOW_MS = 25
const COARSE_WINDOW_MS = 2_025

export function stampOf ({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): FileStamp {
  return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`
}

/**
 * Whether the next edit is sure to change the stamp. Within one tick of the clock it may not ("racily clean" in git's
 * index). Every edit sets `ctime`, which cannot be set back.
 * @param now wall clock when the stamp was taken, in milliseconds
 */
export function isSettled (stamp: FileStamp | undefined, now: number): boolean {
  if (stamp === undefined) return true
  const changedAt = stamp.slice(stamp.lastIndexOf(':') + 1)
  const isCoarse = changedAt.endsWith('000000000')
  return now - Number(changedAt) / 1e6 > (isCoarse ? COARSE_WINDOW_MS : RACY_WINDOW_MS)
}

/** Returns the stamp of a file or link target; undefined without one, or without access. Throws if the disk fails. */
export async function stampAt (disk: Disk, path: string): Promise<FileStamp | undefined> {
  try {
    const stats = await disk.stat(path)
    return stats && stampOf(stats)
  } catch (error) {
    if (isInconclusive(error)) throw asRefused(error)
    return undefined
  }
}
