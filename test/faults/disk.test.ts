import t from 'tap'
import { createNetworkDisk } from '../../src/core/disk.ts'
import { buildService } from '../helper/build.ts'
import { openRaw, request } from '../helper/raw-http.ts'
import { createFaultyDisk, skills, skillText, until } from '../helper/skills.ts'

/** In place of the 60 s after which the service ends a connection without any traffic. */
const CONNECTION_MS = 500

t.test('K53: while the disk hangs under one skill the others are served, its clients are let go, and it is back with the disk', async (t) => {
  const disk = createFaultyDisk({ disk: createNetworkDisk() })
  const service = await buildService(t, {
    files: { ...skills('one', 'two'), stuck: { 'SKILL.md': skillText('stuck'), 'file.txt': 'text' } },
    options: { disk, timeouts: { connection: CONNECTION_MS } }
  })
  let release = () => {}
  const hanging = new Promise<void>((resolve) => { release = resolve })
  let waiting = 0
  disk.intercept = (_operation, path) => {
    if (!path.includes('/stuck')) return undefined
    waiting++
    return hanging
  }

  const questions = ['/skills/stuck', '/skills/stuck/files', '/skills/stuck/files/file.txt']
  const clients = await Promise.all(questions.map(async (path) => (await openRaw(service.url)).send(request('GET', path))))
  await until(() => waiting >= questions.length)
  for (const name of ['one', 'two']) {
    t.equal((await service.fetch(`/skills/${name}`)).status, 200)
    t.equal((await service.fetch(`/skills/${name}/files`)).status, 200)
    t.match((await service.post('/agent/tool-call', { function: { name: 'Skill', arguments: { skill_name: name } } })).json(), { content: /^Skill: / })
  }
  t.strictSame((await service.fetch('/skills')).json(), { skills: ['one', 'stuck', 'two'] })
  t.equal((await service.fetch('/readyz')).status, 200)

  await Promise.all(clients.map(async (client) => await client.closed()))
  t.strictSame(clients.map(({ received }) => received.length), [0, 0, 0], 'closed without an answer')

  disk.intercept = () => undefined
  release()
  t.match((await service.fetch('/skills/stuck')).json(), { documentation: skillText('stuck') })
  t.equal((await service.fetch('/skills/stuck/files/file.txt')).text, 'text')
})

t.test('K53: a disk that takes its time delays only those who ask it', async (t) => {
  const disk = createFaultyDisk({ disk: createNetworkDisk() })
  const service = await buildService(t, { files: skills('quick', 'slow'), options: { disk } })
  let turns = 0
  const releases: Array<() => void> = []
  disk.intercept = (_operation, path) => path.includes('/slow')
    ? new Promise((resolve) => {
      turns++
      releases.push(resolve)
    })
    : undefined
  const answered = new AbortController()
  const slow = service.fetch('/skills/slow').finally(() => { answered.abort() })
  // Each call of the slow question lasts as long as a whole question to the other skill.
  while (!answered.signal.aborted) {
    await until(() => releases.length > 0 || answered.signal.aborted)
    t.equal((await service.fetch('/skills/quick')).status, 200)
    for (const release of releases.splice(0)) release()
  }
  t.equal((await slow).status, 200)
  t.ok(turns > 5, `${turns} calls`)
})
