import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createNetworkDisk } from '../../src/core/read/disk.ts'
import { DiskGuard } from '../../src/core/disk/network/guard.ts'
import { buildService, type Service } from '../helper/build.ts'
import { openRaw, request } from '../helper/raw-http.ts'
import { createFaultyDisk, type FaultyDisk, skill, skills, skillText, until } from '../helper/skills.ts'

/** In place of the 60 s after which the service ends a connection without any traffic; longer than a question takes on a busy machine. */
const CONNECTION_MS = 3_000

t.test('K53: while the disk hangs under one skill the others are served, its clients are let go, and it is back with the disk', async (t) => {
  const disk = createFaultyDisk({ disk: createNetworkDisk() })
  const service = await buildService(t, {
    files: { ...skills('one', 'two'), stuck: { 'SKILL.md': skillText('stuck'), 'file.txt': 'text' } },
    options: { disk, timeouts: { connection: CONNECTION_MS }, allowedOrigins: ['https://app.example'] }
  })
  let release = () => {}
  const hanging = new Promise<void>((resolve) => { release = resolve })
  let waiting = 0
  disk.intercept = (_operation, path) => {
    if (!path.includes('/stuck')) return undefined
    waiting++
    return hanging
  }

  // Each question on a connection of its own: none that was idle is about to be ended.
  const questions = ['/skills/stuck', '/skills/stuck/files', '/skills/stuck/files/file.txt']
  const clients = await Promise.all(questions.map(async (path) => (await openRaw(service.url)).send(request('GET', path, { headers: ['Origin: https://app.example'] }))))
  await until(() => waiting > 0)
  for (const name of ['one', 'two']) {
    t.equal((await service.raw('GET', `/skills/${name}`)).status, 200)
    t.equal((await service.raw('GET', `/skills/${name}/files`)).status, 200)
    t.match((await service.raw('POST', '/agent/tools/Skill', { headers: ['Content-Type: application/json'], body: JSON.stringify({ skill_name: name }) })).json(), { content: /^Skill: / })
  }
  t.strictSame((await service.raw('GET', '/skills')).json(), { skills: ['one', 'stuck', 'two'] })
  t.equal((await service.raw('GET', '/readyz')).status, 200)

  for (const client of clients) {
    const answer = await client.response()
    t.match(answer.json(), { status: 503, code: 'not_ready' })
    t.match(answer.headers, { 'access-control-allow-origin': 'https://app.example', 'access-control-expose-headers': /Retry-After/ }, 'a page reads this answer too')
    await client.closed()
  }
  t.equal(waiting, 1, 'a place that does not answer is asked one thing, whoever waits for it')

  disk.intercept = () => undefined
  release()
  t.match((await service.raw('GET', '/skills/stuck')).json(), { documentation: skillText('stuck') })
  t.equal((await service.raw('GET', '/skills/stuck/files/file.txt')).text, 'text')
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
  t.ok(turns > 1, `${turns} calls`)
})

/** In place of the 5 s after which a call to the disk counts as failed. What is not held is answered in the same turn. */
const ANSWER_MS = 1

/** A service one of whose skills is on a disk that does not answer, until it is released. */
async function buildStuck (t: Test, { hangsFromTheStart }: { readonly hangsFromTheStart: boolean }) {
  const disk = createFaultyDisk()
  const { calls, hang, release } = createHang(disk)
  if (hangsFromTheStart) hang()
  const service = await buildService(t, {
    files: skills('one', 'stuck', 'two'),
    options: { disk, guard: new DiskGuard(ANSWER_MS), times: { debounce: 0, maxDebounce: 0, reconcileDegraded: 1 } }
  })
  return { service, calls, hang, release }
}

function createHang (disk: FaultyDisk) {
  const calls: string[] = []
  let release = () => {}
  return {
    calls,
    hang () {
      const hanging = new Promise<void>((resolve) => { release = resolve })
      disk.intercept = (operation, path) => {
        if (!path.includes('/stuck')) return undefined
        calls.push(operation)
        return hanging
      }
    },
    release () {
      disk.intercept = () => undefined
      release()
    }
  }
}

async function readiness (service: Service): Promise<unknown> {
  return (await service.fetch('/readyz')).json()
}

t.test('K50 K53: a disk that hangs under one skill from the start does not keep the service from becoming ready', async (t) => {
  const { service, calls, release } = await buildStuck(t, { hangsFromTheStart: true })
  t.match(await readiness(service), { status: 'ready', skills: 3, hanging: ['stuck'] })
  t.match((await service.fetch('/skills/one')).json(), { documentation: skillText('one') })
  t.strictSame(service.skills.getAvailableSkills().map(({ name }) => name), ['one', 'two'])
  const answers = await Promise.all(Array.from({ length: 50 }, () => service.fetch('/skills/stuck')))
  t.ok(answers.every(({ status }) => status === 500))
  t.match(answers[0]?.json(), { code: 'main_file_unreadable' })
  t.match((await service.fetch('/skills/stuck/files')).json(), { code: 'file_io_error' })
  t.equal(calls.length, 1, 'one call is under way, whoever asks')
  t.match(service.log().filter(({ msg }) => String(msg).startsWith('a disk')).map(({ msg, skill }) => [msg, skill]), [['a disk does not answer; what was there before is served', 'stuck']])

  release()
  await until(() => service.skills.getAvailableSkills().length === 3)
  t.match((await service.fetch('/skills/stuck')).json(), { documentation: skillText('stuck') })
  t.match(await readiness(service), { hanging: [] })
})

t.test('K52 K53: while the disk hangs under one skill the others are refreshed in the background, and it is back without a question', async (t) => {
  const { service, calls, hang, release } = await buildStuck(t, { hangsFromTheStart: false })
  const descriptions = () => service.skills.availableNow().map(({ description }) => description).join()
  hang()
  for (const round of [1, 2]) {
    writeFileSync(join(service.root, 'two/SKILL.md'), `---\nname: two\ndescription: edit ${round}\n---\n`)
    await until(() => descriptions() === `What one is for,What stuck is for,edit ${round}`)
  }
  t.equal(calls.length, 1, 'a walk does not ask it again')
  t.match(await readiness(service), { status: 'ready', hanging: ['stuck'], failures: [] })
  t.same((await service.fetch('/skills')).json(), { skills: ['one', 'stuck', 'two'] })

  writeFileSync(join(service.root, 'stuck/SKILL.md'), '---\nname: stuck\ndescription: back\n---\n')
  release()
  await until(() => descriptions() === 'What one is for,back,edit 2')
})

t.test('K53: a link whose disk hangs stays the skill that it was', async (t) => {
  const disk = createFaultyDisk()
  const { hang, release } = createHang(disk)
  const service = await buildService(t, {
    files: { one: skill('one'), '.mounts': { stuck: skill('linked') }, linked: t.fixture('symlink', '.mounts/stuck') },
    options: { disk, guard: new DiskGuard(ANSWER_MS) }
  })
  t.same((await service.fetch('/skills')).json(), { skills: ['linked', 'one'] })
  disk.intercept = () => undefined
  hang()
  for (let round = 0; round < 3; round++) t.same((await service.fetch('/skills')).json(), { skills: ['linked', 'one'] })
  t.equal((await service.fetch('/skills/one')).status, 200)
  mkdirSync(join(service.root, 'new'))
  t.same((await service.fetch('/skills')).json(), { skills: ['linked', 'new', 'one'] })
  release()
  await until(() => service.skills.status.hanging.length === 0)
  t.equal((await service.fetch('/skills/linked')).status, 200)
})

t.test('K53: links into a folder that hangs hold up neither their root nor each other', async (t) => {
  const names = ['a', 'b', 'c', 'd']
  for (const hangsFromTheStart of [true, false]) {
    await t.test(hangsFromTheStart ? 'from the start' : 'later', async (t) => {
      const disk = createFaultyDisk()
      const asked: string[] = []
      let release = () => {}
      const hang = () => {
        const hanging = new Promise<void>((resolve) => { release = resolve })
        disk.intercept = (operation, path) => {
          const isLink = /\/skills\/[abcd]$/.test(path) && (operation === 'readlink' || operation === 'lstat')
          if (isLink || !/\/(?:store|skills\/[abcd])(?:\/|$)/.test(path)) return undefined
          asked.push(`${operation} ${path}`)
          return hanging
        }
      }
      if (hangsFromTheStart) hang()
      const service = await buildService(t, {
        files: { own: skill('own'), ...Object.fromEntries(names.map((name) => [name, t.fixture('symlink', `../store/${name}`)])) },
        options: { disk, siblings: { store: skills(...names) }, linkTargets: ['store'], guard: new DiskGuard(ANSWER_MS) }
      })
      const known = hangsFromTheStart ? [] : names
      if (!hangsFromTheStart) {
        t.same((await service.fetch('/skills')).json(), { skills: [...names, 'own'] })
        hang()
      }
      for (let round = 0; round < 3; round++) t.same((await service.fetch('/skills')).json(), { skills: [...known, 'own'] })
      t.equal((await service.fetch('/skills/own')).status, 200)
      if (!hangsFromTheStart) t.equal((await service.fetch('/skills/c')).status, 500)
      mkdirSync(join(service.root, 'new'))
      t.same((await service.fetch('/skills')).json(), { skills: [...known, 'new', 'own'] })
      t.match(await readiness(service), { status: 'ready', hanging: names })
      t.equal(asked.length, 1, 'the folder is asked one thing')
      disk.intercept = () => undefined
      release()
      await until(() => service.skills.status.hanging.length === 0)
      t.same((await service.fetch('/skills')).json(), { skills: [...names, 'new', 'own'] })
      t.equal((await service.fetch('/skills/c')).status, 200)
    })
  }
})
