import t, { type Test } from 'tap'
import { peerOf } from '../../src/http/request/client-address.ts'
import { createAudit } from '../../src/observe/audit/audit.ts'
import { buildService, type Files } from '../helper/build.ts'
import { modernRequest } from '../helper/mcp.ts'

const FILES = { demo: { 'SKILL.md': '---\nname: demo\ndescription: A demo\n---\n# Demo with CANARY-CONTENT\n', 'a.txt': 'text' } }

interface AuditLine {
  readonly event: string
  readonly outcome: string
  readonly door: string
  readonly principal: object
  readonly target: Readonly<Record<string, unknown>>
  readonly [name: string]: unknown
}

async function buildAudited (t: Test, files: Files = FILES) {
  let text = ''
  let isWorking = true
  const audit = createAudit({ output: { write: (line) => { text += line } }, clientOf: peerOf, isRequired: true, isWorking: () => isWorking, version: '1' })
  const service = await buildService(t, { files, options: { observe: () => [audit.observer], plug: () => [audit.plugin] } })
  const lines = () => text.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as AuditLine)
  return {
    ...service,
    text: () => text,
    break: () => { isWorking = false },
    /** The next lines, once there are so many of them; fails by the test's time limit. */
    next: async (count: number) => {
      while (lines().length < count) await new Promise((resolve) => setTimeout(resolve, 5))
      const found = lines()
      text = ''
      return found
    }
  }
}

/** Longer ago than the steps of timestamps. */
async function settle (): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 60))
}

t.test('K73: each read through any door leaves one line, with the revision that was read', async (t) => {
  const { fetch, post, next, url } = await buildAudited(t)
  await settle()
  const { headers } = await fetch('/skills/demo/files')
  const revision = headers.get('skill-revision')
  t.match(await next(1), [{ event: 'skill.manifest', outcome: 'success', door: 'rest', target: { skill: 'demo', revision } }])

  const document = await fetch('/skills/demo')
  t.match(await next(1), [{ event: 'skill.read', outcome: 'success', principal: { kind: 'anonymous' }, source: { address: '127.0.0.1' }, target: { skill: 'demo', revision, bytes: document.bytes.length } }])
  await fetch('/skills/demo', { headers: { 'if-none-match': document.headers.get('etag') ?? '' } })
  t.match(await next(1), [{ event: 'skill.read', outcome: 'not_modified', target: { skill: 'demo', revision } }])

  for (const [path, event, door, target] of [
    ['/skills/demo/files/a.txt', 'skill.file_read', 'rest', { skill: 'demo', path: 'a.txt', revision }],
    ['/skills/demo/archive.zip', 'skill.archive', 'rest', { skill: 'demo', revision }],
    ['/catalog/demo', 'skill.entry', 'rest', { skill: 'demo', revision }],
    ['/catalog', 'skill.list', 'rest', {}],
    ['/catalog?q=words', 'skill.search', 'rest', {}],
    ['/skills', 'skill.list', 'rest', {}],
    ['/agent/prompt', 'skill.list', 'prompt', {}],
    ['/.well-known/agent-skills/index.json', 'discovery.index', 'well-known', {}],
    ['/.well-known/skills/demo/SKILL.md', 'skill.file_read', 'well-known', { skill: 'demo', path: 'SKILL.md', revision }]
  ] as const) {
    await fetch(path)
    t.match(await next(1), [{ event, outcome: 'success', door, target }], path)
  }

  await post('/agent/tool-call', [
    { id: 'a', type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":"demo"}' } },
    { id: 'b', type: 'function', function: { name: 'read_file_in_skill', arguments: '{"skill_name":"demo","file_path":"a.txt"}' } },
    { id: 'c', type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":"none"}' } }
  ])
  t.match(await next(3), [
    { event: 'skill.read', door: 'tool-call/openai', outcome: 'success', target: { skill: 'demo', revision } },
    { event: 'skill.file_read', outcome: 'success', target: { skill: 'demo', path: 'a.txt', revision } },
    { event: 'skill.read', outcome: 'failure', target: { skill: 'none', revision: undefined } }
  ])

  const mcp = async (method: string, params: Readonly<Record<string, unknown>>) => (await globalThis.fetch(`${url}/mcp`, modernRequest({ method, params }))).text()
  await mcp('tools/call', { name: 'get_skill', arguments: { skill_name: 'demo' } })
  await mcp('resources/read', { uri: 'skill://demo/a.txt' })
  await mcp('resources/read', { uri: 'skill://none/a.txt' })
  t.match((await next(3)).map(({ event, door, outcome, target }) => [event, door, outcome, target]), [
    ['skill.read', 'mcp/modern', 'success', { skill: 'demo', revision }],
    ['skill.file_read', 'mcp/modern', 'success', { skill: 'demo', path: 'a.txt', revision }],
    ['skill.file_read', 'mcp/modern', 'failure', { skill: 'none', path: 'a.txt' }]
  ])
})

t.test('K73: refusals say so, and probes and pages about nothing leave no line', async (t) => {
  const { fetch, raw, next } = await buildAudited(t)
  await fetch('/livez')
  await fetch('/readyz')
  await fetch('/')
  await fetch('/skills/none')
  await raw('GET', '/skills', { host: 'evil.example' })
  t.match(await next(2), [
    { event: 'skill.read', outcome: 'not_found', target: { skill: 'none', code: 'skill_not_found' } },
    { event: 'skill.list', outcome: 'denied', target: { code: 'host_not_allowed' } }
  ])
})

t.test('K73: a thousand reads are a thousand lines with ids of their own, and no content and no header is in them', async (t) => {
  const { fetch, text, url } = await buildAudited(t)
  const headers = { authorization: 'Bearer CANARY-TOKEN', cookie: 'session=CANARY-COOKIE', 'x-forwarded-for': '203.0.113.7' }
  for (let i = 0; i < 100; i++) {
    await Promise.all(Array.from({ length: 10 }, async () => (await globalThis.fetch(`${url}/skills/demo?revision=current`, { headers })).text()))
  }
  await fetch('/catalog?q=CANARY-QUERY')
  while (text().split('\n').length < 1002) await new Promise((resolve) => setTimeout(resolve, 5))
  const lines = text().trim().split('\n').map((line) => JSON.parse(line) as AuditLine)
  t.equal(lines.length, 1001)
  t.equal(new Set(lines.map(({ id }) => id)).size, 1001)
  t.match(lines[0], { source: { address: '127.0.0.1', forwarded: '203.0.113.7' } })
  t.notMatch(text(), 'CANARY')
})

t.test('K73: where the log is required, nothing is read while it cannot be written; probes answer', async (t) => {
  const { fetch, break: breakLog } = await buildAudited(t)
  breakLog()
  const { status, headers, json } = await fetch('/skills/demo')
  t.equal(status, 503)
  t.match(json(), { code: 'audit_unavailable' })
  t.ok(headers.get('retry-after'))
  t.equal((await fetch('/livez')).status, 200)
})
