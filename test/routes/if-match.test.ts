import t from 'tap'
import { buildService } from '../helper/build.ts'
import { skill } from '../helper/skills.ts'

/** Of each kind of resource one. */
const RESOURCES = [
  '/', '/skills', '/skills/demo', '/skills/demo/files', '/skills/demo/files/SKILL.md', '/skills/demo/files/large.bin', '/skills/demo/archive.zip', '/catalog', '/catalog?q=demo',
  '/catalog/demo', '/agent/tools', '/agent/prompt', '/openapi.json', '/openapi.yaml', '/llms.txt', '/.well-known/agent-skills/index.json', '/.well-known/skills/index.json',
  '/.well-known/skills/demo/SKILL.md', '/readyz', '/livez'
]

t.test('K49: If-Match with another tag is 412 on every resource that has one, and with its own an answer', async (t) => {
  const service = await buildService(t, { files: { demo: skill('demo', { 'large.bin': Buffer.alloc(300_000) }) } })
  let tagged = 0
  for (const resource of RESOURCES) {
    const plain = await service.fetch(resource)
    const tag = plain.headers.get('etag')
    if (tag === null) continue
    tagged++
    t.equal((await service.fetch(resource, { headers: { 'if-match': '"another"' } })).status, 412, resource)
    t.equal((await service.fetch(resource, { headers: { 'if-match': tag } })).status, plain.status, resource)
  }
  t.ok(tagged >= RESOURCES.length - 4, `${tagged} of ${RESOURCES.length} have a tag`)
})
