import t from 'tap'
import { buildService } from '../helper/build.ts'
import { jsonRequest, rawRequest, request } from '../helper/raw-http.ts'

const FILES = { plain: { 'SKILL.md': '---\nname: plain\ndescription: About plain\n---\nHello', 'notes.txt': 'notes' } }

interface Doors { readonly doors: ReadonlyArray<{ readonly path: string, readonly methods: readonly string[] }> }
interface Document { readonly servers: ReadonlyArray<{ readonly url: string }> }

t.test('K69: BASE_PATH serves everything below a path prefix', async (t) => {
  const { url } = await buildService(t, { files: FILES, options: { basePath: '/team/skills-api' } })
  const base = '/team/skills-api'
  const get = (target: string) => rawRequest(url, request('GET', target))

  await t.test('every door is there, and below no other address', async (t) => {
    for (const target of ['/skills', '/skills/plain', '/skills/plain/files/notes.txt', '/skills/plain/archive.zip', '/catalog', '/readyz', '/livez', '/agent/tools', '/docs', '/docs/static/swagger-ui.css', '/.well-known/agent-skills/index.json']) {
      t.equal((await get(base + target)).status, 200, target)
      t.equal((await get(target)).status, 404, target)
    }
    t.equal((await get('/')).status, 404)
    t.match((await rawRequest(url, jsonRequest('POST', `${base}/agent/tool-call`, { function: { name: 'list_skills', arguments: {} } }))), { status: 200, text: /plain/ })
    const initialize = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
    t.equal((await rawRequest(url, jsonRequest('POST', `${base}/mcp`, initialize, { headers: ['Accept: application/json, text/event-stream'] }))).status, 200)
  })

  await t.test('the list of doors names each once, with the prefix', async (t) => {
    for (const target of [base, `${base}/`]) {
      const { doors } = (await get(target)).json() as Doors
      const paths = doors.map(({ path }) => path)
      t.ok(paths.every((path) => path === base || path.startsWith(`${base}/`)), paths.join(' '))
      t.equal(new Set(doors.map(({ path, methods }) => `${methods.join()} ${path}`)).size, doors.length)
      for (const path of [`${base}/mcp`, `${base}/docs`, `${base}/skills`]) t.ok(paths.includes(path), path)
    }
  })

  await t.test('the OpenAPI document, the prompt and problems name the prefix', async (t) => {
    t.equal(((await get(`${base}/openapi.json`)).json() as Document).servers[0]?.url, base)
    t.match((await get(`${base}/openapi.yaml`)).text, `servers:\n  - url: ${base}\n`)
    t.match((await get(`${base}/agent/prompt`)).text, `${base}/skills/plain/files/SKILL.md`)
    t.match((await get(`${base}/skills/plain/notes.txt`)).json(), { instance: `${base}/skills/plain/notes.txt`, detail: new RegExp(`did you mean ${base}/skills/plain/files/notes.txt`) })
    t.match((await get(`${base}/skills/nosuch`)).json(), { detail: `Skill 'nosuch' not found in skills folder. GET ${base}/skills lists the names there are` })
    t.match((await get(`${base}/skills/plain/files/nosuch.md`)).json(), { detail: new RegExp(`GET ${base}/skills/:name/files lists`) })
    t.match((await get(`${base}/nosuch`)).json(), { detail: `There is no such route; GET ${base} lists the routes` })
    t.match(await rawRequest(url, request('DELETE', `${base}/skills`)), { status: 405, headers: { allow: 'GET, HEAD' } })
  })

  await t.test('addresses in the discovery index lead to artifacts', async (t) => {
    const index = `${url}${base}/.well-known/agent-skills/index.json`
    const { skills } = await (await fetch(index)).json() as { readonly skills: ReadonlyArray<{ readonly url: string }> }
    for (const skill of skills) t.equal((await fetch(new URL(skill.url, index))).status, 200)
    t.equal(skills.length, 1)
  })
})
