import { mkdirSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import t, { type Test } from 'tap'
import { hang, noMounts, runWithMounts, withOwnMounts } from '../helper/hung-mount.ts'
import { launch, runProcess, type ServiceProcess, startProcess } from '../helper/process.ts'
import { skill, skillText, skills, until } from '../helper/skills.ts'
import { startSwapper } from '../helper/swapper.ts'

const TRAVERSAL = 'Path traversal detected: cannot access files outside skill folder'

const link = (target: string) => t.fixture('symlink', target)

/** Folders of skills, of which `dead` becomes a disk that does not answer. */
function createFolders (t: Test, files: Readonly<Record<string, unknown>>): string {
  return realpathSync(t.testdir({ dead: {}, live: {}, ...files }))
}

/** Ends before the file does: a service that waits for the disk is known by the request that it does not answer. */
const DEADLINE_MS = 60_000

/** Enough: a service that calls by the path that it has checked waits for the disk in the first of them. */
const ROUNDS = 4

async function ask ({ url }: ServiceProcess, path: string): Promise<{ status: number, body: unknown }> {
  const response = await fetch(`${url}${path}`, { signal: AbortSignal.timeout(DEADLINE_MS) }).catch((cause: unknown) => { throw new Error(`no answer for ${path}`, { cause }) })
  const text = await response.text()
  return { status: response.status, body: response.headers.get('content-type')?.includes('json') === true ? JSON.parse(text) : text }
}

function relink (path: string, target: string): void {
  symlinkSync(target, `${path}.new`)
  renameSync(`${path}.new`, path)
}

/** Swaps a folder and a link, as `startSwapper` does, so that watchers have news and then rest. */
function swap (path: string, aside: string, away: string): void {
  for (let i = 0; i < 500; i++) {
    renameSync(path, aside)
    renameSync(away, path)
    renameSync(path, away)
    renameSync(aside, path)
  }
}

t.test('K4 K19 K53: links into a disk that hangs are left out as others that lead out, to a network disk too, and hold up nothing', { skip: noMounts }, async (t) => {
  const base = createFolders(t, {
    live: skills('shared'),
    root: {
      ...skills('plain'),
      away: link('../dead/away'),
      direct: link('../dead'),
      shared: link('../live/shared'),
      demo: skill('demo', { 'a.md': 'a', 'out.md': link('../../dead/out.md'), folder: link('../../dead'), docs: { 'deep.md': link('../out.md') } }),
      'main-away': { 'SKILL.md': link('../../dead/SKILL.md') },
      ignoring: skill('ignoring', { '.skillignore': link('../../dead/.skillignore'), 'a.md': 'a' })
    }
  })
  const service = await startProcess(t, { args: ['root'], cwd: base, runBy: runWithMounts(join(base, 'dead'), join(base, 'live')) })
  t.strictSame(await ask(service, '/skills'), { status: 200, body: { skills: ['demo', 'ignoring', 'main-away', 'plain'] } })
  t.match(await ask(service, '/skills/demo'), { status: 200, body: { documentation: skillText('demo') } })
  t.match(await ask(service, '/skills/demo/files'), { status: 200, body: { files: [{ path: 'SKILL.md' }, { path: 'a.md' }] } })
  t.equal((await ask(service, '/skills/demo/archive.zip')).status, 200)
  for (const path of ['out.md', 'folder/x', 'folder', 'docs/deep.md']) {
    t.match(await ask(service, `/skills/demo/files/${path}`), { status: 403, body: { detail: TRAVERSAL } }, path)
  }
  t.equal((await ask(service, '/skills/main-away')).status, 404)
  t.match(await ask(service, '/skills/ignoring/files'), { status: 200, body: { files: [{ path: 'SKILL.md' }] } })
  await until(() => service.log().some(({ setting, target }) => setting === `--allow-links ${join(base, 'dead')}` && target === join(base, 'dead/away')))
  t.match((await ask(service, '/readyz')).body, { roots: [{ skills: 4, skipped: 3 }] })
})

t.test('K53: links into a disk that hangs, and was mounted after the start, hold up nothing', { skip: noMounts }, async (t) => {
  const base = createFolders(t, { root: { ...skills('demo'), away: link('../dead/away') } })
  const service = await startProcess(t, { args: ['root'], cwd: base, env: { WATCH_POLLING: 'true' }, runBy: withOwnMounts })
  t.equal((await ask(service, '/skills/demo')).status, 200)
  await hang(t, service.pid, join(base, 'dead'))
  await until(() => service.log().some(({ target }) => target === join(base, 'dead/away')))
  symlinkSync('../../dead/out.md', join(base, 'root/demo/out.md'))
  t.match(await ask(service, '/skills/demo/files/out.md'), { status: 403, body: { detail: TRAVERSAL } })
  t.equal((await ask(service, '/skills/demo')).status, 200)
})

t.test('K51 K53: a skill, a folder inside, and a root that become links into a disk that hangs hold up nothing', { skip: noMounts }, async (t) => {
  const base = createFolders(t, {
    first: skills('one'),
    root: link('first'),
    other: { ...skills('two', 'gone'), inner: skill('inner', { docs: { 'a.md': 'a' } }) }
  })
  const service = await startProcess(t, { args: ['root', 'other'], cwd: base, runBy: runWithMounts(join(base, 'dead'), join(base, 'live')) })
  t.strictSame((await ask(service, '/skills')).body, { skills: ['gone', 'inner', 'one', 'two'] })
  t.equal((await ask(service, '/catalog')).status, 200, 'the folders inside are watched')

  rmSync(join(base, 'other/inner/docs'), { recursive: true })
  symlinkSync('../../dead', join(base, 'other/inner/docs'))
  rmSync(join(base, 'other/gone'), { recursive: true })
  symlinkSync('../dead/gone', join(base, 'other/gone'))
  t.match(await ask(service, '/skills/inner/files/docs/a.md'), { status: 403, body: { detail: TRAVERSAL } })
  t.match(await ask(service, '/skills/inner/files'), { status: 200, body: { files: [{ path: 'SKILL.md' }] } })
  t.equal((await ask(service, '/skills/gone')).status, 404)
  mkdirSync(join(base, 'other/three'))
  await until(async () => (await ask(service, '/catalog')).body instanceof Object && (await ask(service, '/skills/three')).status === 404)

  relink(join(base, 'root'), 'dead')
  t.equal((await ask(service, '/livez')).status, 200)
  t.match(await ask(service, '/skills/two'), { status: 200 })
  const [late] = await Promise.all([ask(service, '/skills/one'), ask(service, '/livez')])
  t.equal(late.status, 500, 'the last state of the root stands, and its disk does not answer')
  relink(join(base, 'root'), 'first')
  await until(async () => (await ask(service, '/skills/one')).status === 200)
})

t.test('K53: a folder inside, a skill, and a root that change places with a link into a disk that hangs, over and over, hold up nothing', { skip: noMounts }, async (t) => {
  const base = createFolders(t, { root: { ...skills('two', 'whole'), inner: skill('inner', { docs: { 'a.md': 'a' } }) }, other: skills('three') })
  const service = await startProcess(t, { args: ['root', 'other'], cwd: base, runBy: runWithMounts(join(base, 'dead'), join(base, 'live')) })
  t.equal((await ask(service, '/catalog')).status, 200, 'the folders inside are watched')
  for (const path of ['root/inner/docs', 'root/whole', 'other']) {
    const [aside, away] = [join(base, `${basename(path)}-aside`), join(base, `${basename(path)}-link`)]
    symlinkSync(join(base, 'dead'), away)
    const stop = await startSwapper(t, join(base, path), aside, away)
    for (let round = 0; round < ROUNDS; round++) {
      // Together, so that what swaps without a pause is over soon.
      const [two] = await Promise.all(['/skills/two', '/skills/inner/files/docs/a.md', '/skills/whole', '/skills/three/files', '/catalog'].map((asked) => ask(service, asked)))
      t.match(two, { status: 200 }, path)
    }
    await stop()
  }
})

t.test('K4: links to a network disk that answers are followed where --allow-links says so, whatever hangs beside it', { skip: noMounts }, async (t) => {
  const base = createFolders(t, {
    live: { ...skills('shared'), private: { 'a.md': 'a' } },
    root: { ...skills('plain'), shared: link('../live/shared'), away: link('../dead/away'), demo: skill('demo', { 'out.md': link('../../dead/out.md') }) }
  })
  const allowed = await startProcess(t, { args: ['--allow-links', 'live', 'root'], cwd: base, runBy: runWithMounts(join(base, 'dead'), join(base, 'live')) })
  t.strictSame((await ask(allowed, '/skills')).body, { skills: ['demo', 'plain', 'shared'] })
  t.match(await ask(allowed, '/skills/shared'), { status: 200, body: { documentation: skillText('shared') } })
  t.match(await ask(allowed, '/skills/demo/files'), { status: 200, body: { files: [{ path: 'SKILL.md' }] } })
  t.equal((await ask(allowed, '/skills/demo/files/out.md')).status, 403)
})

t.test('K37 K86: validate and lock do not follow links into a disk that hangs, with a layout or without', { skip: noMounts }, async (t) => {
  const base = createFolders(t, {
    root: { ...skills('plain'), away: link('../dead/away'), demo: skill('demo', { 'out.md': link('../../dead/out.md') }) }
  })
  const runBy = runWithMounts(join(base, 'dead'), join(base, 'live'))
  for (const args of [['validate', 'root'], ['lock', 'root', '--out', 'skills.lock'], ['lock', 'root', '--layout', 'tree']]) {
    t.match(await runProcess(t, { args, cwd: base, runBy }), { code: 0 }, args.join(' '))
  }
})

t.test('K53 K85 K86: a folder with a layout that hangs from the start, or whose links lead into a disk that hangs, keeps nothing else from being served', { skip: noMounts }, async (t) => {
  const base = createFolders(t, {
    other: skills('one'),
    links: { ...skills('plain'), away: link('../dead/away'), demo: skill('demo', { 'out.md': link('../../dead/out.md') }) }
  })
  const sources = ['{ name: other, folder: ./other }', '{ name: links, folder: ./links, layout: tree }', '{ name: tree, folder: ./dead/tree, layout: tree }']
  writeFileSync(join(base, 'skillserve.yaml'), `sources:\n${sources.map((source) => `  - ${source}\n`).join('')}`)
  const service = await startProcess(t, { args: ['--config', 'skillserve.yaml'], cwd: base, runBy: runWithMounts(join(base, 'dead'), join(base, 'live')) })
  t.strictSame((await ask(service, '/skills')).body, { skills: ['demo', 'one', 'plain'] })
  t.match((await ask(service, '/readyz')).body, {
    sources: [
      { name: 'links', left_out: { first: [{ path: 'away', reason: 'link_outside' }, { path: 'demo/out.md', reason: 'link_outside' }] } },
      { name: 'tree', state: 'failed', error: { code: 'disk' } }
    ]
  })
})

t.test('K79: validate --watch does not follow a folder that becomes a link into a disk that hangs, or changes places with one over and over', { skip: noMounts }, async (t) => {
  const base = createFolders(t, { root: skills('one', 'two', 'three') })
  symlinkSync(join(base, 'dead'), join(base, 'link'))
  const running = launch(t, { args: ['validate', '--watch', 'root'], cwd: base, runBy: runWithMounts(join(base, 'dead'), join(base, 'live')) })
  await running.printed(/3 skills: .*\nwaiting for changes\n/)
  symlinkSync('../dead/gone', join(base, 'gone'))
  renameSync(join(base, 'root/three'), join(base, 'three'))
  renameSync(join(base, 'gone'), join(base, 'root/three'))
  await running.printed(/2 skills: .*\nwaiting for changes\n/)
  for (let round = 3; round < 8; round++) {
    swap(join(base, 'root/two'), join(base, 'aside'), join(base, 'link'))
    writeFileSync(join(base, 'root/one/SKILL.md'), skillText('one'))
    await running.printed(new RegExp(`(?:waiting for changes\\n[^]*){${round}}`))
  }
})
