import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { buildService } from '../helper/build.ts'
import { passTick, skill } from '../helper/skills.ts'

/** Of each kind of resource one. */
const RESOURCES = [
  '/', '/skills', '/skills/demo', '/skills/demo/files', '/skills/demo/files/SKILL.md', '/skills/demo/files/large.bin', '/skills/demo/archive.zip', '/catalog', '/catalog?q=demo',
  '/catalog/demo', '/agent/tools', '/agent/prompt', '/openapi.json', '/openapi.yaml', '/llms.txt', '/.well-known/agent-skills/index.json', '/.well-known/skills/index.json',
  '/.well-known/skills/demo/SKILL.md', '/readyz', '/livez'
]

const service = await buildService(t, { files: { demo: skill('demo', { 'large.bin': Buffer.alloc(300_000) }) } })

t.test('K49: If-Match with another tag is 412 on every resource that has one, and with its own an answer', async (t) => {
  let tagged = 0
  for (const resource of RESOURCES) {
    const plain = await service.fetch(resource)
    const tag = plain.headers.get('etag')
    if (tag === null) continue
    tagged++
    const refused = await service.fetch(resource, { headers: { 'if-match': '"another"' } })
    t.equal(refused.status, 412, resource)
    const vary = refused.headers.get('vary')?.split(', ') ?? []
    t.equal(vary.length, new Set(vary).size, `${resource} ${vary.join()}`)
    t.equal((await service.fetch(resource, { headers: { 'if-match': tag } })).status, plain.status, resource)
  }
  t.ok(tagged >= RESOURCES.length - 4, `${tagged} of ${RESOURCES.length} have a tag`)
})

t.test('K49: If-Match with another tag is 412 with a range too, and with its own 206 or 416', async (t) => {
  for (const resource of ['/skills/demo/files/SKILL.md', '/skills/demo/files/large.bin', '/skills/demo/archive.zip', '/.well-known/skills/demo/SKILL.md', '/.well-known/skills/demo/large.bin']) {
    const etag = (await service.fetch(resource)).headers.get('etag') ?? ''
    const statusOf = async (tag: string, range: string) => (await service.fetch(resource, { headers: { 'if-match': tag, range } })).status
    t.equal(await statusOf('"another"', 'bytes=0-1'), 412, resource)
    t.equal(await statusOf(etag, 'bytes=0-1'), 206, resource)
    t.equal(await statusOf(etag, 'bytes=9000000-'), 416, resource)
  }
  const { revision } = (await service.fetch('/skills/demo/files')).json() as { readonly revision: string }
  t.equal((await service.fetch('/skills/demo/files/large.bin', { headers: { 'if-match': `"${revision}"`, range: 'bytes=0-1' } })).status, 206)
})

t.test('K58: a kept revision is an answer to ?revision=R, and 412 to If-Match', async (t) => {
  const service = await buildService(t, { files: { demo: skill('demo') } })
  const { revision } = (await service.fetch('/skills/demo/files')).json() as { readonly revision: string }
  const conditional = () => service.fetch('/skills/demo', { headers: { 'if-match': `"${revision}"` } })
  t.equal((await conditional()).status, 200)
  passTick(service.root)
  appendFileSync(join(service.root, 'demo/SKILL.md'), 'more')
  t.equal((await service.fetch(`/skills/demo?revision=${revision}`)).status, 200)
  t.match(await conditional(), { status: 412, text: /revision_changed/ })
})

t.test('K49: a page with If-Match of another tag is 412 as a page, and names each header of Vary once', async (t) => {
  const service = await buildService(t, { files: { demo: skill('demo') } })
  for (const page of ['/', '/ui/skills/demo']) {
    const { status, headers } = await fetch(service.url + page, { headers: { accept: 'text/html', 'accept-encoding': 'gzip', 'if-match': '"another"' } })
    const vary = headers.get('vary')?.split(', ') ?? []
    t.equal(status, 412, page)
    t.equal(vary.length, new Set(vary).size, `${page} ${vary.join()}`)
  }
})
