import fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { buildService } from '../helper/build.ts'

const FILES = {
  demo: {
    'SKILL.md': '---\nname: demo\ndescription: For tests\n---\n# Demo\n',
    references: { 'a.md': 'A\n' },
    'large.bin': Buffer.alloc(300_000, 1)
  },
  other: { 'SKILL.md': '---\nname: other\ndescription: For tests\n---\n' }
}

/** Every api to a skill that answers a GET. */
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

/** Answers that are of one revision by nature. */
const INTRINSIC = /files$|zip$|catalog/

const call = (name: string, args: object) => ({ function: { name, arguments: JSON.stringify(args) } })

t.test('K58: revisions that are asked for', async (t) => {
  const service = await buildService(t, { files: FILES, options: { keep: { keepMs: 0 } } })
  const revisionOf = async (name = 'demo'): Promise<string> =>
    ((await service.fetch(`/skills/${name}/files`)).json() as { readonly revision: string }).revision
  const get = (target: string, accept: string | undefined, headers: Record<string, string> = {}) =>
    service.fetch(target, { headers: { ...headers, ...accept !== undefined && { accept } } })
  const asking = (target: string, revision: string) =>
    `${target}${target.includes('?') ? '&' : '?'}revision=${revision}`

  t.test('K58: an answer carries a revision where it is of one by nature, and otherwise when ' +
    'it was asked', async (t) => {
    const now = await revisionOf()
    for (const [target, accept] of TARGETS) {
      t.equal((await get(target, accept)).headers.get('skill-revision'), INTRINSIC.test(target) ? now : null,
        `${target} ${accept ?? ''}`)
      for (const revision of ['current', now]) {
        const answer = await get(asking(target, revision), accept)
        t.strictSame([answer.status, answer.headers.get('skill-revision')], [200, now], `${target} ${accept ?? ''}`)
      }
    }
  })

  t.test('K58: If-Match with the revision, the ETag or * is answered, anything else is 412', async (t) => {
    const now = await revisionOf()
    for (const [target, accept] of TARGETS) {
      const etag = (await get(target, accept)).headers.get('etag') ?? ''
      for (const tag of [`"other", "${now}"`, `W/"${now}"`, etag, '*']) {
        const answer = await get(target, accept, { 'if-match': tag })
        t.strictSame([answer.status, answer.headers.get('skill-revision')], [200, now], `${target} ${tag}`)
      }
      for (const tag of [`"${NEVER}"`, '"x"']) {
        t.equal((await get(target, accept, { 'if-match': tag })).status, 412, `${target} ${tag}`)
      }
    }
  })

  t.test('K58: a revision that never was is 412 and names the present one', async (t) => {
    const now = await revisionOf()
    for (const [target, accept] of TARGETS) {
      const answer = await get(asking(target, NEVER), accept)
      t.equal(answer.status, 412, `${target} ${accept ?? ''}`)
      t.match(answer.json(), { code: 'revision_changed', error: `The skill has changed: its revision is ${now} now` })
      t.equal(answer.headers.get('skill-revision'), now)
    }
  })

  t.test('K58: what is no revision is a bad query; of a skill that is not there, 404', async (t) => {
    for (const [target, accept] of TARGETS) {
      t.match((await get(asking(target, 'latest'), accept)).json(), { status: 400, code: 'bad_query' }, target)
      t.match((await get(asking(target.replace('demo', 'nope'), NEVER), accept)).json(),
        { status: 404, code: 'skill_not_found' })
    }
  })

  t.test('K58: a change to any file, also one that was not asked for, ends the revision', async (t) => {
    const before = await revisionOf()
    fs.writeFileSync(join(service.root, 'demo/references/a.md'), 'another A\n')
    for (const [target, accept] of TARGETS) {
      t.equal((await get(asking(target, before), accept)).status, 412, `${target} ${accept ?? ''}`)
    }
    const now = await revisionOf()
    t.not(now, before)
    for (const [target, accept] of TARGETS) t.equal((await get(asking(target, now), accept)).status, 200)
  })

  t.test('K58: a 304 names the revision that was asked for', async (t) => {
    const etag = (await service.fetch('/skills/demo')).headers.get('etag') ?? ''
    const again = await service.fetch('/skills/demo?revision=current', { headers: { 'if-none-match': etag } })
    t.strictSame([again.status, again.headers.get('skill-revision')], [304, await revisionOf()])
  })

  t.test('K58: tool calls are of the revision that was asked for, and a stale one runs nothing', async (t) => {
    const now = await revisionOf()
    const one = call('get_skill', { skill_name: 'demo' })
    const all = [one, call('list_skills', {}),
      call('read_file_in_skill', { skill_name: 'demo', file_path: 'references/a.md' }), call('Skill',
        { skill_name: 'demo' }), call('skill', { skill: ' demo ' })]
    const post = (target: string, body: unknown, headers: Record<string, string> = {}) =>
      service.post(target, body, headers)
    t.equal((await post('/agent/tool-call', all)).headers.get('skill-revision'), null)
    for (const revision of ['current', now]) {
      const answer = await post(`/agent/tool-call?revision=${revision}`, all)
      t.strictSame([answer.status, answer.headers.get('skill-revision')], [200, now])
    }
    t.equal((await post('/agent/tool-call', all, { 'if-match': `"${now}"` })).headers.get('skill-revision'), now)
    t.equal(
      (await post('/agent/tools/get_skill?revision=current', { skill_name: 'demo' })).headers.get('skill-revision'),
      now)
    t.equal(
      (await post('/agent/tool-call?revision=current',
        [...all, call('get_skill', { skill_name: 'other' })])).headers.get('skill-revision'), null, 'two skills')
    const before = service.logText().length
    for (const [target, body, headers] of [
      [`/agent/tool-call?revision=${NEVER}`, all], [`/agent/tool-call?revision=${NEVER}`, one],
      [`/agent/tool-call?revision=${NEVER}`, call('skill', { skill: 'demo' })],
      [`/agent/tool-call?revision=${now}`, [...all, call('get_skill', { skill_name: 'other' })]],
      [`/agent/tools/get_skill?revision=${NEVER}`, { skill_name: 'demo' }], ['/agent/tool-call', all,
        { 'if-match': `"${NEVER}"` }],
      [`/agent/tool-call?revision=${NEVER}`, call('search_skills', { query: 'demo' })],
      [`/agent/tools/search_skills?revision=${NEVER}`, { query: 'tests' }],
      ['/agent/tools/search_skills', { query: 'demo' }, { 'if-match': `"${NEVER}"` }]
    ] as ReadonlyArray<readonly [string, unknown, Record<string, string>?]>) {
      const answer = await post(target, body, headers)
      t.strictSame([answer.status, (answer.json() as { readonly code: string }).code], [412, 'revision_changed'],
        target)
    }
    t.notOk(service.logText().slice(before).includes('[Tool Call]'), 'nothing ran')
    for (const headers of [{}, { 'if-match': `"${now}"` }]) {
      t.match((await post(`/agent/tool-call?revision=${now}`, [...all, call('get_skill', {
        skill_name: 'other'
      })], headers)).json(), {
        error: `Skill 'other' has changed: its revision is ${await revisionOf('other')} now`
      }, 'of several skills, which one')
    }
    const found = await post(`/agent/tool-call?revision=${now}`, call('search_skills', { query: 'demo', limit: 1 }))
    t.match([found.status, found.headers.get('skill-revision'), found.json()], [200, now, { content: /"demo"/ }])
    t.match((await post(`/agent/tool-call?revision=${NEVER}`, call('search_skills', {
      query: 'nothing of the kind'
    }))).json(), {
      content: /"skills": \[\]/
    }, 'no hit is stale')
    t.match((await post(`/agent/tool-call?revision=${NEVER}`, call('search_skills', { query: '' }))).json(),
      { content: /must not be empty/ })
    t.match((await post('/agent/tool-call?revision=latest', one)).json(), { status: 400, code: 'bad_query' })
    t.match((await post(`/agent/tool-call?revision=${NEVER}`, call('get_skill', { skill_name: 'nope' }))).json(),
      { role: 'tool', content: /not found/ }, 'the tool says so')
  })
})

t.test('K59: what was handed out stays readable through every api after a change', async (t) => {
  const service = await buildService(t, { files: FILES })
  const { revision } = (await service.fetch('/skills/demo/files')).json() as { readonly revision: string }
  const asking = (target: string) => `${target}${target.includes('?') ? '&' : '?'}revision=${revision}`
  const answers = await Promise.all(
    TARGETS.map(([target, accept]) =>
      service.fetch(asking(target), accept === undefined ? {} : { headers: { accept } })))
  const said = await service.post(asking('/agent/tool-call'), call('get_skill', { skill_name: 'demo' }))
  fs.writeFileSync(join(service.root, 'demo/references/a.md'), 'another A\n')
  fs.writeFileSync(join(service.root, 'demo/SKILL.md'), '---\nname: demo\ndescription: Changed\n---\n')
  fs.writeFileSync(join(service.root, 'demo/large.bin'), 'small')
  for (const [index, [target, accept]] of TARGETS.entries()) {
    const after = await service.fetch(asking(target), accept === undefined ? {} : { headers: { accept } })
    t.equal(after.status, 200, target)
    t.ok(after.bytes.equals(answers[index]?.bytes ?? Buffer.alloc(0)), `${target} ${accept ?? ''}`)
    t.equal(after.headers.get('etag'), answers[index]?.headers.get('etag'))
    t.equal(after.headers.get('skill-revision'), revision)
    const part = await service.fetch(asking(target),
      { headers: { range: 'bytes=1-2', ...accept !== undefined && { accept } } })
    if (part.status === 206) t.ok(part.bytes.equals(after.bytes.subarray(1, 3)), `${target}: a range`)
  }
  t.equal((await service.post(asking('/agent/tool-call'), call('get_skill', { skill_name: 'demo' }))).text, said.text)
  t.match((await service.fetch('/catalog/demo')).json(), { description: 'Changed' },
    'who does not ask gets the present one')
})
