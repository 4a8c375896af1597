import t from 'tap'
import type { LoadLevel } from '../../src/http/overload/load.ts'
import { buildService } from '../helper/build.ts'
import { jsonRequest, rawRequest, request } from '../helper/raw-http.ts'
import { skill } from '../helper/skills.ts'
import { mcpCall } from '../adversarial/attacks/attack-target.ts'

const ARTIFACT = `/.well-known/agent-skills/demo/${'0'.repeat(64)}`

/** In the order in which they are refused. */
const COSTLY = ['/skills/demo/archive.zip', '/catalog', '/catalog?q=demo', '/.well-known/agent-skills/index.json', '/.well-known/skills/index.json', `${ARTIFACT}/archive.zip`]
const USUAL = ['/skills', '/skills/demo', '/skills/demo/files', '/skills/demo/files/SKILL.md', '/catalog/demo', '/agent/tools', '/agent/prompt', '/openapi.json']
const PROBES = ['/livez', '/readyz']

t.test('K68: archives, search and lists with entries are refused first, then everything but probes', async (t) => {
  const load: { level: LoadLevel } = { level: 0 }
  const { url } = await buildService(t, { options: { load }, files: { demo: skill('demo') } })
  const statusesOf = async (targets: readonly string[], method = 'GET') => await Promise.all(targets.map(async (target) => (await rawRequest(url, request(method, target))).status))
  const artifactStatus = (status: number) => COSTLY.map((target) => target.startsWith(ARTIFACT) ? 404 : status)

  t.strictSame(await statusesOf(COSTLY), artifactStatus(200))
  load.level = 1
  for (const target of COSTLY) {
    const response = await rawRequest(url, request('GET', target))
    t.match(response, { status: 503, headers: { 'retry-after': /^[1-9]\d*$/, 'content-type': 'application/problem+json', 'cache-control': 'no-store' } }, target)
    t.match(response.json(), { code: 'overloaded' })
  }
  t.strictSame(new Set(await statusesOf([...USUAL, ...PROBES])), new Set([200]))

  load.level = 2
  for (const target of [...COSTLY, ...USUAL, '/nothing-is-here']) {
    t.match(await rawRequest(url, request('GET', target)), { status: 503, headers: { 'retry-after': /^[1-9]\d*$/ } }, target)
  }
  t.equal((await rawRequest(url, jsonRequest('POST', '/agent/tools/list_skills', {}))).status, 503)
  t.strictSame(await statusesOf(PROBES), [200, 200])
  t.strictSame(await statusesOf(PROBES, 'HEAD'), [200, 200])

  load.level = 0
  t.strictSame(await statusesOf([...COSTLY, ...USUAL]), [...artifactStatus(200), ...USUAL.map(() => 200)])
})

t.test('K68: the page with the list of skills is refused with the lists, as a page', async (t) => {
  const load: { level: LoadLevel } = { level: 1 }
  const { url } = await buildService(t, { options: { load }, files: { demo: skill('demo') } })
  const ask = async (target: string) => await fetch(url + target, { headers: { accept: 'text/html' } })
  for (const target of ['/', '/?q=demo']) {
    const page = await ask(target)
    t.equal(page.status, 503, target)
    t.match(page.headers.get('retry-after'), /^[1-9]\d*$/)
    t.match(await page.text(), /<h1>[^]*more to do than it can/)
  }
  t.equal((await ask('/ui/skills/demo')).status, 200)
  t.equal((await fetch(url)).status, 200, 'the list of doors')
  load.level = 0
  t.equal((await ask('/')).status, 200)
})

t.test('K68: under overload a search is refused in the form of its door, and other calls of the same batch run', async (t) => {
  const load: { level: LoadLevel } = { level: 1 }
  const { url } = await buildService(t, { options: { load }, files: { demo: skill('demo') } })
  const ask = async (bytes: Buffer) => (await rawRequest(url, bytes)).json()

  t.match(await ask(jsonRequest('POST', '/agent/tools/search_skills', { query: 'demo' })), { error: 'The service has more to do than it can' })
  const [search, list] = await ask(jsonRequest('POST', '/agent/tool-call', [
    { type: 'tool_use', id: 'a', name: 'search_skills', input: { query: 'demo' } },
    { type: 'tool_use', id: 'b', name: 'list_skills', input: {} }
  ])) as readonly object[]
  t.match(search, { type: 'tool_result', tool_use_id: 'a', is_error: true, content: /more to do than it can/ })
  t.notMatch(list, { is_error: true })
  const called = (await rawRequest(url, mcpCall('tools/call', { name: 'search_skills', arguments: { query: 'demo' } }))).text
  t.match(called, /"isError":true/)
  t.match((await rawRequest(url, mcpCall('skills/list', {}))), { status: 503, headers: { 'retry-after': /^\d+$/ } })
  t.equal((await rawRequest(url, mcpCall('tools/list', {}))).status, 200)
})
