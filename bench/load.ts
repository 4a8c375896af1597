import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import autocannon from 'autocannon'

const run = promisify(execFile)

export interface Request {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** Makes it a POST. */
  readonly body?: string
}

export interface Measured {
  readonly requestsPerSecond: number
  /** In milliseconds. */
  readonly p99: number
}

export type Load = (request: Request, seconds: number) => Promise<Measured>

const CONNECTIONS = 32

/** wrk when it is installed: it takes less of the two cores than a generator in JavaScript. */
export async function chooseLoad (): Promise<{ readonly name: string, readonly load: Load }> {
  try {
    await run('wrk', ['--version']).catch((error: { code?: unknown }) => { if (error.code === 'ENOENT') throw error })
    return { name: 'wrk', load: loadWithWrk }
  } catch {
    return { name: 'autocannon', load: loadWithAutocannon }
  }
}

async function loadWithWrk ({ url, headers = {}, body }: Request, seconds: number): Promise<Measured> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-'))
  try {
    const script = join(folder, 'request.lua')
    const post = body === undefined ? '' : `wrk.method = "POST"\nwrk.headers["content-type"] = "application/json"\nwrk.body = ${JSON.stringify(body)}\n`
    await writeFile(script, post)
    const flags = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
    const { stdout } = await run('wrk', ['-t1', `-c${CONNECTIONS}`, `-d${seconds}s`, '--latency', '-s', script, ...flags, url])
    if (/Non-2xx or 3xx|Socket errors/.test(stdout)) throw new Error(`errors under load at ${url}\n${stdout}`)
    return {
      requestsPerSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]),
      p99: toMilliseconds(/99%\s+([\d.]+)(us|ms|s)/.exec(stdout))
    }
  } finally {
    await rm(folder, { recursive: true })
  }
}

function toMilliseconds (match: RegExpExecArray | null): number {
  const value = Number(match?.[1])
  switch (match?.[2]) {
    case 'us': return value / 1000
    case 's': return value * 1000
    default: return value
  }
}

async function loadWithAutocannon ({ url, headers = {}, body }: Request, seconds: number): Promise<Measured> {
  const result = await autocannon({
    url,
    connections: CONNECTIONS,
    duration: seconds,
    headers: { ...headers, ...body !== undefined && { 'content-type': 'application/json' } },
    ...body !== undefined && { method: 'POST' as const, body }
  })
  if (result.errors > 0 || result['4xx'] + result['5xx'] > 0) throw new Error(`errors under load at ${url}`)
  return { requestsPerSecond: result.requests.average, p99: result.latency.p99 }
}
