import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { AttackInputsOptions } from './attack-inputs.ts'
import { writeAttackTree } from './attack-tree.ts'
import { type ProcessOptions, type ProcessOwner, startProcess } from '../../helper/process.ts'
import { jsonRequest, rawRequest, request } from '../../helper/raw-http.ts'
import { until } from '../../helper/skills.ts'

const LOOP_STALL = fileURLToPath(new URL('loop-stall.mjs', import.meta.url))

export interface AttackTargetOptions {
  /** Puts more into the root before the start. */
  readonly prepare?: (root: string) => void
  /** The limit of V8's old generation, in MiB. Default: V8's own. */
  readonly heapMb?: number | undefined
}

/** Starts a real process (`npm run build` comes before) over the attack tree, in a folder that goes with the test. */
export async function startAttackTarget (t: ProcessOwner, { prepare, heapMb }: AttackTargetOptions = {}) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'skillserve-attack-')))
  t.teardown(() => { rmSync(folder, { recursive: true, force: true }) })
  const root = join(folder, 'skills')
  writeAttackTree(folder)
  prepare?.(root)
  const service = await startMeasured(t,
    { args: [root], nodeOptions: heapMb === undefined ? [] : [`--max-old-space-size=${heapMb}`] })
  return {
    ...service,
    folder,
    root,
    /** How many files and connections it has open. */
    descriptors: () => readdirSync(`/proc/${service.pid}/fd`).length,
    /** The most memory that it has had, in bytes. */
    peakMemory: () =>
      Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${service.pid}/status`, 'utf8'))?.[1]) * 1_024
  }
}

/** A process that says how long the turns of its event loop take. */
async function startMeasured (t: ProcessOwner, { nodeOptions = [], ...options }: ProcessOptions) {
  const service = await startProcess(t, { ...options, nodeOptions: ['--import', LOOP_STALL, ...nodeOptions] })
  const turns = () => service.log().filter(({ msg }) => msg === 'longest turn')
  return {
    ...service,
    /** The longest turn since the last question, in milliseconds. */
    async longestTurn (): Promise<number> {
      const before = turns().length
      service.signal('SIGWINCH')
      await until(() => turns().length > before)
      return Number(turns().at(-1)?.['ms'])
    }
  }
}

export type AttackTarget = Awaited<ReturnType<typeof startAttackTarget>>

/** What the inputs are made of, from a service that runs over the attack tree in `folder`. */
export async function readInputsOptions (url: string, folder: string): Promise<AttackInputsOptions> {
  const page = (await rawRequest(url, request('GET', '/catalog?limit=1'))).json() as { readonly next_cursor: string }
  const found = (await rawRequest(url, request('GET', '/catalog?limit=1&q=what'))).json() as {
    readonly next_cursor: string | null
  }
  return {
    secret: join(folder, 'outside/secret.txt'),
    cursors: [page.next_cursor, found.next_cursor ?? '', Buffer.from('after:demo').toString('base64url')]
  }
}

/** Whether the service lives, and tools and MCP know its skills. */
export async function isAlive (url: string): Promise<boolean> {
  const answers = await Promise.all([
    request('GET', '/livez'),
    jsonRequest('POST', '/agent/tools/get_skill', { skill_name: 'demo' }),
    mcpCall('tools/call', { name: 'get_skill', arguments: { skill_name: 'demo' } })
  ].map((bytes) => rawRequest(url, bytes)))
  return answers.every(({ status, text }) => status === 200 && !text.includes('error'))
}

/** A message of the older revision, which needs no more than its body. */
export function mcpCall (method: string, params: object): Buffer {
  return jsonRequest('POST', '/mcp', { jsonrpc: '2.0', id: 1, method, params },
    { headers: ['Accept: application/json, text/event-stream'] })
}
