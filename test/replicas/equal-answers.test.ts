import { cpSync, readdirSync, renameSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { openEvents } from '../helper/event-stream.ts'
import { type ServiceProcess, startProcess } from '../helper/process.ts'
import { askUntilServed, type RawResponse, request } from '../helper/raw-http.ts'
import { saveAtomically, skill, until } from '../helper/skills.ts'

const EXAMPLES = fileURLToPath(new URL('../../skills/', import.meta.url))

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
  const service = await startProcess(t, { args: [root] })
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
    ['Range: bytes=0-99'], ['If-None-Match: *']]
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
