import fs from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createNetworkDisk, type Disk } from '../../../src/core/disk/disk.ts'
import { RACY_WINDOW_MS } from '../../../src/core/limits.ts'
import type { SkillManager } from '../../../src/core/skill-manager.ts'
import { createFaultyDisk, failing, findByDisplayName, osError, outcome, passTick, skill, skills, skillText, startManager, until } from '../../helper/skills.ts'

const HOUR_MS = 3_600_000

/** Everything that K51 promises of the skills of a root, refusals included. */
async function answers (manager: SkillManager): Promise<unknown> {
  const names = await outcome(() => manager.list())
  const all: unknown[] = [names]
  for (const name of ['demo', 'other', 'linked', 'nested', 'new', 'mine']) {
    const found = await outcome(() => manager.find(name)) as { metadata?: unknown, findings?: unknown, digest?: unknown } | undefined
    const loaded = await outcome(() => manager.loadSkill(name)) as { content?: string } | null
    all.push({
      name,
      found: found?.metadata ?? found,
      findings: found?.findings,
      digest: found?.digest,
      loaded: loaded?.content ?? loaded,
      upper: await outcome(async () => (await manager.readDocument(name, 'SKILL.MD')).utf8),
      lower: await outcome(async () => (await manager.readDocument(name, 'SKILL.md')).utf8),
      file: await outcome(async () => (await manager.readFile(name, 'docs/deep/a.md')).text?.content),
      link: await outcome(async () => (await manager.readFile(name, 'link.md')).text?.content),
      opened: await outcome(async () => {
        const file = await manager.openFile(name, 'large')
        if (file.kind === 'stream') await file.file.close()
        return file.kind === 'stream' ? file.digest : file.content.digest
      }),
      manifest: await outcome(() => manager.manifest(name))
    })
  }
  for (const label of ['demo', 'renamed', 'new label']) all.push((await outcome(() => findByDisplayName(manager, label)) as { name?: string } | undefined)?.name)
  return all
}

/** A root behind a link, in the layout of a mounted ConfigMap too, with a personal root beside it. */
function createLayout (t: Test): string {
  const link = (target: string) => t.fixture('symlink', target)
  const docs = (text: string) => ({ docs: { deep: { 'a.md': text } }, docs2: { deep: { 'a.md': `${text} 2` } }, 'link.md': link('docs/deep/a.md') })
  return t.testdir({
    v1: {
      demo: skill('demo', docs('a')),
      other: skill('other', { 'SKILL.MD': 'other casing', nested: skill('nested') }),
      '..data': skill('linked', docs('linked')),
      '..data2': skill('linked', docs('linked 2')),
      linked: link('..data'),
      nested: link('other/nested'),
      dangling: link('other/not-yet')
    },
    v2: { demo: skill('demo', docs('v2')), new: skill('new') },
    aside: { demo: { 'SKILL.md': skillText('demo', 'from aside'), ...docs('aside') } },
    personal: { ...skills('mine') },
    root: link('v1')
  })
}

/** Each changes something that is complete before the next question. */
const CHANGES: ReadonlyArray<readonly [string, (base: string) => void]> = [
  ['SKILL.md edited in place', (base) => fs.appendFileSync(join(base, 'v1/demo/SKILL.md'), 'more')],
  ['SKILL.md edited in place, same size, mtime put back', (base) => {
    const file = join(base, 'v1/demo/SKILL.md')
    const { atime, mtime } = fs.statSync(file)
    fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace('What', 'whaT'))
    fs.utimesSync(file, atime, mtime)
  }],
  ['SKILL.md replaced by rename', (base) => {
    fs.writeFileSync(join(base, 'v1/demo/tmp'), skillText('demo', 'replaced'))
    fs.renameSync(join(base, 'v1/demo/tmp'), join(base, 'v1/demo/SKILL.md'))
  }],
  ['the label changed', (base) => fs.writeFileSync(join(base, 'v1/demo/SKILL.md'), skillText('renamed'))],
  ['SKILL.md removed', (base) => fs.rmSync(join(base, 'v1/demo/SKILL.md'))],
  ['a casing added', (base) => fs.writeFileSync(join(base, 'v1/demo/SKILL.MD'), skillText('demo', 'upper'))],
  ['a preferred casing removed', (base) => fs.rmSync(join(base, 'v1/other/SKILL.MD'))],
  ['SKILL.md made a link, and its target edited', (base) => {
    fs.renameSync(join(base, 'v1/demo/SKILL.md'), join(base, 'v1/demo/docs/main.md'))
    fs.symlinkSync('docs/main.md', join(base, 'v1/demo/SKILL.md'))
    fs.appendFileSync(join(base, 'v1/demo/docs/main.md'), 'through the link')
  }],
  ['a file edited in place', (base) => fs.appendFileSync(join(base, 'v1/demo/docs/deep/a.md'), 'more')],
  ['a file edited in place, same size, mtime put back', (base) => {
    const file = join(base, 'v1/demo/docs/deep/a.md')
    const { atime, mtime } = fs.statSync(file)
    fs.writeFileSync(file, 'b')
    fs.utimesSync(file, atime, mtime)
  }],
  ['a file replaced by rename', (base) => {
    fs.writeFileSync(join(base, 'v1/demo/tmp'), 'c')
    fs.renameSync(join(base, 'v1/demo/tmp'), join(base, 'v1/demo/docs/deep/a.md'))
  }],
  ['a file removed', (base) => fs.rmSync(join(base, 'v1/demo/docs/deep/a.md'))],
  ['a folder in a skill exchanged', (base) => {
    fs.renameSync(join(base, 'v1/demo/docs'), join(base, 'v1/demo/docs3'))
    fs.renameSync(join(base, 'v1/demo/docs2'), join(base, 'v1/demo/docs'))
  }],
  ['a link in a skill re-pointed', (base) => {
    fs.rmSync(join(base, 'v1/demo/link.md'))
    fs.symlinkSync('docs2/deep/a.md', join(base, 'v1/demo/link.md'))
  }],
  ['a link in a skill re-pointed to outside', (base) => {
    fs.rmSync(join(base, 'v1/demo/link.md'))
    fs.symlinkSync('../other/SKILL.md', join(base, 'v1/demo/link.md'))
  }],
  ['a large file added', (base) => fs.writeFileSync(join(base, 'v1/demo/large'), Buffer.alloc(300_000, 'x'))],
  ['a skill folder exchanged', (base) => {
    fs.renameSync(join(base, 'v1/demo'), join(base, 'v1/.demo'))
    fs.renameSync(join(base, 'aside/demo'), join(base, 'v1/demo'))
  }],
  ['a skill folder replaced by a link to another', (base) => {
    fs.rmSync(join(base, 'v1/demo'), { recursive: true })
    fs.symlinkSync('other', join(base, 'v1/demo'))
  }],
  ['a skill folder replaced by a link to outside', (base) => {
    fs.rmSync(join(base, 'v1/demo'), { recursive: true })
    fs.symlinkSync('../aside/demo', join(base, 'v1/demo'))
  }],
  ['a skill folder replaced by a file', (base) => {
    fs.rmSync(join(base, 'v1/demo'), { recursive: true })
    fs.writeFileSync(join(base, 'v1/demo'), '')
  }],
  ['a skill added', (base) => fs.cpSync(join(base, 'v2/new'), join(base, 'v1/new'), { recursive: true })],
  ['a skill added with a label of its own', (base) => {
    fs.mkdirSync(join(base, 'v1/new'))
    fs.writeFileSync(join(base, 'v1/new/SKILL.md'), skillText('new label'))
  }],
  ['a skill removed', (base) => fs.rmSync(join(base, 'v1/demo'), { recursive: true })],
  ['a skill renamed', (base) => fs.renameSync(join(base, 'v1/demo'), join(base, 'v1/new'))],
  ['a linked skill re-pointed', (base) => {
    fs.symlinkSync('..data2', join(base, 'v1/tmp'))
    fs.renameSync(join(base, 'v1/tmp'), join(base, 'v1/linked'))
  }],
  ['the target of a linked skill exchanged', (base) => {
    fs.renameSync(join(base, 'v1/..data'), join(base, 'v1/..data3'))
    fs.renameSync(join(base, 'v1/..data2'), join(base, 'v1/..data'))
  }],
  ['a linked skill edited behind the link', (base) => fs.appendFileSync(join(base, 'v1/..data/SKILL.md'), 'more')],
  ['a folder on the way of a linked skill removed', (base) => fs.rmSync(join(base, 'v1/other'), { recursive: true })],
  ['the target of a dangling link made', (base) => fs.mkdirSync(join(base, 'v1/other/not-yet'))],
  ['the root re-pointed', (base) => {
    fs.symlinkSync('v2', join(base, 'tmp'))
    fs.renameSync(join(base, 'tmp'), join(base, 'root'))
  }],
  ['the root removed', (base) => fs.rmSync(join(base, 'root'))],
  ['the folder of the root removed', (base) => fs.rmSync(join(base, 'v1'), { recursive: true })],
  ['the folder of the root made again', (base) => {
    fs.rmSync(join(base, 'v1'), { recursive: true })
    fs.cpSync(join(base, 'v2'), join(base, 'v1'), { recursive: true })
  }],
  ['the root made a file', (base) => {
    fs.rmSync(join(base, 'root'))
    fs.writeFileSync(join(base, 'root'), '')
  }],
  ['a skill of the personal root hidden by a project', (base) => fs.cpSync(join(base, 'v2/new'), join(base, 'v1/mine'), { recursive: true })],
  ['a skill of the personal root that is hidden', (base) => fs.cpSync(join(base, 'v2/new'), join(base, 'personal/demo'), { recursive: true })],
  ['the personal root removed', (base) => fs.rmSync(join(base, 'personal'), { recursive: true })]
]

/** With old timestamps everything is kept from the first question on; without, nothing is, because it was just written. */
const DISKS: Readonly<Record<string, () => Disk | undefined>> = {
  'a local disk': () => undefined,
  'a local disk that has been still for long': () => createFaultyDisk({ ageMs: HOUR_MS }),
  'a network disk that has been still for long': () => createFaultyDisk({ disk: createNetworkDisk(), ageMs: HOUR_MS })
}

for (const [kind, createDisk] of Object.entries(DISKS)) {
  t.test(`K51 K3: every change is in the next answer without a watcher, on ${kind}`, async (t) => {
    for (const [what, change] of CHANGES) {
      await t.test(what, async (t) => {
        const base = createLayout(t)
        const roots = { projectRoots: [join(base, 'root')], personalRoot: join(base, 'personal') }
        const disk = createDisk()
        const manager = await startManager(t, roots.projectRoots, { ...roots, ...disk && { disk } })
        const before = await answers(manager)
        await answers(manager)
        passTick(base)
        change(base)
        await nextTurn()
        manager.beginRequest({})
        const after = await answers(manager)
        t.strictSame(after, await answers(await startManager(t, roots.projectRoots, roots)), 'as one that has just started')
        t.notSame(after, before)
      })
    }
  })
}

/** One question each: what a client would ask first after the change. */
const QUESTIONS: Readonly<Record<string, (manager: SkillManager) => unknown>> = {
  list: (manager) => manager.list(),
  document: async (manager) => (await manager.readDocument('demo', 'SKILL.MD')).utf8,
  file: async (manager) => (await manager.readFile('demo', 'docs/deep/a.md')).text?.content,
  link: async (manager) => (await manager.readFile('demo', 'link.md')).text?.content,
  linked: async (manager) => (await manager.readDocument('linked', 'SKILL.md')).utf8,
  new: async (manager) => (await manager.find('new'))?.metadata,
  label: async (manager) => (await findByDisplayName(manager, 'demo'))?.name,
  'renamed label': async (manager) => (await findByDisplayName(manager, 'renamed'))?.name,
  'new label': async (manager) => (await findByDisplayName(manager, 'new label'))?.name,
  manifest: async (manager) => (await manager.manifest('demo')).revision,
  metadata: async (manager) => (await manager.find('demo'))?.digest
}

t.test('K51: whatever is asked first is right', async (t) => {
  for (const [what, change] of CHANGES) {
    const base = createLayout(t)
    const roots = { projectRoots: [join(base, 'root')], personalRoot: join(base, 'personal') }
    const managers = await Promise.all(Object.keys(QUESTIONS).map(() => startManager(t, roots.projectRoots, { ...roots, disk: createFaultyDisk({ ageMs: HOUR_MS }) })))
    await Promise.all(Object.values(QUESTIONS).map((question, index) => outcome(() => managers[index] && question(managers[index]))))
    passTick(base)
    change(base)
    const truth = await startManager(t, roots.projectRoots, roots)
    for (const [index, [name, question]] of Object.entries(QUESTIONS).entries()) {
      const manager = managers[index]
      if (manager !== undefined) t.strictSame(await outcome(() => question(manager)), await outcome(() => question(truth)), `${name} after: ${what}`)
    }
  }
})

t.test('K51: edits as fast as they come, each in the next answer', async (t) => {
  const base = t.testdir({ root: skills('demo') })
  const manager = await startManager(t, [join(base, 'root')])
  const file = join(base, 'root/demo/SKILL.md')
  for (let edit = 0; edit < 300; edit++) {
    const text = skillText('demo', String(edit).padStart(4))
    fs.writeFileSync(file, text)
    const content = (await manager.readDocument('demo', 'SKILL.MD')).utf8
    if (content !== text) t.fail(`edit ${edit} is missing`)
  }
  t.pass('300 of the same size')
})

t.test('T7: nothing changed, nothing changes', async (t) => {
  const base = createLayout(t)
  const manager = await startManager(t, [join(base, 'root')], { disk: createFaultyDisk({ ageMs: HOUR_MS }) })
  const before = await answers(manager)
  const { generation } = manager.status
  passTick(base)
  const touch = (folder: string) => {
    for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
      if (entry.isDirectory()) touch(join(folder, entry.name))
      else if (entry.isFile()) fs.utimesSync(join(folder, entry.name), 1, 1)
    }
    fs.utimesSync(folder, 1, 1)
  }
  touch(join(base, 'v1'))
  t.strictSame(await answers(manager), before)
  fs.renameSync(join(base, 'v1'), join(base, 'v3'))
  fs.cpSync(join(base, 'v3'), join(base, 'v1'), { recursive: true, verbatimSymlinks: true })
  t.strictSame(await answers(manager), before)
  t.equal(manager.status.generation, generation)
})

t.test('K53: a look that fails keeps what was there, says so once, and heals (T4)', async (t) => {
  const base = t.testdir({ root: skills('a', 'b') })
  const root = join(base, 'root')
  const disk = createFaultyDisk()
  const warnings: Array<readonly [object, string]> = []
  const log = { info () {}, warn: (details: object, message: string) => { warnings.push([details, message]) } }
  const manager = await startManager(t, [root], { disk, log })
  disk.intercept = failing('readdir', '/root', 'EIO')
  fs.mkdirSync(join(root, 'c'))
  for (let question = 0; question < 10; question++) t.strictSame(await manager.list(), ['a', 'b'])
  t.equal((await manager.readDocument('a', 'SKILL.md')).utf8, skillText('a'))
  t.match(await manager.freshStatus(), { ready: true, failures: ['EIO'], roots: [{ state: 'failed', skills: 2 }] })
  t.equal(warnings.length, 1, 'told once')
  t.match(warnings, [[{ root, err: { code: 'EIO' } }, /could not be listed/]])
  disk.intercept = failing('readdir', '/root', 'EMFILE')
  await manager.list()
  t.equal(warnings.length, 2, 'another failure is news')
  disk.intercept = () => {}
  t.strictSame(await manager.list(), ['a', 'b', 'c'])
  t.match(await manager.freshStatus(), { failures: [], roots: [{ state: 'ok' }] })
})

t.test('K53: a disk that fails under the skills takes none of them out of the catalog', async (t) => {
  const base = t.testdir({ root: skills('a', 'b') })
  const disk = createFaultyDisk({ ageMs: -HOUR_MS })
  const manager = await startManager(t, [join(base, 'root')], { disk })
  for (const operation of ['stat', 'realpath', 'readdir', 'open', 'read'] as const) {
    disk.intercept = (asked, path) => { if (asked === operation && !path.endsWith('/root')) throw osError('EIO') }
    t.match((await manager.find('a'))?.findings, [{ code: 'main_file_unreadable' }], 'who asks is told')
    t.equal((await findByDisplayName(manager, 'nothing')), undefined)
    t.strictSame(manager.getAvailableSkills().map(({ name }) => name), ['a', 'b'], operation)
  }
  disk.intercept = () => {}
  t.match(await manager.find('a'), { valid: true, findings: [] })
})

for (const [kind, createDisk, count] of [['local', () => undefined, 1_000], ['network', createNetworkDisk, 100]] as const) {
  t.test(`K53: readers during the exchange of ${count} skills on a ${kind} disk see all of one state, never an empty catalog`, async (t) => {
    const base = t.testdir({ v1: {}, v2: {}, root: t.fixture('symlink', 'v1') })
    for (const version of ['v1', 'v2']) {
      for (let index = 0; index < count; index++) {
        fs.mkdirSync(join(base, version, `${version}-${index}`))
        fs.writeFileSync(join(base, version, `${version}-${index}`, 'SKILL.md'), skillText(`${version}-${index}`))
      }
      fs.mkdirSync(join(base, version, 'same'))
      fs.writeFileSync(join(base, version, 'same/SKILL.md'), skillText('same', version))
    }
    const disk = createDisk()
    const manager = await startManager(t, [join(base, 'root')], { times: { debounce: 0, maxDebounce: 0 }, ...disk && { disk } })
    const seen = new Set<readonly string[]>()
    const end = new AbortController()
    const readers = Array.from({ length: 4 }, async () => {
      while (!end.signal.aborted) {
        seen.add(await manager.list())
        if (!manager.getAvailableSkills().some(({ name }) => name === 'same')) t.fail('a skill of both versions is gone')
        const body = (await manager.loadSkill('same'))?.content.split('---\n').at(-1)
        if (body !== 'v1' && body !== 'v2') t.fail(`a document of neither version: ${body}`)
        await nextTurn()
      }
    })
    for (const version of ['v2', 'v1']) {
      fs.symlinkSync(version, join(base, 'tmp'))
      fs.renameSync(join(base, 'tmp'), join(base, 'root'))
      await manager.list()
      await until(() => manager.getAvailableSkills().length === count + 1)
    }
    end.abort()
    await Promise.all(readers)
    t.strictSame(new Set([...seen].map((names) => names.join())), new Set(['v1', 'v2'].map((version) => fs.readdirSync(join(base, version)).sort().join())))
  })
}

t.test('K53: a slow load never replaces a later one', async (t) => {
  const base = t.testdir({ root: skills('demo') })
  const disk = createFaultyDisk({ disk: createNetworkDisk(), ageMs: -HOUR_MS })
  const manager = await startManager(t, [join(base, 'root')], { disk })
  const file = join(base, 'root/demo/SKILL.md')
  let release = () => {}
  const held = new Promise<void>((resolve) => { release = resolve })
  let waiting = false
  disk.intercept = (operation, path) => {
    if (operation !== 'close' || waiting || path.startsWith('/proc/') === false) return
    waiting = true
    return held
  }
  fs.writeFileSync(file, skillText('demo', 'first'))
  const slow = manager.find('demo')
  await until(() => waiting)
  fs.writeFileSync(file, skillText('second'))
  t.equal((await manager.find('demo'))?.metadata.name, 'second')
  release()
  t.equal((await slow)?.metadata.name, 'demo', 'what was there when it was asked for')
  t.strictSame(manager.getSkills().map(({ name }) => name), ['second'])
})

t.test('K53: a skill is given with the content that its metadata was read from', async (t) => {
  const base = t.testdir({ root: skills('demo') })
  const disk = createFaultyDisk()
  const manager = await startManager(t, [join(base, 'root')], { disk })
  for (let moment = 1; ; moment++) {
    fs.writeFileSync(join(base, 'root/demo/SKILL.md'), skillText('demo'))
    let operations = 0
    disk.intercept = () => { if (++operations === moment) fs.writeFileSync(join(base, 'root/demo/SKILL.md'), skillText('changed')) }
    const loaded = await manager.loadSkill('demo')
    if (!loaded?.content.includes(`name: ${loaded.metadata.name}`)) t.fail(`a mixture when changed before operation ${moment}`)
    if (operations < moment) break
  }
  let edits = 0
  disk.intercept = (operation) => { if (operation === 'fstat') fs.writeFileSync(join(base, 'root/demo/SKILL.md'), skillText('demo', 'x'.repeat(++edits % 2))) }
  t.equal(await outcome(() => manager.loadSkill('demo')), "SkillError: Error reading SKILL.MD for skill 'demo'", 'one that never holds still')
})

t.test('a skill that comes and goes with every look is not found', async (t) => {
  const base = t.testdir({ root: skills('demo') })
  const disk = createFaultyDisk({ ageMs: -HOUR_MS })
  const manager = await startManager(t, [join(base, 'root')], { disk })
  disk.intercept = (operation, path) => {
    if (operation === 'realpath' && path.endsWith('/demo')) fs.renameSync(join(base, 'root/demo'), join(base, 'away'))
    if (operation === 'realpath' && path.endsWith('/root') && fs.existsSync(join(base, 'away'))) fs.renameSync(join(base, 'away'), join(base, 'root/demo'))
  }
  t.equal(await manager.find('demo'), undefined)
})

t.test('K51: while one question looks at a root that became another folder, the next one does not get the old skills', async (t) => {
  const base = t.testdir({ v1: skills('old'), v2: skills('new'), root: t.fixture('symlink', 'v1') })
  const manager = await startManager(t, [join(base, 'root')])
  const { ctimeMs } = fs.statSync(join(base, 'v2'))
  await until(() => Date.now() - ctimeMs > 2 * RACY_WINDOW_MS)
  fs.symlinkSync('v2', join(base, 'next'))
  fs.renameSync(join(base, 'next'), join(base, 'root'))
  // What kind of disk the new folder lies on is asked through the thread pool: all of these come before it is known.
  const lists: Array<ReturnType<typeof manager.list>> = []
  for (let moment = 0; moment < 50; moment++) {
    lists.push(manager.list())
    await Promise.resolve()
  }
  t.strictSame(new Set((await Promise.all(lists)).map((names) => names.join())), new Set(['new']))
})

t.test('K53: a skill that moves from one root to another is in the answer, whenever it moves', async (t) => {
  const base = t.testdir({ one: skills('other'), two: { demo: skill('demo', { docs: { 'a.md': 'text' } }) } })
  const disk = createFaultyDisk({ ageMs: HOUR_MS })
  const manager = await startManager(t, [join(base, 'one'), join(base, 'two')], { disk })
  const questions: Readonly<Record<string, () => unknown>> = {
    list: async () => (await manager.list()).includes('demo'),
    find: async () => (await manager.find('demo'))?.name === 'demo',
    document: async () => (await manager.readDocument('demo', 'SKILL.MD')).bytes.length > 0,
    file: async () => (await manager.readFile('demo', 'docs/a.md')).text?.content === 'text',
    opened: async () => (await manager.openFile('demo', 'docs/a.md')).kind === 'content',
    manifest: async () => (await manager.manifest('demo')).files.length === 2
  }
  for (const [what, ask, isSecond] of Object.entries(questions).flatMap(([what, ask]) => [[what, ask, false], [what, ask, true]] as const)) {
    for (const [from, to] of [['two', 'one'], ['one', 'two']] as const) {
      for (let moment = 1; ; moment++) {
        let operations = 0
        // As for the second of two requests that one turn of the event loop delivers: the roots have been seen before the move.
        await nextTurn()
        manager.beginRequest({})
        if (isSecond) await manager.list()
        disk.intercept = () => { if (++operations === moment) fs.renameSync(join(base, from, 'demo'), join(base, to, 'demo')) }
        const answer = await outcome(ask)
        disk.intercept = () => {}
        if (answer !== true) t.fail(`${what}${isSecond ? ', second in a turn' : ''}: ${String(answer)} when moved from ${from} to ${to} before operation ${moment}`)
        if (operations < moment) break
        fs.renameSync(join(base, to, 'demo'), join(base, from, 'demo'))
        await manager.list()
      }
      fs.renameSync(join(base, from, 'demo'), join(base, to, 'demo'))
    }
  }
})

t.test('K53: a skill that moved on while another question looked at its old root is looked for in all of them', async (t) => {
  const base = t.testdir({ one: {}, two: skills('demo'), three: {} })
  const disk = createFaultyDisk({ disk: createNetworkDisk(), ageMs: HOUR_MS })
  const manager = await startManager(t, ['one', 'two', 'three'].map((root) => join(base, root)), { disk })
  const releases: Array<() => void> = []
  let looks = 0
  const waitAt = (place: string) => {
    disk.intercept = (operation, path) => {
      if (operation !== 'stat') return undefined
      if (path.endsWith('/one')) looks++
      return path.endsWith(place) ? new Promise((resolve) => { releases.push(resolve) }) : undefined
    }
  }
  fs.renameSync(join(base, 'two/demo'), join(base, 'three/demo'))
  // The other question waits before the old root, the first one before it has looked at anything, the other one between the
  // old root and the new one.
  waitAt('/two')
  const other = manager.list()
  await until(() => releases.length === 1)
  waitAt('/one')
  const first = manager.find('demo')
  await until(() => releases.length === 2)
  waitAt('/three')
  releases[0]?.()
  await until(() => releases.length === 3)
  looks = 0
  releases[1]?.()
  await until(() => looks === 1)
  disk.intercept = () => undefined
  releases[2]?.()
  t.equal((await first)?.metadata.skillPath, join(base, 'three/demo'))
  t.strictSame(await other, ['demo'])
})

t.test('K53: on a slow disk an answer is of the main file that was preferred while it was read', async (t) => {
  const base = t.testdir({ root: { demo: { 'SKILL.md': 'one' } } })
  const disk = createFaultyDisk({ disk: createNetworkDisk(), ageMs: HOUR_MS })
  const manager = await startManager(t, [join(base, 'root')], { disk })
  fs.writeFileSync(join(base, 'root/demo/SKILL.md'), 'three')
  disk.intercept = async (operation, path) => {
    if (operation !== 'open' || !path.endsWith('/SKILL.md')) return
    disk.intercept = () => {}
    manager.beginRequest({})
    fs.writeFileSync(join(base, 'root/demo/SKILL.MD'), 'preferred')
    fs.writeFileSync(join(base, 'root/demo/SKILL.md'), 'changed')
    await nextTurn()
    await nextTurn()
  }
  t.equal((await manager.readDocument('demo', 'SKILL.MD')).utf8, 'preferred')
})

t.test('K53: a root that goes away and comes back under a question does not make it fail', async (t) => {
  const base = t.testdir({ root: { demo: skill('demo', { docs: { 'a.md': 'text' } }) } })
  const disk = createFaultyDisk({ ageMs: HOUR_MS })
  const manager = await startManager(t, [join(base, 'root')], { disk })
  const questions: Readonly<Record<string, () => unknown>> = {
    document: () => manager.readDocument('demo', 'SKILL.MD'),
    file: () => manager.readFile('demo', 'docs/a.md'),
    manifest: () => manager.manifest('demo')
  }
  for (const [what, ask] of Object.entries(questions)) {
    for (const operation of ['open', 'readlink'] as const) {
      let away = false
      disk.intercept = (asked, path) => {
        if (away) fs.renameSync(join(base, 'away'), join(base, 'root'))
        away = !away && asked === operation && (operation === 'readlink' || path.startsWith(base))
        if (!away) return
        fs.renameSync(join(base, 'root'), join(base, 'away'))
        if (operation === 'open') disk.intercept = () => { fs.renameSync(join(base, 'away'), join(base, 'root')); disk.intercept = () => {} }
      }
      const answer = await outcome(ask)
      disk.intercept = () => {}
      t.type(answer, 'object', `${what}, away before ${operation}`)
    }
  }
})
