import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import t, { type Test } from 'tap'
import { type ServiceProcess, startProcess } from '../helper/process.ts'
import { installSkills } from '../helper/skills-client.ts'
import { skill, skillText, until } from '../helper/skills.ts'

const CLI = fileURLToPath(new URL('../../node_modules/skills/bin/cli.mjs', import.meta.url))

interface Index {
  readonly skills: ReadonlyArray<{ readonly name: string, readonly url: string }>
}

// A test of its own: the folder of the outermost test is that of all files of a process.
t.test('two replicas whose content is rolled out one after the other', async (t) => {
  const folder = t.testdir({ one: { skills: { a: skill('a', { 'x.md': 'x' }), b: skill('b'), steady: skill('steady') } } })
  cpSync(join(folder, 'one'), join(folder, 'two'), { recursive: true })
  const replicas = await Promise.all(['one', 'two'].map(async (name) => await startProcess(t, { args: [join(folder, name, 'skills')] })))

  await t.test('K59: while new content is rolled out, what was begun with the old content goes on at every replica', async (t) => {
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

  await t.test('K59: while content is rolled out over two replicas, the skills client installs what is the same on both, and nothing that is mixed', async (t) => {
    const version = (number: number) => skill('rolled', { 'number.md': `number ${number};`, 'SKILL.md': skillText('rolled', `number ${number};`) })
    const replace = (name: string, number: number): void => {
      const next = join(folder, name, `${number}`)
      for (const [file, text] of Object.entries(version(number))) {
        mkdirSync(next, { recursive: true })
        writeFileSync(join(next, file), text)
      }
      const current = join(folder, name, 'skills/rolled')
      if (existsSync(current)) renameSync(current, `${next}.old`)
      renameSync(next, current)
    }
    for (const name of ['one', 'two']) replace(name, 0)
    const url = await startRoundRobin(t, replicas)
    const stopped = new AbortController()
    const rollOut = async () => {
      for (let number = 1; !stopped.signal.aborted; number++) {
        for (const [index, name] of ['one', 'two'].entries()) {
          replace(name, number)
          // For the time of some requests, one replica is ahead of the other.
          for (let count = 0; count < 10; count++) await (await fetch(`${replicas[index]?.url}/skills/steady`)).arrayBuffer()
        }
      }
    }
    const rolling = rollOut()
    for (const run of ['first', 'second']) {
      const cwd = join(folder, run)
      mkdirSync(cwd)
      const { succeeded, output, folder: installed } = await installSkills(url, { cli: CLI, cwd })
      t.ok(succeeded, output)
      t.equal(readFileSync(join(installed, 'steady/SKILL.md'), 'utf8'), skillText('steady'))
      // The client leaves out a skill whose artifact the other replica does not have yet.
      const numbers = existsSync(join(installed, 'rolled')) ? ['SKILL.md', 'number.md'].map((file) => /number \d+;/.exec(readFileSync(join(installed, 'rolled', file), 'utf8'))?.[0]) : []
      t.ok(new Set(numbers).size <= 1 && !numbers.includes(undefined), numbers.join())
    }
    stopped.abort()
    await rolling
  })
})

/** Passes each request on to the next replica. */
async function startRoundRobin (t: Test, replicas: readonly ServiceProcess[]): Promise<string> {
  let next = 0
  const server = createServer((request, response) => {
    const pass = async () => {
      const answer = await fetch(`${replicas[next++ % replicas.length]?.url}${request.url}`)
      response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'text/plain' })
      response.end(Buffer.from(await answer.arrayBuffer()))
    }
    pass().catch((error: unknown) => { response.destroy(error as Error) })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
