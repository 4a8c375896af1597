import { cpSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { type ServiceProcess, startProcess } from '../helper/process.ts'
import { skill, skillText, until } from '../helper/skills.ts'

interface Index {
  readonly skills: ReadonlyArray<{ readonly name: string, readonly url: string }>
}

t.test('K59: while new content is rolled out, what was begun with the old content goes on at every replica', async (t) => {
  const folder = t.testdir({ one: { skills: { a: skill('a', { 'x.md': 'x' }), b: skill('b'), steady: skill('steady') } } })
  cpSync(join(folder, 'one'), join(folder, 'two'), { recursive: true })
  const replicas = await Promise.all(['one', 'two'].map(async (name) => await startProcess(t, { args: [join(folder, name, 'skills')] })))
  const get = async ({ url }: ServiceProcess, target: string) => await fetch(url + target)
  const indexOf = async (replica: ServiceProcess) => await (await get(replica, '/.well-known/agent-skills/index.json')).json() as Index
  const artifactOf = ({ skills }: Index, name: string) => new URL(skills.find((each) => each.name === name)?.url ?? '', 'http://x/.well-known/agent-skills/').pathname

  const [before] = await Promise.all(replicas.map(indexOf))
  const { revision } = await (await get(replicas[0] as ServiceProcess, '/skills/a/files')).json() as { readonly revision: string }
  for (const [step, name] of ['one', 'two'].entries()) {
    const skills = join(folder, name, 'skills')
    writeFileSync(join(skills, 'a/x.md.new'), 'other')
    renameSync(join(skills, 'a/x.md.new'), join(skills, 'a/x.md'))
    writeFileSync(join(skills, 'b/SKILL.md'), skillText('b', 'other'))
    for (const replica of replicas) {
      for (const each of ['a', 'b']) t.equal((await get(replica, artifactOf(before as Index, each))).status, 200, `step ${step}: the artifact of ${each} in the earlier index`)
      const pinned = await get(replica, `/skills/a/files/x.md?revision=${revision}`)
      t.equal(pinned.status, 200)
      t.equal(await pinned.text(), 'x', `step ${step}: the file of the earlier revision`)
      t.equal((await get(replica, `/skills/a/archive.zip?revision=${revision}`)).status, 200)
    }
    if (step > 0) continue
    const ahead = await indexOf(replicas[0] as ServiceProcess)
    const missing = await get(replicas[1] as ServiceProcess, artifactOf(ahead, 'a'))
    t.equal(missing.status, 404, 'what a replica does not have yet is not there')
    t.equal(missing.headers.get('cache-control'), 'no-store', 'and no cache remembers that')
  }
  // Indexes follow an edit inside a skill when a watcher reports it.
  await until(async () => {
    const [one, two] = await Promise.all(replicas.map(indexOf))
    return isDeepStrictEqual(one, two)
  })
})
