import fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readResource } from '../../src/mcp/methods/resources.ts'
import { buildService } from '../helper/build.ts'
import { until } from '../helper/skills.ts'

const FILES = {
  demo: { 'SKILL.md': '---\nname: demo\ndescription: For tests\n---\n# Demo\n', references: { 'a.md': 'A\n' }, 'large.bin': Buffer.alloc(300_000, 1) },
  other: { 'SKILL.md': '---\nname: other\ndescription: For tests\n---\n' }
}

/** Every door to a skill that answers a GET. */
const TARGETS: ReadonlyArray<readonly [target: string, accept?: string]> = [
  ['/skills/demo'],
  ['/skills/demo', 'text/markdown'],
  ['/skills/demo/files'],
  ['/skills/demo/files/references/a.md'],
  ['/skills/demo/files/references/a.md', 'application/json'],
  ['/skills/demo/files/references/a.md?encoding=base64', 'application/json'],
  ['/skills/demo/files/large.bin'],
  ['/skills/demo/archive.zip'],
  ['/catalog/demo']
]

const NEVER = `sha256:${'0'.repeat(64)}`

t.test('pinning', async (t) => {
  const service = await buildService(t, { files: FILES })
  const revision = async (): Promise<string> => ((await service.fetch('/skills/demo/files')).json() as { readonly revision: string }).revision
  const get = (target: string, accept: string | undefined, headers: Record<string, string> = {}) =>
    service.fetch(target, { headers: { ...headers, ...accept !== undefined && { accept } } })
  const pinned = (target: string, to: string) => `${target}${target.includes('?') ? '&' : '?'}revision=${to}`

  t.test('K43: every answer about a skill carries its revision', async (t) => {
    const now = await revision()
    for (const [target, accept] of TARGETS) t.equal((await get(target, accept)).headers.get('skill-revision'), now, `${target} ${accept ?? ''}`)
  })

  t.test('a tool result carries it in a header, and in _meta where the dialect has room', async (t) => {
    const now = await revision()
    const post = (path: string, body: unknown) => service.fetch(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
    const call = (name: string, args: object) => ({ function: { name, arguments: JSON.stringify(args) } })
    t.equal((await post('/agent/tools/get_skill', { skill_name: 'demo' })).headers.get('skill-revision'), now)
    for (const one of [call('get_skill', { skill_name: 'demo' }), call('Skill', { skill_name: 'demo' }), call('skill', { skill: 'demo' })]) {
      t.equal((await post('/agent/tool-call', one)).headers.get('skill-revision'), now, one.function.name)
    }
    const both = [call('get_skill', { skill_name: 'demo' }), call('list_skills', {}), call('read_file_in_skill', { skill_name: 'demo', file_path: 'references/a.md' })]
    t.equal((await post('/agent/tool-call', both)).headers.get('skill-revision'), now, 'all that are about a skill agree')
    t.equal((await post('/agent/tool-call', [...both, call('get_skill', { skill_name: 'other' })])).headers.get('skill-revision'), null, 'two skills')
    const mcp = await post('/agent/tool-call', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get_skill', arguments: { skill_name: 'demo' } } })
    t.match(mcp.json(), { result: { _meta: { 'skillserve/revision': now } } })
  })

  t.test('a request that is pinned to the present revision is answered', async (t) => {
    const now = await revision()
    for (const [target, accept] of TARGETS) {
      t.equal((await get(pinned(target, now), accept)).status, 200, `${target} ${accept ?? ''}`)
      t.equal((await get(target, accept, { 'if-match': `"other", "${now}"` })).status, 200, 'If-Match with the revision')
      const etag = (await get(target, accept)).headers.get('etag') ?? ''
      t.equal((await get(target, accept, { 'if-match': etag })).status, 200, 'If-Match with the ETag')
      t.equal((await get(target, accept, { 'if-match': '*' })).status, 200)
    }
  })

  t.test('a revision that never was is 412 and names the present one', async (t) => {
    const now = await revision()
    for (const [target, accept] of TARGETS) {
      const answer = await get(pinned(target, NEVER), accept)
      t.equal(answer.status, 412, `${target} ${accept ?? ''}`)
      t.match(answer.json(), { code: 'revision_changed', detail: `The skill has changed: its revision is ${now} now` })
      t.equal(answer.headers.get('skill-revision'), now)
      t.equal((await get(target, accept, { 'if-match': `W/"${now}"` })).status, 412, 'a weak tag never matches')
    }
  })

  t.test('what is no revision is a bad query; of a skill that is not there, 404', async (t) => {
    for (const [target, accept] of TARGETS) {
      t.match((await get(pinned(target, 'latest'), accept)).json(), { status: 400, code: 'bad_query' }, target)
      t.match((await get(pinned(target.replace('demo', 'nope'), NEVER), accept)).json(), { status: 404, code: 'skill_not_found' })
    }
  })

  t.test('K51: a change to any file, also one that was not asked for, ends the revision', async (t) => {
    const before = await revision()
    fs.writeFileSync(join(service.root, 'demo/references/a.md'), 'another A\n')
    for (const [target, accept] of TARGETS) t.equal((await get(pinned(target, before), accept)).status, 412, `${target} ${accept ?? ''}`)
    const now = await revision()
    t.not(now, before)
    for (const [target, accept] of TARGETS) {
      const answer = await get(pinned(target, now), accept)
      t.equal(answer.status, 200)
      t.equal(answer.headers.get('skill-revision'), now)
    }
  })

  t.test('K53: an unpinned answer names a revision in which the file has just these bytes', async (t) => {
    const seen = new Map<string, string>()
    for (let round = 0; round < 20; round++) {
      fs.writeFileSync(join(service.root, 'demo/references/a.md'), `A ${round}\n`)
      const file = await service.fetch('/skills/demo/files/references/a.md')
      t.equal(file.text, `A ${round}\n`)
      const named = file.headers.get('skill-revision') ?? ''
      t.notOk(seen.has(named), 'another content, another revision')
      seen.set(named, file.text)
      t.equal(await revision(), named)
    }
  })

  t.test('a 304 names the revision too', async (t) => {
    const first = await service.fetch('/skills/demo')
    const again = await service.fetch('/skills/demo', { headers: { 'if-none-match': first.headers.get('etag') ?? '' } })
    t.equal(again.status, 304)
    t.equal(again.headers.get('skill-revision'), first.headers.get('skill-revision'))
  })
})

t.test('beside a gigabyte', async (t) => {
  const service = await buildService(t, {
    files: FILES,
    options: {
      prepare: (folder) => {
        fs.writeFileSync(join(folder, 'skills/demo/huge.bin'), '')
        fs.truncateSync(join(folder, 'skills/demo/huge.bin'), 2 ** 30)
      }
    }
  })
  const named = async (target: string, init: RequestInit = {}) => {
    const { status, headers } = await service.fetch(target, init)
    return [status, headers.get('skill-revision')]
  }
  const call = (message: object) => service.post('/agent/tool-call', message)
  const SMALL = TARGETS.filter(([target]) => !/files$|zip$|catalog/.test(target))

  t.test('documents and files are answered without a revision, HEAD and 304 as well', async (t) => {
    const etag = (await service.fetch('/skills/demo')).headers.get('etag') ?? ''
    t.strictSame(await named('/skills/demo', { method: 'HEAD' }), [200, null])
    t.strictSame(await named('/skills/demo', { headers: { 'if-none-match': etag } }), [304, null])
    for (const [target, accept] of SMALL) t.strictSame(await named(target, accept === undefined ? {} : { headers: { accept } }), [200, null], `${target} ${accept ?? ''}`)
  })

  t.test('so are tool results, and resources of MCP', async (t) => {
    const answer = await call({ function: { name: 'get_skill', arguments: '{"skill_name":"demo"}' } })
    t.strictSame([answer.status, answer.headers.get('skill-revision')], [200, null])
    const { result } = (await call({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get_skill', arguments: { skill_name: 'demo' } } })).json() as { readonly result: object }
    t.notOk('_meta' in result)
    t.strictSame(Object.keys(await readResource(service.skills, 'skill://demo/SKILL.md')), ['contents'])
  })

  t.test('a request that is pinned waits for it, and nobody else meanwhile', async (t) => {
    let isDone = false
    const pinned = named(`/skills/demo?revision=${NEVER}`).finally(() => { isDone = true })
    const others: unknown[] = []
    await until(async () => {
      others.push(await named('/skills/other'))
      return isDone || others.length === 20
    })
    t.notOk(isDone, 'twenty answers about another skill come before')
    const [status, revision] = await pinned
    t.equal(status, 412)
    t.match(revision, /^sha256:/)
    for (const [target, accept] of SMALL) t.strictSame(await named(target, accept === undefined ? {} : { headers: { accept } }), [200, revision], `${target} ${accept ?? ''}`)
    t.match(await readResource(service.skills, 'skill://demo/SKILL.md'), { _meta: { 'skillserve/revision': revision } })
  })
})
