import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { runHere } from '../helper/command-line.ts'
import { newSecret } from '../helper/guarded.ts'
import { installSdk } from '../helper/otel.ts'
import { startProcess } from '../helper/process.ts'
import { openRaw, request } from '../helper/raw-http.ts'
import { saveAtomically, until } from '../helper/skills.ts'

const FILES = { demo: { 'SKILL.md': '---\nname: demo\ndescription: A demo\n---\n# Demo\n' } }

t.test('K71: METRICS_PORT has the metrics on a port of its own, and the service has none', async (t) => {
  const service = await startProcess(t, { args: [t.testdir(FILES)], env: { METRICS_PORT: '0' } })
  const { url } = service.log().find(({ msg }) => msg === 'metrics for Prometheus') ?? {}
  t.match(url, /^http:\/\/127\.0\.0\.1:\d+\/metrics$/)
  await (await fetch(`${service.url}/skills/demo`)).text()
  const response = await fetch(String(url))
  t.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  t.match(await response.text(), /^skillserve_skills\{root="[^"]+"\} 1$/m)
  t.equal((await fetch(String(url).replace('/metrics', '/'))).status, 404)
  t.equal((await fetch(`${service.url}/metrics`)).status, 404)
  t.match(await service.stop(), { code: 0, stderr: '' })
})

t.test('K70: the log is for people with LOG_FORMAT=pretty, and one line a request', async (t) => {
  const service = await startProcess(t, { args: [t.testdir(FILES)], env: { LOG_FORMAT: 'pretty' } })
  await (await fetch(`${service.url}/skills/demo`)).text()
  await (await fetch(`${service.url}/skills/none`)).text()
  const { stdout, code } = await service.stop()
  t.equal(code, 0)
  t.match(stdout, /^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: serving a skills folder\n/m)
  t.match(stdout, /INFO: GET \/skills\/demo 200 [\d.]+ ms 127\.0\.0\.1\n/)
  t.match(stdout, /INFO: GET \/skills\/none 404 [\d.]+ ms 127\.0\.0\.1\n {4}code: "skill_not_found"\n/)
  t.notOk(stdout.includes('\u001b'), 'no colours in a pipe')
})

t.test('K67 K71: with callers, GET /metrics of the service is for those with the scope, and counts what was refused ' +
  'and read, and that the store of limits is away', async (t) => {
  const { service, metrics, ci, fetchAs } = await startGuarded(t, { LIMITS_STORE: 'redis://127.0.0.1:1' })
  t.equal((await fetchAs('/metrics')).status, 401)
  t.equal((await fetchAs('/metrics', ci)).status, 403)
  t.match((await fetchAs('/metrics', metrics)).headers.get('content-type'), 'text/plain; version=0.0.4')

  for (const [path, token] of [['/skills/demo', ci], ['/skills/demo', 'wrong'], ['/skills/demo/archive.zip', ci],
    ['/skills/demo/files/SKILL.md', ci], ['/skills/demo/files/a.txt', ci], ['/skills/none', ci]] as const) {
    await fetchAs(path, token)
  }
  const [, etag] = [await fetchAs('/skills/demo', ci), (await fetchAs('/skills/demo', ci)).headers.get('etag') ?? '']
  t.equal((await fetchAs('/skills/demo', ci, { 'if-none-match': etag })).status, 304)
  await (await fetch(`${service.url}/agent/tool-call`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${ci}` },
    body: JSON.stringify(
      [{ id: 'a', type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":"demo"}' } }])
  })).text()
  // Neither gives anybody the bytes.
  for (const path of ['/skills/demo', '/skills/demo/archive.zip']) {
    await fetch(`${service.url}${path}`, { method: 'HEAD', headers: { authorization: `Bearer ${ci}` } })
  }
  let text = ''
  const value = (series: string) =>
    Number(text.split('\n').find((line) => line.startsWith(`${series} `))?.slice(series.length + 1))
  // A read counts when its response has closed.
  await until(async () => {
    text = (await fetchAs('/metrics', metrics)).text
    return value('skillserve_reads_total{skill="demo",door="rest"}') === 6
  })
  t.equal(value('skillserve_reads_total{skill="demo",door="tool-call/openai"}'), 1)
  t.equal(value('skillserve_auth_failures_total{reason="missing"}'), 1)
  t.equal(value('skillserve_auth_failures_total{reason="invalid"}'), 1)
  t.equal(value('skillserve_auth_failures_total{reason="scope"}'), 1)
  t.equal(value('skillserve_rate_limited_total{rule="units"}'), 0)
  await until(async () =>
    /^skillserve_limits_store_failures_total [1-9]/m.test((await fetchAs('/metrics', metrics)).text))
  await service.printed('rate-limit store unreachable')
  t.equal(service.log().filter(({ msg }) => String(msg).startsWith('rate-limit store unreachable')).length, 1)
  t.notMatch(
    await (await fetch(`${service.url}/openapi.json`, { headers: { authorization: `Bearer ${ci}` } })).text(),
    '/metrics')
})

t.test('K70 K71 K72 K73: no token, secret link, cookie or file content is in log, metrics, spans or audit log, ' +
  'at any level', async (t) => {
  const { service, metrics, ci, link, sdk, fetchAs } =
    await startGuarded(t, { LOG_LEVEL: 'trace', AUDIT_LOG: 'stdout' })
  const headers = {
    cookie: 'session=CANARY-COOKIE',
    'proxy-authorization': 'Basic CANARY-PROXY',
    'x-forwarded-access-token': 'CANARY-FORWARDED'
  }
  const paths = [
    '/skills/demo', '/skills/none', '/catalog', '/nowhere', '/skills/demo/archive.zip',
    '/skills?access_token=CANARY-QUERY', `/t/${link}/.well-known/skills/index.json`,
    `/t/${link}/skills`, `/t/${link}`, '/t/skl_CANARY-GUESS/.well-known/skills/index.json', '/catalog?q=CANARY-SEARCH'
  ]
  for (const path of paths) for (const token of [ci, 'CANARY-TOKEN']) await fetchAs(path, token, headers)
  t.equal((await fetchAs(`/t/${link}/.well-known/skills/index.json`)).status, 200)
  const { text } = await fetchAs('/metrics', metrics)
  const { stdout, stderr } = await service.stop()
  t.match(stdout, '"event":"discovery.index"')
  const spans = sdk.text()
  t.match(spans, '/.well-known/skills/index.json')
  // The words of a search are in the URL of its request, in the log, and in its audit line.
  const log = stdout.replaceAll('/catalog?q=CANARY-SEARCH', '').replaceAll('"query":"CANARY-SEARCH"', '')
  for (const signal of [text, log, stderr, spans]) {
    for (const secret of ['CANARY', ci, metrics, link, ci.slice(4), link.slice(4)]) {
      t.notOk(signal.includes(secret), secret)
    }
  }
})

t.test('K73: the audit log survives rotation with SIGHUP, and SIGTERM, without a lost line', async (t) => {
  const folder = t.testdir({ skills: FILES })
  const [path, rotated] = [join(folder, 'audit.log'), join(folder, 'audit.log.1')]
  const service = await startProcess(t, { args: [join(folder, 'skills')], env: { AUDIT_LOG: path } })
  const read = async () => (await fetch(`${service.url}/skills/demo`)).text()
  await read()
  await until(() => readFileSync(path, 'utf8').includes('"skill.read",'))
  renameSync(path, rotated)
  service.signal('SIGHUP')
  await until(() => existsSync(path))
  await read()
  await until(() => readFileSync(path, 'utf8').includes('skill.read'))
  await read()
  t.match(await service.stop(), { code: 0 })
  const texts = [rotated, path].flatMap((file) => readFileSync(file, 'utf8').trim().split('\n'))
  const lines = texts.map((line) => JSON.parse(line) as { readonly event: string, readonly prev: string | null })
  for (const [i, { prev }] of lines.entries()) {
    t.equal(prev, i === 0 ? null : createHash('sha256').update(texts[i - 1] ?? '').digest('hex'),
      'one chain over the rotation')
  }
  t.strictSame(lines.map(({ event }) => event),
    ['service.started', 'skill.read', 'skill.read', 'skill.read', 'service.stopped'])
})

t.test('K73: a full disk delays nothing where the log is not required', {
  skip: existsSync('/dev/full') ? false : 'there is no /dev/full'
}, async (t) => {
  const free = await startProcess(t, { args: [t.testdir(FILES)], env: { AUDIT_LOG: '/dev/full' } })
  for (let i = 0; i < 50; i++) t.equal((await fetch(`${free.url}/skills/demo`)).status, 200)
  const readiness = async () =>
    await (await fetch(`${free.url}/readyz`)).json() as { readonly status: unknown, readonly detail?: string }
  await until(async () => (await readiness()).detail !== undefined)
  t.match(await readiness(), {
    status: 'ready', detail: 'the audit log cannot be written; its lines wait, and are lost when they are too many'
  })
  await free.printed('"problem":"ENOSPC"')
  t.match(await free.stop(), { code: 0 })
  t.match(free.log().find(({ problem }) => problem === 'ENOSPC'),
    { level: 40, path: '/dev/full', problem: 'ENOSPC', msg: /^audit log cannot be written, trying again each second; lines are dropped, or wait/ })
})

t.test('K73: where the log is required a full disk refuses reads until there is room', async (t) => {
  const folder = t.testdir({ skills: FILES })
  const path = join(folder, 'audit.log')
  symlinkSync('/dev/full', path)
  const service = await startProcess(t,
    { args: [join(folder, 'skills')], env: { AUDIT_LOG: path, AUDIT_REQUIRED: 'true' } })
  const readiness = async () =>
    await (await fetch(`${service.url}/readyz`)).json() as { readonly status: unknown, readonly detail?: string }
  const statusOf = async (path: string) => (await fetch(service.url + path)).status
  await until(async () => await statusOf('/skills/demo') === 503)
  t.equal(await statusOf('/livez'), 200)
  t.match(await readiness(), {
    status: 503, detail: 'the audit log cannot be written, and AUDIT_REQUIRED refuses reads until it can'
  })
  // Looked for each second.
  await service.printed('audit log cannot be written')
  rmSync(path)
  service.signal('SIGHUP')
  await until(async () => await statusOf('/skills/demo') === 200)
  await service.printed('audit log is written again')
  t.match(await service.stop(), { code: 0 })
  for (const line of readFileSync(path, 'utf8').trim().split('\n')) t.match(JSON.parse(line), { event: String })
})

t.test('K73: a disk that hangs delays no request and no end, and the log says that it hangs', async (t) => {
  const folder = t.testdir({ skills: FILES })
  const fifo = join(folder, 'audit.fifo')
  t.equal(spawnSync('mkfifo', [fifo]).status, 0)
  // Holds the other end open and reads nothing: a write waits for ever once the pipe is full.
  const holder = await open(fifo, 'r+')
  t.teardown(() => holder.close())
  const service = await startProcess(t, { args: [join(folder, 'skills')], env: { AUDIT_LOG: fifo } })
  const connection = await openRaw(service.url)
  t.teardown(() => { connection.destroy() })
  // A pipe has room for 64 KiB, and a line of a read has more than 400 bytes.
  for (let i = 0; i < 200; i++) t.equal((await connection.send(request('GET', '/skills/demo')).response()).status, 200)
  await service.printed(/"problem":"slow","msg":"audit log cannot be written/)
  const { code, signal } = await service.stop()
  t.ok(code === 0 || signal === 'SIGKILL')
})

t.test('K73: AUDIT_LOG=stdout is among the log; it has refused callers, each state of the access file, and ' +
  'changes of skills', async (t) => {
  const token = newSecret('ci', 'groups: [all]')
  const policy = `tokens:\n  - ${token.entry}\nrules:\n  - { groups: [all] }\n`
  const folder = t.testdir({ skills: FILES, 'access.yaml': policy })
  const access = join(folder, 'access.yaml')
  const service = await startProcess(t,
    { args: [join(folder, 'skills')], env: { AUDIT_LOG: 'stdout', ACCESS_FILE: access } })
  const events = (event: string) => service.log().filter((line) => line['event'] === event)
  const read = async (headers = {}) => (await fetch(`${service.url}/skills/demo`, { headers })).status
  t.equal(await read({ authorization: `Bearer ${token.text}` }), 200)
  t.equal(await read({ authorization: 'Bearer sks_wrong' }), 401)
  t.equal(await read(), 401)
  saveAtomically(access, 'tokens: nonsense\n')
  await until(() => events('policy.rejected').length === 1)
  saveAtomically(access, `${policy}# Again\n`)
  saveAtomically(join(folder, 'skills', 'demo', 'SKILL.md'), '---\nname: demo\ndescription: Another\n---\n# Demo\n',
    join(folder, 'next'))
  await until(() => events('policy.loaded').length === 2 && events('skill.changed').length > 0)
  await service.stop()
  t.match(events('skill.read'),
    [{
      outcome: 'success',
      principal: { kind: 'token', id: 'token:ci', name: 'ci', groups: ['anonymous', 'authenticated', 'all'] },
      target: { skill: 'demo', root: 'skills' }
    }])
  t.match(events('auth.failed'), [
    {
      outcome: 'denied',
      principal: { kind: 'anonymous' },
      door: 'rest',
      target: {
        skill: 'demo', code: 'invalid_token'
      }
    },
    { outcome: 'denied', target: { skill: 'demo', code: 'unauthenticated' } }
  ])
  t.match(events('policy.rejected'), [{ outcome: 'failure', target: { file: access, problem: /access\.yaml:1/ } }])
  t.match(events('policy.loaded')[0], { target: { file: access, digest: /^sha256:[\da-f]{64}$/ } })
  t.match(events('skill.changed'), [{ outcome: 'success', target: { skill: 'demo' } }])
})

t.test('K67 K73: settings that no service starts with are an error without their secrets', async (t) => {
  const folder = t.testdir({ skills: FILES, link: t.fixture('symlink', 'skills/demo') })
  const [root, fifo, served] = [join(folder, 'skills'), join(folder, 'audit.fifo'), join(folder, 'link/audit.log')]
  t.equal(spawnSync('mkfifo', [fifo]).status, 0)
  for (const [env, problem] of [
    [{ AUDIT_REQUIRED: 'true' }, /AUDIT_REQUIRED needs AUDIT_LOG: a file, or stdout/],
    [{ AUDIT_SALT: 'CANARY' }, /AUDIT_SALT must be .+/],
    [{ LIMITS_STORE: 'rediss//:CANARY@host' }, /LIMITS_STORE must be .+/],
    [{ LIMITS_STORE: 'redis://:CANARY%zz@host' }, /LIMITS_STORE must be .+/],
    [{ AUDIT_LOG: fifo },
      /AUDIT_LOG must be a file that can be written, and \S+ cannot be opened \(ENXIO: no such device or address\)/],
    // Also through a link, since it would be served.
    [{ AUDIT_LOG: served }, /AUDIT_LOG: "\S+audit\.log" is inside "\S+skills", whose files are served: .+/]
  ] as const) {
    const { code, stderr } = await runHere([root], { env: { PORT: '0', ...env } })
    t.equal(code, 1)
    t.match(stderr, new RegExp(`^skillserve: ${problem.source}\n$`))
    t.notMatch(stderr, 'CANARY')
  }
  t.notOk(existsSync(served))
})

/** A service with callers, all signals, and one skill. */
async function startGuarded (t: Test, env: Readonly<Record<string, string>> = {}) {
  const [ci, metrics, link] = [newSecret('ci', 'groups: [all]'), newSecret('prometheus', 'scopes: [metrics:read]'),
    newSecret('public', 'groups: [all]', 'link')]
  const folder = t.testdir({
    skills: {
      demo: { 'SKILL.md': '---\nname: demo\ndescription: A demo\n---\nCANARY-CONTENT\n', 'a.txt': 'CANARY-FILE' }
    },
    'access.yaml': `tokens:\n  - ${ci.entry}\n  - ${metrics.entry}\nlinks:\n  - ${link.entry}\nrules:\n  - { groups: [all] }\n`
  })
  const sdk = installSdk(folder)
  const service = await startProcess(t, {
    args: [join(folder, 'skills')],
    env: { ACCESS_FILE: join(folder, 'access.yaml'), METRICS_READS: 'true', ...env },
    nodeOptions: sdk.nodeOptions
  })
  return {
    service,
    ci: ci.text,
    metrics: metrics.text,
    link: link.text,
    sdk,
    fetchAs: async (path: string, token?: string, headers: Readonly<Record<string, string>> = {}) => {
      const response = await fetch(`${service.url}${path}`,
        { headers: { ...headers, ...token !== undefined && { authorization: `Bearer ${token}` } } })
      return { status: response.status, headers: response.headers, text: await response.text() }
    }
  }
}
