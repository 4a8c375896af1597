/** Attacks by what goes on beside the requests: a file that grows while it is read, and a log that nobody reads. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AttackTarget, startAttackTarget } from './attack-target.ts'
import { type LoadFigures, measure } from './heavy-attacks.ts'
import { fullDisk, startStuck, unreadPipe } from './stuck-log.ts'
import type { ProcessOwner } from '../../helper/process.ts'
import { jsonRequest, rawRequest, request } from '../../helper/raw-http.ts'
import { skillText } from '../../helper/skills.ts'

/** Appends to files as fast as the disk takes it, 64 KiB at a time, and cuts them at 512 MiB. */
const APPENDER = `
import { appendFileSync, statSync, truncateSync } from 'node:fs'
const [, ...files] = process.argv
const piece = 'x'.repeat(65_536)
console.log('started')
for (;;) {
  for (const file of files) {
    appendFileSync(file, piece)
    if (statSync(file).size > 2 ** 29) truncateSync(file, 0)
  }
}
`

/** What is asked of a skill with such files, with the statuses that say something true. */
const GROWING_DOORS: ReadonlyArray<readonly [bytes: Buffer, statuses: readonly number[]]> = [
  [request('GET', '/skills/growing/files/log.txt', { headers: ['Range: bytes=0-99'] }), [200, 206, 416, 503]],
  [jsonRequest('POST', '/agent/tools/read_file_in_skill', { skill_name: 'growing', file_path: 'log.txt' }), [200]],
  [request('GET', '/skills/growing/files'), [200, 503]],
  [request('GET', '/skills/growing'), [200, 413, 503]],
  [request('GET', '/catalog/growing'), [200, 503]],
  [request('GET', '/catalog'), [200]],
  [request('GET', '/catalog?q=what'), [200]],
  [request('GET', '/.well-known/agent-skills/index.json'), [200]],
  [request('GET', '/skills/demo'), [200]]
]

/** The longest that one of these doors may take, in milliseconds. An answer waits two seconds for a state of a skill that holds, and others wait behind it. */
const MAX_DOOR_MS = 15_000

/** A file of a skill grows without end, while every door is asked for the skill. */
export async function attackByGrowth (t: ProcessOwner, rounds: number): Promise<LoadFigures> {
  const target = await startAttackTarget(t, {
    prepare: (root) => {
      mkdirSync(join(root, 'growing'))
      writeFileSync(join(root, 'growing/SKILL.md'), skillText('growing'))
      writeFileSync(join(root, 'growing/log.txt'), '')
    }
  })
  const stop = await startAppending(t, target)
  try {
    return await measure(target, async (took) => {
      for (let round = 0; round < rounds; round++) {
        for (const [bytes, statuses] of GROWING_DOORS) {
          const what = bytes.toString('latin1').split(' HTTP/1.1', 1)[0] ?? ''
          const begun = performance.now()
          const { status, text } = await rawRequest(target.url, bytes, { timeoutMs: 60_000 })
          took[what] = Math.max(took[what] ?? 0, performance.now() - begun)
          if (!statuses.includes(status)) throw new Error(`${what}: ${status} ${text.slice(0, 500)}`)
        }
      }
      await stop()
      const slow = Object.entries(took).filter(([, ms]) => ms > MAX_DOOR_MS)
      if (slow.length > 0) throw new Error(`too slow beside a growing file: ${JSON.stringify(slow)}`)
    })
  } finally {
    await stop()
  }
}

async function startAppending (t: ProcessOwner, { root }: AttackTarget): Promise<() => Promise<void>> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', APPENDER, join(root, 'growing/log.txt')], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => { child.kill('SIGKILL') })
  const ended = once(child, 'close')
  await once(child.stdout, 'data')
  return async () => {
    child.kill('SIGKILL')
    await ended
  }
}

/** How the process ends after SIGTERM, whatever its log does, in milliseconds. */
const MAX_STOP_MS = 10_000

/** What may stay in memory of the log, as a share of its lines: its backlog has a bound, and the garbage of calls too. */
const MAX_KEPT_SHARE = 0.75

export interface StuckLogFigures {
  /** In bytes and milliseconds. */
  readonly memory: number
  readonly waited: number
  readonly stopped: number
}

/**
 * Calls tools while nothing takes the log: a pipe that nobody reads, or a full disk.
 * @param bytes of log lines
 */
export async function attackByLog (t: ProcessOwner, sink: 'pipe' | 'disk', bytes: number): Promise<StuckLogFigures> {
  const folder = mkdtempSync(join(tmpdir(), 'skillserve-log-'))
  t.teardown(() => { rmSync(folder, { recursive: true, force: true }) })
  mkdirSync(join(folder, 'one'))
  writeFileSync(join(folder, 'one/SKILL.md'), skillText('one'))
  const service = await startStuck(t, folder, sink === 'pipe' ? unreadPipe(t) : fullDisk(t))
  await service.flood(1)
  const before = service.peakMemory()
  let waited = 0
  const over = new AbortController()
  const asking = (async () => {
    while (!over.signal.aborted) {
      const begun = performance.now()
      const { status } = await rawRequest(service.url, request('GET', '/livez'))
      if (status !== 200) throw new Error(`/livez: ${status}`)
      waited = Math.max(waited, performance.now() - begun)
    }
  })()
  try {
    await service.flood(bytes)
  } finally {
    over.abort()
    await asking
  }
  const memory = service.peakMemory()
  // What the garbage collector leaves, and the bound of the backlog, are less.
  if (memory - before > MAX_KEPT_SHARE * bytes) throw new Error(`${memory - before} bytes more for ${bytes} bytes of log`)
  const { code, signal, took } = await service.stop()
  if (code !== 0 || took > MAX_STOP_MS) throw new Error(`the service ended with ${code ?? signal} after ${Math.round(took)} ms`)
  return { memory, waited, stopped: took }
}
