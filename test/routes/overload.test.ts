import t, { type Test } from 'tap'
import type { OverloadOptions } from '../../src/plugins/overload.ts'
import { buildService, type Service } from '../helper/build.ts'
import { jsonRequest, rawRequest, request } from '../helper/raw-http.ts'
import { skill, until } from '../helper/skills.ts'
import { mcpCall } from '../adversarial/attacks/attack-target.ts'

const ARTIFACT = `/.well-known/agent-skills/demo/${'0'.repeat(64)}`

/** In the order in which they are refused. */
const COSTLY = ['/skills/demo/archive.zip', '/catalog', '/catalog?q=demo', '/.well-known/agent-skills/index.json',
  '/.well-known/skills/index.json', `${ARTIFACT}/archive.zip`]
const USUAL = ['/skills', '/skills/demo', '/skills/demo/files', '/skills/demo/files/SKILL.md', '/catalog/demo',
  '/agent/tools', '/agent/prompt', '/openapi.json']
const PROBES = ['/livez', '/readyz']

/** A service whose process is always past these limits. */
async function buildOverloaded (t: Test, overload: OverloadOptions): Promise<Service> {
  const service = await buildService(t,
    { options: { overload: { ...overload, sampleInterval: 10 } }, files: { demo: skill('demo') } })
  await until(() => service.app.isUnderPressure())
  return service
}

t.test('K68: archives, search and lists with entries are refused first, then everything but probes', async (t) => {
  const statusesOf = async ({ url }: Service, targets: readonly string[], method = 'GET') =>
    await Promise.all(targets.map(async (target) => (await rawRequest(url, request(method, target))).status))

  const busy = await buildOverloaded(t, { maxRssBytes: 1 })
  for (const target of COSTLY) {
    const response = await rawRequest(busy.url, request('GET', target))
    t.match(response,
      {
        status: 503,
        headers: {
          'retry-after': /^[1-9]\d*$/, 'content-type': 'application/problem+json', 'cache-control': 'no-store'
        }
      }, target)
    t.match(response.json(), { code: 'overloaded' })
  }
  t.strictSame(new Set(await statusesOf(busy, [...USUAL, ...PROBES])), new Set([200]))

  const late = await buildOverloaded(t, { maxEventLoopDelay: Number.MIN_VALUE })
  for (const target of [...COSTLY, ...USUAL, '/nothing-is-here']) {
    t.match(await rawRequest(late.url, request('GET', target)),
      { status: 503, headers: { 'retry-after': /^[1-9]\d*$/ } }, target)
  }
  t.equal((await rawRequest(late.url, jsonRequest('POST', '/agent/tools/list_skills', {}))).status, 503)
  t.strictSame(await statusesOf(late, PROBES), [200, 200])
  t.strictSame(await statusesOf(late, PROBES, 'HEAD'), [200, 200])
})

t.test('K68: the page with the list of skills is refused with the lists, as a page', async (t) => {
  const { url } = await buildOverloaded(t, { maxRssBytes: 1 })
  const ask = async (target: string) => await fetch(url + target, { headers: { accept: 'text/html' } })
  for (const target of ['/', '/?q=demo']) {
    const page = await ask(target)
    t.equal(page.status, 503, target)
    t.match(page.headers.get('retry-after'), /^[1-9]\d*$/)
    t.match(await page.text(), /<h1>[^]*The service is overloaded/)
  }
  t.equal((await ask('/ui/skills/demo')).status, 200)
  t.equal((await fetch(url)).status, 200, 'the list of endpoints')
})

t.test('K68: under overload a search is refused in the form of its api, and other calls of the ' +
  'same batch run', async (t) => {
  const { url } = await buildOverloaded(t, { maxRssBytes: 1 })
  const ask = async (bytes: Buffer) => (await rawRequest(url, bytes)).json()

  t.match(await ask(jsonRequest('POST', '/agent/tools/search_skills', { query: 'demo' })),
    { error: 'The service is overloaded' })
  const [search, list] = await ask(jsonRequest('POST', '/agent/tool-call', [
    { type: 'tool_use', id: 'a', name: 'search_skills', input: { query: 'demo' } },
    { type: 'tool_use', id: 'b', name: 'list_skills', input: {} }
  ])) as readonly object[]
  t.match(search, { type: 'tool_result', tool_use_id: 'a', is_error: true, content: /The service is overloaded/ })
  t.notMatch(list, { is_error: true })
  const called =
    (await rawRequest(url, mcpCall('tools/call', { name: 'search_skills', arguments: { query: 'demo' } }))).text
  t.match(called, /"isError":true/)
  t.match((await rawRequest(url, mcpCall('skills/list', {}))), { status: 503, headers: { 'retry-after': /^\d+$/ } })
  t.equal((await rawRequest(url, mcpCall('tools/list', {}))).status, 200)
})
