import { readFileSync } from 'node:fs'

/** Open connections at the same time, and their part of the available descriptors: reading skills needs some too. */
const MAX_CONNECTIONS = 10_000
const CONNECTIONS_SHARE = 0.75

/** Descriptors of the process itself: the log, the event loop, the watcher. */
const OWN_DESCRIPTORS = 32

/** How many connections this process can hold open: MAX_CONNECTIONS where the system has no lower limit. */
export function maxConnections (): number {
  const limit = Number(/^Max open files\s+(\d+)/m.exec(readLimits())?.[1] ?? Number.POSITIVE_INFINITY)
  return Math.max(1, Math.min(MAX_CONNECTIONS, Math.floor((limit - OWN_DESCRIPTORS) * CONNECTIONS_SHARE)))
}

function readLimits (): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8')
  } catch {
    return ''
  }
}
