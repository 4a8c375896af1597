/** A real process whose standard output nobody reads: its log goes nowhere, and must hold up nothing. */

import { execFileSync, spawn, type StdioOptions } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { ProcessOwner } from '../../helper/process.ts'
import { jsonRequest, rawRequest } from '../../helper/raw-http.ts'
import { startStopwatch } from '../../helper/timing.ts'

const MAIN = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url))

const CALLS = 128
/** Of the two log lines of a call, at least. */
const CALL_BYTES = 1_100

/** Tells by standard error where the service listens, since nobody reads its log. */
const TELL_PORT = 'data:text/javascript,' + encodeURIComponent(`
  import { Server } from 'node:net'
  const { listen } = Server.prototype
  Server.prototype.listen = function (...args) {
    this.once('listening', () => process.stderr.write('port ' + this.address().port + '\\n'))
    return listen.apply(this, args)
  }
`)

export type StuckService = Awaited<ReturnType<typeof startStuck>>

/** @param stdout a descriptor, or a pipe that the caller may read */
export async function startStuck (t: ProcessOwner, folder: string, stdout: 'pipe' | number, env: Readonly<Record<string, string>> = {}) {
  const stdio: StdioOptions = ['ignore', stdout, 'pipe']
  const child = spawn(process.execPath, ['--import', TELL_PORT, MAIN, folder, '--port', '0'], { stdio, env: { PATH: process.env.PATH, ...env } })
  t.teardown(() => { child.kill('SIGKILL') })
  const ended = once(child, 'exit') as Promise<[code: number | null, signal: NodeJS.Signals | null]>
  let port: string | undefined
  while (port === undefined) {
    const [text] = await once(child.stderr as Readable, 'data') as [Buffer]
    port = Array.from(String(text).matchAll(/port (\d+)/g), ([, told]) => told).find((told) => told !== env['METRICS_PORT'])
  }
  const url = `http://127.0.0.1:${port}`
  const status = () => readFileSync(`/proc/${child.pid}/status`, 'utf8')

  return {
    url,
    stdout: child.stdout,
    /** Calls tools until the log lines of the calls have so many bytes. */
    async flood (bytes: number): Promise<void> {
      const call = { function: { name: 'get_skill', arguments: { skill_name: '\u6f22'.repeat(180) } } }
      const body = jsonRequest('POST', '/agent/tool-call', { tool_calls: Array.from({ length: CALLS }, () => call) })
      for (let left = bytes; left > 0; left -= CALLS * CALL_BYTES) {
        const { status, text } = await rawRequest(url, body)
        if (status !== 200) throw new Error(`${status} ${text.slice(0, 200)}`)
      }
    },
    descriptors: () => readdirSync(`/proc/${child.pid}/fd`).length,
    peakMemory: () => Number(/^VmHWM:\s+(\d+) kB$/m.exec(status())?.[1]) * 1_024,
    /** Returns how the process ended after SIGTERM, and the time that it took, in milliseconds. */
    async stop (): Promise<{ code: number | null, signal: NodeJS.Signals | null, took: number }> {
      const elapsed = startStopwatch()
      child.kill('SIGTERM')
      const [code, signal] = await ended
      return { code, signal, took: elapsed() }
    }
  }
}

/** A pipe with a reader that does not read: the descriptor to write to. */
export function unreadPipe (t: ProcessOwner): number {
  const folder = mkdtempSync(join(tmpdir(), 'skillserve-pipe-'))
  const path = join(folder, 'pipe')
  execFileSync('mkfifo', [path])
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const writer = openSync(path, constants.O_WRONLY)
  rmSync(folder, { recursive: true })
  t.teardown(() => {
    closeSync(writer)
    closeSync(reader)
  })
  return writer
}

/** A disk without space. */
export function fullDisk (t: ProcessOwner): number {
  const full = openSync('/dev/full', 'w')
  t.teardown(() => { closeSync(full) })
  return full
}
