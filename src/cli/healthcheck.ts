#!/usr/bin/env node
import { get } from 'node:http'
import { loadConfig } from '../config.ts'

/** Longest wait for the answer, in milliseconds. */
const TIMEOUT_MS = 3_000

/** Addresses that stand for every address: one can listen on them, but not everywhere connect to them. */
const WILDCARDS: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

// The same environment as the service's, so that the two agree on the port. Flags of the service are not seen here.
const { host, port, allowedHosts } = loadConfig({ argv: [], env: process.env, cwd: process.cwd() })
const address = WILDCARDS[host] ?? host
const name = allowedHosts?.[0] ?? address

get({
  host: address,
  port,
  path: '/readyz',
  headers: { host: name.includes(':') ? `[${name}]` : name },
  agent: false,
  signal: AbortSignal.timeout(TIMEOUT_MS)
}, (response) => finish(response.statusCode === 200, `GET /readyz answered ${response.statusCode}`))
  .on('error', (error) => finish(false, error.message))

function finish (healthy: boolean, reason: string): void {
  if (!healthy) process.stderr.write(`skillserve: ${reason}\n`)
  process.exit(healthy ? 0 : 1)
}
