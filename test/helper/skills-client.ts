/**
 * The real `skills` command-line client, run against a service: offline, with telemetry off, in a folder of its own.
 */

import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import { startServer } from './fault-server.ts'
import type { ProcessOwner } from './process.ts'

/** A module for `node --import` that refuses connections to other machines, and says so. */
const OFFLINE_CODE = `
import net from 'node:net'
const { connect } = net.Socket.prototype
net.Socket.prototype.connect = function (...args) {
  const [options] = Array.isArray(args[0]) ? args[0] : args
  if (options.host === '127.0.0.1' || options.path) return connect.apply(this, args)
  console.error('OFFLINE: no connection to ' + options.host)
  process.nextTick(() => { this.destroy(new Error('offline')) })
  return this
}`

export const OFFLINE = `data:text/javascript,${encodeURIComponent(OFFLINE_CODE)}`

/** Installs all skills of a server; returns both outputs without colours, and the folder of the skills. */
export async function installSkills (url: string, { cli, node = process.execPath, cwd }: {
  readonly cli: string
  readonly node?: string
  readonly cwd: string
}): Promise<{
  readonly succeeded: boolean
  readonly output: string
  readonly folder: string
}> {
  return await new Promise((resolve) => {
    execFile(node, ['--import', OFFLINE, cli, 'add', url, '-y', '--agent', 'claude-code'], {
      cwd,
      timeout: 60_000,
      env: { PATH: process.env['PATH'], HOME: cwd, DISABLE_TELEMETRY: '1', DO_NOT_TRACK: '1', CI: '1' }
    }, (error, stdout, stderr) => {
      resolve({
        succeeded: error === null,
        output: stripVTControlCharacters(stdout + stderr),
        folder: join(cwd, '.claude/skills')
      })
    })
  })
}

/** Starts a server that forwards only what lies below one path, so that a client finds one index. */
export async function serveOnly (t: ProcessOwner, prefix: string, origin: string): Promise<string> {
  const { url } = await startServer(t, ({ url = '' }, response) => {
    if (!url.startsWith(prefix)) {
      response.writeHead(404).end()
      return
    }
    get(origin + url, (answer) => {
      response.writeHead(answer.statusCode ?? 0, { 'content-type': answer.headers['content-type'] ?? 'text/plain' })
      pipeline(answer, response, () => {})
    }).on('error', (error) => { response.destroy(error) })
  })
  return url
}

/** Returns the paths of files that differ between two folders, or that only one has. */
export function differences (a: string, b: string): readonly string[] {
  const paths = new Set([a, b].flatMap(filesIn))
  return [...paths].filter((path) => {
    const [one, two] = [join(a, path), join(b, path)]
    return !existsSync(one) || !existsSync(two) || !readFileSync(one).equals(readFileSync(two))
  })
}

function filesIn (folder: string): readonly string[] {
  if (!existsSync(folder)) return []
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true })
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) =>
    join(parentPath, name).slice(folder.length + 1))
}
