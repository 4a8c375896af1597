import fs from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import t, { type Test } from 'tap'
import { createNetworkDisk, type Disk } from '../../../src/core/read/disk.ts'
import { sha256 } from '../../../src/core/shared/digest.ts'
import { RACY_WINDOW_MS } from '../../../src/core/read/signature.ts'
import type { SkillManager } from '../../../src/core/skill-manager.ts'
import { createFaultyDisk, findByDisplayName, outcome, passTick, skill, skills, skillText, startManager, until } from '../../helper/skills.ts'

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
      upper: await outcome(async () => (await manager.readMainFile(name, 'SKILL.MD')).utf8),
      lower: await outcome(async () => (await manager.readMainFile(name, 'SKILL.md')).utf8),
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

/**
 * Each changes something that is complete before the next question, after those above it in the same list. Every list begins
 * with a new layout, and ends with what leaves no skill to change.
 */
const CHANGES: ReadonlyArray<ReadonlyArray<readonly [string, (base: string) => void]>> = [
  [
    ['SKILL.md edited in place, same size, mtime put back', (base) => {
      const file = join(base, 'v1/demo/SKILL.md')
      const { atime, mtime } = fs.statSync(file)
      fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace('What', 'whaT'))
      fs.utimesSync(file, atime, mtime)
    }],
    ['a file edited in place, same size, mtime put back', (base) => {
      const file = join(base, 'v1/demo/docs/deep/a.md')
      const { atime, mtime } = fs.statSync(file)
      fs.writeFileSync(file, 'b')
      fs.utimesSync(file, atime, mtime)
    }],
    ['SKILL.md edited in place', (base) => fs.appendFileSync(join(base, 'v1/demo/SKILL.md'), 'more')],
    ['SKILL.md replaced by rename', (base) => {
      fs.writeFileSync(join(base, 'v1/demo/tmp'), skillText('demo', 'replaced'))
      fs.renameSync(join(base, 'v1/demo/tmp'), join(base, 'v1/demo/SKILL.md'))
    }],
    ['the label changed', (base) => fs.writeFileSync(join(base, 'v1/demo/SKILL.md'), skillText('renamed'))],
    ['a file edited in place', (base) => fs.appendFileSync(join(base, 'v1/demo/docs/deep/a.md'), 'more')],
    ['a file replaced by rename', (base) => {
      fs.writeFileSync(join(base, 'v1/demo/tmp'), 'c')
      fs.renameSync(join(base, 'v1/demo/tmp'), join(base, 'v1/demo/docs/deep/a.md'))
    }],
    ['a link in a skill re-pointed', (base) => {
      fs.rmSync(join(base, 'v1/demo/link.md'))
      fs.symlinkSync('docs2/deep/a.md', join(base, 'v1/demo/link.md'))
    }],
    ['a large file added', (base) => fs.writeFileSync(join(base, 'v1/demo/large'), Buffer.alloc(300_000, 'x'))],
    ['a casing added', (base) => fs.writeFileSync(join(base, 'v1/demo/SKILL.MD'), skillText('demo', 'upper'))],
    ['a linked skill edited behind the link', (base) => fs.appendFileSync(join(base, 'v1/..data/SKILL.md'), 'more')],
    ['a skill folder replaced by a file', (base) => {
      fs.rmSync(join(base, 'v1/demo'), { recursive: true })
      fs.writeFileSync(join(base, 'v1/demo'), '')
    }],
    ['a skill of the personal root hidden by a project', (base) => fs.cpSync(join(base, 'v2/new'), join(base, 'v1/mine'), { recursive: true })],
    ['the folder of the root made again', (base) => {
      fs.rmSync(join(base, 'v1'), { recursive: true })
      fs.cpSync(join(base, 'v2'), join(base, 'v1'), { recursive: true })
    }],
    ['the folder of the root removed', (base) => fs.rmSync(join(base, 'v1'), { recursive: true })]
  ],
  [
    ['SKILL.md made a link, and its target edited', (base) => {
      fs.renameSync(join(base, 'v1/demo/SKILL.md'), join(base, 'v1/demo/docs/main.md'))
      fs.symlinkSync('docs/main.md', join(base, 'v1/demo/SKILL.md'))
      fs.appendFileSync(join(base, 'v1/demo/docs/main.md'), 'through the link')
    }],
    ['a link in a skill re-pointed to outside', (base) => {
      fs.rmSync(join(base, 'v1/demo/link.md'))
      fs.symlinkSync('../other/SKILL.md', join(base, 'v1/demo/link.md'))
    }],
    ['a folder in a skill exchanged', (base) => {
      fs.renameSync(join(base, 'v1/demo/docs'), join(base, 'v1/demo/docs3'))
      fs.renameSync(join(base, 'v1/demo/docs2'), join(base, 'v1/demo/docs'))
    }],
    ['a file removed', (base) => fs.rmSync(join(base, 'v1/demo/docs/deep/a.md'))],
    ['a preferred casing removed', (base) => fs.rmSync(join(base, 'v1/other/SKILL.MD'))],
    ['the target of a linked skill exchanged', (base) => {
      fs.renameSync(join(base, 'v1/..data'), join(base, 'v1/..data3'))
      fs.renameSync(join(base, 'v1/..data2'), join(base, 'v1/..data'))
    }],
    ['a skill folder exchanged', (base) => {
      fs.renameSync(join(base, 'v1/demo'), join(base, 'v1/.demo'))
      fs.renameSync(join(base, 'aside/demo'), join(base, 'v1/demo'))
    }],
    ['SKILL.md removed', (base) => fs.rmSync(join(base, 'v1/demo/SKILL.md'))],
    ['a skill folder replaced by a link to another', (base) => {
      fs.rmSync(join(base, 'v1/demo'), { recursive: true })
      fs.symlinkSync('other', join(base, 'v1/demo'))
    }],
    ['a skill added', (base) => fs.cpSync(join(base, 'v2/new'), join(base, 'v1/new'), { recursive: true })],
    ['a skill of the personal root that is hidden', (base) => fs.cpSync(join(base, 'v2/new'), join(base, 'personal/demo'), { recursive: true })],
    ['the root re-pointed', (base) => {
      fs.symlinkSync('v2', join(base, 'tmp'))
      fs.renameSync(join(base, 'tmp'), join(base, 'root'))
    }],
    ['the root removed', (base) => fs.rmSync(join(base, 'root'))]
  ],
  [
    ['a linked skill re-pointed', (base) => {
      fs.symlinkSync('..data2', join(base, 'v1/tmp'))
      fs.renameSync(join(base, 'v1/tmp'), join(base, 'v1/linked'))
    }],
    ['the target of a dangling link made', (base) => fs.mkdirSync(join(base, 'v1/other/not-yet'))],
    ['a skill folder replaced by a link to outside', (base) => {
      fs.rmSync(join(base, 'v1/demo'), { recursive: true })
      fs.symlinkSync('../aside/demo', join(base, 'v1/demo'))
    }],
    ['a skill added with a label of its own', (base) => {
      fs.mkdirSync(join(base, 'v1/new'))
      fs.writeFileSync(join(base, 'v1/new/SKILL.md'), skillText('new label'))
    }],
    ['a folder on the way of a linked skill removed', (base) => fs.rmSync(join(base, 'v1/other'), { recursive: true })],
    ['the personal root removed', (base) => fs.rmSync(join(base, 'personal'), { recursive: true })],
    ['the root made a file', (base) => {
      fs.rmSync(join(base, 'root'))
      fs.writeFileSync(join(base, 'root'), '')
    }]
  ],
  [
    ['a skill removed', (base) => fs.rmSync(join(base, 'v1/demo'), { recursive: true })]
  ],
  [
    ['a skill renamed', (base) => fs.renameSync(join(base, 'v1/demo'), join(base, 'v1/new'))]
  ]
]

/** With old timestamps everything is kept from the first question on; without, nothing is, because it was just written. */
const DISKS: Readonly<Record<string, () => Disk | undefined>> = {
  'a local disk': () => undefined,
  'a network disk that has been still for long': () => createFaultyDisk({ disk: createNetworkDisk(), ageMs: HOUR_MS })
}

for (const changes of CHANGES) {
  t.test('K51 K3: every change is in the next answer without a watcher, on disks of each kind', async (t) => {
    const base = createLayout(t)
    const roots = { projectRoots: [join(base, 'root')], personalRoot: join(base, 'personal') }
    const services = await Promise.all(Object.entries(DISKS).map(async ([kind, createDisk]) => {
      const disk = createDisk()
      return { kind, manager: await startManager(t, roots.projectRoots, { ...roots, ...disk && { disk } }) }
    }))
    let before = await Promise.all(services.map(({ manager }) => answers(manager)))
    for (const [what, change] of changes) {
      passTick(base)
      change(base)
      await nextTurn()
      const expected = await answers(await startManager(t, roots.projectRoots, { ...roots, disk: createFaultyDisk({ ageMs: HOUR_MS }) }))
      const after: unknown[] = []
      for (const [index, { kind, manager }] of services.entries()) {
        after[index] = await answers(manager)
        t.strictSame(after[index], expected, `${what}: as one that has just started, on ${kind}`)
        // A difference that is expected is not worth its text.
        t.notOk(isDeepStrictEqual(after[index], before[index]), `${what}: not as before, on ${kind}`)
      }
      before = after
    }
  })
}

/** One question each: what a client would ask first after the change. */
const QUESTIONS: Readonly<Record<string, (manager: SkillManager) => unknown>> = {
  list: (manager) => manager.list(),
  document: async (manager) => (await manager.readMainFile('demo', 'SKILL.MD')).utf8,
  link: async (manager) => (await manager.readFile('demo', 'link.md')).text?.content,
  linked: async (manager) => (await manager.readMainFile('linked', 'SKILL.md')).utf8,
  new: async (manager) => (await manager.find('new'))?.metadata,
  manifest: async (manager) => (await manager.manifest('demo')).revision
}

for (const changes of CHANGES) {
  t.test('K51: whatever is asked first is right', async (t) => {
    const base = createLayout(t)
    const roots = { projectRoots: [join(base, 'root')], personalRoot: join(base, 'personal') }
    const start = async () => await startManager(t, roots.projectRoots, { ...roots, disk: createFaultyDisk({ ageMs: HOUR_MS }) })
    const questions = await Promise.all(Object.entries(QUESTIONS).map(async ([name, question]) => ({ name, question, manager: await start() })))
    for (const [what, change] of changes) {
      await Promise.all(questions.map(({ question, manager }) => outcome(() => question(manager))))
      passTick(base)
      change(base)
      const truth = await start()
      for (const { name, question, manager } of questions) {
        t.strictSame(await outcome(() => question(manager)), await outcome(() => question(truth)), `${name} after: ${what}`)
      }
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
    const content = (await manager.readMainFile('demo', 'SKILL.MD')).utf8
    if (content !== text) t.fail(`edit ${edit} is missing`)
  }
  t.pass('100 of the same size')
})

t.test('nothing changed, nothing changes', async (t) => {
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

t.test('K51: the second of two edits in one second is in the answers, on a disk whose timestamps have whole seconds only', async (t) => {
  const base = t.testdir({ demo: skill('demo', { 'a.md': 'text 0' }) })
  const manager = await startManager(t, [base], { disk: createFaultyDisk({ stepMs: 2_000 }) })
  const ask = async () => [
    await manager.list(),
    (await manager.readMainFile('demo', 'SKILL.md')).utf8,
    (await manager.readFile('demo', 'a.md')).utf8,
    (await manager.manifest('demo')).files.map(({ digest }) => digest)
  ]
  for (let edit = 1; edit < 5; edit++) {
    const [main, text] = [skillText('demo', `${edit}`), `text ${edit}`]
    fs.writeFileSync(join(base, 'demo/SKILL.md'), main)
    fs.writeFileSync(join(base, 'demo/a.md'), text)
    fs.mkdirSync(join(base, `new-${edit}`))
    const { ctimeMs } = fs.statSync(base)
    const names = ['demo', ...Array.from({ length: edit }, (_, index) => `new-${index + 1}`)]
    t.strictSame(await ask(), [names, main, text, [sha256(main), sha256(text)]])
    await until(() => Date.now() - ctimeMs > 2 * RACY_WINDOW_MS)
    await ask()
  }
})

t.test('a file whose time was set to the future is read once', async (t) => {
  const base = t.testdir({ demo: skill('demo', { 'a.md': 'text' }) })
  for (const file of ['demo/SKILL.md', 'demo/a.md', 'demo', '']) fs.utimesSync(join(base, file), 2e9, 2e9)
  const { ctimeMs } = fs.statSync(base)
  await until(() => Date.now() - ctimeMs > 2 * RACY_WINDOW_MS)
  const disk = createFaultyDisk()
  const manager = await startManager(t, [base], { disk })
  const ask = async () => [await manager.list(), await manager.readMainFile('demo', 'SKILL.md'), await manager.readFile('demo', 'a.md'), await manager.manifest('demo')]
  await ask()
  disk.calls.clear()
  await ask()
  t.equal(disk.calls.get('read'), undefined)
  fs.writeFileSync(join(base, 'demo/a.md'), 'next')
  t.equal((await manager.readFile('demo', 'a.md')).utf8, 'next')
})
