import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { LongRun } from '../scripts/long-run.ts'

export interface Server {
  readonly url: string
  /** Resident memory in MB. */
  rss (): number
  /** CPU time so far of all threads, in milliseconds. */
  cpu (): number
  /** The longest delay of the event loop since the last question, in milliseconds. */
  stall (): Promise<number>
  stop (): Promise<void>
}

interface ServerOptions {
  readonly log: string
  readonly env?: Readonly<Record<string, string>>
  /** Answers `stall`, which costs CPU time. */
  readonly stalls?: boolean
}

const LISTENING = /listening at (http:\/\/[^"\s]+)/
const POLL_MS = 5
const DEADLINE_MS = 120_000

/** Answers each message with the longest delay since the last one. */
const STALLS = `data:text/javascript,${encodeURIComponent(`
import { monitorEventLoopDelay } from 'node:perf_hooks'
const delay = monitorEventLoopDelay({ resolution: 1 })
delay.enable()
process.on('message', () => { process.send(delay.max / 1e6); delay.reset() })
process.channel.unref()`)}`

const MAIN = fileURLToPath(new URL('../dist/cli/skillserve.cjs', import.meta.url))

/** The production build with its default log, to a file. */
export function startSkillserve (run: LongRun, args: readonly string[], options: ServerOptions): Promise<Server> {
  return startServer(run, [MAIN, '--port', '0', ...args], options)
}

/** Starts a program of Node, and returns once its log says where it listens. */
export async function startServer (
  run: LongRun, args: readonly string[], { log, env = {}, stalls = false }: ServerOptions
): Promise<Server> {
  const output = openSync(log, 'w')
  const variables = { PATH: process.env['PATH'], ...env }
  const child = spawn(process.execPath, [...stalls ? ['--import', STALLS] : [], ...args], {
    stdio: ['ignore', output, output, 'ipc'], env: variables
  })
  const exited = once(child, 'exit')
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL')
    await exited
  }
  run.teardown(stop)
  const { pid = 0 } = child
  let url: string | undefined
  for (const end = performance.now() + DEADLINE_MS; url === undefined; await sleep(POLL_MS)) {
    url = LISTENING.exec(readFileSync(log, 'utf8'))?.[1]
    if (child.exitCode !== null || performance.now() > end) throw new Error(`no start: ${readFileSync(log, 'utf8')}`)
  }
  return {
    url,
    rss: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024,
    cpu: () => readdirSync(`/proc/${pid}/task`).reduce((sum, thread) =>
      sum + Number.parseInt(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8'), 10), 0) / 1e6,
    stall: async () => {
      const answer = once(child, 'message') as Promise<[number]>
      child.send('stall')
      return (await answer)[0]
    },
    stop
  }
}

interface Readiness {
  readonly watcher?: { readonly status: string }
  readonly roots?: ReadonlyArray<{ readonly state: string }>
}

/** Resolves when the first index is complete and every folder is watched. */
export async function watching ({ url }: Server): Promise<void> {
  for (;; await sleep(100)) {
    const { watcher, roots = [] } = await (await fetch(`${url}/readyz`)).json() as Readiness
    if (watcher?.status === 'watching' && roots.length > 0 && roots.every(({ state }) => state === 'ok')) return
  }
}

/** Time without work after which a server is idle, and the CPU time that it may take in it, in milliseconds. */
const IDLE_MS = 500
const IDLE_CPU_MS = 25

/** Resolves when a server has done what it does in the background, such as a comparison of all skills. */
export async function idle (server: Server): Promise<void> {
  for (let before = -Infinity; server.cpu() - before > IDLE_CPU_MS; await sleep(IDLE_MS)) before = server.cpu()
}

/** A SKILL.md of 4 KiB. */
export function skillText (name: string, note = ''): string {
  const head = `---\nname: ${name}\ndescription: ${name} is there to be measured ${note}\n---\n\n# ${name}\n\n`
  return head.padEnd(4_096, 'Lorem ipsum dolor "sit" amet.\n')
}

/** Skills with a SKILL.md of 4 KiB and more files of half a KiB, half of them in a folder. */
export async function makeSkills (root: string, count: number, files: number): Promise<string[]> {
  const names = Array.from({ length: count }, (_, index) => `skill-${String(index).padStart(5, '0')}`)
  for (const [index, name] of names.entries()) {
    mkdirSync(join(root, name, 'docs'), { recursive: true })
    writeFileSync(join(root, name, 'SKILL.md'), skillText(name))
    for (let i = 0; i < files; i++) {
      writeFileSync(join(root, name, i % 2 === 0 ? `file-${i}.md` : `docs/file-${i}.md`), 'x'.repeat(512))
    }
    if (index % 50 === 0) await nextTurn()
  }
  return names
}
