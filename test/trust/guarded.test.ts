import fs from 'node:fs'
import { basename, join } from 'node:path'
import t, { type Test } from 'tap'
import { loadConfig } from '../../src/config/load.ts'
import { openRoots } from '../../src/config/roots.ts'
import type { Config } from '../../src/config/settings.ts'
import { SILENT } from '../../src/core/shared/log.ts'
import { StateFolder } from '../../src/sources/publish/state-folder.ts'
import { TrustPolicy } from '../../src/trust/trust-policy.ts'
import { openTrust, Trust } from '../../src/trust/trust.ts'
import { buildService } from '../helper/build.ts'
import { openEvents } from '../helper/event-stream.ts'
import { createRepository, skillFiles } from '../helper/git.ts'
import { modernRequest } from '../helper/mcp.ts'
import { startProcess } from '../helper/process.ts'
import { makeKeyPair, sign, startGuarded, trustOf } from '../helper/signing.ts'
import {
  createManager, passTick, skill, skillText, skills, startManager, textOf, until
} from '../helper/skills.ts'
import { openSources, sourceAt } from '../helper/sources.ts'
import { freshStatusOf } from '../helper/watching.ts'

type Pins = Readonly<Record<string, readonly string[]>>

const toLock = (pins: Pins) => new Map(Object.entries(pins).map(([name, revisions]) => [name, new Set(revisions)]))

function openFolders (settings: Partial<Config>) {
  return openRoots({ ...loadConfig({ env: {}, cwd: '/' }), ...settings }, { log: SILENT, env: {} })
}

/** A lock that a test changes. */
function lockOf (pins: Pins = {}) {
  const policy = new TrustPolicy({ lock: toLock(pins) })
  return { policy, pin: (pins: Pins) => { policy.replace({ lock: toLock(pins) }) } }
}

async function revisionOf (t: Test, base: string, name: string): Promise<string> {
  const manager = createManager(t, [base])
  await manager.initialize()
  return (await manager.read(name, (skill) => skill.manifest())).revision
}

t.test('K95: with a lock, only the named revisions are served, from copies of the same revision', async (t) => {
  const base = t.testdir(skills('good', 'other'))
  const good = await revisionOf(t, base, 'good')
  const { policy } = lockOf({ good: [good] })
  const { skills: manager, trust } = await startGuarded(t, base, policy)
  t.strictSame(await manager.list(), ['good'])
  t.equal((await manager.read('good', (skill) => skill.manifest())).revision, good)
  t.match(await textOf(() => manager.read('good', (skill) => skill.mainFile('SKILL.md'))), /Instructions of good/)
  t.notOk((await manager.find('good'))?.metadata.skillPath.startsWith(base), 'from a copy')
  t.equal(await manager.find('other'), undefined)
  t.strictSame(await manager.search('what good'), ['good'])
  const message = 'the lock does not name the skill'
  t.strictSame(trust.quarantinedIn([basename(base)]),
    { count: 1, first: [{ name: 'other', root: basename(base), code: 'not_pinned', message }] })
})

t.test('K95: a change of any file takes a skill away, its return brings it back, and events say no more', async (t) => {
  const base = t.testdir({ demo: skill('demo', { scripts: { 'run.sh': 'echo 1' } }), other: skill('other') })
  const { policy } = lockOf({ demo: [await revisionOf(t, base, 'demo')] })
  const { skills: manager } = await startGuarded(t, base, policy)
  const { feed } = manager
  const events: string[] = []
  feed.subscribe((event) => { if ('name' in event) events.push(`${event.type} ${event.name}`) })
  // The copies are new, and so is each of them to a feed that has just begun.
  await until(() => feed.revision !== undefined)
  events.length = 0
  passTick(base)
  const [demo, hidden] = [join(base, 'demo'), join(base, '.demo')]
  const [script, added] = [join(demo, 'scripts/run.sh'), join(demo, 'added.md')]
  for (const [change, undo] of [
    [() => { fs.writeFileSync(script, 'echo 2') }, () => { fs.writeFileSync(script, 'echo 1') }],
    [() => { fs.writeFileSync(added, 'canary') }, () => { fs.rmSync(added) }],
    [() => { fs.renameSync(demo, hidden) }, () => { fs.renameSync(hidden, demo) }]
  ] as const) {
    change()
    fs.writeFileSync(join(base, 'other/b.txt'), String(events.length))
    await until(async () => {
      t.match(await textOf(() => manager.read('demo', (skill) => skill.file('scripts/run.sh'))),
        /^(?:echo 1$|skill_not_found)/)
      return events.at(-1) === 'removed demo'
    })
    t.strictSame(await manager.list(), [])
    t.match(await textOf(() => manager.read('demo', (skill) => skill.file('added.md'))), /^skill_not_found/)
    undo()
    await until(() => events.at(-1) === 'added demo')
  }
  t.strictSame(events, Array(3).fill(['removed demo', 'added demo']).flat())
})

t.test('K95: a new lock is in force, for kept revisions too', async (t) => {
  const base = t.testdir({ demo: skill('demo'), more: skill('more') })
  const [demo, more] = [await revisionOf(t, base, 'demo'), await revisionOf(t, base, 'more')]
  const { policy, pin } = lockOf({ demo: [demo] })
  const { skills: manager } = await startGuarded(t, base, policy)
  await manager.read('demo', (skill) => skill.manifest())
  await manager.read('demo', (skill) => skill.archive())
  passTick(base)
  fs.writeFileSync(join(base, 'demo/SKILL.md'), skillText('demo', 'second'))
  const second = await revisionOf(t, base, 'demo')
  await until(async () => (await manager.list()).length === 0)
  const before = () => textOf(() => manager.at(demo).read('demo', (skill) => skill.mainFile('SKILL.md')))
  t.match(await before(), /^skill_not_found/, 'nothing of a skill that is quarantined')
  pin({ demo: [demo, second] })
  await until(async () => (await manager.list()).join() === 'demo')
  t.match(await before(), /Instructions of demo/, 'a caller finishes with what was handed out')
  pin({ demo: [second], more: [more] })
  await until(async () => (await manager.list()).join() === 'demo,more')
  t.match(await textOf(() => manager.read('demo', (skill) => skill.mainFile('SKILL.md'))), /second/)
  t.match(await before(), /^revision_changed/)
  pin({})
  await until(async () => (await manager.list()).length === 0)
})

t.test('K95: a refused folder does not hide one of the same name in a later root', async (t) => {
  const demo = (text: string) => ({ demo: { 'SKILL.md': skillText('demo', text) } })
  const folder = t.testdir({ first: demo('canary'), second: demo('reviewed') })
  const revision = await revisionOf(t, join(folder, 'second'), 'demo')
  const bases = [join(folder, 'first'), join(folder, 'second')]
  const { skills: manager } = await startGuarded(t, bases, lockOf({ demo: [revision] }).policy)
  t.match(await textOf(() => manager.read('demo', (skill) => skill.mainFile('SKILL.md'))), /reviewed/)
})

t.test('K95: a trust file guards a root, and lets it go again; a denied skill is served from no root', async (t) => {
  const key = makeKeyPair()
  const base = join(t.testdir({ root: skills('signed', 'unsigned') }), 'root')
  await sign(join(base, 'signed'), key)
  const signers = [{ key: key.publicKey }]
  const { policy, replace } = trustOf(signers)
  const { skills: manager } = await startGuarded(t, base, policy)
  const served = async () => (await manager.list().catch(() => ['waiting'])).join()
  const place = async () => (await manager.find('signed'))?.metadata.skillPath
  t.strictSame([await served(), await place()], ['signed,unsigned', join(base, 'signed')], 'served directly')
  replace(signers, { roots: new Map([['root', 'require']]) })
  await until(async () => await served() === 'signed')
  t.not(await place(), join(base, 'signed'))
  replace(signers, { deny: new Set(['acme']) })
  await until(async () => await served() === 'unsigned')
  replace(signers, { deny: new Set([(await manager.read('unsigned', (skill) => skill.manifest())).revision]) })
  await until(async () => await served() === 'signed')
  replace(signers, {})
  await until(async () => await served() === 'signed,unsigned')
  await until(async () => await place() === join(base, 'signed'))
  fs.mkdirSync(join(base, 'new'))
  t.equal(await served(), 'new,signed,unsigned', 'a new folder is listed at once')
})

t.test('K95: a skill that cannot be copied is refused, and keeps no other from being checked', async (t) => {
  const long = Array(4).fill('n'.repeat(200)).join('/')
  const base = t.testdir({ long: skill('long', { 'a.md': '' }), other: skill('other') })
  fs.mkdirSync(join(base, 'long', long), { recursive: true })
  fs.writeFileSync(join(base, 'long', long, 'b.md'), '')
  const { policy } = lockOf({ long: [await revisionOf(t, base, 'long')], other: [await revisionOf(t, base, 'other')] })
  // No path may have 4,096 bytes.
  const state = Array(16).fill('s'.repeat(200)).join('/')
  const { skills: manager, log } = await startGuarded(t, base, policy, state)
  t.strictSame(await manager.list(), ['other'])
  t.match(log.join('\n'), /skill 'long' is quarantined: .*ENAMETOOLONG.*trust_unchecked/)
})

t.test('K4, K95: what a guarded folder leaves out is counted, and a link out of a skill is a finding', async (t) => {
  const base = join(t.testdir({ root: { demo: skill('demo'), out: t.fixture('symlink', '/etc') } }), 'root')
  fs.symlinkSync('/etc/hostname', join(base, 'demo/host'))
  const { policy } = lockOf({ demo: [await revisionOf(t, base, 'demo')] })
  const { skills: manager, trust, log } = await startGuarded(t, base, policy)
  t.match((await freshStatusOf(manager)).roots, [{ skills: 1, skipped: 1 }])
  t.match(log.join('\n'), /'out' is skipped, since the link leads out of the folder/)
  const { findings } = await manager.read('demo', (state) => trust.trustReportOf(state))
  t.match(findings, [{ code: 'link_outside', file: 'host' }])
})

t.test('K3, K95: a guarded folder that is missing has the error of other folders, and comes back', async (t) => {
  const folder = t.testdir({ kept: { demo: skill('demo') } })
  const base = join(folder, 'root')
  const { policy } = lockOf({ demo: [await revisionOf(t, join(folder, 'kept'), 'demo')] })
  const { skills: manager } = await startGuarded(t, base, policy)
  await t.rejects(manager.list(), { message: `Skills folder not found at path: ${base}` })
  fs.renameSync(join(folder, 'kept'), base)
  await until(async () => (await manager.list().catch(() => [])).length === 1)
})

t.test('K89, K95: a root that goes together with its rule stays guarded until it is gone', async (t) => {
  const base = join(t.testdir({ root: skills('one') }), 'root')
  const { policy, replace } = trustOf([], { roots: new Map([['root', 'require']]) })
  const { skills: manager, trust } = await startGuarded(t, base, policy)
  t.strictSame(await manager.list(), [])
  trust.guard([])
  replace([], {})
  await manager.sync()
  t.strictSame(await manager.list(), [], 'the rule has gone, the root has not')
  await manager.setRoots([{ path: base }])
  await trust.retire()
  t.strictSame(await manager.list(), ['one'])
})

t.test('K83, K95: a root whose folder for copies another process took over makes them again in its own', async (t) => {
  const base = t.testdir(skills('good'))
  const { policy } = lockOf({ good: [await revisionOf(t, base, 'good')] })
  const state = new StateFolder(`${t.testdirName}-state`)
  t.teardown(() => { fs.rmSync(state.path, { recursive: true }) })
  const claimed: Array<() => void> = []
  const claim = state.claim.bind(state)
  t.intercept(state, 'claim', {
    value: async (folder: string, onLost: () => void) => {
      claimed.push(onLost)
      return await claim(`${folder}-${claimed.length}`, onLost)
    }
  })
  const trust = new Trust({ policy, state, log: SILENT })
  t.teardown(() => trust.close())
  const guarded = trust.guard([{ path: base }])
  await trust.start()
  const manager = await startManager(t, guarded)
  const place = async () => (await manager.find('good').catch(() => undefined))?.metadata.skillPath ?? ''
  t.match(await place(), /-1\/skills\//)
  claimed[0]?.()
  await until(async () => /-2\/skills\//.test(await place()))
})

t.test('K95: without a place for the copies, start and reload name the setting', async (t) => {
  const folder = t.testdir({ skills: skills('a'), lock: '{}\n', file: '' })
  for (const [state, message] of [
    ['file', /^the state folder .*file cannot be written \(E\w+.*\); choose another with --state-dir or STATE_DIR$/],
    ['skills', /is inside .*whose files are served/]
  ] as const) {
    const roots = await openFolders({ skillsDirs: [join(folder, 'skills')], stateDir: join(folder, state) })
    const trust = await openTrust({ lockFile: join(folder, 'lock') }, roots, SILENT)
    trust?.guard(roots.sources.roots)
    if (trust === undefined) throw new Error('there is a lock')
    await t.rejects(trust.start(), { message })
    await t.rejects(trust.prepare(['skills']), { message }, 'so does a reload, which then changes nothing')
    await trust.close()
  }
})

t.test('K84, K95: of a source that must be signed, only a signed state is published, as a whole', async (t) => {
  const repository = createRepository(t)
  const keys = makeKeyPair()
  const signed = async (...names: readonly string[]) => {
    for (const name of names) await sign(join(repository.path, 'skills', name), keys)
    return repository.commit({})
  }
  repository.commit(skillFiles('a', 'b'))
  const first = await signed('a', 'b')
  const file = join(t.testdirName, 'trust.yaml')
  fs.writeFileSync(join(t.testdirName, 'key.pub'), keys.publicPem)
  fs.writeFileSync(file, 'signers:\n  - name: team\n    key: key.pub\nroots:\n  repo: require\n')
  const { sources, status, stateDir } = await openSources(t, [sourceAt(`git+file://${repository.path}`)])
  const state = new StateFolder(`${stateDir}-copies`)
  const trust = await openTrust({ trustFile: file }, { sources, state }, SILENT)
  t.teardown(() => trust?.close())
  const guarded = trust?.guard(sources.roots)
  await trust?.start()
  const manager = await startManager(t, guarded ?? [])
  t.match(status(), { state: 'ok', revision: `main@sha1:${first}`, skills: 2 })

  const changed = skillText('a', 'Changed by somebody.\n')
  const unsigned = repository.commit({ 'skills/a/SKILL.md': changed, 'skills/b/more.txt': 'x' })
  await sources.sync()
  t.match(status(), { state: 'stale', revision: `main@sha1:${first}`, error: { code: 'verification_failed' } })
  t.match(status().error?.message, `main@sha1:${unsigned} is refused for the skill "a": `)
  t.match((await manager.read('a', (skill) => skill.mainFile('SKILL.md'))).utf8, /Instructions of a/)

  const second = await signed('a', 'b')
  await sources.sync()
  t.match(status(), { state: 'ok', revision: `main@sha1:${second}`, failing_since: undefined })
  await until(async () =>
    /Changed by somebody/.test((await manager.read('a', (skill) => skill.mainFile('SKILL.md'))).utf8 ?? ''))
})

t.test('K95: a rule for a name holds for every root of that name', async (t) => {
  const { publicPem } = makeKeyPair()
  const folder = t.testdir({
    'trust.yaml': 'signers:\n  - { name: team, key: key.pub }\nroots: { skills: require, skills-2: report }\n',
    'key.pub': publicPem,
    a: { skills: { a: skill('a') } },
    b: { skills: { b: skill('b') } },
    c: { skills: { c: skill('c') } },
    'skills-2': { d: skill('d') }
  })
  const skillsDirs = ['a/skills', 'b/skills', 'c/skills'].map((path) => join(folder, path))
  fs.writeFileSync(join(folder, 'config.yaml'), JSON.stringify({ sources: [{ folder: 'skills-2' }] }))
  const [configFile, stateDir] = [join(folder, 'config.yaml'), join(folder, 'state')]
  const roots = await openFolders({ skillsDirs, stateDir, configFile, layout: 'tree' })
  t.teardown(() => roots.sources.close())
  t.strictSame(roots.sources.roots.map(({ name }) => name), ['skills', 'skills-3', 'skills-4', 'skills-2'],
    'a number makes no name of another root')
  const trust = await openTrust({ trustFile: join(folder, 'trust.yaml') }, roots, SILENT)
  t.teardown(() => trust?.close())
  const guarded = trust?.guard(roots.sources.roots)
  await trust?.start()
  const manager = await startManager(t, guarded ?? [])
  t.strictSame(await manager.list(), ['d'])
})

t.test('K95: a catalog entry has the scans of its revision, and MCP says the same', async (t) => {
  const key = makeKeyPair()
  const { policy, replace } = trustOf([])
  const { root, fetch, url } = await buildService(t, {
    files: { one: skill('one', { 'run.sh': 'echo' }) }, options: { policy }
  })
  await sign(join(root, 'one'), key)
  const { revision } = (await fetch('/skills/one/files')).json() as { revision: string }
  const results = [{ severity: 'low' as const, message: 'downloads a program', file: 'run.sh' }]
  const scans = [{ tool: 'skill-scanner 2.1', scanned_at: '2026-11-20', results }]
  replace([{ key: key.publicKey }], { scans: { byRevision: new Map([[revision, scans]]) } })
  const entry = (await fetch('/catalog/one')).json() as { readonly trust: object }
  const message = 'skill-scanner 2.1 on 2026-11-20 (low): downloads a program'
  t.match(entry, {
    trust: { signed: true, signer: 'acme', status: 'valid', scans: [{ tool: 'skill-scanner 2.1' }] },
    findings: [{ code: 'scan_note', message, file: 'run.sh' }]
  })
  for (const [method, uri, found] of [
    ['skills/get', 'skill://one/SKILL.md', 'skill'], ['resources/read', 'skill://one/run.sh', 'contents']
  ] as const) {
    const answer = await (await globalThis.fetch(`${url}/mcp`, modernRequest({ method, params: { uri } }))).json()
    const { result } = answer as { result: Record<string, unknown> }
    t.match([result[found]].flat(), [{ _meta: { 'skillserve/trust': entry.trust } }], method)
  }
})

const TRUST = 'signers: [{ name: acme, key: acme.pem }]\nroots: { skills: require }\n'

/** Rounds of one edit without a signature and one with: half of them keep the main file. `npm run attack` has more. */
const ROUNDS = 2
/** Too large for the memory of the service: it is sent while it is read. */
const LARGE_BYTES = 300_000

/** In every file and in the description of a state that nobody has signed. */
const CANARY = 'CANARY'

function writeState (folder: string, text: string, mainFile = true): void {
  const document = `---\nname: demo\ndescription: What ${text} is for\n---\n${text}\n`
  if (mainFile) fs.writeFileSync(join(folder, 'SKILL.md'), document)
  fs.writeFileSync(join(folder, 'scripts/run.sh'), `echo ${text}\n`)
  fs.writeFileSync(join(folder, 'large.txt'), `${text}\n`.repeat(LARGE_BYTES / (text.length + 1)))
}

t.test('K95: while a skill is edited and signed, no answer of any API holds a byte that is not signed', async (t) => {
  const other = { 'SKILL.md': `---\nname: other\ndescription: never signed ${CANARY}\n---\n${CANARY}` }
  const root = t.testdir({ skills: { demo: { scripts: {} }, other } })
  const base = join(root, 'skills')
  const demo = join(base, 'demo')
  const key = makeKeyPair()
  writeState(demo, 'signed-0')
  await sign(demo, key)
  fs.writeFileSync(join(root, 'acme.pem'), key.publicPem)
  fs.writeFileSync(join(root, 'trust.yaml'), TRUST)
  const { url } = await startProcess(t,
    { args: [base, '--trust', join(root, 'trust.yaml'), '--state-dir', join(root, 'state')] })

  const events = await openEvents(url)
  const headers = { 'content-type': 'application/json' }
  const call = (name: string, args: Record<string, string>) =>
    ['/agent/tool-call', { method: 'POST', headers, body: JSON.stringify({ name, arguments: args }) }] as const
  const mcp = (method: string, params = {}) => ['/mcp', modernRequest({ method, params })] as const
  const questions: ReadonlyArray<readonly [path: string, init?: RequestInit]> = [
    ...[
      '', '/demo', '/demo/files/SKILL.md', '/demo/files/scripts/run.sh', '/demo/files/large.txt', '/demo/files',
      '/demo/archive.zip', '/demo?revision=current', '/other', '/other/archive.zip'
    ].map((rest) => [`/skills${rest}`] as const),
    ['/skills/demo/files/large.txt', { headers: { range: 'bytes=280000-280100' } }],
    ...['', '/demo', '/other', '?q=canary', '?q=signed'].map((rest) => [`/catalog${rest}`] as const),
    ['/agent/prompt'], ['/agent/tools?toolset=all'], ['/.well-known/agent-skills/index.json'],
    ['/.well-known/skills/index.json'], ['/.well-known/skills/demo/SKILL.md'],
    call('get_skill', { skill_name: 'demo' }), call('Skill', { skill_name: 'demo' }),
    call('read_file_in_skill', { skill_name: 'demo', file_path: 'scripts/run.sh' }),
    mcp('tools/list'), mcp('resources/list'), mcp('prompts/list'),
    mcp('tools/call', { name: 'get_skill', arguments: { skill_name: 'demo' } })
  ]
  const writing = new AbortController()
  let signedAnswers = 0
  let absences = 0
  const leaks: string[] = []
  async function ask (path: string, init?: RequestInit): Promise<void> {
    let text = ''
    try {
      const response = await fetch(url + path, init)
      if (response.status === 404) absences++
      for await (const chunk of response.body ?? []) text += Buffer.from(chunk as Uint8Array).toString('latin1')
    } catch {
      // A file that changes while it is sent ends the connection.
    }
    const at = text.indexOf(CANARY)
    if (at !== -1) leaks.push(`${path}: ${text.slice(Math.max(0, at - 80), at + 80)}`)
    if (text.includes('signed-')) signedAnswers++
  }
  async function read (offset: number): Promise<void> {
    for (let count = offset; !writing.signal.aborted; count++) {
      const [path, init] = questions[count % questions.length] ?? ['/skills']
      await ask(path, init)
    }
  }
  async function readScript () {
    const response = await fetch(`${url}/skills/demo/files/scripts/run.sh`)
    return { status: response.status, text: await response.text() }
  }
  const readers = Array.from({ length: 6 }, async (_, index) => { await read(index * 5) })
  for (let round = 1; round <= ROUNDS; round++) {
    // Every other time the main file, and with it what the index compares, stays.
    writeState(demo, `${CANARY}-${round}`, round % 2 === 0)
    await until(async () => (await readScript()).status === 404)
    // In place, over bytes that may be being sent.
    writeState(demo, `signed-${round}`)
    await sign(demo, key)
    await until(async () => (await readScript()).text === `echo signed-${round}\n`)
  }
  writing.abort()
  await Promise.all(readers)
  t.strictSame(leaks, [])
  t.ok(signedAnswers > 20, `${signedAnswers} answers of signed states`)
  t.ok(absences > 0, `${absences} answers without the skill`)
  t.notMatch(JSON.stringify(events.events), CANARY)
})
