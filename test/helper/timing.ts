/**
 * The best of ten runs, of each the less of wall clock and CPU time: neither other processes nor the compiler's
 * threads are the work of what is measured.
 */
export function milliseconds (run: () => void): number {
  return Math.min(...Array.from({ length: 10 }, () => {
    const start = { wall: performance.now(), cpu: process.cpuUsage() }
    run()
    const { user, system } = process.cpuUsage(start.cpu)
    return Math.min(performance.now() - start.wall, (user + system) / 1_000)
  }))
}
