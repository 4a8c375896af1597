import {
  cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync
} from 'node:fs'
import { Agent, request as ask } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import t, { type Test } from 'tap'
import { buildService } from '../helper/build.ts'
import { openEvents } from '../helper/event-stream.ts'
import { startServer } from '../helper/fault-server.ts'
import { type ServiceProcess, startProcess } from '../helper/process.ts'
import { askUntilServed, openRaw, rawRequest, type RawResponse, request } from '../helper/raw-http.ts'
import { startLoad } from '../helper/rolling-restart.ts'
import { installSkills } from '../helper/skills-client.ts'
import { saveAtomically, skill, skillText, until } from '../helper/skills.ts'

const EXAMPLES = fileURLToPath(new URL('../../skills/', import.meta.url))
const DELAY_SECONDS = 2
/** Time between two requests of one client. */
const PAUSE_MS = 5

interface Replica {
  readonly service: ServiceProcess
  readonly root: string
  get (target: string, headers?: readonly string[]): Promise<RawResponse>
}

/** Two processes on two copies of one tree: other inodes, and times of other years. */
async function startReplicas (t: Test): Promise<readonly [Replica, Replica]> {
  const folder = t.testdir({
    one: { skills: skill('plain', { 'large.txt': 'line of text\n'.repeat(30_000), 'data.json': '{"a": 1}' }) }
  })
  renameSync(join(folder, 'one/skills'), join(folder, 'plain'))
  cpSync(EXAMPLES, join(folder, 'one/skills'), { recursive: true })
  renameSync(join(folder, 'plain'), join(folder, 'one/skills/plain'))
  cpSync(join(folder, 'one'), join(folder, 'two'), { recursive: true })
  for (const [name, year] of [['one', 2001], ['two', 2017]] as const) {
    for (const path of readdirSync(join(folder, name), { recursive: true, encoding: 'utf8' })) {
      utimesSync(join(folder, name, path), new Date(year, path.length % 12), new Date(year, path.length % 12))
    }
  }
  return await Promise.all([startReplica(t, join(folder, 'one/skills')), startReplica(t, join(folder, 'two/skills'))])
}

async function startReplica (t: Test, root: string): Promise<Replica> {
  const service = await startProcess(t, { args: [root], env: { SHUTDOWN_DELAY: String(DELAY_SECONDS) } })
  await service.printed('watching a skills folder')
  await revisionKnown(service)
  return {
    service,
    root,
    get: (target, headers = []) =>
      askUntilServed(service.url, request('GET', target, { headers: ['X-Request-Id: same', ...headers] }))
  }
}

/** The id of a stream is the revision of the catalog as soon as that is known. */
async function revisionKnown ({ url }: ServiceProcess, other?: string): Promise<string> {
  const stream = await openEvents(url)
  await stream.until('the revision of the catalog',
    () => stream.lastEventId.length === 64 && stream.lastEventId !== other)
  stream.destroy()
  return stream.lastEventId
}

/** In one step: a state between the two would be an event of its own. */
function save (root: string, text: string): void {
  saveAtomically(join(root, 'plain/data.json'), text, `${root}.next`)
}

/**
 * A skill whose folders are under watch from now on is compared once more, and the revision of the catalog is not known
 * meanwhile. Both know it, or neither.
 */
async function askBoth ([one, two]: readonly [Replica, Replica], target: string,
  headers: readonly string[]): Promise<readonly [RawResponse, RawResponse]> {
  let answers = await Promise.all([one.get(target, headers), two.get(target, headers)])
  await until(async () => {
    const [a, b] = answers
    if ('catalog-revision' in a.headers === 'catalog-revision' in b.headers) return true
    answers = await Promise.all([one.get(target, headers), two.get(target, headers)])
    return false
  })
  return answers
}

/** All that a client gets, but for the time. */
function comparable ({ status, headerLines, body }: RawResponse, { root, service }: Replica): object {
  const headers = headerLines.filter((line) => !/^date:/i.test(line))
  return {
    status, headers, body: body.toString('latin1').replaceAll(root, 'ROOT').replaceAll(`:${service.port}`, ':PORT')
  }
}

/** Every GET operation of the document, with the values that its path needs; events have no end. */
async function targetsOf ({ get }: Replica): Promise<string[]> {
  const { paths } = (await get('/openapi.json')).json() as { readonly paths: Readonly<Record<string, object>> }
  const { skills } = (await get('/.well-known/agent-skills/index.json')).json() as {
    readonly skills: ReadonlyArray<{ readonly url: string }>
  }
  const artifacts = skills.map(({ url }) => new URL(url, 'http://x/.well-known/agent-skills/').pathname)
  const known = Object.entries(paths).filter(([path, operations]) =>
    'get' in operations && !['/events', '/readyz'].includes(path) && !path.includes('{digest}'))
  return [
    ...known.map(([path]) =>
      path.replace('{name}', 'calculator').replace('{skill}', 'calculator').replace('{path}', 'SKILL.md')),
    ...artifacts,
    '/skills/plain/files/large.txt', '/skills/plain/files/data.json', '/skills/plain/archive.zip?wrap=true',
    '/skills/nowhere', '/skills/plain/files/nowhere',
    '/skills/plain?revision=current', '/catalog?q=numbers', '/catalog?limit=2', '/catalog?valid=true',
    '/agent/tools?format=mcp', '/agent/prompt?format=json', '/docs/'
  ]
}

const [one, two] = await startReplicas(t)

t.test('K92: two processes on two copies of one tree answer every GET with the same bytes and headers', async (t) => {
  const targets = await targetsOf(one)
  t.ok(targets.length > 30, `${targets.length} targets`)
  const forms = [[], ['Accept: text/markdown'], ['Accept: application/json'], ['Accept-Encoding: gzip'],
    ['Range: bytes=0-99']]
  const etags: string[] = []
  for (const target of targets) {
    for (const headers of forms) {
      const [a, b] = await askBoth([one, two], target, headers)
      t.strictSame(comparable(b, two), comparable(a, one), `${target} ${headers.join()}`)
      t.equal(a.headers['last-modified'], undefined)
      const { etag } = a.headers
      if (etag === undefined || a.status !== 200) continue
      etags.push(etag)
      t.equal((await two.get(target, [...headers, `If-None-Match: ${etag}`])).status, 304,
        `${target}: the tag of one is known to the other`)
    }
  }
  t.ok(etags.length > 60)

  const { next_cursor: cursor } = (await one.get('/catalog?limit=2')).json() as { readonly next_cursor: string }
  t.strictSame((await two.get(`/catalog?limit=2&cursor=${cursor}`)).json(),
    (await one.get(`/catalog?limit=2&cursor=${cursor}`)).json())

  const ready = await Promise.all([one, two].map(async ({ get }) => await get('/readyz')))
  const [a, b] = ready.map((response) => response.json() as { readonly revision: string })
  t.match(a?.revision, /^[\da-f]{64}$/)
  t.equal(a?.revision, b?.revision)
  for (const { headers } of ready) {
    t.match(headers, { etag: undefined, 'cache-control': 'no-store' },
      'the state of a process is neither compared nor kept')
  }
  for (const target of ['/skills', '/catalog', '/.well-known/skills/index.json',
    '/.well-known/agent-skills/index.json']) {
    t.equal((await two.get(target)).headers['catalog-revision'], a?.revision, target)
  }
})

t.test('K92: an edit of any file is another revision, at both replicas the same, and a stream goes on at ' +
  'the other one', async (t) => {
  const stream = await openEvents(one.service.url)
  await stream.until('the revision of the catalog', () => stream.lastEventId.length === 64)
  const first = stream.lastEventId
  for (const { root } of [one, two]) save(root, '{"a": 2}')
  await stream.until('the change', () => stream.lastEventId !== first)
  stream.destroy()
  const second = await revisionKnown(two.service, first)
  t.equal(second, stream.lastEventId)

  const moved = await openEvents(two.service.url, { headers: [`Last-Event-ID: ${second}`] })
  const behind = await openEvents(two.service.url, { headers: [`Last-Event-ID: ${first}`] })
  await behind.event(0)
  t.strictSame(behind.types, ['changed plain'], 'what came after, from the memory of the other replica')
  save(two.root, '{"a": 3}')
  await moved.event(0)
  t.strictSame(moved.types, ['changed plain'], 'nothing is repeated, and nothing is missed')
  for (const each of [moved, behind]) each.destroy()

  save(two.root, '{"a": 2}')
  t.equal(await revisionKnown(two.service, moved.lastEventId), second, 'the same content is the same revision again')
})

const cli = fileURLToPath(new URL('../../node_modules/skills/bin/cli.mjs', import.meta.url))
const SWAP_MS = 1_000
const FILES = ['SKILL.md', 'a.txt', 'b/c.txt']

t.test('K59 K92: while a link to the skills is swapped every second, no skill is missing, no answer mixes two ' +
  'states, and the skills client installs one of them', async (t) => {
  const folder = t.testdirName
  const client = join(folder, 'client')
  const write = (number: number): string => {
    const skills = join(folder, `rev-${number}`, 'skills')
    for (const name of ['one', 'two']) {
      mkdirSync(join(skills, name, 'b'), { recursive: true })
      for (const file of FILES) {
        writeFileSync(join(skills, name, file),
          file === 'SKILL.md' ? skillText(name, `state-${number}.\n`) : `state-${number}.`)
      }
    }
    return `rev-${number}`
  }
  // As git-sync does it: another link, which takes the place of the old one.
  const publish = (number: number): void => {
    symlinkSync(write(number), join(folder, 'next'))
    renameSync(join(folder, 'next'), join(folder, 'current'))
    // The old state stays for a while, as with --stale-worktree-timeout.
    if (number > 3) rmSync(join(folder, `rev-${number - 3}`), { recursive: true })
  }
  const { url } = await buildService(t, {
    options: {
      roots: ['current/skills'],
      watcher: true,
      prepare: () => {
        mkdirSync(client)
        publish(1)
      }
    }
  })
  let number = 1
  const timer = setInterval(() => { publish(++number) }, SWAP_MS)
  t.teardown(() => { clearInterval(timer) })

  const ended = new AbortController()
  const failures: string[] = []
  let answers = 0
  const read = async (name: string): Promise<void> => {
    while (!ended.signal.aborted) {
      const document = await fetch(`${url}/skills/${name}?revision=current`)
      const revision = document.headers.get('skill-revision') ?? ''
      const texts = [await document.text()]
      if (document.status !== 200) failures.push(`${name}: ${document.status}`)
      for (const file of FILES) {
        const pinned = await fetch(`${url}/skills/${name}/files/${file}?revision=${revision}`)
        texts.push(await pinned.text())
        if (pinned.status !== 200) failures.push(`${name}/${file}: ${pinned.status}`)
      }
      const states = new Set(texts.map((text) => /state-\d+/.exec(text)?.[0]))
      if (states.size !== 1) failures.push([...states].join())
      answers++
      await pause(PAUSE_MS)
    }
  }
  const readers = ['one', 'two'].map(read)
  const { succeeded, output, folder: installed } = await installSkills(url, { cli, cwd: client })
  t.ok(succeeded, output)
  for (const name of ['one', 'two']) {
    const texts = FILES.map((file) => readFileSync(join(installed, name, file), 'utf8'))
    t.equal(new Set(texts.map((text) => /state-\d+/.exec(text)?.[0])).size, 1, `${name}: ${texts.join()}`)
  }
  await until(() => number > 2)
  ended.abort()
  await Promise.all(readers)
  clearInterval(timer)
  t.strictSame(failures.slice(0, 5), [])
  t.comment(`${answers} answers, ${number} states`)
})

interface Index {
  readonly skills: ReadonlyArray<{ readonly name: string, readonly url: string }>
}

t.test('K59: while new content is rolled out, what was begun with the old content goes on at ' +
  'every replica', async (t) => {
  const indexOf = async ({ get }: Replica) => (await get('/.well-known/agent-skills/index.json')).json() as Index
  const artifactOf = ({ skills }: Index, name: string) =>
    new URL(skills.find((each) => each.name === name)?.url ?? '', 'http://x/.well-known/agent-skills/').pathname

  const [before] = await Promise.all([indexOf(one), indexOf(two)])
  const { revision } = (await one.get('/skills/plain/files')).json() as { readonly revision: string }
  for (const [step, { root }] of [one, two].entries()) {
    save(root, 'rolled out')
    writeFileSync(join(root, 'calculator/SKILL.md'), skillText('calculator', 'rolled out'))
    for (const { get } of [one, two]) {
      for (const name of ['plain', 'calculator']) {
        t.equal((await get(artifactOf(before, name))).status, 200, `step ${step}: ${name} in the earlier index`)
      }
      t.match(await get(`/skills/plain/files/data.json?revision=${revision}`), { status: 200, text: '{"a": 2}' })
      t.equal((await get(`/skills/plain/archive.zip?revision=${revision}`)).status, 200)
    }
    if (step > 0) continue
    // Indexes follow an edit inside a skill when a watcher reports it.
    await until(async () => artifactOf(await indexOf(one), 'plain') !== artifactOf(before, 'plain'))
    t.match(await two.get(artifactOf(await indexOf(one), 'plain')), {
      status: 404, headers: { 'cache-control': 'no-store' }
    }, 'what a replica does not have yet is not there, and no cache remembers that')
  }
  await until(async () => isDeepStrictEqual(await indexOf(one), await indexOf(two)))
})

/** Time between two checks of a backend. */
const CHECK_MS = 100

async function startExamples (t: Test, root: string, port = 0): Promise<ServiceProcess> {
  return await startProcess(t, { args: [root], env: { PORT: String(port), SHUTDOWN_DELAY: String(DELAY_SECONDS) } })
}

/**
 * A balancer like the simplest ones: round robin over the backends whose GET /readyz was 200 at the last check, over
 * connections that it keeps. It never asks a second backend when one fails.
 */
async function startBalancer (t: Test, ports: readonly number[]) {
  const agent = new Agent({ keepAlive: true })
  const ready = new Set<number>()
  const closed = new AbortController()
  let next = 0

  async function check (port: number): Promise<void> {
    while (!closed.signal.aborted) {
      const headers = { connection: 'close' }
      const isReady = await fetch(`http://127.0.0.1:${port}/readyz`, { headers }).then(({ ok }) => ok, () => false)
      if (isReady) ready.add(port)
      else ready.delete(port)
      await pause(CHECK_MS)
    }
  }

  const { url } = await startServer(t, (incoming, outgoing) => {
    const port = [...ready][next++ % ready.size]
    const { method, url: path } = incoming
    const upstream = ask({ host: '127.0.0.1', port, agent, method, path }, (response) => {
      outgoing.writeHead(response.statusCode ?? 502)
      pipeline(response, outgoing, () => {})
    })
    upstream.once('error', ({ message }) => {
      outgoing.writeHead(502).end(`backend ${port} of ${[...ready].join(' and ')}: ${message}`)
    })
    incoming.pipe(upstream)
  })
  t.teardown(() => {
    closed.abort()
    agent.destroy()
  })
  for (const port of ports) void check(port)
  await until(() => ready.size === ports.length)
  return { url, isReady: (port: number) => ready.has(port) }
}

t.test('K91: a process that is to stop is not ready, serves on, ends its streams one after ' +
  'another, and stops', async (t) => {
  const { service } = two
  const kept = await openRaw(service.url)
  t.equal((await kept.send(request('GET', '/skills')).response()).headers.connection, 'keep-alive')
  const streams = await Promise.all([openEvents(service.url), openEvents(service.url)])
  service.signal('SIGTERM')
  await service.printed('"stopping"')
  const [ready, list, late] = await Promise.all([
    rawRequest(service.url, request('GET', '/readyz')),
    rawRequest(service.url, request('GET', '/skills')),
    openEvents(service.url)
  ])
  t.match(ready, { status: 503, text: /stopping/ })
  t.match(list, { status: 200, headers: { connection: 'close' } })
  t.match(late.head, /^HTTP\/1.1 200/, 'a stream that comes meanwhile is not refused')
  t.match(await kept.send(request('GET', '/skills')).response(), { status: 200, headers: { connection: 'close' } })
  for (const stream of streams) {
    await stream.until('its end', () => stream.complete)
    t.notOk(service.log().some(({ msg }) => msg === 'stopped'), 'before the process ends')
  }
  t.match(await service.ended, { code: 0, stderr: '' })
})

t.test('K91: a rolling restart under load fails no request', async (t) => {
  const { root, service } = one
  const replicas = [service, await startExamples(t, root)]
  const balancer = await startBalancer(t, replicas.map(({ port }) => port))
  const load = startLoad(balancer.url)
  let isSlow = false
  for (const { port, signal, ended } of replicas) {
    const start = performance.now()
    signal('SIGTERM')
    await until(() => !balancer.isReady(port))
    isSlow ||= performance.now() - start > DELAY_SECONDS * 1_000
    t.match(await ended, { code: 0, stderr: '' })
    await startExamples(t, root, port)
    await until(() => balancer.isReady(port))
  }
  const { answered, failures } = await load.stop()
  t.comment(`${answered} answers`)
  if (isSlow) t.comment('skipped: this machine took longer to notice than the delay lasts')
  else t.strictSame(failures, [])
})
