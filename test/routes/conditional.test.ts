import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { MAX_MAIN_FILE_BYTES } from '../../src/core/shared/limits.ts'
import { buildService } from '../helper/build.ts'
import { passTick, skill } from '../helper/skills.ts'

const JSON_TYPE = 'application/json'

/** Of each kind of resource one, in each form. */
const RESOURCES: ReadonlyArray<readonly [target: string, accept?: string]> = [
  ['/'], ['/skills'], ['/skills/demo'], ['/skills/demo', 'text/markdown'], ['/skills/demo', 'text/plain'], ['/skills/demo/files'],
  ['/skills/demo/files/a.md'], ['/skills/demo/files/a.md', JSON_TYPE], ['/skills/demo/files/a.md?encoding=base64', JSON_TYPE],
  ['/skills/demo/files/empty.txt'], ['/skills/demo/files/large.bin'], ['/skills/demo/archive.zip'], ['/skills/demo/archive.zip?wrap=true'],
  ['/catalog'], ['/catalog?q=demo'], ['/catalog?limit=1'], ['/catalog/demo'], ['/agent/tools'], ['/agent/tools?format=mcp&toolset=all'],
  ['/agent/prompt'], ['/agent/prompt?format=json'], ['/agent/prompt?format=markdown'], ['/agent/prompt?budget=130'],
  ['/openapi.json'], ['/openapi.yaml'], ['/llms.txt'], ['/.well-known/agent-skills/index.json'], ['/.well-known/skills/index.json'], ['/.well-known/skills/demo/SKILL.md']
]

/** What a 304 and an error do not have. */
const OF_CONTENT = ['content-length', 'content-range', 'content-disposition']

const service = await buildService(t, { files: { demo: skill('demo', { 'a.md': '# A\n', 'empty.txt': '', 'large.bin': Buffer.alloc(300_000) }), big: { 'SKILL.md': 'x'.repeat(MAX_MAIN_FILE_BYTES + 1) } } })

t.test('K47 K49: every GET has a tag of its own, HEAD, 304 for that tag, and 412 for another one in If-Match', async (t) => {
  const tags = new Set<string>()
  for (const [target, accept = '*/*'] of RESOURCES) {
    const what = `${target} ${accept}`
    const ask = async (headers: Readonly<Record<string, string>> = {}, method = 'GET') =>
      await service.fetch(target, { method, headers: { accept, 'accept-encoding': 'identity', ...headers } })
    const get = await ask()
    const tag = get.headers.get('etag') ?? ''
    t.match(tag, /^"[\da-f]{64}(?:-\w+)?"$/, what)
    tags.add(tag)
    t.equal((await ask()).headers.get('etag'), tag, what)
    t.match(get.headers.get('cache-control'), 'no-cache', what)
    const head = await ask({ range: 'bytes=0-0' }, 'HEAD')
    t.strictSame([head.status, head.bytes.length], [200, 0], `${what}: a HEAD has no range`)
    for (const name of ['etag', 'content-type', 'content-length', 'content-disposition', 'cache-control', 'vary', 'accept-ranges', 'last-modified']) {
      t.equal(head.headers.get(name), get.headers.get(name), `${what} ${name}`)
    }
    for (const method of ['GET', 'HEAD']) {
      for (const headers of [{}, { range: 'bytes=0-1' }, { range: 'bytes=99999999-' }]) {
        for (const value of [tag, `W/${tag}`, `"x", ${tag}`, '*']) {
          const same = await ask({ 'if-none-match': value, ...headers }, method)
          t.strictSame([same.status, same.bytes.length, same.headers.get('etag')?.replace('W/', '')], [304, 0, tag], `${method} ${what} ${value}`)
          for (const name of ['cache-control', 'vary']) t.equal(same.headers.get(name), get.headers.get(name), `${what} ${name}`)
          for (const name of OF_CONTENT) t.equal(same.headers.get(name), null, `${what} ${name}`)
        }
      }
    }
    for (const headers of [{ 'if-none-match': '"x"' }, { 'if-match': tag }]) {
      t.equal((await ask({ ...headers, 'if-modified-since': 'Fri, 01 Jan 2100 00:00:00 GMT' })).status, 200, `${what}: a date proves nothing`)
    }
    const refused = await ask({ 'if-match': '"another"' })
    t.equal(refused.status, 412, what)
    const vary = refused.headers.get('vary')?.split(', ') ?? []
    t.equal(vary.length, new Set(vary).size, `${what} ${vary.join()}`)
  }
  t.equal(tags.size, RESOURCES.length)
  for (const target of ['/readyz', '/livez']) t.equal((await service.fetch(target)).headers.get('etag'), null)
  for (const target of ['/skills/big', '/skills/nope', '/skills/nope/files', '/nope']) {
    t.equal((await service.fetch(target, { method: 'HEAD' })).status, (await service.fetch(target)).status, target)
  }
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
