import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const DIST = new URL('../../dist/', import.meta.url)
const LISTENING = /skillserve listening at (http:\/\/[^\s"]+)/

/** Whoever starts a process and ends what is left of it: a test, or a script. */
export interface ProcessOwner {
  teardown (end: () => void): void
}

export interface ProcessOptions {
  readonly args?: readonly string[]
  /** The whole environment but PATH. PORT is 0, any free port, unless it says otherwise. */
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly nodeOptions?: readonly string[]
  /** Default `cli/main.js`. */
  readonly script?: string
  /** A limit of the shell that the process runs under: `-n 64` for 64 descriptors. */
  readonly ulimit?: string
  /** The user that the process runs as, for an owner who is root. */
  readonly uid?: number
  /** A command that the process is run by, such as `nice`; in the end it has to become the process. */
  readonly runBy?: readonly string[]
}

/** How a process ended, and what it had written by then. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/**
 * Starts the built service (`npm run build` comes before) and waits until it listens. The teardown kills what is left
 * of it.
 */
export async function startProcess (t: ProcessOwner, options: ProcessOptions = {}) {
  const running = launch(t, options)
  await running.printed(LISTENING)
  const url = LISTENING.exec(running.stdout())?.[1] ?? ''
  return {
    pid: running.pid,
    /** Where the line says that it listens, without a slash at the end. */
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

  /** Resolves when a text is on stdout, now or later; rejects if the process ends without. */
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
