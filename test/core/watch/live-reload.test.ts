import { execFile } from 'node:child_process'
import fs from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { saveAtomically, skill, skillText } from '../../helper/skills.ts'
import { followed, inIndex, numbered, startWatching, writeSkill } from '../../helper/watching.ts'

/** For a single change while other tests run on the same cores: far below the pause between two ticks. */
const FOLLOWED_UNDER_LOAD_MS = 5_000

interface Place {
  /** The test's folder, which the root `skills` is in. */
  readonly base: string
  readonly root: string
}

type Step = (place: Place) => void | Promise<void>

interface Scenario {
  readonly files: (t: Test) => Record<string, unknown>
  /** The index must be right after each. */
  readonly steps: readonly Step[]
  /** A folder of `base` that links may lead into. */
  readonly linkTarget?: string
}

const described = (name: string, description: string) => skill(name, { 'SKILL.md': skillText(name, '', description) })
const oneSkill = () => ({ skills: { a: skill('a') } })
const editA: Step = ({ root }) => { writeSkill(join(root, 'a'), 'a', 'edited') }
const makeA: Step = ({ root }) => {
  fs.mkdirSync(join(root, 'a'), { recursive: true })
  writeSkill(join(root, 'a'), 'a', 'again')
}
const remove = (path: string): Step => ({ base }) => { fs.rmSync(join(base, path), { recursive: true }) }
const rename = (from: string, to: string): Step => ({ base }) => { fs.renameSync(join(base, from), join(base, to)) }
const repoint = (path: string, target: string): Step => ({ base }) => {
  fs.symlinkSync(target, join(base, `${path}.new`))
  fs.renameSync(join(base, `${path}.new`), join(base, path))
}
const editLinked: Step = ({ base }) => { writeSkill(join(base, 'store/a'), 'a', `edit ${performance.now()}`) }
const makeLinked: Step = (place) => {
  fs.mkdirSync(join(place.base, 'store/a'), { recursive: true })
  return editLinked(place)
}
const all = (...steps: readonly Step[]): Step => async (place) => { for (const step of steps) await step(place) }

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'a plain edit': { files: oneSkill, steps: [editA] },
  'an atomic save, twenty times': {
    files: oneSkill,
    steps: Array.from({ length: 20 }, (_, i): Step =>
      ({ root }) => { saveAtomically(join(root, 'a', 'SKILL.md'), skillText('a', '', `save ${i}`)) })
  },
  'a hundred new skills, saved atomically': {
    files: oneSkill,
    steps: [({ root }) => {
      for (const name of numbered(100)) {
        fs.mkdirSync(join(root, name))
        saveAtomically(join(root, name, 'SKILL.md'), skillText(name, '', 'new'))
      }
    }]
  },
  'sixty new skills with deep folders, the file 0 to 6 ms after the folder': {
    files: oneSkill,
    steps: [async ({ root }) => {
      for (const [i, name] of numbered(60).entries()) {
        fs.mkdirSync(join(root, name, 'docs/deep/deeper'), { recursive: true })
        await pause(i % 7)
        writeSkill(join(root, name), name, 'new')
      }
    }]
  },
  'folders moved in from outside, then edited': {
    files: () => ({ ...oneSkill(), outside: Object.fromEntries(numbered(40).map((name) => [name, skill(name)])) }),
    steps: [
      ({ base, root }) => {
        for (const name of numbered(40)) {
          fs.renameSync(join(base, 'outside', name), join(root, name))
        }
      },
      ({ root }) => { for (const name of numbered(40)) writeSkill(join(root, name), name, 'edited') }
    ]
  },
  'a folder renamed, then edited': {
    files: () => ({ skills: { a: skill('a'), old: skill('old') } }),
    steps: [rename('skills/old', 'skills/new'), ({ root }) => { writeSkill(join(root, 'new'), 'new', 'edited') }]
  },
  'a folder removed, made again and edited': { files: oneSkill, steps: [all(remove('skills/a'), makeA), editA] },
  'a folder swapped by two renames, then edited': {
    files: () => ({ ...oneSkill(), next: described('a', 'next') }),
    steps: [all(rename('skills/a', 'previous'), rename('next', 'skills/a')), editA]
  },
  'the root removed and made again, then edited': { files: oneSkill, steps: [all(remove('skills'), makeA), editA] },
  'the root removed, and made again when that was noticed': {
    files: oneSkill, steps: [remove('skills'), makeA, editA]
  },
  'the root replaced by rename, then edited': {
    files: () => ({ ...oneSkill(), next: { a: described('a', 'next'), b: skill('b') } }),
    steps: [all(rename('skills', 'previous'), rename('next', 'skills')), editA]
  },
  'a root that is missing at the start, put in place in one step, then edited': {
    files: () => ({ prepared: { a: skill('a') } }),
    steps: [rename('prepared', 'skills'), editA]
  },
  'a ..data swap as of a ConfigMap, then edited': {
    files: (t) => ({
      skills: {
        '..v1': { a: skill('a') },
        '..v2': { a: described('a', 'second') },
        '..data': t.fixture('symlink', '..v1'),
        a: t.fixture('symlink', '..data/a')
      }
    }),
    steps: [repoint('skills/..data', '..v2'), editA]
  },
  'a linked skill re-pointed, then edited twice': {
    files: (t) =>
      ({ skills: { '..one': skill('a'), '..two': described('a', 'second'), a: t.fixture('symlink', '..one') } }),
    steps: [repoint('skills/a', '..two'), editA, makeA]
  },
  'a release swapped above the root, then edited': {
    files: (t) => ({
      r1: { skills: { a: skill('a') } },
      r2: { skills: { a: described('a', 'second') } },
      current: t.fixture('symlink', 'r1'),
      skills: t.fixture('symlink', 'current/skills')
    }),
    steps: [repoint('current', 'r2'), editA]
  },
  'a linked skill that its installer deletes and makes again, three times, each edited twice': {
    files: (t) => ({ store: { a: skill('a') }, skills: { a: t.fixture('symlink', '../store/a') } }),
    linkTarget: 'store',
    steps: [1, 2, 3].flatMap(() => [all(remove('store/a'), makeLinked), editLinked, editLinked])
  },
  'a linked skill replaced by rename, and a store that is replaced as a whole, each edited': {
    files: (t) => ({
      store: { a: skill('a') },
      next: described('a', 'next'),
      stores: { a: described('a', 'of another store') },
      skills: { a: t.fixture('symlink', '../store/a') }
    }),
    linkTarget: 'store',
    steps: [
      all(rename('store/a', 'old'), rename('next', 'store/a')),
      editLinked,
      all(rename('store', 'old-store'), rename('stores', 'store')),
      editLinked
    ]
  },
  'a linked skill whose link dangles, and leads to it again, twice, each edited': {
    files: (t) => ({ store: { a: skill('a') }, skills: { a: t.fixture('symlink', '../store/a') } }),
    linkTarget: 'store',
    steps: [1, 2].flatMap(() => [remove('store/a'), makeLinked, editLinked])
  }
}

t.test('K52: the index follows, with nothing but the watcher to report changes', async (t) => {
  for (const [title, { files, steps, linkTarget }] of Object.entries(SCENARIOS)) {
    await t.test(title, async (t) => {
      const base = t.testdir(files(t) as Parameters<Test['testdir']>[0])
      const place = { base, root: join(base, 'skills') }
      const linkTargets = linkTarget === undefined ? [] : [join(base, linkTarget)]
      const manager = await startWatching(t, place.root, { linkTargets })
      const own: number[] = []
      for (const step of steps) {
        await step(place)
        own.push(await followed(manager, place.root))
      }
      t.ok(Math.max(...own) < FOLLOWED_UNDER_LOAD_MS, `followed after ${own.map(Math.round).join(', ')} ms`)
    })
  }
})

t.test('K52: changes are reported, each once it is in place', async (t) => {
  const root = t.testdir({ a: skill('a'), b: skill('b') })
  const manager = await startWatching(t, root)
  const reported: unknown[] = []
  manager.catalog.on('changed', (changes) => { reported.push([changes.map(({ name }) => name), inIndex(manager)]) })
  writeSkill(join(root, 'a'), 'a', 'edited')
  await followed(manager, root)
  fs.rmSync(join(root, 'b'), { recursive: true })
  await followed(manager, root)
  t.strictSame(reported, [
    [['a'], ['a: edited', 'b: What b is for']],
    [['b'], ['a: edited']]
  ])
})

t.test('K53: a checkout over hundreds of skills by another process', async (t) => {
  const names = numbered(300)
  const root =
    t.testdir(Object.fromEntries(names.map((name) => [name, { ...skill(name), 'a.md': '', 'b.md': '', 'c.md': '' }])))
  const manager = await startWatching(t, root)
  let smallest = Infinity
  manager.catalog.on('changed', () => { smallest = Math.min(smallest, manager.availableIndexed().length) })

  // As git does: each file is removed and made anew.
  await promisify(execFile)(process.execPath, ['-e', `
    const fs = require('node:fs')
    for (const round of [0, 1]) {
      for (const path of fs.readdirSync('.', { recursive: true }).filter((path) => path.endsWith('.md'))) {
        const text = fs.readFileSync(path, 'utf8').replace(/description: .*/, 'description: round ' + round)
        fs.rmSync(path)
        fs.writeFileSync(path, text)
      }
    }`], { cwd: root, timeout: 60_000 })
  await followed(manager, root)

  t.strictSame(inIndex(manager), names.map((name) => `${name}: round 1`).sort())
  t.strictSame(await manager.list(), [...names].sort())
  t.ok(smallest > 0, `no reader saw an empty catalog, the smallest had ${smallest}`)
})
