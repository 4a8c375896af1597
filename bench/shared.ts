import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { LongRun } from '../scripts/long-run.ts'
import { makeSkills, type Server, startSkillserve, watching } from './servers.ts'
import { type Row, rowOf } from './table.ts'

const ROUNDS = 3
const CALLERS = 100
const FILES = 10
const FILE_BYTES = 4 * 1024 * 1024
const RUNS = 5

/** Time after which the stamp of a file is trusted, and then until the watcher has read the change, in milliseconds. */
const OLD_MS = 40
const REST_MS = 800

const MAIN = fileURLToPath(new URL('../dist/cli/skillserve.cjs', import.meta.url))

/** What needs the contents of files: HEAD, since sending a body costs each request the same. */
const SHARED = [
  { what: 'the manifest', path: '/skills/large/files', method: 'GET' },
  { what: 'the archive', path: '/skills/large/archive.zip', method: 'HEAD' },
  { what: 'a cold file', path: '/skills/large/files/file-0.bin', method: 'HEAD' }
] as const

/** Equal requests at once for a skill that has just changed, against one such request. */
export async function measureShared (run: LongRun, folder: string): Promise<Row[]> {
  const root = join(folder, 'shared')
  await makeSkills(root, 1, 1)
  const server = await startSkillserve(run, [root], { log: join(folder, 'shared.log'), env: { LIMITS: 'off' } })
  await watching(server)
  const rows: Row[] = []
  let fill = 0
  for (const { what, path, method } of SHARED) {
    run.part(`equal requests for ${what}`)
    const cost = async (callers: number): Promise<number> => {
      writeLargeSkill(join(root, 'large'), ++fill)
      return await costOf(server, path, method, callers)
    }
    const values: number[] = []
    await cost(1)
    for (let round = 0; round < ROUNDS; round++) values.push(1 / await cost(1) * await cost(CALLERS))
    rows.push(rowOf({ what: `${CALLERS} requests at once for ${what} of 40 MB, against one`, values, atMost: 2 }))
  }
  await server.stop()
  return [...rows, ...measureCommands(run)]
}

function writeLargeSkill (folder: string, fill: number): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'SKILL.md'), '---\nname: large\ndescription: Has large files\n---\n')
  for (let i = 0; i < FILES; i++) writeFileSync(join(folder, `file-${i}.bin`), Buffer.alloc(FILE_BYTES, fill))
}

/** CPU time of the server for a change and equal requests that begin together, in milliseconds. */
async function costOf (server: Server, path: string, method: string, callers: number): Promise<number> {
  const before = server.cpu()
  await sleep(OLD_MS)
  await Promise.all(Array.from({ length: callers }, async () => {
    const response = await fetch(server.url + path, { method })
    await response.arrayBuffer()
    if (!response.ok) throw new Error(`${response.status} from ${path}`)
  }))
  await sleep(REST_MS)
  return server.cpu() - before
}

/** CPU time of commands that containers and scripts run often, against Node alone. */
function measureCommands (run: LongRun): Row[] {
  run.part('commands')
  return [{ what: 'version', args: ['version'] }, { what: 'healthcheck', args: ['healthcheck', '--port', '1'] }]
    .map(({ what, args }) => {
      const values = Array.from({ length: ROUNDS }, () => 1 / costOfRuns(['-e', '0']) * costOfRuns([MAIN, ...args]))
      return rowOf({ what: `${what}, against node -e 0`, values, atMost: 3 })
    })
}

/** CPU time of the processes that have ended, in clock ticks: proc_pid_stat(5), cutime and cstime. */
function costOfRuns (args: readonly string[]): number {
  const ticks = () => {
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? []
    return Number(fields[13]) + Number(fields[14])
  }
  const before = ticks()
  for (let i = 0; i < RUNS; i++) spawnSync(process.execPath, args, { stdio: 'ignore' })
  return ticks() - before
}
