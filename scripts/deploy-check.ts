/**
 * Runs the examples of `deploy/` as far as this machine has the programs: `npm run deploy:check`, all of them or those
 * whose names have the given words. What cannot run is skipped with a sentence; what fails is named, with exit code 1.
 */

import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { openEvents } from '../test/helper/event-stream.ts'
import { type ProcessOwner, runProcess, type ServiceProcess, startProcess } from '../test/helper/process.ts'
import {
  freePort, hasProgram, KUSTOMIZATIONS, kustomize, type Proxy, type ProxyOptions, startCaddy, startHaproxy, startNginx
} from '../test/helper/proxies.ts'
import { rawRequest, request } from '../test/helper/raw-http.ts'
import { startLoad } from '../test/helper/rolling-restart.ts'
import { installSkills } from '../test/helper/skills-client.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const REPLICAS = 3
/** Longest time until HAProxy takes a server out: two checks of the example. */
const SHUTDOWN_DELAY = '4'
/** Longest time until a balancer uses a server again. */
const SETTLED_MS = 3_000

interface Check {
  readonly what: string
  /** Returns why the example cannot run here, or undefined. */
  readonly missing: () => string | undefined
  readonly run: (owner: ProcessOwner, folder: string) => Promise<void>
}

function needs (program: string, ...args: readonly string[]): () => string | undefined {
  return () => hasProgram(program, ...args) ? undefined : `${[program, ...args].join(' ')} is not on this machine`
}

/** Builds the Dockerfile with Docker or buildah, and returns the name of the image. */
const IMAGE = process.env['SKILLSERVE_IMAGE'] ?? 'skillserve'
const COMPOSE_FILES = ['docker-compose.yml', 'deploy/compose/compose.yaml', 'deploy/compose/team.yaml']

const CHECKS: readonly Check[] = [
  {
    what: 'nginx: a rolling restart of three replicas under load',
    missing: needs('nginx', '-v'),
    run: (owner, folder) =>
      checkBalancer(owner, folder, (options) => startNginx(owner, 'nginx/skillserve.conf', options))
  },
  {
    what: 'HAProxy: a rolling restart of three replicas under load',
    missing: needs('haproxy', '-v'),
    run: (owner, folder) => checkBalancer(owner, folder, (options) => startHaproxy(owner, options))
  },
  { what: 'nginx: an export, installed by the skills client', missing: needs('nginx', '-v'), run: checkExport },
  {
    what: 'Caddy: the example is valid',
    missing: needs('caddy', 'version'),
    run: async () => {
      const config = join(ROOT, 'deploy/caddy/Caddyfile')
      execFileSync('caddy', ['validate', '--adapter', 'caddyfile', '--config', config], { stdio: 'ignore' })
    }
  },
  {
    what: 'Caddy: a rolling restart of three replicas under load',
    missing: needs('caddy', 'version'),
    run: (owner, folder) => checkBalancer(owner, folder, (options) => startCaddy(owner, options), true)
  },
  {
    what: 'production: nginx with TLS, the settings of the unit, access, audit log, limits and metrics fit together',
    missing: () => [needs('nginx', '-v'), needs('openssl', 'version'), needs('curl', '--version')]
      .map((missing) => missing()).find((reason) => reason !== undefined),
    run: checkProduction
  },
  { what: 'systemd: the units are valid', missing: needs('systemd-analyze', '--version'), run: checkUnits },
  { what: 'logrotate: no line of the audit log is lost', missing: needs('logrotate', '--version'), run: checkRotation },
  {
    what: 'Kubernetes: kustomize makes each variant',
    missing: needs('kubectl', 'version', '--client'),
    run: async () => { KUSTOMIZATIONS.forEach(kustomize) }
  },
  {
    what: 'compose: the files are valid',
    missing: needs('docker', 'compose', 'version'),
    run: async () => {
      for (const file of COMPOSE_FILES) {
        execFileSync('docker', ['compose', '-f', join(ROOT, file), 'config', '-q'], { stdio: 'inherit' })
      }
    }
  },
  {
    what: 'promtool: the rules and the scrape configuration are valid',
    missing: needs('promtool', '--version'),
    run: async () => {
      execFileSync('promtool', ['check', 'rules', join(ROOT, 'deploy/prometheus/alerts.yml')], { stdio: 'ignore' })
    }
  },
  {
    what: 'image: it fetches a source with git, as any user of group 0',
    missing: () => hasProgram('buildah', 'inspect', IMAGE)
      ? undefined
      : `buildah has no image ${IMAGE} (SKILLSERVE_IMAGE names another)`,
    run: async (_owner, folder) => { checkImage(folder) }
  }
]

async function checkBalancer (owner: ProcessOwner, folder: string,
  startProxy: (options: ProxyOptions) => Promise<Proxy>, showsProbes = false): Promise<void> {
  const skills = join(folder, 'skills')
  cpSync(join(ROOT, 'skills'), skills, { recursive: true })
  const start = (port: number): Promise<ServiceProcess> => startProcess(owner,
    { args: [skills], env: { PORT: String(port), SHUTDOWN_DELAY, ALLOWED_HOSTS: 'localhost,127.0.0.1' } })
  const replicas = await Promise.all(Array.from({ length: REPLICAS }, () => start(0)))
  const { url } = await startProxy({ folder, ports: replicas.map(({ port }) => port) })
  await pause(SETTLED_MS)

  const [encoded, plain] = await Promise.all(['/skills/calculator/files/references%2Fexamples.md',
    '/skills//calculator'].map(async (target) => {
    const [through, direct] = await Promise.all(
      [url, replicas[0]?.url ?? ''].map((origin) => rawRequest(origin, request('GET', target, { host: '127.0.0.1' }))))
    return through?.status === direct?.status && (direct?.status !== 200 || through?.text === direct.text)
  }))
  if (encoded !== true || plain !== true) throw new Error('a path does not go through as it came')
  if (!showsProbes && (await fetch(`${url}/readyz`)).status !== 404) throw new Error('probes are open to everybody')

  const stream = await openEvents(url)
  await stream.until('the revision of the catalog', () => stream.lastEventId.length === 64)
  const load = startLoad(url)
  for (const { port, stop } of replicas) {
    const { code, stderr } = await stop()
    if (code !== 0) throw new Error(`a replica ended with ${code}: ${stderr}`)
    await start(port)
    await pause(SETTLED_MS)
  }
  const { answered, failures } = await load.stop()
  stream.destroy()
  console.log(`   ${answered} answers`)
  expectNone(failures)
}

async function checkExport (owner: ProcessOwner, folder: string): Promise<void> {
  const [root, cwd] = [join(folder, 'out'), join(folder, 'client')]
  mkdirSync(cwd)
  const exported = await runProcess(owner, { args: ['export', root, join(ROOT, 'skills')] })
  if (exported.code !== 0) throw new Error(exported.stderr)
  const { url } = await startNginx(owner, 'nginx/static.conf', { folder, root })
  const { succeeded, output, folder: installed } =
    await installSkills(url, { cli: join(ROOT, 'node_modules/skills/bin/cli.mjs'), cwd })
  const missing = readdirSync(join(ROOT, 'skills')).filter((name) => !readdirSync(installed).includes(name))
  if (!succeeded || missing.length > 0) throw new Error(output)
}

/**
 * Runs the files of `deploy/production` with the settings of the systemd unit, in another folder and at other ports.
 */
async function checkProduction (owner: ProcessOwner, folder: string): Promise<void> {
  const read = (path: string): string => readFileSync(join(ROOT, 'deploy', path), 'utf8')
  const [skills, access, metricsPort] = [join(folder, 'skills'), join(folder, 'access.yaml'), await freePort()]
  const root = (name: string, skill: string) =>
    cpSync(join(ROOT, 'skills', skill), join(skills, name, skill), { recursive: true })
  root('common', 'weather')
  root('docs', 'calculator')
  mkdirSync(join(folder, 'log'))

  const { stdout } = await runProcess(owner, { args: ['token', 'docs-agents', '--group', 'docs'] })
  const [token = ''] = /^sks_\S+/m.exec(stdout) ?? []
  const [line = ''] = /^ *- \{ name: .*$/m.exec(stdout) ?? []
  writeFileSync(access, read('production/access.yaml').replace(/^ *- \{ name: "docs-agents".*$/m, () => line))
  const pairs = Array.from(read('systemd/skillserve.service').matchAll(/^Environment=(.*)$/gm), ([, each = '']) => each)
    .flatMap((each) => each.split(' ')).concat(read('production/skillserve.env').split('\n'))
    .filter((pair) => /^[A-Z_]+=/.test(pair))
    .map((pair) => pair.replace('%S/skillserve', join(folder, 'state')).replaceAll('/srv/skills', skills)
      .replace('/etc/skillserve', folder).replace('/var/log/skillserve', join(folder, 'log'))
      .replace('METRICS_PORT=9464', `METRICS_PORT=${metricsPort}`).replace(/^PORT=.*/, 'PORT=0'))
  const env =
    Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]))
  const service = await startProcess(owner, { env: { ...env, LIMIT_BURST: '50' } })

  const [certificate, key] = [join(folder, 'fullchain.pem'), join(folder, 'privkey.pem')]
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', '/CN=skills.example',
    '-addext', 'subjectAltName=DNS:skills.example', '-keyout', key, '-out', certificate], { stdio: 'ignore' })
  const { url } = await startNginx(owner, 'production/nginx.conf', { folder, ports: [service.port] })
  const { port } = new URL(url)
  const ask = (path: string, options: readonly string[] = [], times = 1): string => execFileSync('curl', ['-sS',
    '--cacert',
    certificate, '--resolve', `skills.example:${port}:127.0.0.1`, '-w', ' %{http_code}\n', ...options,
    ...Array.from({ length: times }, () => `https://skills.example:${port}${path}`)], { encoding: 'utf8' })
  const authorization = ['-H', `Authorization: Bearer ${token}`]
  const expect = (what: string, found: string, wanted: RegExp): void => {
    if (!wanted.test(found)) throw new Error(`${what}: ${found.slice(0, 300)}`)
  }

  expect('without a token', ask('/skills'), / 401$/m)
  expect('with a token', ask('/skills', authorization), /"calculator","weather".* 200$/m)
  expect('another host', ask('/skills', [...authorization, '-H', 'Host: rebind.example']), /host_not_allowed.* 403$/m)
  for (const path of ['/readyz', '/livez', '/metrics']) expect(path, ask(path, authorization), / 404$/m)
  expect('metrics', await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text(),
    /skillserve_skills\{root="docs"\} 1/)
  expect('limits', ask('/skills/weather', authorization, 60), / 429$/m)

  // A token that was removed is refused after a reload.
  writeFileSync(access, read('production/access.yaml'))
  service.signal('SIGHUP')
  await service.printed('SIGHUP: done')
  expect('a removed token', ask('/skills', authorization), / (?:401|429)$/m)
  await service.stop()
  expect('audit log', readFileSync(join(folder, 'log/audit.jsonl'), 'utf8'), /"skill\.list".*"docs-agents"/)
}

async function checkUnits (): Promise<void> {
  const units = ['skillserve.service', 'skillserve@.service'].map((name) => join(ROOT, 'deploy/systemd', name))
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', ...units], { encoding: 'utf8' })
  expectNone(stderr.split('\n').filter((line) => line.includes('skillserve')))
  if (status !== 0) throw new Error(stderr)
}

/** Rotates the audit log of a service twice, by the example with other paths, while skills are read. */
async function checkRotation (owner: ProcessOwner, folder: string): Promise<void> {
  const log = join(folder, 'audit.jsonl')
  const { url, pid, stop } = await startProcess(owner, { args: [join(ROOT, 'skills')], env: { AUDIT_LOG: log } })
  const config = join(folder, 'logrotate.conf')
  const example = readFileSync(join(ROOT, 'deploy/logrotate/skillserve'), 'utf8')
  writeFileSync(config, example.replaceAll('/var/log/skillserve', folder)
    .replace('systemctl reload skillserve', `kill -HUP ${pid}`))
  const reads = 60
  for (let read = 0; read < reads; read++) {
    await (await fetch(`${url}/skills/calculator`)).text()
    if (read % 20 !== 10) continue
    // The log is written in blocks, and logrotate does not rotate an empty file.
    while (!existsSync(log) || statSync(log).size === 0) await pause(100)
    execFileSync('logrotate', ['--force', '--state', join(folder, 'state'), config])
  }
  await stop()
  const names = readdirSync(folder).filter((name) => name.startsWith('audit.jsonl'))
  const lines = names.flatMap((name) => {
    const bytes = readFileSync(join(folder, name))
    return (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString().trim().split('\n')
  })
  const counted = lines.filter((line) => line.includes('"skill.read"')).length
  if (names.length < 3 || counted !== reads) throw new Error(`${counted} of ${reads} reads in ${names.join(', ')}`)
}

/** Runs a command in the image of the Dockerfile, which fetches a repository into its state folder. */
function checkImage (folder: string): void {
  const git = (...args: readonly string[]) => execFileSync('git', ['-C', folder, '-c', 'user.name=x', '-c',
    'user.email=x',
    ...args], { stdio: 'ignore' })
  cpSync(join(ROOT, 'skills'), join(folder, 'skills'), { recursive: true })
  git('init', '-q')
  git('add', '.')
  git('commit', '-qm', 'skills')
  chmodSync(folder, 0o755)
  git('config', 'uploadpack.allowAnySHA1InWant', 'true')
  for (const user of ['10001:0', '123456:0']) {
    const container = execFileSync('buildah', ['from', '--pull=never', IMAGE], { encoding: 'utf8' }).trim()
    // git refuses a repository of another user.
    execFileSync('chown', ['-R', user, folder])
    const run = (...command: readonly string[]): void => {
      const args = ['run', '--user', user, '-v', `${folder}:/repository:ro`, container, '--', ...command]
      const { status, stdout, stderr } = spawnSync('buildah', args, { encoding: 'utf8' })
      if (status !== 0) throw new Error(`${user}: ${stdout}${stderr}`)
    }
    try {
      run('node', 'dist/cli/skillserve.cjs', 'sync', 'git+file:///repository#HEAD:skills')
      // ssh refuses to run for a user without a name.
      if (user === '10001:0') run('ssh', '-V')
    } finally {
      execFileSync('buildah', ['rm', container], { stdio: 'ignore' })
    }
  }
}

function expectNone (failures: readonly string[]): void {
  if (failures.length > 0) throw new Error(`${failures.length} failures: ${failures.slice(0, 5).join('; ')}`)
}

let failed = 0
const words = process.argv.slice(2)
for (const { what, missing, run } of CHECKS.filter((check) => words.every((word) => check.what.includes(word)))) {
  const reason = missing()
  if (reason !== undefined) {
    console.log(`-- ${what}: skipped, since ${reason}`)
    continue
  }
  const ends: Array<() => void> = []
  const folder = mkdtempSync(join(tmpdir(), 'skillserve-deploy-'))
  try {
    await run({ teardown: (end) => { ends.push(end) } }, folder)
    console.log(`ok ${what}`)
  } catch (error) {
    failed++
    console.log(`FAILED ${what}: ${error instanceof Error ? error.message : String(error)}`)
  } finally {
    for (const end of ends.reverse()) end()
    rmSync(folder, { recursive: true, force: true })
  }
}
process.exitCode = failed === 0 ? 0 : 1
