import { EventEmitter } from 'node:events'
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { type Disk, localDisk } from '../../src/core/read/disk.ts'
import { createSkillManager } from '../../src/core/skill-manager.ts'
import { Shutdown } from '../../src/http/shutdown.ts'
import { buildService } from '../helper/build.ts'
import { createFaultyDisk, type FaultyDisk } from '../helper/disk.ts'

const DEMO = { demo: { 'SKILL.md': '---\nname: demo\ndescription: A test\n---\n# Demo\n' } }

/** A disk that lists the folder of one skill after `release`: until then the first index is not complete. */
function holdListing (name: string): { readonly disk: FaultyDisk, release (): void } {
  let release = () => {}
  const released = new Promise<void>((resolve) => { release = resolve })
  const disk = createFaultyDisk({
    intercept: (operation, path) => operation === 'readdir' && path.endsWith(`/${name}`) ? released : undefined
  })
  return { disk, release }
}

t.test('K50: GET /livez says ok, and waits for no disk', async (t) => {
  let release = (): void => {}
  let held: Promise<void> | undefined
  const disk = createFaultyDisk({ intercept: () => held })
  const service = await buildService(t, { files: DEMO, options: { disk } })
  held = new Promise((resolve) => { release = resolve })
  const response = await service.fetch('/livez')
  t.equal(response.status, 200)
  t.equal(response.text, '{"status":"ok"}')
  t.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
  t.equal(response.headers.get('x-content-type-options'), 'nosniff')
  t.equal(response.headers.get('cache-control'), 'no-store')
  t.equal(response.headers.get('etag'), null)
  release()
  held = undefined
  t.equal((await service.fetch('/skills')).status, 200)
})

t.test('K50: GET /readyz reports skills, generation, roots and watcher', async (t) => {
  const service = await buildService(t, {
    files: DEMO,
    options: { siblings: { mine: { own: { 'x.md': '' }, other: { 'x.md': '' } } }, personalRoot: 'mine' }
  })
  const response = await service.fetch('/readyz')
  t.equal(response.status, 200)
  t.strictSame([response.headers.get('cache-control'), response.headers.get('etag')], ['no-store', null],
    'no cache keeps it')
  t.match(response.json(), {
    status: 'ready',
    detail: undefined,
    skills: 3,
    generation: Number,
    roots: [{ type: 'project', state: 'ok', skills: 1 }, { type: 'personal', state: 'ok', skills: 2 }],
    watcher: { status: 'off', mode: 'events', errors: 0 },
    failures: []
  })
  t.notMatch(response.text, service.folder, 'no server path')
})

t.test('K3, K14, K50: readiness follows the root: absent, a file, there, removed, made again, swapped ' +
  'behind a link', async (t) => {
  const service = await buildService(t, { files: null, options: { siblings: { aside: { other: { 'x.md': '' } } } } })
  const { root, folder, fetch } = service
  const refused = async (): Promise<void> => {
    const response = await fetch('/readyz')
    t.match(response.headers.get('retry-after'), /^\d+$/)
    t.equal(response.headers.get('cache-control'), 'no-store')
    t.match(response.json(), {
      code: 'not_ready',
      status: 503,
      detail: /^the folder skills \(project\) is missing, or is a file$/,
      instance: '/readyz',
      skills: 0,
      roots: [{ type: 'project', state: 'missing', skills: 0 }],
      watcher: { status: 'off', mode: 'events', errors: 0 },
      failures: []
    })
    t.match((await fetch('/skills')).json(),
      { status: 503, code: 'skills_folder_not_found', error: `Skills folder not found at path: ${root}` })
    t.equal((await fetch('/livez')).status, 200)
  }
  const ready = async (...names: readonly string[]): Promise<void> => {
    t.match((await fetch('/readyz')).json(), { status: 'ready', skills: names.length })
    t.same((await fetch('/skills')).json(), { skills: names })
  }

  await refused()
  t.notOk(existsSync(root), 'a root is never created')
  writeFileSync(root, '')
  await refused()
  rmSync(root)
  mkdirSync(`${root}/demo`, { recursive: true })
  await ready('demo')
  rmSync(root, { recursive: true })
  await refused()
  mkdirSync(root)
  await ready()
  renameSync(root, `${folder}/empty`)
  symlinkSync('nothing', root)
  await refused()
  for (const [target, names] of [['aside', ['other']], ['empty', []]] as const) {
    symlinkSync(target, `${root}.next`)
    renameSync(`${root}.next`, root)
    await ready(...names)
  }
})

t.test('K70: /readyz says in words what is wrong, with the names of folders and without their paths', async (t) => {
  const refused = (path: string): never => { throw Object.assign(new Error(path), { code: 'EACCES' }) }
  const disk: Disk = {
    ...localDisk, readdir: async (path) => path.endsWith('/locked') ? refused(path) : await localDisk.readdir(path)
  }
  const service = await buildService(t,
    { files: null, options: { siblings: { locked: {} }, roots: ['skills', 'locked'], personalRoot: 'mine', disk } })
  const all = 'the folder skills (project) is missing, or is a file; the folder locked (project) may not be read; ' +
    'the folder mine (personal) is missing, or is a file'
  const bad = await service.fetch('/readyz')
  t.equal(bad.status, 503)
  t.match(bad.json(), { code: 'not_ready', detail: all, error: all })
  mkdirSync(service.root)
  const good = await service.fetch('/readyz')
  t.equal(good.status, 200)
  t.equal((good.json() as { detail?: string }).detail,
    'the folder locked (project) may not be read; the folder mine (personal) is missing, or is a file')
  for (const { text } of [bad, good]) t.notMatch(text, service.folder)
})

t.test('K85: callers are told the name of a source that was never fetched, and no folder', async (t) => {
  const listed = Object.assign(new EventEmitter(), { folders: undefined, isFixed: true })
  const skills = createSkillManager({ projectRoots: [{ path: t.testdir({}), name: 'team', listed }], watcher: false })
  t.teardown(() => skills.close())
  const error = { code: 'source_not_available', message: 'The source team is not available yet' }
  await t.rejects(skills.list(), error)
  await t.rejects(skills.read('demo', (state) => state.mainFile()), error)
})

t.test('K50: before the first index is complete the service is not ready, and says so', async (t) => {
  const { disk, release } = holdListing('demo')
  const service = await buildService(t, { files: DEMO, options: { disk, indexed: false } })
  const early = await service.fetch('/readyz')
  t.equal(early.status, 503)
  t.match(early.json(), { detail: 'The first index is not complete', skills: 1, watcher: { status: 'off' } })
  t.same((await service.fetch('/skills')).json(), { skills: ['demo'] }, 'the list is complete all the same')
  release()
  await service.skills.initialize()
  t.equal((await service.fetch('/readyz')).status, 200)
})

t.test('a service that is stopping is not ready, and answers', async (t) => {
  const shutdown = new Shutdown()
  const service = await buildService(t, { files: DEMO, options: { shutdown } })
  t.equal((await service.fetch('/readyz')).status, 200)
  shutdown.isStopping = true
  const response = await service.fetch('/readyz')
  t.equal(response.status, 503)
  t.match(response.json(), {
    code: 'not_ready', detail: 'The service is stopping', skills: 1, watcher: { status: 'off' }
  })
  t.equal((await service.fetch('/livez')).status, 200)
  t.equal((await service.fetch('/skills/demo')).status, 200)
})

t.test('K70: a root that is itself a skill is a warning that says what to give', async (t) => {
  const service = await buildService(t, { files: { 'SKILL.md': '# Demo\n', references: { 'a.md': 'a' } } })
  await service.fetch('/readyz')
  t.match(service.log().filter(({ msg }) => String(msg).includes('itself a skill')),
    [{ level: 40, root: service.root, msg: 'a skills folder is itself a skill: give the folder that holds it' }])
})
