import { execFile } from 'node:child_process'
import fs from 'node:fs'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { FSWatcher } from 'chokidar'
import t, { type Test } from 'tap'
import type { CreateFsWatcher } from '../../../src/core/watch/folder-watcher.ts'
import type { CoreLog } from '../../../src/core/log.ts'
import { Refresher } from '../../../src/core/refresher.ts'
import { createSkillManager, type SkillManager, type SkillManagerOptions } from '../../../src/core/skill-manager.ts'
import { createWatcher } from '../../../src/core/watch/watcher.ts'
import { until } from '../../helper/skills.ts'

/** K52's figure, for the median of all changes. */
const FOLLOWED_MS = 250

/** For a single change while other tests run on the same cores: far below the pauses of the reconciling walks. */
const FOLLOWED_UNDER_LOAD_MS = 5_000

const DEADLINE_MS = 60_000
const HOUR_MS = 3_600_000

/** Nothing but the watcher tells of changes. */
const NO_WALKS = { reconcileHealthy: HOUR_MS, reconcileDegraded: HOUR_MS }

const run = promisify(execFile)

function skillText (name: string, description = 'first'): string {
  return `---\nname: ${name}\ndescription: ${description}\n---\n`
}

function skill (name: string, description?: string) {
  return { 'SKILL.md': skillText(name, description) }
}

function writeSkill (folder: string, name: string, description: string): void {
  fs.writeFileSync(join(folder, 'SKILL.md'), skillText(name, description))
}

/** What a search must know: folder and description of each valid skill. */
function onDisk (root: string): string[] {
  if (!fs.existsSync(root)) return []
  const found: string[] = []
  for (const name of fs.readdirSync(root)) {
    const file = join(root, name, 'SKILL.md')
    if (name.startsWith('.') || !fs.existsSync(file)) continue
    const description = /^description: (.*)$/m.exec(fs.readFileSync(file, 'utf8'))?.[1]
    if (fs.readFileSync(file, 'utf8').includes(`name: ${name}\n`)) found.push(`${name}: ${description}`)
  }
  return found.sort()
}

function inIndex (manager: SkillManager): string[] {
  return manager.availableNow().map(({ name, description }) => `${name}: ${description}`).sort()
}

interface LogLine {
  readonly level: 'info' | 'warn'
  readonly message: string
}

function createLog (): { readonly log: CoreLog, readonly lines: LogLine[] } {
  const lines: LogLine[] = []
  return {
    lines,
    log: {
      info: (_object, message) => { lines.push({ level: 'info', message }) },
      warn: (_object, message) => { lines.push({ level: 'warn', message }) }
    }
  }
}

/** A manager with the real watcher, set up or degraded. */
async function startWatching (t: Test, root: string, options: Partial<SkillManagerOptions> = {}): Promise<SkillManager> {
  const manager = createSkillManager({ projectRoots: [root], times: NO_WALKS, ...options })
  t.teardown(() => manager.close())
  await manager.initialize()
  await until(() => !['off', 'starting'].includes(manager.status.watcher.status))
  return manager
}

/** Milliseconds until the index, from now on, is as the disk is. Nothing is asked of the manager meanwhile. */
async function followed (manager: SkillManager, root: string): Promise<number> {
  const start = performance.now()
  const wanted = onDisk(root).join('\n')
  const isRight = () => inIndex(manager).join('\n') === wanted
  if (isRight()) return 0
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => { reject(new Error(`on the disk:\n${wanted}\nin the index:\n${inIndex(manager).join('\n')}`)) }, DEADLINE_MS)
    const stop = manager.subscribe(() => {
      if (!isRight()) return
      clearTimeout(timer)
      stop()
      resolve()
    })
  })
  return performance.now() - start
}

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

function numbered (count: number, prefix = 'skill'): string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}-${i}`)
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

/** As git does: each file is removed and made anew. */
function checkOut (folder: string, name: string, description: string): void {
  for (const file of ['a.md', 'b.md', 'c.md', 'SKILL.md']) {
    fs.rmSync(join(folder, file))
    fs.writeFileSync(join(folder, file), file === 'SKILL.md' ? skillText(name, description) : description)
  }
}

t.test('K52: the index follows, with nothing to tell of changes but the watcher', async (t) => {
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

t.test('K52: what changes is told, each change once it is in place', async (t) => {
  const root = t.testdir({ a: skill('a'), b: skill('b') })
  const manager = await startWatching(t, root)
  const told: unknown[] = []
  const { generation } = manager.status
  manager.subscribe((change) => { told.push([change, inIndex(manager)]) })
  writeSkill(join(root, 'a'), 'a', 'edited')
  await followed(manager, root)
  fs.rmSync(join(root, 'b'), { recursive: true })
  await followed(manager, root)
  t.strictSame(told, [
    [{ generation: generation + 1, added: [], changed: ['a'], removed: [] }, ['a: edited', 'b: first']],
    [{ generation: generation + 2, added: [], changed: [], removed: ['b'] }, ['a: edited']]
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

t.test('K54: a watcher that cannot be set up', async (t) => {
  const root = t.testdir({ a: skill('a') })
  const { log, lines } = createLog()
  let create: CreateFsWatcher = (options) => {
    const watcher = new FSWatcher(options)
    watcher.add = () => {
      process.nextTick(() => {
        for (let i = 0; i < 100; i++) watcher.emit('error', Object.assign(new Error(`ENOSPC: watch '${root}'`), { code: 'ENOSPC' }))
        watcher.emit('ready')
      })
      return watcher
    }
    return watcher
  }
  const manager = await startWatching(t, root, {
    log,
    times: { reconcileDegraded: 20, reconcileHealthy: HOUR_MS },
    watcher: (options) => createWatcher({ ...options, createFsWatcher: (settings) => create(settings) })
  })
  const warnings = () => lines.filter(({ level }) => level === 'warn')

  await t.test('shows, without a path, and the process is ready', async (t) => {
    t.match(manager.status, { ready: true, watcher: { status: 'degraded', lastError: 'ENOSPC' } })
    t.notMatch(JSON.stringify(manager.status.watcher), root)
  })

  await t.test('is made up for by the walks', async () => {
    for (const description of ['second', 'third']) {
      writeSkill(join(root, 'a'), 'a', description)
      await followed(manager, root)
    }
    fs.mkdirSync(join(root, 'b'))
    writeSkill(join(root, 'b'), 'b', 'new')
    await followed(manager, root)
  })

  await t.test('is logged once, however often it is tried again', async (t) => {
    t.equal(warnings().length, 1)
    t.equal(warnings()[0]?.message, 'the watcher does not work; the folders are compared with the index at intervals')
  })

  await t.test('heals by itself, and then follows events', async (t) => {
    create = (options) => new FSWatcher(options)
    await until(() => manager.status.watcher.status === 'watching')
    t.match(manager.status.watcher, { errors: 0, lastError: undefined })
    t.equal(lines.at(-1)?.message, 'watching the skills folders')
    writeSkill(join(root, 'b'), 'b', 'followed')
    await followed(manager, root)
    t.equal(warnings().length, 1)
  })
})

t.test('K54: a watcher that is blind and does not know it is made up for by the walks', async (t) => {
  const root = t.testdir({ a: skill('a') })
  const manager = await startWatching(t, root, {
    times: { reconcileHealthy: 20 },
    watcher: (options) => createWatcher({ ...options, onHint () {} })
  })
  t.match(manager.status.watcher, { status: 'watching' })
  writeSkill(join(root, 'a'), 'a', 'edited')
  await followed(manager, root)
})

t.test('K54: polling follows too', async (t) => {
  const root = t.testdir({ a: skill('a') })
  const manager = await startWatching(t, root, { polling: true })
  t.match(manager.status.watcher, { status: 'watching', mode: 'polling' })
  // Again and again: Node takes the state to compare with some turns after the poll is set up.
  const edits = setInterval(() => { writeSkill(join(root, 'a'), 'a', 'edited') }, 100)
  t.teardown(() => { clearInterval(edits) })
  await until(() => inIndex(manager).includes('a: edited'))
})

t.test('K53: however many hints come, one refresh runs and one more waits', async (t) => {
  const root = t.testdir(Object.fromEntries(numbered(20).map((name) => [name, skill(name)])))
  const folders = new Map(numbered(20).map((name) => [name, { realPath: join(root, name) }]))
  const runs: string[][] = []
  let running = 0
  let mostRunning = 0
  let release = () => {}
  const refresher = new Refresher({
    roots: [root],
    polling: false,
    times: { ...NO_WALKS, debounce: 0 },
    log: createLog().log,
    lookAtAll: async () => {},
    lookAgain: async (_root, names) => {
      mostRunning = Math.max(mostRunning, ++running)
      runs.push([...names].sort())
      if (runs.length === 1) await new Promise<void>((resolve) => { release = resolve })
      running--
    }
  })
  t.teardown(() => refresher.close())
  refresher.follow(root, { realPath: root, folders })
  refresher.start()
  await until(() => refresher.status.watcher.status === 'watching')

  writeSkill(join(root, 'skill-0'), 'skill-0', 'edited')
  await until(() => runs.length === 1)
  for (let round = 0; round < 50; round++) {
    for (const name of numbered(20)) writeSkill(join(root, name), name, `round ${round}`)
    await pause(1)
  }
  t.equal(runs.length, 1, 'the others wait')
  release()
  await until(() => runs.length > 1 && running === 0)
  await refresher.close()
  t.equal(mostRunning, 1, 'one at a time')
  t.ok(runs.length <= 3, `${runs.length} runs for 1,000 changes`)
  t.strictSame(new Set(runs.slice(1).flat()), new Set(numbered(20)), 'and each is looked at')
})

t.test('K53: a checkout over a thousand skills by another process', async (t) => {
  const names = numbered(1_000)
  const root = t.testdir(Object.fromEntries(names.map((name) => [name, { ...skill(name), 'a.md': '', 'b.md': '', 'c.md': '' }])))
  const manager = await startWatching(t, root)
  const delay = monitorEventLoopDelay({ resolution: 5 })
  let smallest = Infinity
  manager.subscribe(() => { smallest = Math.min(smallest, manager.availableNow().length) })

  delay.enable()
  await run(process.execPath, ['-e', `
    const fs = require('node:fs')
    const { join } = require('node:path')
    const skillText = ${skillText.toString()}
    for (let round = 0; round < 3; round++) {
      for (const name of fs.readdirSync(process.argv[1])) (${checkOut.toString()})(join(process.argv[1], name), name, 'round ' + round)
    }`, root], { timeout: DEADLINE_MS })
  await followed(manager, root)
  delay.disable()

  t.strictSame(inIndex(manager), names.map((name) => `${name}: round 2`).sort())
  t.strictSame(await manager.list(), [...names].sort())
  t.ok(smallest > 0, `no reader saw an empty catalog, the smallest had ${smallest}`)
  const longest = delay.max / 1e6
  t.comment(`event loop: longest stall ${longest.toFixed(0)} ms, 99 % below ${(delay.percentile(99) / 1e6).toFixed(0)} ms`)
  t.ok(longest < 1_000, 'no stall of a second, on a machine that runs other tests')
})
