import { readdirSync } from 'node:fs'
import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import { type Metric, Reading } from './instruments.ts'

/** Interval at which the delay of the event loop is sampled, in milliseconds. */
const RESOLUTION_MS = 20

const NANOSECONDS = 1e9
const MICROSECONDS = 1e6

/** Metrics of the process. Delays and utilization are those since the last scrape. */
export function processMetrics (): { readonly metrics: Readonly<Record<string, Metric>>, close (): void } {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  let before = performance.eventLoopUtilization()
  const startedAt = performance.timeOrigin / 1000

  return {
    metrics: {
      nodejs_eventloop_delay_seconds: new Reading('gauge', { help: 'Delay of the event loop since the last scrape: median, 99th percentile and longest.', labels: ['stat'] }, () => {
        const values: Array<[string, number]> = [['p50', delay.percentile(50)], ['p99', delay.percentile(99)], ['max', delay.max]]
        delay.reset()
        return values.map(([stat, nanoseconds]) => [stat, Math.max(0, nanoseconds / NANOSECONDS - RESOLUTION_MS / 1000)] as const)
      }),
      nodejs_eventloop_utilization_ratio: new Reading('gauge', { help: 'Part of the time since the last scrape in which the event loop was busy.' }, () => {
        const now = performance.eventLoopUtilization()
        const { utilization } = performance.eventLoopUtilization(now, before)
        before = now
        return utilization
      }),
      nodejs_heap_used_bytes: new Reading('gauge', { help: 'Memory of JavaScript objects.' }, () => getHeapStatistics().used_heap_size),
      process_cpu_seconds_total: new Reading('counter', { help: 'CPU time of the process, user and system.' }, () => {
        const { user, system } = process.cpuUsage()
        return (user + system) / MICROSECONDS
      }),
      process_resident_memory_bytes: new Reading('gauge', { help: 'Memory of the process.' }, () => whereReadable(() => process.memoryUsage.rss())),
      // The list holds the descriptor that reads it.
      process_open_fds: new Reading('gauge', { help: 'Open file descriptors.' }, () => whereReadable(() => readdirSync('/proc/self/fd').length - 1)),
      process_start_time_seconds: new Reading('gauge', { help: 'Start of the process, in seconds since 1970.' }, () => startedAt)
    },
    close: () => { delay.disable() }
  }
}

/** No sample where there is no /proc, or no free descriptor to read it. */
function whereReadable (read: () => number): Array<readonly [number]> {
  try {
    return [[read()]]
  } catch {
    return []
  }
}
