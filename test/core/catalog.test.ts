import fs from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { createNetworkDisk, type Disk } from '../../src/core/read/disk.ts'
import { sha256 } from '../../src/core/shared/digest.ts'
import type { SkillManager } from '../../src/core/skill-manager.ts'
import { codePoint } from '../helper/code-point.ts'
import {
  createFaultyDisk, createManager, failing, findByDisplayName, osError, outcome, passTick, skill, skills, skillText,
  startManager, textOf, until
} from '../helper/skills.ts'
import { freshStatusOf } from '../helper/watching.ts'

const HOUR_MS = 3_600_000

/** Everything that K51 promises of the skills of a root, refusals included. */
async function answers (manager: SkillManager): Promise<unknown> {
  const names = await outcome(() => manager.list())
  const all: unknown[] = [names]
  for (const name of ['demo', 'other', 'linked', 'nested', 'new', 'mine']) {
    const found = await outcome(() => manager.find(name)) as {
      metadata?: unknown
      findings?: unknown
      digest?: unknown
    } | undefined
    const loaded = await outcome(() => manager.loadSkill(name)) as { content?: string } | null
    all.push({
      name,
      found: found?.metadata ?? found,
      findings: found?.findings,
      digest: found?.digest,
      loaded: loaded?.content ?? loaded,
      upper: await outcome(async () => (await manager.read(name, (skill) => skill.mainFile('SKILL.MD'))).utf8),
      lower: await outcome(async () => (await manager.read(name, (skill) => skill.mainFile('SKILL.md'))).utf8),
      file: await outcome(async () =>
        (await manager.read(name, (skill) => skill.file('docs/deep/a.md'))).text?.content),
      link: await outcome(async () => (await manager.read(name, (skill) => skill.file('link.md'))).text?.content),
      opened: await outcome(async () => {
        const file = await manager.read(name, (skill) => skill.open('large'))
        if (file.kind === 'content') return file.content.digest
        await file.close()
        return file.digest
      }),
      manifest: await outcome(() => manager.read(name, (skill) => skill.manifest()))
    })
  }
  return all
}

/** A root behind a link, in the layout of a mounted ConfigMap too, with a personal root beside it. */
function createLayout (t: Test): string {
  const link = (target: string) => t.fixture('symlink', target)
  const docs = (text: string) =>
    ({ docs: { deep: { 'a.md': text } }, docs2: { deep: { 'a.md': `${text} 2` } }, 'link.md': link('docs/deep/a.md') })
  const base = t.testdir({
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
  // Of whole seconds: `utimes` can put such times back, and no others.
  for (const file of ['SKILL.md', 'docs/deep/a.md']) fs.utimesSync(join(base, 'v1/demo', file), 1, 1)
  return base
}

type Change = (base: string) => void

const append = (path: string): Change => (base) => { fs.appendFileSync(join(base, path), 'more') }
const write = (path: string, text: string | Buffer): Change => (base) => { fs.writeFileSync(join(base, path), text) }
const remove = (path: string): Change => (base) => { fs.rmSync(join(base, path), { recursive: true }) }
const rename = (from: string, to: string): Change => (base) => { fs.renameSync(join(base, from), join(base, to)) }
const copy = (from: string, to: string): Change =>
  (base) => { fs.cpSync(join(base, from), join(base, to), { recursive: true }) }
const link = (path: string, target: string): Change => (base) => { fs.symlinkSync(target, join(base, path)) }
const all = (...changes: readonly Change[]): Change => (base) => { for (const change of changes) change(base) }
const replace = (path: string, text: string): Change => all(write(`${path}.tmp`, text), rename(`${path}.tmp`, path))
const repoint = (path: string, target: string): Change => all(link(`${path}.tmp`, target), rename(`${path}.tmp`, path))

/** Of the same size, and with the time of modification put back. */
const editSecretly = (path: string, from: string, to: string): Change => (base) => {
  const file = join(base, path)
  const { atime, mtime } = fs.statSync(file)
  fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace(from, to))
  fs.utimesSync(file, atime, mtime)
}

/**
 * Each changes something that is complete before the next question, after those above it in the same list. Every list
 * begins
 * with a new layout, and ends with what leaves no skill to change.
 */
const CHANGES: ReadonlyArray<Readonly<Record<string, Change>>> = [
  {
    'SKILL.md edited in place, same size, mtime put back': editSecretly('v1/demo/SKILL.md', 'What', 'whaT'),
    'a file edited in place, same size, mtime put back': editSecretly('v1/demo/docs/deep/a.md', 'a', 'b'),
    'SKILL.md edited in place': append('v1/demo/SKILL.md'),
    'SKILL.md replaced by rename': replace('v1/demo/SKILL.md', skillText('demo', 'replaced')),
    'a file edited in place': append('v1/demo/docs/deep/a.md'),
    'a file replaced by rename': replace('v1/demo/docs/deep/a.md', 'c'),
    'a link in a skill re-pointed': repoint('v1/demo/link.md', 'docs2/deep/a.md'),
    'a large file added': write('v1/demo/large', Buffer.alloc(300_000, 'x')),
    'a casing added': write('v1/demo/SKILL.MD', skillText('demo', 'upper')),
    'a linked skill edited behind the link': append('v1/..data/SKILL.md'),
    'a skill folder replaced by a file': all(remove('v1/demo'), write('v1/demo', '')),
    'a skill of the personal root hidden by a project': copy('v2/new', 'v1/mine'),
    'the folder of the root made again': all(remove('v1'), copy('v2', 'v1')),
    'the folder of the root removed': remove('v1')
  },
  {
    'SKILL.md made a link, and its target edited': all(rename('v1/demo/SKILL.md', 'v1/demo/docs/main.md'),
      link('v1/demo/SKILL.md', 'docs/main.md'), append('v1/demo/docs/main.md')),
    'a link in a skill re-pointed to outside': repoint('v1/demo/link.md', '../other/SKILL.md'),
    'a folder in a skill exchanged': all(rename('v1/demo/docs', 'v1/demo/docs3'),
      rename('v1/demo/docs2', 'v1/demo/docs')),
    'a file removed': remove('v1/demo/docs/deep/a.md'),
    'a preferred casing removed': remove('v1/other/SKILL.MD'),
    'the target of a linked skill exchanged': all(rename('v1/..data', 'v1/..data3'), rename('v1/..data2', 'v1/..data')),
    'a skill folder exchanged': all(rename('v1/demo', 'v1/.demo'), rename('aside/demo', 'v1/demo')),
    'SKILL.md removed': remove('v1/demo/SKILL.md'),
    'a skill folder replaced by a link to another': all(remove('v1/demo'), link('v1/demo', 'other')),
    'a skill added': copy('v2/new', 'v1/new'),
    'a skill of the personal root that is hidden': copy('v2/new', 'personal/demo'),
    'the root re-pointed': repoint('root', 'v2'),
    'the root removed': remove('root')
  },
  {
    'a linked skill re-pointed': repoint('v1/linked', '..data2'),
    'the target of a dangling link made': (base) => { fs.mkdirSync(join(base, 'v1/other/not-yet')) },
    'a skill folder replaced by a link to outside': all(remove('v1/demo'), link('v1/demo', '../aside/demo')),
    'a folder on the way of a linked skill removed': remove('v1/other'),
    'the personal root removed': remove('personal'),
    'the root made a file': all(remove('root'), write('root', ''))
  },
  { 'a skill removed': remove('v1/demo') },
  { 'a skill renamed': rename('v1/demo', 'v1/new') }
]

/**
 * With old timestamps everything is kept from the first question on; without, nothing is, because it was just written.
 */
const DISKS: Readonly<Record<string, () => Disk | undefined>> = {
  'a local disk': () => undefined,
  'a network disk that has been still for long': () => createFaultyDisk({ disk: createNetworkDisk(), ageMs: HOUR_MS })
}

/** One question each: what a client would ask first after the change. */
const QUESTIONS: Readonly<Record<string, (manager: SkillManager) => unknown>> = {
  list: (manager) => manager.list(),
  document: async (manager) => (await manager.read('demo', (skill) => skill.mainFile('SKILL.MD'))).utf8,
  link: async (manager) => (await manager.read('demo', (skill) => skill.file('link.md'))).text?.content,
  linked: async (manager) => (await manager.read('linked', (skill) => skill.mainFile('SKILL.md'))).utf8,
  new: async (manager) => (await manager.find('new'))?.metadata,
  manifest: async (manager) => (await manager.read('demo', (skill) => skill.manifest())).revision
}

for (const changes of CHANGES) {
  t.test('K51 K3: every change is in the next answer without a watcher, on any disk, to any question', async (t) => {
    const base = createLayout(t)
    const personal = { path: join(base, 'personal'), type: 'personal' } as const
    const start = async (disk: Disk | undefined) =>
      await startManager(t, [join(base, 'root'), personal], { ...disk && { disk } })
    const old = () => createFaultyDisk({ ageMs: HOUR_MS })
    const services = await Promise.all(
      Object.entries(DISKS).map(async ([kind, createDisk]) => ({ kind, manager: await start(createDisk()) })))
    const questions = await Promise.all(
      Object.entries(QUESTIONS).map(async ([name, question]) => ({ name, question, manager: await start(old()) })))
    let before = await Promise.all(services.map(({ manager }) => answers(manager)))
    for (const [what, change] of Object.entries(changes)) {
      await Promise.all(questions.map(({ question, manager }) => outcome(() => question(manager))))
      passTick(base)
      change(base)
      await nextTurn()
      const truth = await start(old())
      const expected = await answers(truth)
      const after: unknown[] = []
      for (const [index, { kind, manager }] of services.entries()) {
        after[index] = await answers(manager)
        t.strictSame(after[index], expected, `${what}: as one that has just started, on ${kind}`)
        // A difference that is expected is not worth its text.
        t.notOk(isDeepStrictEqual(after[index], before[index]), `${what}: not as before, on ${kind}`)
      }
      for (const { name, question, manager } of questions) {
        t.strictSame(await outcome(() => question(manager)), await outcome(() => question(truth)),
          `${name} after: ${what}`)
      }
      before = after
    }
  })
}

t.test('K51: edits as fast as they come, each in the next answer', async (t) => {
  const base = t.testdir({ root: skills('demo') })
  const manager = await startManager(t, [join(base, 'root')])
  const file = join(base, 'root/demo/SKILL.md')
  for (let edit = 0; edit < 100; edit++) {
    const text = skillText('demo', String(edit).padStart(4))
    fs.writeFileSync(file, text)
    const content = (await manager.read('demo', (skill) => skill.mainFile('SKILL.MD'))).utf8
    if (content !== text) t.fail(`edit ${edit} is missing`)
  }
  t.pass('100 of the same size')
})

t.test('K51: the second of two edits in one second is in the answers of a disk with whole seconds', async (t) => {
  const base = t.testdir({ demo: skill('demo', { 'a.md': 'text 0' }) })
  const manager = await startManager(t, [base], { disk: createFaultyDisk({ stepMs: 2_000 }) })
  const ask = async () => [
    await manager.list(),
    (await manager.read('demo', (skill) => skill.mainFile('SKILL.md'))).utf8,
    (await manager.read('demo', (skill) => skill.file('a.md'))).utf8,
    (await manager.read('demo', (skill) => skill.manifest())).files.map(({ digest }) => digest)
  ]
  for (let edit = 1; edit < 5; edit++) {
    const [main, text] = [skillText('demo', `${edit}`), `text ${edit}`]
    fs.writeFileSync(join(base, 'demo/SKILL.md'), main)
    fs.writeFileSync(join(base, 'demo/a.md'), text)
    fs.mkdirSync(join(base, `new-${edit}`))
    const { ctimeMs } = fs.statSync(base)
    const names = ['demo', ...Array.from({ length: edit }, (_, index) => `new-${index + 1}`)]
    t.strictSame(await ask(), [names, main, text, [sha256(main), sha256(text)]])
    await until(() => Date.now() - ctimeMs > 100)
    await ask()
  }
})

t.test('K53: a scan that fails keeps what was there, says so once, and heals', async (t) => {
  const base = t.testdir({ root: skills('a', 'b') })
  const root = join(base, 'root')
  const disk = createFaultyDisk()
  const warnings: Array<readonly [object, string]> = []
  const log = { info () {}, warn: (details: object, message: string) => { warnings.push([details, message]) } }
  const manager = await startManager(t, [root], { disk, log })
  disk.intercept = failing('readdir', '/root', 'EIO')
  fs.mkdirSync(join(root, 'c'))
  for (let question = 0; question < 10; question++) t.strictSame(await manager.list(), ['a', 'b'])
  t.equal((await manager.read('a', (skill) => skill.mainFile('SKILL.md'))).utf8, skillText('a'))
  t.match(await freshStatusOf(manager), { ready: true, failures: ['EIO'], roots: [{ state: 'failed', skills: 2 }] })
  t.equal(warnings.length, 1, 'told once')
  t.match(warnings, [[{ root, err: { code: 'EIO' } }, /cannot list a skills folder/]])
  disk.intercept = failing('readdir', '/root', 'EMFILE')
  await manager.list()
  t.equal(warnings.length, 2, 'another failure is news')
  disk.intercept = () => {}
  t.strictSame(await manager.list(), ['a', 'b', 'c'])
  t.match(await freshStatusOf(manager), { failures: [], roots: [{ state: 'ok' }] })
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

for (const [kind, createDisk, count] of [['local', () => undefined, 60], ['network', createNetworkDisk, 20]] as const) {
  t.test(`K53: readers while ${count} skills on a ${kind} disk are exchanged see one state, never none`, async (t) => {
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
    const manager = await startManager(t, [join(base, 'root')], { tickMs: 50, ...disk && { disk } })
    const seen = new Set<readonly string[]>()
    const end = new AbortController()
    const readers = Array.from({ length: 2 }, async () => {
      while (!end.signal.aborted) {
        seen.add(await manager.list())
        if (!manager.getAvailableSkills().some(({ name }) => name === 'same')) {
          t.fail('a skill of both versions is gone')
        }
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
    t.strictSame(new Set([...seen].map((names) => names.join())),
      new Set(['v1', 'v2'].map((version) => fs.readdirSync(join(base, version)).sort().join())))
  })
}

t.test('K53: a skill is given with the content that its metadata was read from', async (t) => {
  const base = t.testdir({ root: skills('demo') })
  const disk = createFaultyDisk()
  const manager = await startManager(t, [join(base, 'root')], { disk })
  for (let moment = 1; ; moment++) {
    fs.writeFileSync(join(base, 'root/demo/SKILL.md'), skillText('demo'))
    let operations = 0
    disk.intercept = () => {
      if (++operations === moment) fs.writeFileSync(join(base, 'root/demo/SKILL.md'), skillText('changed'))
    }
    const loaded = await manager.loadSkill('demo')
    if (!loaded?.content.includes(`name: ${loaded.metadata.name}`)) {
      t.fail(`a mixture when changed before operation ${moment}`)
    }
    if (operations >= moment) continue
    t.ok(moment > 5, `${moment} moments`)
    break
  }
  let edits = 0
  const edit = () => { fs.writeFileSync(join(base, 'root/demo/SKILL.md'), skillText('demo', 'x'.repeat(++edits % 2))) }
  disk.intercept = (operation) => { if (operation === 'fstat') edit() }
  // What was read long enough ago is not read again.
  edit()
  t.equal(await outcome(() => manager.loadSkill('demo')), "SkillError: Error reading SKILL.MD for skill 'demo'",
    'one that never holds still')
})

async function document (manager: SkillManager, name: string) {
  return await manager.read(name, (skill) => skill.mainFile('SKILL.MD'))
}

t.test('K11 K12: every skill of every root by name, sorted by code point', async (t) => {
  const base = t.testdir({
    a: { ...skills('zebra', 'Alpha', '\u{1F600}'), 'without main file': {} },
    b: skills('alpha', '\uFFFD', 'zebra'),
    personal: skills('mine', 'alpha'),
    empty: {}
  })
  const manager = await startManager(t,
    [join(base, 'a'), join(base, 'b'), { path: join(base, 'personal'), type: 'personal' }])
  const names = await manager.list()
  t.strictSame(names, ['Alpha', 'alpha', 'mine', 'without main file', 'zebra', '\uFFFD', '\u{1F600}'])
  const empty = await startManager(t, [join(base, 'empty')])
  t.strictSame(await empty.list(), [])
})

t.test('K5: a name is compared exactly', async (t) => {
  const manager = await startManager(t,
    [t.testdir({ ...skills('demo', 'é', 'sp ace'), constructor: skill('constructor') })])
  for (const name of ['demo', 'é', 'sp ace', 'constructor']) t.equal((await manager.find(name))?.name, name)
  for (const name of ['Demo', 'DEMO', 'demo ', ' demo', 'e\u0301', 'sp%20ace', '.', '..', '', 'demo/', './demo',
    '__proto__', 'toString', 'demo\0', '\uD800', 'x'.repeat(5_000)]) {
    t.equal(await manager.find(name), undefined, JSON.stringify(name.slice(0, 20)))
  }
  await fc.assert(fc.asyncProperty(fc.string({ unit: codePoint }),
    async (name) => name === 'demo' || await manager.find(name) === undefined))
})

t.test('K6: casings of the main file, and who prefers which', async (t) => {
  const root = t.testdir({
    lower: { 'skill.md': 'lower' },
    odd: { 'sKiLl.Md': 'odd' },
    both: { 'SKILL.md': 'md', 'SKILL.MD': 'MD' },
    three: { 'Skill.md': 'Skill', 'skill.md': 'skill', 'SKILL.MD': 'MD' },
    none: { 'SKILLS.md': '', 'skill.md.txt': '', 'ſkill.md': '' },
    broken: { 'SKILL.MD': {}, 'SKILL.md': 'md' }
  })
  const manager = await startManager(t, [root])
  const read = async (name: string) => [
    await textOf(() => manager.read(name, (skill) => skill.mainFile('SKILL.MD'))),
    await textOf(() => manager.read(name, (skill) => skill.mainFile('SKILL.md'))),
    await textOf(() => manager.read(name, (skill) => skill.file('SKILL.MD'))),
    await textOf(() => manager.read(name, (skill) => skill.file('./SKILL.md'))),
    fs.readFileSync((await manager.find(name))?.metadata.path ?? '').toString()
  ]
  t.strictSame(await read('lower'), ['lower', 'lower', 'lower', 'lower', 'lower'])
  t.strictSame(await read('odd'), ['odd', 'odd', 'odd', 'odd', 'odd'])
  t.strictSame(await read('both'), ['MD', 'md', 'MD', 'md', 'md'])
  t.strictSame(await read('three'), ['MD', 'MD', 'MD', 'MD', 'MD'])
  t.equal(await textOf(() => document(manager, 'none')), "main_file_not_found: SKILL.MD not found for skill 'none'")
  t.equal(await textOf(() => document(manager, 'broken')), 'md', 'what is not a file is passed over')
  t.equal(await textOf(() => manager.read('lower', (skill) => skill.file('Skill.md'))),
    "file_not_found: File 'Skill.md' not found in skill 'lower'", 'only the two usual spellings fall back')
  t.equal(await textOf(() => manager.read('lower', (skill) => skill.file('docs/SKILL.md'))),
    "file_not_found: File 'docs/SKILL.md' not found in skill 'lower'", 'only at the top')
  t.match((await manager.find('both'))?.findings.map(({ code }) => code), ['main_file_ambiguous'])
  t.match((await manager.find('lower'))?.findings.map(({ code }) => code), ['main_file_casing'])
})

t.test('K7: the earlier root wins, a project root beats the personal one, the loser comes back', async (t) => {
  const version = (text: string) => ({ demo: { 'SKILL.md': skillText('demo', text) } })
  const base =
    t.testdir({ one: version('one'), two: version('two'), personal: { ...version('personal'), mine: skill('mine') } })
  const manager = await startManager(t,
    [join(base, 'one'), join(base, 'two'), { path: join(base, 'personal'), type: 'personal' }])
  const state = async () => {
    const found = await manager.find('demo')
    const body = (await manager.loadSkill('demo'))?.content.split('---\n').at(-1)
    return [body, found?.metadata.type, found?.findings.some(({ code }) => code === 'shadowed'), found?.valid]
  }
  t.strictSame(await state(), ['one', 'project', true, true])
  t.strictSame(await manager.list(), ['demo', 'mine'])
  fs.renameSync(join(base, 'one/demo'), join(base, 'aside'))
  t.strictSame(await state(), ['two', 'project', true, true])
  fs.rmSync(join(base, 'two'), { recursive: true })
  t.strictSame(await state(), ['personal', 'personal', false, true])
  fs.renameSync(join(base, 'aside'), join(base, 'one/demo'))
  t.strictSame(await state(), ['one', 'project', true, true])
  fs.rmSync(join(base, 'personal/demo'), { recursive: true })
  await manager.list()
  t.strictSame(await state(), ['one', 'project', false, true], 'nothing is hidden any more')
  t.equal((await manager.find('mine'))?.metadata.type, 'personal')
})

t.test('K14: a root that may not be read, beside one that is missing and one that is there', async (t) => {
  const base = t.testdir({ root: skills('demo'), good: skills('good') })
  const disk = createFaultyDisk()
  const [root, good, missing] = [join(base, 'root'), join(base, 'good'), join(base, 'missing')]
  disk.intercept = failing('readdir', '/root', 'EACCES')
  const alone = await startManager(t, [root], { disk })
  t.equal(await outcome(() => alone.list()), 'SkillError: Permission denied reading skills folder')
  const both = await startManager(t, [missing, root], { disk })
  t.equal(await outcome(() => both.list()), 'SkillError: Permission denied reading skills folder')
  const one = await startManager(t, [missing, root, good], { disk })
  t.strictSame(await one.list(), ['good'])
  t.equal(await outcome(() => document(one, 'demo')), "SkillError: Skill 'demo' not found in skills folder")
  disk.intercept = () => {}
  t.strictSame(await alone.list(), ['demo'])
  const none = createManager(t, [])
  t.equal(await outcome(() => none.list()), 'SkillError: Skills folder not found at path: ')
})

t.test('K33: the interfaces of the seeds', async (t) => {
  const base =
    t.testdir({ root: { good: skill('good'), bad: { 'SKILL.md': 'text' }, none: {} }, personal: skills('mine') })
  const manager = createManager(t, [join(base, 'root'), { path: join(base, 'personal'), type: 'personal' }])
  await manager.initialize()
  const path = join(base, 'root/good')
  const metadata = {
    name: 'good', description: 'What good is for', type: 'project', skillPath: path, path: join(path, 'SKILL.md')
  }
  t.strictSame(manager.getAvailableSkills()[0], metadata)
  t.strictSame(manager.getAvailableSkills().map(({ name, type }) => `${name} ${type}`),
    ['good project', 'mine personal'])
  t.strictSame(manager.getSkills().map(({ name }) => name), ['bad', 'good', 'mine'])
  t.strictSame(await manager.available(), manager.getAvailableSkills())
  t.strictSame(manager.availableIndexed(), manager.getAvailableSkills())
  t.match(await manager.loadSkill('good'), { name: 'good', metadata, valid: true, content: skillText('good') })
  t.equal(await manager.readSkillBody(metadata), 'Instructions of good.\n')
  t.match(await manager.loadSkill('bad'), { valid: false, content: 'text' })
  t.equal(await manager.loadSkill('nothing'), null)
  t.equal(await manager.loadSkill('../root/good'), null)
  t.equal(await outcome(() => manager.loadSkill('none')), "SkillError: SKILL.MD not found for skill 'none'")
  await manager.initialize()
  manager.getAvailableSkills().length = 0
  t.equal(manager.getAvailableSkills().length, 2, 'what a caller does to the list is its own')
})

t.test('K6 K53: a root that is moved away for a moment does not change which main file is read', async (t) => {
  const root = t.testdir({ demo: { 'SKILL.MD': skillText('demo'), 'SKILL.md': 'the other one' } })
  let isAway = false
  const disk = createFaultyDisk({
    ageMs: HOUR_MS,
    intercept: (operation, path) => {
      if (!isAway || operation !== 'open' || !path.endsWith('SKILL.MD')) return
      isAway = false
      throw osError('ENOENT')
    }
  })
  const manager = await startManager(t, [root], { disk })
  isAway = true
  const read = () => manager.read('demo', (state) => state.mainFile('SKILL.MD'))
  t.equal(await textOf(read), skillText('demo'))
  t.notOk(isAway)
})

t.test('K29 K51: a folder is found by its name while the index still has another skill of that name', async (t) => {
  const root = t.testdir({ alpha: { 'SKILL.md': skillText('other') }, delta: { 'SKILL.md': skillText('alpha') } })
  const manager = await startManager(t, [root])
  const read = () => textOf(() => manager.readByDisplayName('alpha', (state) => state.mainFile()))
  t.equal(await read(), skillText('alpha'))
  fs.rmSync(join(root, 'delta'), { recursive: true })
  t.equal(await read(), skillText('other'))
})
