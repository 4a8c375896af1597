import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const DIST = new URL('../../dist/', import.meta.url)
const LISTENING = /skillserve listening at (http:\/\/[^\s"]+)/

/** Who starts a process, and ends it at the latest: a test or a script. */
export interface ProcessOwner {
  teardown (end: () => void): void
}

export interface ProcessOptions {
  readonly args?: readonly string[]
  /** The environment, apart from PATH. PORT is 0 by default: any free port. */
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly nodeOptions?: readonly string[]
  /** Default `cli/main.js`. */
  readonly script?: string
  /** A limit that the shell sets: `-n 64` for 64 descriptors. */
  readonly ulimit?: string
  /** The user of the process, if the tests run as root. */
  readonly uid?: number
  /** A command in front, such as `nice`, which must become the process in the end. */
  readonly runBy?: readonly string[]
}

/** The end of a process, with its output. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** Starts the built service (after `npm run build`), and waits until it listens. The teardown kills it. */
export async function startProcess (t: ProcessOwner, options: ProcessOptions = {}) {
  const running = launch(t, options)
  await running.printed(LISTENING)
  const url = LISTENING.exec(running.stdout())?.[1] ?? ''
  return {
    pid: running.pid,
    /** The address at which it listens, without a slash at the end. */
    url,
    port: Number(new URL(url).port),
    ended: running.ended,
    printed: running.printed,
    /** Lines of the log so far, parsed. */
    log: () => running.stdout().split('\n').filter((line) => line !== '').map((line) =>
      JSON.parse(line) as Record<string, unknown>),
    signal: (signal: NodeJS.Signals) => { process.kill(running.pid, signal) },
    /** Sends the signal, and waits for the end. */
    stop: (signal: NodeJS.Signals = 'SIGTERM') => {
      process.kill(running.pid, signal)
      return running.ended
    }
  }
}

export type ServiceProcess = Awaited<ReturnType<typeof startProcess>>

/** Runs a process that ends by itself. */
export function runProcess (t: ProcessOwner, options: ProcessOptions = {}): Promise<Ended> {
  return launch(t, options).ended
}

export function launch (t: ProcessOwner,
  { args = [], env = {}, cwd, nodeOptions = [], script = 'cli/main.js', ulimit, uid, runBy = [] }: ProcessOptions) {
  const command = [...runBy, process.execPath, ...nodeOptions, fileURLToPath(new URL(script, DIST)), ...args]
  const [file = '', ...rest] = ulimit === undefined
    ? command
    : ['bash', '-c', `ulimit ${ulimit}; exec "$0" "$@"`, ...command]
  const child: ChildProcess = spawn(file, rest, {
    env: { PATH: process.env.PATH, PORT: '0', ...env },
    ...cwd !== undefined && { cwd },
    ...uid !== undefined && { uid },
    stdio: ['ignore', 'pipe', 'pipe']
  })
  t.teardown(() => { child.kill('SIGKILL') })

  let stdout = ''
  let stderr = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => { stdout += text })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => { stderr += text })

  const ended = once(child, 'close').then(([code, signal]): Ended => ({
    code: code as number | null, signal: signal as NodeJS.Signals | null, stdout, stderr
  }))

  /** Resolves when standard output has a text; rejects if the process ends without it. */
  async function printed (text: string | RegExp): Promise<void> {
    while (stdout.search(text) === -1) {
      const over = await Promise.race([
        once(child.stdout ?? child, 'data').then(() => false),
        ended.then(() => true)
      ])
      if (over && stdout.search(text) === -1) throw new Error(`the process ended without ${text}: ${stdout}${stderr}`)
    }
  }

  return { pid: child.pid ?? 0, ended, printed, stdout: () => stdout }
}
