import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { LongRun } from '../scripts/long-run.ts'

/** The longest turn of an event loop, in milliseconds: see `stalls.mjs`. */
export interface Stall {
  /** Without the time in which other threads had the core. */
  readonly own: number
  readonly wall: number
  readonly cpu: number
}

export interface Server {
  readonly url: string
  readonly pid: number
  /** Resident memory in bytes. */
  rss (): number
  /** CPU time so far, in milliseconds: a multiple of TICK_MS. */
  cpu (): number
  /** CPU time so far of the threads that it has, in milliseconds, to the nanosecond. */
  threadsCpu (): number
  /** The longest turn of its event loop since the last question; for a server that was started with `stalls`. */
  stall (): Promise<Stall>
  stop (): Promise<void>
}

export interface ServerOptions {
  /** Where its log goes. */
  readonly log: string
  /** Measures stalls of the event loop, which needs 1 % of a core. */
  readonly stalls?: boolean
  /** Wraps the command line, for example to pin the process to a core. */
  readonly wrap?: (command: readonly string[]) => readonly string[]
  /** Settings besides the arguments. */
  readonly env?: Readonly<Record<string, string>>
}

/** Resolution of the CPU time in `/proc`, in milliseconds. */
export const TICK_MS = 10

const POLL_MS = 2
const START_DEADLINE_MS = 60_000
const LISTENING = /listening at (http:\/\/[^"\s]+)/

const STALLS = fileURLToPath(new URL('stalls.mjs', import.meta.url))
export const MAIN = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))

/** The production build with its default logging, to a file. */
export function startSkillserve (run: LongRun, roots: readonly string[], options: ServerOptions): Promise<Server> {
  return startServer(run, [MAIN, '--port', '0', ...roots], options)
}

/** Starts a program of Node, and returns once its log says where it listens. */
export async function startServer (run: LongRun, args: readonly string[], { log, stalls = false, wrap = (command) => command, env = {} }: ServerOptions): Promise<Server> {
  const output = openSync(log, 'w')
  const [file = '', ...rest] = wrap([process.execPath, ...stalls ? ['--import', STALLS] : [], ...args])
  const child = spawn(file, rest, { stdio: ['ignore', output, output, 'ipc'], env: { PATH: process.env['PATH'], ...env } })
  const exited = once(child, 'exit')
  run.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await exited
  })
  const { pid } = child
  if (pid === undefined) throw new Error('the process did not start')

  let url: string | undefined
  for (const deadline = performance.now() + START_DEADLINE_MS; url === undefined; await sleep(POLL_MS)) {
    url = LISTENING.exec(readFileSync(log, 'utf8'))?.[1]
    if (child.exitCode !== null || performance.now() > deadline) throw new Error(`the process did not start: ${readFileSync(log, 'utf8')}`)
  }
  return {
    url,
    pid,
    rss: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024,
    cpu: () => {
      const [user, system] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ').slice(11, 13) ?? []
      return (Number(user) + Number(system)) * TICK_MS
    },
    threadsCpu: () => readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + Number.parseInt(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8'), 10), 0) / 1e6,
    stall: async () => {
      child.send('stall')
      const [stall] = await once(child, 'message') as [Stall]
      return stall
    },
    stop: async () => {
      child.kill('SIGTERM')
      await exited
    }
  }
}
