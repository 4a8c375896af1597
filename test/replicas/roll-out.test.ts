import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { type ServiceProcess, startProcess } from '../helper/process.ts'
import { installSkills } from '../helper/skills-client.ts'
import { skill, skillText, until } from '../helper/skills.ts'

const cli = fileURLToPath(new URL('../../node_modules/skills/bin/cli.mjs', import.meta.url))
const SWAP_MS = 1_000
const FILES = ['SKILL.md', 'a.txt', 'b/c.txt']

t.test('K59 K92: while a link to the skills is swapped every second, no skill is missing, no answer mixes two ' +
  'states, and the skills client installs one of them', async (t) => {
  const folder = t.testdir({ client: {} })
  const write = (number: number): string => {
    const skills = join(folder, `rev-${number}`, 'skills')
    for (const name of ['one', 'two']) {
      mkdirSync(join(skills, name, 'b'), { recursive: true })
      for (const file of FILES) {
        writeFileSync(join(skills, name, file),
          file === 'SKILL.md' ? skillText(name, `state-${number}.\n`) : `state-${number}.`)
      }
    }
    return `rev-${number}`
  }
  // As git-sync does it: another link, which takes the place of the old one.
  const publish = (number: number): void => {
    symlinkSync(write(number), join(folder, 'next'))
    renameSync(join(folder, 'next'), join(folder, 'current'))
    // The old state stays for a while, as with --stale-worktree-timeout.
    if (number > 3) rmSync(join(folder, `rev-${number - 3}`), { recursive: true })
  }
  publish(1)
  const { url } = await startProcess(t, { args: [join(folder, 'current/skills')] })
  let number = 1
  const timer = setInterval(() => { publish(++number) }, SWAP_MS)
  t.teardown(() => { clearInterval(timer) })

  const ended = new AbortController()
  const failures: string[] = []
  let answers = 0
  const read = async (name: string): Promise<void> => {
    while (!ended.signal.aborted) {
      const document = await fetch(`${url}/skills/${name}?revision=current`)
      const revision = document.headers.get('skill-revision') ?? ''
      const texts = [await document.text()]
      if (document.status !== 200) failures.push(`${name}: ${document.status}`)
      for (const file of FILES) {
        const pinned = await fetch(`${url}/skills/${name}/files/${file}?revision=${revision}`)
        texts.push(await pinned.text())
        if (pinned.status !== 200) failures.push(`${name}/${file}: ${pinned.status}`)
      }
      const states = new Set(texts.map((text) => /state-\d+/.exec(text)?.[0]))
      if (states.size !== 1) failures.push([...states].join())
      answers++
    }
  }
  const readers = ['one', 'two'].map(read)
  for (const run of [1, 2]) {
    const cwd = join(folder, 'client', String(run))
    mkdirSync(cwd)
    const { succeeded, output, folder: installed } = await installSkills(url, { cli, cwd })
    t.ok(succeeded, output)
    for (const name of ['one', 'two']) {
      const states =
        new Set(FILES.map((file) => /state-\d+/.exec(readFileSync(join(installed, name, file), 'utf8'))?.[0]))
      t.equal(states.size, 1, `${name}: ${[...states].join()}`)
    }
  }
  ended.abort()
  await Promise.all(readers)
  clearInterval(timer)
  t.strictSame(failures.slice(0, 5), [])
  t.comment(`${answers} answers, ${number} states`)
})

interface Index {
  readonly skills: ReadonlyArray<{ readonly name: string, readonly url: string }>
}

t.test('K59: while new content is rolled out, what was begun with the old content goes on at ' +
  'every replica', async (t) => {
  const folder = t.testdir({
    one: { skills: { a: skill('a', { 'x.md': 'x' }), b: skill('b'), steady: skill('steady') } }
  })
  cpSync(join(folder, 'one'), join(folder, 'two'), { recursive: true })
  const replicas = await Promise.all(
    ['one', 'two'].map(async (name) => await startProcess(t, { args: [join(folder, name, 'skills')] })))
  const get = async ({ url }: ServiceProcess, target: string) => await fetch(url + target)
  const indexOf = async (replica: ServiceProcess) =>
    await (await get(replica, '/.well-known/agent-skills/index.json')).json() as Index
  const artifactOf = ({ skills }: Index, name: string) =>
    new URL(skills.find((each) => each.name === name)?.url ?? '', 'http://x/.well-known/agent-skills/').pathname

  const [before] = await Promise.all(replicas.map(indexOf))
  const { revision } = await (await get(replicas[0] as ServiceProcess, '/skills/a/files')).json() as {
    readonly revision: string
  }
  for (const [step, name] of ['one', 'two'].entries()) {
    const skills = join(folder, name, 'skills')
    writeFileSync(join(skills, 'a/x.md.new'), 'other')
    renameSync(join(skills, 'a/x.md.new'), join(skills, 'a/x.md'))
    writeFileSync(join(skills, 'b/SKILL.md'), skillText('b', 'other'))
    for (const replica of replicas) {
      for (const each of ['a', 'b']) {
        t.equal((await get(replica, artifactOf(before as Index, each))).status, 200,
          `step ${step}: the artifact of ${each} in the earlier index`)
      }
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
