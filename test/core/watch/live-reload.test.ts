import fs from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { until } from '../../helper/skills.ts'
import { checkOut, followed, inIndex, numbered, skill, skillText, startWatching, writeSkill } from '../../helper/watched-index.ts'

/** The promised figure, for the median of all changes. */
const FOLLOWED_MS = 250

/** For a single change while other tests run on the same cores: far below the pause between two ticks. */
const FOLLOWED_UNDER_LOAD_MS = 5_000

interface Place {
  /** The test's folder, which the root `skills` is in. */
  readonly base: string
  readonly root: string
}

type Step = (place: Place) => void | Promise<void>

interface Scenario {
  readonly title: string
  readonly files: (t: Test) => Record<string, unknown>
  /** The index must be right after each. */
  readonly steps: readonly Step[]
}

function oneSkill () {
  return { skills: { a: skill('a') } }
}

const editA: Step = ({ root }) => { writeSkill(join(root, 'a'), 'a', 'edited') }

function saveAtomically (folder: string, name: string, description: string): void {
  fs.writeFileSync(join(folder, 'SKILL.md.tmp'), skillText(name, description))
  fs.renameSync(join(folder, 'SKILL.md.tmp'), join(folder, 'SKILL.md'))
}

function repoint (link: string, target: string): void {
  fs.symlinkSync(target, `${link}.new`)
  fs.renameSync(`${link}.new`, link)
}

const SCENARIOS: readonly Scenario[] = [
  { title: 'a plain edit', files: oneSkill, steps: [editA] },
  {
    title: 'an atomic save, twenty times',
    files: oneSkill,
    steps: Array.from({ length: 20 }, (_, i): Step => ({ root }) => { saveAtomically(join(root, 'a'), 'a', `save ${i}`) })
  },
  {
    title: 'a hundred new skills, saved atomically',
    files: oneSkill,
    steps: [({ root }) => {
      for (const name of numbered(100)) {
        fs.mkdirSync(join(root, name))
        saveAtomically(join(root, name), name, 'new')
      }
    }]
  },
  {
    title: 'sixty new skills, the file 0 to 6 ms after the folder',
    files: oneSkill,
    steps: [async ({ root }) => {
      for (const [i, name] of numbered(60).entries()) {
        fs.mkdirSync(join(root, name))
        await pause(i % 7)
        writeSkill(join(root, name), name, 'new')
      }
    }]
  },
  {
    title: 'sixty new skills with deep folders',
    files: oneSkill,
    steps: [({ root }) => {
      for (const name of numbered(60)) {
        fs.mkdirSync(join(root, name, 'docs/deep/deeper'), { recursive: true })
        fs.writeFileSync(join(root, name, 'docs/deep/deeper/a.md'), '')
        writeSkill(join(root, name), name, 'new')
      }
    }]
  },
  {
    title: 'folders moved in from outside, then edited',
    files: () => ({ ...oneSkill(), outside: Object.fromEntries(numbered(40).map((name) => [name, skill(name)])) }),
    steps: [
      ({ base, root }) => { for (const name of numbered(40)) fs.renameSync(join(base, 'outside', name), join(root, name)) },
      ({ root }) => { for (const name of numbered(40)) writeSkill(join(root, name), name, 'edited') }
    ]
  },
  {
    title: 'a folder renamed, then edited',
    files: () => ({ skills: { a: skill('a'), old: skill('old') } }),
    steps: [
      ({ root }) => { fs.renameSync(join(root, 'old'), join(root, 'new')) },
      ({ root }) => { writeSkill(join(root, 'new'), 'new', 'edited') }
    ]
  },
  {
    title: 'a folder removed, made again and edited',
    files: oneSkill,
    steps: [
      ({ root }) => {
        fs.rmSync(join(root, 'a'), { recursive: true })
        fs.mkdirSync(join(root, 'a'))
        writeSkill(join(root, 'a'), 'a', 'again')
      },
      editA
    ]
  },
  {
    title: 'a folder swapped by two renames, then edited',
    files: () => ({ ...oneSkill(), next: skill('a', 'next') }),
    steps: [
      ({ base, root }) => {
        fs.renameSync(join(root, 'a'), join(base, 'previous'))
        fs.renameSync(join(base, 'next'), join(root, 'a'))
      },
      editA
    ]
  },
  {
    title: 'the root removed and made again, then edited',
    files: oneSkill,
    steps: [
      ({ root }) => {
        fs.rmSync(root, { recursive: true })
        fs.mkdirSync(join(root, 'a'), { recursive: true })
        writeSkill(join(root, 'a'), 'a', 'again')
      },
      editA
    ]
  },
  {
    title: 'the root removed, and made again when that was noticed',
    files: oneSkill,
    steps: [
      ({ root }) => { fs.rmSync(root, { recursive: true }) },
      ({ root }) => {
        fs.mkdirSync(join(root, 'a'), { recursive: true })
        writeSkill(join(root, 'a'), 'a', 'again')
      },
      editA
    ]
  },
  {
    title: 'the root replaced by rename, then edited',
    files: () => ({ ...oneSkill(), next: { a: skill('a', 'next'), b: skill('b') } }),
    steps: [
      ({ base, root }) => {
        fs.renameSync(root, join(base, 'previous'))
        fs.renameSync(join(base, 'next'), root)
      },
      editA
    ]
  },
  {
    title: 'a root that is missing at the start, put in place in one step, then edited',
    files: () => ({ prepared: { a: skill('a') } }),
    steps: [({ base, root }) => { fs.renameSync(join(base, 'prepared'), root) }, editA]
  },
  {
    title: 'a ..data swap as of a ConfigMap, then edited',
    files: (t) => ({
      skills: {
        '..v1': { a: skill('a') },
        '..v2': { a: skill('a', 'second') },
        '..data': t.fixture('symlink', '..v1'),
        a: t.fixture('symlink', '..data/a')
      }
    }),
    steps: [({ root }) => { repoint(join(root, '..data'), '..v2') }, editA]
  },
  {
    title: 'a linked skill re-pointed, then edited',
    files: (t) => ({ skills: { '..one': skill('a'), '..two': skill('a', 'second'), a: t.fixture('symlink', '..one') } }),
    steps: [({ root }) => { repoint(join(root, 'a'), '..two') }, editA]
  },
  {
    title: 'a release swapped above the root, then edited',
    files: (t) => ({
      r1: { skills: { a: skill('a') } },
      r2: { skills: { a: skill('a', 'second') } },
      current: t.fixture('symlink', 'r1'),
      skills: t.fixture('symlink', 'current/skills')
    }),
    steps: [({ base }) => { repoint(join(base, 'current'), 'r2') }, editA]
  },
  {
    title: 'a checkout of 300 skills with four files each',
    files: () => ({ skills: Object.fromEntries(numbered(300).map((name) => [name, { ...skill(name), 'a.md': '', 'b.md': '', 'c.md': '' }])) }),
    steps: [({ root }) => { for (const name of numbered(300)) checkOut(join(root, name), name, 'checked out') }]
  }
]

t.test('K52: the index follows, with nothing but the watcher to report changes', async (t) => {
  const times: number[] = []
  for (const { title, files, steps } of SCENARIOS) {
    await t.test(title, async (t) => {
      const base = t.testdir(files(t) as Parameters<Test['testdir']>[0])
      const place = { base, root: join(base, 'skills') }
      const manager = await startWatching(t, place.root)
      const own: number[] = []
      for (const step of steps) {
        await step(place)
        own.push(await followed(manager, place.root))
      }
      t.ok(Math.max(...own) < FOLLOWED_UNDER_LOAD_MS, `followed after ${own.map(Math.round).join(', ')} ms`)
      times.push(...own)
    })
  }
  const median = times.sort((a, b) => a - b)[times.length >> 1] ?? Infinity
  t.ok(median <= FOLLOWED_MS, `the median is ${Math.round(median)} ms`)
})

t.test('K52: changes are reported, each once it is in place', async (t) => {
  const root = t.testdir({ a: skill('a'), b: skill('b') })
  const manager = await startWatching(t, root)
  const reported: unknown[] = []
  manager.subscribe((names) => { reported.push([names, inIndex(manager)]) })
  writeSkill(join(root, 'a'), 'a', 'edited')
  await followed(manager, root)
  fs.rmSync(join(root, 'b'), { recursive: true })
  await followed(manager, root)
  t.strictSame(reported, [
    [['a'], ['a: edited', 'b: first']],
    [['b'], ['a: edited']]
  ])
})

t.test('K52: edits without a pause do not keep the index waiting', async (t) => {
  const root = t.testdir({ a: skill('a') })
  const manager = await startWatching(t, root)
  let count = 0
  const edits = setInterval(() => { writeSkill(join(root, 'a'), 'a', `edit ${++count}`) }, 10)
  t.teardown(() => { clearInterval(edits) })
  let changes = 0
  manager.subscribe(() => { changes++ })
  await until(() => changes >= 3)
  clearInterval(edits)
  await followed(manager, root)
})
