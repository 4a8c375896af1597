import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface Server {
  readonly url: string
  readonly pid: number
  /** Resident memory in bytes. */
  rss (): number
  /** CPU time so far, in milliseconds. */
  cpu (): number
  /** The longest turn of its event loop since the last question, in milliseconds. */
  stall (): Promise<number>
  stop (): Promise<void>
}

const LOOP_DELAY = fileURLToPath(new URL('loop-delay.mjs', import.meta.url))
const MAIN = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
const REFERENCE = fileURLToPath(new URL('reference.mjs', import.meta.url))

/** The production build with its default logging, to a file. */
export async function startSkillserve (root: string, log: string): Promise<Server> {
  const child = start([MAIN, '--port', '0', root], log)
  return await listening(child, log, /listening at (http:\/\/[^"\s]+)/)
}

/** What the service is compared with; see `reference.mjs`. */
export async function startReference (fixture: string, log: string): Promise<Server> {
  const child = start([REFERENCE, fixture], log)
  return await listening(child, log, /listening at (http:\/\/[^"\s]+)/)
}

function start (args: readonly string[], log: string): ChildProcess {
  const output = openSync(log, 'w')
  return spawn(process.execPath, ['--import', LOOP_DELAY, ...args], { stdio: ['ignore', output, output, 'ipc'], env: { PATH: process.env['PATH'] } })
}

async function listening (child: ChildProcess, log: string, line: RegExp): Promise<Server> {
  const { pid } = child
  if (pid === undefined) throw new Error('the process did not start')
  let url: string | undefined
  while (url === undefined) {
    if (child.exitCode !== null) throw new Error(readFileSync(log, 'utf8'))
    url = line.exec(readFileSync(log, 'utf8'))?.[1]
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  return {
    url,
    pid,
    rss: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024,
    cpu: () => {
      const [user, system] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ').slice(11, 13) ?? []
      return (Number(user) + Number(system)) * 10
    },
    stall: async () => {
      child.send('stall')
      const [milliseconds] = await once(child, 'message') as [number]
      return milliseconds
    },
    stop: async () => {
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await exited
    }
  }
}
