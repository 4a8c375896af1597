import fs from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { buildService, type Service, type ServiceOptions } from '../helper/build.ts'
import { createFaultyDisk, skill, skillText } from '../helper/skills.ts'

const NEVER = `sha256:${'0'.repeat(64)}`

/** Text of a file of `demo`, or the code of the refusal. */
async function textAt ({ app }: Service, revision: string, path = 'a.txt'): Promise<string> {
  const { statusCode, payload, json } = await app.inject(`/skills/demo/files/${path}?revision=${revision}`)
  return statusCode === 200 ? payload : json<{ code: string }>().code
}

async function revisionOf ({ app }: Service): Promise<string> {
  return (await app.inject('/skills/demo/files')).json<{ revision: string }>().revision
}

async function start (t: Test, keep: ServiceOptions['keep'] = {}, files: Record<string, string> = { 'a.txt': 'one' }) {
  const service = await buildService(t,
    { files: { demo: skill('demo', files), other: skill('other') }, options: { keep } })
  return { service, edit: (text: string) => { fs.writeFileSync(join(service.root, 'demo/a.txt'), text) } }
}

/** A service with two roots, of which the first wins, beside `new`. */
async function startTwo (t: Test, siblings: NonNullable<ServiceOptions['siblings']>): Promise<Service> {
  return await buildService(t,
    { files: null, options: { roots: ['first', 'second'], siblings: { first: {}, second: {}, ...siblings } } })
}

t.test('K59: a revision that was handed out stays readable after the skill has moved on or is gone', async (t) => {
  const { service, edit } = await start(t)
  const first = await revisionOf(service)
  edit('two')
  const second = await revisionOf(service)
  edit('three')
  t.strictSame([await textAt(service, first), await textAt(service, second)], ['one', 'two'])
  fs.rmSync(join(service.root, 'demo'), { recursive: true })
  t.equal(await textAt(service, first), 'one', 'of a skill that is gone')
  t.equal((await service.app.inject('/skills/demo/files/a.txt')).statusCode, 404)
})

t.test('K58 K59: the revision that a refusal names is kept from then on', async (t) => {
  const { service, edit } = await start(t)
  const [present = ''] = /sha256:[\da-f]{64}/.exec(
    (await service.app.inject(`/skills/demo?revision=${NEVER}`)).payload) ?? []
  edit('two')
  t.equal(await textAt(service, present), 'one')
})

t.test('K59: its time counts from the last use', async (t) => {
  let now = performance.now()
  t.intercept(performance, 'now', { value: () => now })
  const { service, edit } = await start(t, { keepMs: 1_000 })
  const first = await revisionOf(service)
  edit('two')
  for (let use = 0; use < 3; use++) {
    now += 900
    t.equal(await textAt(service, first), 'one')
  }
  now += 1_100
  t.equal(await textAt(service, first), 'revision_changed')
})

t.test('K59: revisions that were used last stay within the bytes, and 0 keeps none', async (t) => {
  const { service, edit } = await start(t, { maxBytes: 30_000 }, { 'a.txt': 'x'.repeat(10_000) })
  const revisions: string[] = []
  for (const letter of ['a', 'b', 'c', 'd']) {
    edit(letter.repeat(10_000))
    revisions.push(await revisionOf(service))
    await textAt(service, revisions[0] ?? '')
  }
  edit('now')
  t.strictSame(await Promise.all(revisions.map(async (revision) => (await textAt(service, revision)).at(0))),
    ['a', 'r', 'r', 'd'])

  for (const keep of [{ keepMs: 0 }, { maxBytes: 0 }]) {
    const none = await start(t, keep)
    const first = await revisionOf(none.service)
    none.edit('two')
    t.equal(await textAt(none.service, first), 'revision_changed')
  }
})

t.test('K8 K59: what an ignore file hides at the time of a request is in no kept revision', async (t) => {
  const [ofRoot, ofSkill] = ['.skillignore', 'demo/.skillignore']
  type Step = (root: string) => void
  const write = (file: string, text: string): Step => (root) => { fs.writeFileSync(join(root, file), text) }
  const remove = (file: string): Step => (root) => { fs.rmSync(join(root, file), { recursive: true }) }
  const courses: Readonly<Record<string, readonly Step[]>> = {
    'hidden by the root': [write(ofRoot, 'a.txt\n')],
    'hidden by the root, then whole': [write(ofRoot, 'a.txt\n'), write(ofRoot, 'demo/\n')],
    'hidden by the root, then removed': [write(ofRoot, 'a.txt\n'), remove('demo')],
    'hidden by its own file': [write(ofSkill, 'a.txt\n')],
    'removed, then hidden by the root': [remove('demo'), write(ofRoot, 'a.txt\n')]
  }
  for (const [what, steps] of Object.entries(courses)) {
    for (const rules of ['zzz\n', undefined]) {
      const { service } = await start(t)
      if (rules !== undefined) fs.writeFileSync(join(service.root, ofRoot), rules)
      const revision = await revisionOf(service)
      for (const step of steps) {
        step(service.root)
        // A first ignore file in a root is noticed when the root is listed.
        await service.skills.list()
        await service.skills.find('demo')
      }
      for (const path of ['files/a.txt', '', 'archive.zip']) {
        const { statusCode } = await service.app.inject(`/skills/demo${path && `/${path}`}?revision=${revision}`)
        t.ok([404, 412].includes(statusCode), `${what} (${rules}), ${path}: ${statusCode}`)
      }
    }
  }
})

t.test('K58: a label is that of the revision', async (t) => {
  const { service } = await start(t)
  const first = await revisionOf(service)
  fs.writeFileSync(join(service.root, 'demo/SKILL.md'), skillText('renamed'))
  const calling = (revision: string) =>
    service.post(`/agent/tool-call?revision=${revision}`, { function: { name: 'skill', arguments: { skill: 'demo' } } })
  t.match((await calling(first)).text, 'Instructions of demo')
})

t.test('K53 K58: all results under one revision are of one state, whenever a file changes', async (t) => {
  const disk = createFaultyDisk()
  const service = await buildService(t,
    { files: { demo: skill('demo', { docs: { 'a.md': 'one' } }) }, options: { disk } })
  const write = (text: string) => {
    fs.writeFileSync(join(service.root, 'demo/SKILL.md'), skillText('demo', text))
    fs.writeFileSync(join(service.root, 'demo/docs/a.md'), text)
  }
  const calls = [['get_skill', { skill_name: 'demo' }],
    ['read_file_in_skill', { skill_name: 'demo', file_path: 'docs/a.md' }]].map(([name, args]) =>
    ({ function: { name, arguments: args } }))
  for (let moment = 1; ; moment++) {
    write('one')
    let operations = 0
    disk.intercept = () => { if (++operations === moment) write('two') }
    const answer = (await service.app.inject({
      method: 'POST', url: '/agent/tool-call?revision=current', payload: calls
    })).json<Array<{ content: string }>>()
    const [document, file] = answer.map(({ content }) => content)
    if (file === undefined || document?.includes(`---\\n${file}`) !==
      true) t.fail(`a mixture when changed before operation ${moment}: ${JSON.stringify(answer)}`)
    if (operations >= moment) continue
    t.ok(moment > 5, `${moment} moments`)
    break
  }
})

t.test('K59: what the present skill hides is not read from a revision that another root keeps', async (t) => {
  const service = await startTwo(t, { first: { demo: skill('demo', { 'a.txt': 'secret' }), beta: skill('beta') } })
  const revision = await revisionOf(service)
  fs.renameSync(join(service.folder, 'first/demo'), join(service.folder, 'second/demo'))
  t.equal(await textAt(service, revision), 'secret', 'nothing is hidden')
  fs.writeFileSync(join(service.folder, 'second/demo/.skillignore'), 'a.txt\n')
  await revisionOf(service)
  for (const path of ['a.txt', 'SKILL.md']) t.equal(await textAt(service, revision, path), 'revision_changed')
})

t.test('K59: what the present skill hides is not read from a namesake, and its own revision is named', async (t) => {
  const service = await startTwo(t, {
    second: { demo: skill('demo', { 'a.txt': 'secret' }) },
    new: { demo: skill('demo', { '.skillignore': 'a.txt\n' }) }
  })
  const revision = await revisionOf(service)
  fs.renameSync(join(service.folder, 'new/demo'), join(service.folder, 'first/demo'))
  const present = await revisionOf(service)
  for (const text of ['other', 'another']) {
    t.match((await service.app.inject(`/skills/demo/files/a.txt?revision=${revision}`)).json(),
      { code: 'revision_changed', error: `The skill has changed: its revision is ${present} now` })
    fs.writeFileSync(join(service.folder, 'second/demo/other.txt'), text)
  }
})

t.test('K59: an edit of a namesake that is hidden, and what it ignores, changes nothing for others', async (t) => {
  const service = await startTwo(t, {
    first: { demo: skill('demo', { 'a.txt': 'one' }) },
    second: { demo: skill('demo', { '.skillignore': 'a.txt\n' }) }
  })
  const revision = await revisionOf(service)
  fs.writeFileSync(join(service.folder, 'first/demo/a.txt'), 'two')
  for (const rules of ['b.txt\n', 'c.txt\n']) {
    fs.writeFileSync(join(service.folder, 'second/demo/.skillignore'), rules)
    const [, second] = service.skills.catalog.roots
    if (second !== undefined) await service.skills.catalog.refresh(second)
    t.equal(await textAt(service, revision), 'one')
  }
})

t.test('K59: rules that were taken back hide nothing any more', async (t) => {
  const { service, edit } = await start(t)
  const revision = await revisionOf(service)
  edit('two')
  const rules = join(service.root, 'demo/.skillignore')
  fs.writeFileSync(rules, 'a.txt\n')
  t.equal(await textAt(service, revision), 'revision_changed')
  fs.rmSync(rules)
  t.equal(await textAt(service, revision), 'one')
})

t.test('K59: no reading of other files takes the place of a kept revision', async (t) => {
  const { service, edit } = await start(t, { maxBytes: 100_000 })
  const revision = await revisionOf(service)
  edit('two')
  for (const name of Array.from({ length: 40 }, (_, index) => `${index}.txt`)) {
    fs.writeFileSync(join(service.root, 'other', name), name.repeat(40_000))
    t.equal((await service.app.inject(`/skills/other/files/${name}`)).statusCode, 200)
  }
  t.equal(await textAt(service, revision), 'one')
})

t.test('K59: equal files of several revisions count once', async (t) => {
  const { service, edit } = await start(t, { maxBytes: 60_000 }, { 'a.txt': '0', 'b.txt': 'x'.repeat(40_000) })
  const revisions: string[] = []
  for (const text of ['one', 'two', 'three']) {
    edit(text)
    revisions.push(await revisionOf(service))
  }
  edit('now')
  for (const [index, text] of ['one', 'two', 'three'].entries()) {
    t.equal(await textAt(service, revisions[index] ?? ''), text)
  }
})
