/** Runs the examples of `deploy/` with the real programs, at ports and in folders of a test. */

import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { loadAll } from 'js-yaml'
import type { ProcessOwner } from './process.ts'

const DEPLOY = fileURLToPath(new URL('../../deploy/', import.meta.url))

const TRY_MS = 20

/** Ports below those that the system hands out, so that no other program gets one in between. */
const PORTS = [10_000, 32_000] as const

export interface ProxyOptions {
  /** An empty folder for what the program needs. */
  readonly folder: string
  /** Ports of the replicas, which replace those of the example. */
  readonly ports?: readonly number[]
  /** Folder that replaces /srv/skills-export. */
  readonly root?: string
  /** Whether the export is public. */
  readonly isPublic?: boolean
}

export type Proxy = { readonly url: string }

/** Returns whether a program is installed. */
export function hasProgram (name: string, ...args: readonly string[]): boolean {
  const { error, status } = spawnSync(name, args, { stdio: 'ignore' })
  return error === undefined && (args.length === 0 || status === 0)
}

export async function freePort (): Promise<number> {
  for (;;) {
    const port = randomInt(...PORTS)
    const server = createServer().listen(port, '127.0.0.1')
    const isFree = await once(server, 'listening').then(() => true, () => false)
    if (!isFree) continue
    server.close()
    await once(server, 'close')
    return port
  }
}

/** Runs nginx with one of the examples in its http block. */
export async function startNginx (owner: ProcessOwner, example: string, options: ProxyOptions): Promise<Proxy> {
  const { folder } = options
  const { text, port } = await adapt(example, options)
  const temporary =
    ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')
  const configuration = join(folder, 'nginx.conf')
  writeFileSync(configuration, `
    ${process.getuid?.() === 0 ? 'user root;' : ''} daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log stderr;
    events {}
    http { access_log off; ${temporary} include /etc/nginx/mime.types; ${text} }`)
  execFileSync('nginx', ['-t', '-q', '-p', folder, '-c', configuration], { stdio: ['ignore', 'ignore', 'inherit'] })
  return await run(owner, 'nginx', ['-p', folder, '-c', configuration], port, 'SIGQUIT')
}

export async function startHaproxy (owner: ProcessOwner, options: ProxyOptions): Promise<Proxy> {
  const { text, port } = await adapt('haproxy/haproxy.cfg', options)
  const configuration = join(options.folder, 'haproxy.cfg')
  writeFileSync(configuration, text)
  execFileSync('haproxy', ['-c', '-q', '-f', configuration])
  return await run(owner, 'haproxy', ['-db', '-f', configuration], port, 'SIGTERM')
}

/** Runs Caddy with the example, as plain HTTP at another port, without certificates. */
export async function startCaddy (owner: ProcessOwner, { folder, ports = [] }: ProxyOptions): Promise<Proxy> {
  const port = await freePort()
  const text = readFileSync(join(DEPLOY, 'caddy/Caddyfile'), 'utf8')
    .replace(/^skills\.example \{/m, `http://127.0.0.1:${port}, http://localhost:${port} {`)
    .replace(/127\.0\.0\.1:8081 .*(?= \{)/, ports.map((own) => `127.0.0.1:${own}`).join(' '))
    .replace('Host skills.example', 'Host 127.0.0.1')
  const configuration = join(folder, 'Caddyfile')
  writeFileSync(configuration, `{\n\tadmin off\n\tauto_https off\n\tstorage file_system ${folder}\n}\n${text}`)
  execFileSync('caddy', ['validate', '--adapter', 'caddyfile', '--config', configuration], { stdio: 'ignore' })
  return await run(owner, 'caddy', ['run', '--adapter', 'caddyfile', '--config', configuration], port, 'SIGTERM')
}

async function adapt (
  example: string, { folder, ports = [], root = '', isPublic = false }: ProxyOptions
): Promise<{ readonly text: string, readonly port: number }> {
  const port = await freePort()
  let replica = 0
  const text = readFileSync(join(DEPLOY, example), 'utf8')
    .replaceAll('/srv/skills-export', root)
    .replace(/^(\s*set \$visibility) .*;$/m, isPublic ? '$1 public;' : '$&')
    .replace(/^(\s*set \$web_pages) .*;$/m, isPublic ? '$1 *;' : '$&')
    .replaceAll('/etc/letsencrypt/live/skills.example', folder)
    .replace(/^\s*listen \[::\].*$/gm, '')
    .replace(/^(\s*listen) 80;/m, `$1 unix:${folder}/redirect.sock;`)
    .replace(/^(\s*(?:listen|bind)) (?:443(?= ssl)|:?8080)/m, `$1 127.0.0.1:${port}`)
    // As many replicas as there are.
    .replace(/^\s*server .*127\.0\.0\.1:\d+.*$/gm, (line) => {
      const own = ports[replica++]
      return own === undefined ? '' : line.replace(/127\.0\.0\.1:\d+/, `127.0.0.1:${own}`)
    })
  return { text, port }
}

async function run (owner: ProcessOwner, program: string, args: readonly string[], port: number,
  signal: NodeJS.Signals): Promise<Proxy> {
  const child: ChildProcess = spawn(program, args,
    { stdio: ['ignore', 'ignore', program === 'caddy' ? 'ignore' : 'inherit'] })
  owner.teardown(() => { child.kill(signal) })
  while (!await isListening(port)) {
    if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}`)
    await pause(TRY_MS)
  }
  return { url: `http://127.0.0.1:${port}` }
}

async function isListening (port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

export const KUSTOMIZATIONS = ['base', 'image-volume', 'git-sync'] as const

export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
}

/** Returns the manifests that kustomize builds from a folder of `deploy/kubernetes`. */
export function kustomize (name: (typeof KUSTOMIZATIONS)[number]): Manifest[] {
  const folder = `${DEPLOY}kubernetes/${name}`
  return loadAll(execFileSync('kubectl', ['kustomize', folder], { encoding: 'utf8' })) as Manifest[]
}
