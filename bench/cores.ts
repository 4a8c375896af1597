import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

export interface Cores {
  /** For the results. */
  readonly description: string
  /** A command line that keeps a program off the core of the load. */
  besideLoad (command: readonly string[]): readonly string[]
  /** A command line for a program that may use every core, as while nothing else runs. */
  onAll (command: readonly string[]): readonly string[]
}

/** Pins this process, which generates the load, to the last core. With one core, or without `taskset`, nothing is pinned. */
export function separateCores (): Cores {
  const all = allowedCores()
  const load = all.at(-1)
  const others = all.slice(0, -1).join(',')
  const isSeparate = others !== '' && spawnSync('taskset', ['--all-tasks', '--cpu-list', '--pid', String(load), String(process.pid)]).status === 0
  if (!isSeparate) return { description: 'load and server share all cores', besideLoad: (command) => command, onAll: (command) => command }
  return {
    description: `load on core ${load}, servers on ${others}`,
    besideLoad: (command) => ['taskset', '--cpu-list', others, ...command],
    onAll: (command) => ['taskset', '--cpu-list', all.join(','), ...command]
  }
}

/** Numbers of the cores that this process may use: `0-2,5` → 0, 1, 2, 5. */
function allowedCores (): number[] {
  let status: string
  try {
    status = readFileSync('/proc/self/status', 'utf8')
  } catch {
    return []
  }
  const list = /^Cpus_allowed_list:\s+(\S+)$/m.exec(status)?.[1] ?? ''
  return list.split(',').flatMap((range) => {
    const [first = Number.NaN, last = first] = range.split('-').map(Number)
    return Number.isNaN(first) ? [] : Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })
}
