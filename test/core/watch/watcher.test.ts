import { execFile, execFileSync } from 'node:child_process'
import { EventEmitter } from 'node:events'
import fs from 'node:fs'
import { join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { FSWatcher } from 'chokidar'
import t, { type Test } from 'tap'
import { MAX_FOLDER_EVENTS } from '../../../src/core/limits.ts'
import type { CreateFsWatcher } from '../../../src/core/watch/folder-watcher.ts'
import type { RootView } from '../../../src/core/watch/root-watch.ts'
import { createWatcher, type Watcher, type WatcherOptions, type WatcherState } from '../../../src/core/watch/watcher.ts'
import { countKernelWatches } from '../../helper/kernel-watches.ts'
import { until } from '../../helper/skills.ts'

/** Generous: other tests run on the same cores. */
const DEADLINE_MS = 30_000

const WATCHER = fileURLToPath(new URL('../../../src/core/watch/watcher.ts', import.meta.url))
const run = promisify(execFile)

/** Made anew each time: tap takes one object in two places for a cycle. */
function skill () {
  return { 'SKILL.md': 'text' }
}

interface Watched {
  readonly watcher: Watcher
  /** Names of the hints so far; '' for the root itself. */
  readonly hints: string[]
  /** The roots that the hints were about. */
  readonly roots: Set<string>
  readonly states: WatcherState[]
  /** Resolves when a hint with this name comes, from now on. */
  hinted (name: string): Promise<void>
}

interface WatchedOptions extends Partial<WatcherOptions> {
  /** Whether each hint is answered by a new look at the root, as the manager does. Default true. */
  readonly following?: boolean
}

/** A watcher that is set up, and what it says. */
async function watchRoots (t: Test, roots: readonly string[], { following = true, ...options }: WatchedOptions = {}): Promise<Watched> {
  const news = new EventEmitter().setMaxListeners(0)
  const hints: string[] = []
  const hintedRoots = new Set<string>()
  const states: WatcherState[] = []
  const watcher = createWatcher({
    roots,
    polling: false,
    onHint: (root, name = '') => {
      hints.push(name)
      hintedRoots.add(root)
      if (following) watcher.follow(root, viewOf(root))
      news.emit('hint', name)
    },
    onState: (state) => { states.push(state) },
    ...options
  })
  t.teardown(() => watcher.close())
  for (const root of roots) watcher.follow(root, viewOf(root))
  await until(() => watcher.state.status !== 'starting')
  return {
    watcher,
    hints,
    roots: hintedRoots,
    states,
    hinted: (name) => new Promise((resolve, reject) => {
      const timer = setTimeout(() => { reject(new Error(`no hint '${name}' in ${DEADLINE_MS} ms; hints: ${hints.join(', ')}`)) }, DEADLINE_MS)
      news.on('hint', (hint) => {
        if (hint !== name) return
        clearTimeout(timer)
        resolve()
      })
    })
  }
}

/** What the manager finds in a root. */
function viewOf (root: string): RootView {
  const folders = new Map<string, { realPath: string }>()
  const realPath = realFolder(root)
  if (realPath === undefined) return { realPath, folders }
  for (const name of namesIn(realPath)) {
    const folder = realFolder(join(realPath, name))
    if (!name.startsWith('.') && folder?.startsWith(realPath + sep)) folders.set(name, { realPath: folder })
  }
  return { realPath, folders }
}

function realFolder (path: string): string | undefined {
  try {
    const realPath = fs.realpathSync(path)
    return fs.statSync(realPath).isDirectory() ? realPath : undefined
  } catch {
    return undefined
  }
}

/** Folders may go while they are looked at: the test's own is removed at its end. */
function namesIn (folder: string): string[] {
  try {
    return fs.readdirSync(folder)
  } catch {
    return []
  }
}

/** Does something and waits for the hint that it must cause. */
async function expectHint (watched: Watched, name: string, act: () => void): Promise<void> {
  const hint = watched.hinted(name)
  act()
  await hint
}

/**
 * For what is put under watch some turns after the change that made it: edits until a hint comes, three times, since
 * the first hints may still be about that change.
 */
async function expectWatched (watched: Watched, name: string, file: string): Promise<void> {
  for (let i = 0; i < 3; i++) {
    const hint = watched.hinted(name)
    const timer = setInterval(() => { fs.appendFileSync(file, 'x') }, 20)
    await hint.finally(() => { clearInterval(timer) })
  }
}

t.test('K52: changes inside a skill give a hint with its name', async (t) => {
  const root = t.testdir({
    alpha: skill(),
    beta: skill(),
    'gamma~': skill(),
    linking: {
      ...skill(),
      loop: t.fixture('symlink', '.'),
      through: t.fixture('symlink', 'SKILL.md/x'),
      long: t.fixture('symlink', 'x'.repeat(300))
    }
  })
  const watched = await watchRoots(t, [root])

  await t.test('an edit in place', () =>
    expectHint(watched, 'alpha', () => { fs.appendFileSync(join(root, 'alpha/SKILL.md'), 'more') }))

  await t.test('an atomic save, every one of twenty', async () => {
    for (let i = 0; i < 20; i++) {
      await expectHint(watched, 'beta', () => {
        fs.writeFileSync(join(root, 'beta/.SKILL.md.tmp'), String(i))
        fs.renameSync(join(root, 'beta/.SKILL.md.tmp'), join(root, 'beta/SKILL.md'))
      })
    }
  })

  await t.test('a file beside the main file: made, edited, removed', async () => {
    const file = join(root, 'alpha/notes.md')
    await expectHint(watched, 'alpha', () => { fs.writeFileSync(file, '') })
    await expectHint(watched, 'alpha', () => { fs.appendFileSync(file, 'x') })
    await expectHint(watched, 'alpha', () => { fs.rmSync(file) })
  })

  await t.test('permissions that change', () =>
    expectHint(watched, 'alpha', () => { fs.chmodSync(join(root, 'alpha/SKILL.md'), 0o600) }))

  await t.test('a FIFO, and an edit beside it', async () => {
    await expectHint(watched, 'alpha', () => { execFileSync('mkfifo', [join(root, 'alpha/pipe')]) })
    await expectHint(watched, 'alpha', () => { fs.appendFileSync(join(root, 'alpha/SKILL.md'), 'after') })
  })

  await t.test('in a folder whose name looks like a temporary file', () =>
    expectHint(watched, 'gamma~', () => { fs.appendFileSync(join(root, 'gamma~/SKILL.md'), 'x') }))

  await t.test('in a folder with links to itself, through a file, and with a name that is too long', () =>
    expectHint(watched, 'linking', () => { fs.appendFileSync(join(root, 'linking/SKILL.md'), 'x') }))
})

t.test('K52: skills that come, go and move give a hint with their name', async (t) => {
  const folder = t.testdir({ skills: { old: skill() }, outside: { moved: skill() } })
  const skills = join(folder, 'skills')
  const watched = await watchRoots(t, [skills])

  await t.test('a new one, and edits in it', async () => {
    await expectHint(watched, 'new', () => { fs.mkdirSync(join(skills, 'new')) })
    await expectWatched(watched, 'new', join(skills, 'new/SKILL.md'))
  })

  await t.test('sixty new ones at once', async () => {
    const names = Array.from({ length: 60 }, (_, i) => `many-${i}`)
    await Promise.all(names.map((name) => expectHint(watched, name, () => { fs.mkdirSync(join(skills, name)) })))
    await Promise.all(names.map((name) => expectWatched(watched, name, join(skills, name, 'SKILL.md'))))
  })

  await t.test('one that is moved in from outside', async () => {
    await expectHint(watched, 'moved', () => { fs.renameSync(join(folder, 'outside/moved'), join(skills, 'moved')) })
    await expectWatched(watched, 'moved', join(skills, 'moved/SKILL.md'))
  })

  await t.test('one that is renamed hints at both names, and is watched by the new one', async () => {
    const gone = watched.hinted('old')
    await expectHint(watched, 'renamed', () => { fs.renameSync(join(skills, 'old'), join(skills, 'renamed')) })
    await gone
    await expectWatched(watched, 'renamed', join(skills, 'renamed/SKILL.md'))
  })

  await t.test('one that is removed', () =>
    expectHint(watched, 'new', () => { fs.rmSync(join(skills, 'new'), { recursive: true }) }))

  await t.test('one that is replaced at once, and then edited', async () => {
    fs.mkdirSync(join(folder, 'next'))
    await expectHint(watched, 'moved', () => {
      fs.renameSync(join(skills, 'moved'), join(folder, 'outside/moved'))
      fs.renameSync(join(folder, 'next'), join(skills, 'moved'))
    })
    await expectWatched(watched, 'moved', join(skills, 'moved/SKILL.md'))
  })

  await t.test('one that is removed and made again under the same name, and then edited', async () => {
    await expectHint(watched, 'moved', () => {
      fs.rmSync(join(skills, 'moved'), { recursive: true })
      fs.mkdirSync(join(skills, 'moved'))
    })
    await expectWatched(watched, 'moved', join(skills, 'moved/SKILL.md'))
  })

  await t.test('two that change places', async (t) => {
    await expectHint(watched, 'moved', () => {
      fs.renameSync(join(skills, 'renamed'), join(folder, 'aside'))
      fs.renameSync(join(skills, 'moved'), join(skills, 'renamed'))
      fs.renameSync(join(folder, 'aside'), join(skills, 'moved'))
    })
    await expectWatched(watched, 'renamed', join(skills, 'renamed/SKILL.md'))
    await expectWatched(watched, 'moved', join(skills, 'moved/SKILL.md'))
    const before = watched.hints.length
    await expectHint(watched, 'moved', () => { fs.appendFileSync(join(skills, 'moved/SKILL.md'), 'x') })
    t.notOk(watched.hints.slice(before).includes('renamed'), 'the old name is forgotten')
  })
})

t.test('K52: a skill that was replaced is watched before anybody looked at the root again', async (t) => {
  const root = t.testdir({ a: skill() })
  const watched = await watchRoots(t, [root], { following: false })
  await expectHint(watched, 'a', () => {
    fs.rmSync(join(root, 'a'), { recursive: true })
    fs.mkdirSync(join(root, 'a'))
  })
  await expectWatched(watched, 'a', join(root, 'a/SKILL.md'))
})

t.test('K52: a skill that is no longer followed gives no hints', async (t) => {
  const root = t.testdir({ a: skill(), b: skill() })
  const watched = await watchRoots(t, [root], { following: false })
  const { realPath, folders } = viewOf(root)
  watched.watcher.follow(root, { realPath, folders: new Map([...folders].filter(([name]) => name === 'b')) })
  await expectWatched(watched, 'b', join(root, 'b/SKILL.md'))
  const before = watched.hints.length
  fs.appendFileSync(join(root, 'a/SKILL.md'), 'x')
  await expectHint(watched, 'b', () => { fs.appendFileSync(join(root, 'b/SKILL.md'), 'x') })
  t.notOk(watched.hints.slice(before).includes('a'))
})

t.test('K52: links in a root', async (t) => {
  const root = t.testdir({
    real: skill(),
    '..v1': { skill: skill() },
    '..v2': { skill: skill() },
    '..data': t.fixture('symlink', '..v1'),
    linked: t.fixture('symlink', '..data/skill'),
    up: t.fixture('symlink', '..'),
    a: t.fixture('symlink', 'b'),
    b: t.fixture('symlink', 'a'),
    through: t.fixture('symlink', 'real/SKILL.md/x'),
    looping: { again: t.fixture('symlink', '.') }
  })
  const watched = await watchRoots(t, [root])

  await t.test('loops, and links that lead nowhere, are no trouble', async (t) => {
    t.match(watched.watcher.state, { status: 'watching', errors: 0 })
    await expectHint(watched, 'looping', () => { fs.writeFileSync(join(root, 'looping/SKILL.md'), '') })
    await expectHint(watched, 'added', () => { fs.mkdirSync(join(root, 'added')) })
  })

  await t.test('an edit behind a link hints at the link', () =>
    expectHint(watched, 'linked', () => { fs.appendFileSync(join(root, '..v1/skill/SKILL.md'), 'x') }))

  await t.test('a swapped ..data gives a hint, and is followed', async () => {
    await expectHint(watched, '..data', () => { repoint(join(root, '..data'), '..v2') })
    await expectWatched(watched, 'linked', join(root, '..v2/skill/SKILL.md'))
  })

  await t.test('a re-pointed link is followed', async () => {
    await expectHint(watched, 'linked', () => { repoint(join(root, 'linked'), 'real') })
    await expectWatched(watched, 'linked', join(root, 'real/SKILL.md'))
  })

  await t.test('an edit in a folder with two names hints at both', async () => {
    const linked = watched.hinted('linked')
    await expectHint(watched, 'real', () => { fs.appendFileSync(join(root, 'real/SKILL.md'), 'x') })
    await linked
  })
})

t.test('K3: a root that comes and goes is followed', async (t) => {
  await t.test('missing at the start, then made', async (t) => {
    const root = join(t.testdir(), 'skills')
    const watched = await watchRoots(t, [root])
    t.match(watched.watcher.state, { status: 'watching' })
    t.notOk(fs.existsSync(root), 'it is not created')
    await expectHint(watched, '', () => { fs.mkdirSync(root) })
    await expectWatched(watched, 'a', join(makeFolder(root, 'a'), 'SKILL.md'))
  })

  await t.test('never followed, since nothing was ever found: no reason to go on starting', async (t) => {
    const states: WatcherState[] = []
    const watcher = createWatcher({
      roots: [join(t.testdir(), 'skills')], polling: false, onHint () {}, onState: (state) => { states.push(state) }
    })
    t.teardown(() => watcher.close())
    await until(() => states.length > 0)
    t.strictSame(states, [{ status: 'watching', mode: 'events', errors: 0 }])
  })

  await t.test('missing at the start, put in place with its content in one step', async (t) => {
    const folder = t.testdir({ prepared: { a: skill() } })
    const root = join(folder, 'skills')
    const watched = await watchRoots(t, [root])
    await expectHint(watched, '', () => { fs.renameSync(join(folder, 'prepared'), root) })
    await expectWatched(watched, 'a', join(root, 'a/SKILL.md'))
  })

  await t.test('missing together with the folders above it', async (t) => {
    const root = join(t.testdir(), 'x/y/skills')
    const watched = await watchRoots(t, [root])
    await expectHint(watched, '', () => { fs.mkdirSync(join(root, 'a'), { recursive: true }) })
    await expectWatched(watched, 'a', join(root, 'a/SKILL.md'))
  })

  await t.test('a file at first', async (t) => {
    const root = join(t.testdir({ skills: 'no folder' }), 'skills')
    const watched = await watchRoots(t, [root])
    await expectHint(watched, '', () => {
      fs.rmSync(root)
      fs.mkdirSync(root)
    })
    await expectWatched(watched, 'a', join(makeFolder(root, 'a'), 'SKILL.md'))
  })

  await t.test('removed and made again, three times', async (t) => {
    const root = join(t.testdir({ skills: { a: skill() } }), 'skills')
    const watched = await watchRoots(t, [root])
    for (let i = 0; i < 3; i++) {
      await expectHint(watched, '', () => { fs.rmSync(root, { recursive: true }) })
      await expectHint(watched, '', () => { fs.mkdirSync(join(root, 'a'), { recursive: true }) })
      await expectWatched(watched, 'a', join(root, 'a/SKILL.md'))
    }
  })

  await t.test('removed together with its parent, then made again', async (t) => {
    const folder = t.testdir({ x: { skills: { a: skill() } } })
    const root = join(folder, 'x/skills')
    const watched = await watchRoots(t, [root])
    await expectHint(watched, '', () => { fs.rmSync(join(folder, 'x'), { recursive: true }) })
    await expectHint(watched, '', () => { fs.mkdirSync(join(root, 'a'), { recursive: true }) })
    await expectWatched(watched, 'a', join(root, 'a/SKILL.md'))
  })

  await t.test('missing while its parent goes and comes back', async (t) => {
    const folder = t.testdir({ x: {} })
    const root = join(folder, 'x/skills')
    const watched = await watchRoots(t, [root])
    await expectHint(watched, '', () => { fs.rmdirSync(join(folder, 'x')) })
    await expectHint(watched, '', () => { fs.mkdirSync(join(root, 'a'), { recursive: true }) })
    await expectWatched(watched, 'a', join(root, 'a/SKILL.md'))
  })

  await t.test('replaced by rename', async (t) => {
    const folder = t.testdir({ skills: { a: skill() }, next: { a: skill(), b: skill() } })
    const root = join(folder, 'skills')
    const watched = await watchRoots(t, [root])
    await expectHint(watched, '', () => {
      fs.renameSync(root, join(folder, 'previous'))
      fs.renameSync(join(folder, 'next'), root)
    })
    await expectWatched(watched, 'a', join(root, 'a/SKILL.md'))
    await expectWatched(watched, 'b', join(root, 'b/SKILL.md'))
  })

  await t.test('a link that is re-pointed', async (t) => {
    const folder = t.testdir({ one: { a: skill() }, two: { b: skill() }, skills: t.fixture('symlink', 'one') })
    const root = join(folder, 'skills')
    const watched = await watchRoots(t, [root])
    await expectHint(watched, 'a', () => { fs.appendFileSync(join(folder, 'one/a/SKILL.md'), 'x') })
    await expectHint(watched, '', () => { repoint(root, 'two') })
    await expectWatched(watched, 'b', join(root, 'b/SKILL.md'))
  })

  await t.test('a link through a link that is re-pointed (..data)', async (t) => {
    const folder = t.testdir({
      '..v1': { skills: { a: skill() } },
      '..v2': { skills: { b: skill() } },
      '..data': t.fixture('symlink', '..v1'),
      skills: t.fixture('symlink', '..data/skills')
    })
    const root = join(folder, 'skills')
    const watched = await watchRoots(t, [root])
    await expectHint(watched, '', () => { repoint(join(folder, '..data'), '..v2') })
    await expectWatched(watched, 'b', join(root, 'b/SKILL.md'))
  })

  await t.test('below a link that is re-pointed (a release folder)', async (t) => {
    const folder = t.testdir({ r1: { skills: { a: skill() } }, r2: { skills: { b: skill() } }, current: t.fixture('symlink', 'r1') })
    const root = join(folder, 'current/skills')
    const watched = await watchRoots(t, [root])
    await expectHint(watched, '', () => { repoint(join(folder, 'current'), 'r2') })
    await expectWatched(watched, 'b', join(root, 'b/SKILL.md'))
  })

  await t.test('a link that points to itself until it is mended', async (t) => {
    const folder = t.testdir({ one: { a: skill() }, skills: t.fixture('symlink', 'skills') })
    const root = join(folder, 'skills')
    const watched = await watchRoots(t, [root])
    t.match(watched.watcher.state, { status: 'watching', errors: 0 })
    await expectHint(watched, '', () => { repoint(root, 'one') })
    await expectWatched(watched, 'a', join(root, 'a/SKILL.md'))
  })

  await t.test('several roots are told apart', async (t) => {
    const folder = t.testdir({ one: { a: skill() }, two: { a: skill() } })
    const [one, two] = [join(folder, 'one'), join(folder, 'two')]
    const watched = await watchRoots(t, [one, two])
    await expectHint(watched, 'a', () => { fs.appendFileSync(join(two, 'a/SKILL.md'), 'x') })
    t.strictSame([...watched.roots], [two])
  })
})

t.test('K54: errors degrade the watcher, are told once and heal', async (t) => {
  await t.test('seven thousand errors at the set-up are one piece of news, without a path', async (t) => {
    const root = t.testdir({ a: skill() })
    const watched = await watchRoots(t, [root], { createFsWatcher: failing('ENOSPC', 7_000) })
    await until(() => watched.watcher.state.errors >= 7_000)
    t.strictSame(watched.states, [{ status: 'degraded', mode: 'events', errors: 1, lastError: 'ENOSPC' }])
    t.notMatch(JSON.stringify(watched.watcher.state), root)
  })

  await t.test('errors later on, of two kinds, are two pieces of news', async (t) => {
    const made: FSWatcher[] = []
    const watched = await watchRoots(t, [t.testdir({ a: skill() })], {
      createFsWatcher: (options) => {
        const watcher = new FSWatcher(options)
        made.push(watcher)
        return watcher
      }
    })
    for (let i = 0; i < 7_000; i++) made[0]?.emit('error', systemError('ENOSPC'))
    made[0]?.emit('error', systemError('EMFILE'))
    t.strictSame(watched.states, [
      { status: 'watching', mode: 'events', errors: 0 },
      { status: 'degraded', mode: 'events', errors: 1, lastError: 'ENOSPC' },
      { status: 'degraded', mode: 'events', errors: 7_001, lastError: 'EMFILE' }
    ])
  })

  await t.test('a restart that fails again says nothing, one that succeeds watches', async (t) => {
    const root = t.testdir({ a: skill() })
    let create = failing('EMFILE', 1)
    const watched = await watchRoots(t, [root], { createFsWatcher: (options) => create(options) })
    await watched.watcher.restart()
    await until(() => watched.watcher.state.status === 'degraded')
    t.equal(watched.states.length, 1)

    create = (options) => new FSWatcher(options)
    await watched.watcher.restart()
    await until(() => watched.watcher.state.status === 'watching')
    t.strictSame(watched.states.slice(1), [{ status: 'watching', mode: 'events', errors: 0 }])
    await expectHint(watched, 'a', () => { fs.appendFileSync(join(root, 'a/SKILL.md'), 'x') })
  })

  await t.test('a folder that is gone, or may not be read, is no error', async (t) => {
    for (const code of ['ENOENT', 'EACCES']) {
      const watched = await watchRoots(t, [t.testdir({ a: skill() })], { createFsWatcher: failing(code, 1) })
      t.match(watched.watcher.state, { status: 'watching', errors: 0 }, code)
    }
  })

  await t.test('an error without a code has a name too', async (t) => {
    const watched = await watchRoots(t, [t.testdir()], { createFsWatcher: failing('', 1) })
    t.match(watched.watcher.state, { status: 'degraded', lastError: 'UNKNOWN' })
  })

  for (const [limit, value, code] of [['max_inotify_watches', 20, 'ENOSPC'], ['max_inotify_instances', 0, 'EMFILE']] as const) {
    await t.test(`the kernel's ${limit}: degraded by ${code}, healed when it is raised`, async (t) => {
      const setLimit = `/proc/sys/user/${limit}`
      if (!await canLimit(setLimit)) {
        t.comment('skipped: this machine gives no user namespaces')
        return
      }
      const names = Array.from({ length: 50 }, (_, i) => `s${i}`)
      const root = t.testdir(Object.fromEntries(names.map((name) => [name, skill()])))
      const { stdout } = await run('unshare', ['-Ur', 'sh', '-c', `echo ${value} > ${setLimit} && exec "$0" --import tsx --input-type=module -e "$1"`,
        process.execPath, script(root, `
          fs.writeFileSync('${setLimit}', '1000')
          await watcher.restart()
          await settled()
          await watcher.close()`)], { timeout: DEADLINE_MS })
      t.equal(stdout, `degraded ${code}\nwatching undefined\noff undefined\n`)
    })
  }
})

// Node takes the state to compare with some turns after a poll is set up: an edit before that is missed, hence `expectWatched`.
t.test('K54: polling finds the same changes', async (t) => {
  const folder = t.testdir({
    skills: { a: { ...skill(), loop: t.fixture('symlink', '.') }, linked: t.fixture('symlink', 'a'), out: t.fixture('symlink', '..') },
    next: { c: skill() }
  })
  const root = join(folder, 'skills')
  const watched = await watchRoots(t, [root], { polling: true })
  t.strictSame(watched.states, [{ status: 'watching', mode: 'polling', errors: 0 }])

  await t.test('an edit in place, also behind a link', async () => {
    const linked = watched.hinted('linked')
    await expectWatched(watched, 'a', join(root, 'a/SKILL.md'))
    await linked
  })

  await t.test('a new skill, an edit in it, and its removal', async () => {
    await expectHint(watched, '', () => { fs.mkdirSync(join(root, 'b')) })
    await expectWatched(watched, 'b', join(root, 'b/Skill.MD'))
    await expectHint(watched, '', () => { fs.rmSync(join(root, 'b'), { recursive: true }) })
  })

  await t.test('K3: a root that is removed, and replaced', async () => {
    await expectHint(watched, '', () => { fs.rmSync(root, { recursive: true }) })
    await expectHint(watched, '', () => { fs.renameSync(join(folder, 'next'), root) })
    await expectWatched(watched, 'c', join(root, 'c/SKILL.md'))
  })

  await t.test('after a restart', async () => {
    await watched.watcher.restart()
    await until(() => watched.watcher.state.status === 'watching')
    await expectWatched(watched, 'c', join(root, 'c/SKILL.md'))
  })
})

t.test('K52: a folder that changes faster than it is heard gets no turn of the event loop for itself', async (t) => {
  const root = t.testdir({ a: skill(), b: skill() })
  const made: FSWatcher[] = []
  const watched = await watchRoots(t, [root], { following: false, createFsWatcher: keep(made) })
  const again = watched.hinted('a')
  for (let event = 0; event < 100_000; event++) for (const fsWatcher of made) fsWatcher.emit('raw', 'rename', 'SKILL.md', { watchedPath: join(root, 'a') })
  t.equal(watched.hints.length, MAX_FOLDER_EVENTS + 1)
  await again
  const { length } = watched.hints
  await until(() => watched.hints.length > length)
  t.equal(watched.hints.at(-1), 'a', 'what came meanwhile is made up for')
  await expectHint(watched, 'a', () => { fs.appendFileSync(join(root, 'a/SKILL.md'), 'x') })
  await expectHint(watched, 'b', () => { fs.appendFileSync(join(root, 'b/SKILL.md'), 'x') })
  for (let event = 0; event < 1_000; event++) for (const fsWatcher of made) fsWatcher.emit('raw', 'rename', 'SKILL.md', { watchedPath: join(root, 'b') })
  await watched.watcher.close()
  t.ok(made.every(({ closed }) => closed), 'one that is left alone at the end is given back too')
})

t.test('closing', async (t) => {
  for (const polling of [false, true]) {
    await t.test(`is silent afterwards, and harmless when repeated (${polling ? 'polling' : 'events'})`, async (t) => {
      const root = t.testdir({ a: skill() })
      const made: FSWatcher[] = []
      const watched = await watchRoots(t, [root], { polling, createFsWatcher: keep(made) })
      const { watcher } = watched
      await watcher.close()
      await Promise.all([watcher.close(), watcher.restart()])
      watcher.follow(root, viewOf(root))
      for (const fsWatcher of made) {
        fsWatcher.on('error', () => {})
        fsWatcher.emit('error', systemError('EIO'))
        fsWatcher.emit('raw', 'rename', 'SKILL.md', { watchedPath: join(root, 'a') })
      }
      t.ok(made.length > 0 && made.every(({ closed }) => closed), 'every watch is given back')
      t.strictSame(watched.hints, [])
      t.strictSame(watched.states.map(({ status }) => status), ['watching', 'off'])
      t.match(watcher.state, { status: 'off' })
    })
  }

  await t.test('in the middle of the set-up leaves nothing open', async (t) => {
    const root = t.testdir({ a: skill(), b: skill() })
    for (const turns of [0, 1, 2, 4]) {
      const made: FSWatcher[] = []
      const states: WatcherState[] = []
      const watcher = createWatcher({ roots: [root], polling: false, createFsWatcher: keep(made), onHint () {}, onState: (state) => { states.push(state) } })
      watcher.follow(root, viewOf(root))
      for (let i = 0; i < turns; i++) await new Promise(setImmediate)
      await watcher.close()
      t.ok(made.every(({ closed }) => closed), `closed after ${turns} turns`)
      t.equal(states.at(-1)?.status, 'off')
    }
  })

  await t.test('while a restart is under way ends that too', async (t) => {
    const made: FSWatcher[] = []
    const watched = await watchRoots(t, [t.testdir({ a: skill() })], { createFsWatcher: keep(made) })
    await Promise.all([watched.watcher.restart(), watched.watcher.close()])
    t.ok(made.every(({ closed }) => closed))
    t.match(watched.watcher.state, { status: 'off' })
  })

  await t.test('gives back every watch of the kernel', async (t) => {
    if (process.platform !== 'linux') {
      t.comment('skipped: only Linux lists the watches of a process')
      return
    }
    const before = countKernelWatches()
    const watched = await watchRoots(t, [t.testdir({ a: skill(), b: skill() })])
    t.equal(countKernelWatches() - before, 4, 'the folder above, the root, two skills')
    await watched.watcher.close()
    t.equal(countKernelWatches(), before)
  })

  for (const polling of [false, true]) {
    await t.test(`a process that made a watcher and closed it ends (${polling ? 'polling' : 'events'})`, async (t) => {
      const code = script(t.testdir({ a: skill() }), 'await watcher.close()', polling)
      const { stdout } = await run(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', code], { timeout: DEADLINE_MS })
      t.equal(stdout, 'watching undefined\noff undefined\n')
    })
  }
})

/** A program with a `watcher` that has been set up. */
function script (root: string, rest: string, polling = false): string {
  const names = fs.readdirSync(root)
  return `
    import fs from 'node:fs'
    import { once } from 'node:events'
    const { createWatcher } = await import(${JSON.stringify(WATCHER)})
    const root = ${JSON.stringify(root)}
    const news = new EventTarget()
    const watcher = createWatcher({
      roots: [root],
      polling: ${polling},
      onHint () {},
      onState: ({ status, lastError }) => {
        console.log(status, lastError)
        news.dispatchEvent(new Event('state'))
      }
    })
    const settled = () => {
      const alive = setInterval(() => {}, 1000)
      return once(news, 'state').finally(() => clearInterval(alive))
    }
    watcher.follow(root, { realPath: root, folders: new Map(${JSON.stringify(names)}.map((name) => [name, { realPath: root + '/' + name }])) })
    await settled()
    ${rest}`
}

/** Watchers that meet an error, as many times as told, and nothing else. */
function failing (code: string, times: number): CreateFsWatcher {
  return (options) => {
    const watcher = new FSWatcher(options)
    watcher.add = () => {
      process.nextTick(() => {
        for (let i = 0; i < times; i++) watcher.emit('error', systemError(code))
        watcher.emit('ready')
      })
      return watcher
    }
    return watcher
  }
}

function keep (made: FSWatcher[]): CreateFsWatcher {
  return (options) => {
    const watcher = new FSWatcher(options)
    made.push(watcher)
    return watcher
  }
}

function makeFolder (root: string, name: string): string {
  const folder = join(root, name)
  fs.mkdirSync(folder)
  return folder
}

function repoint (link: string, target: string): void {
  fs.symlinkSync(target, `${link}.new`)
  fs.renameSync(`${link}.new`, link)
}

function systemError (code: string): Error {
  return Object.assign(new Error(`${code}: watch '/secret/place'`), code !== '' && { code })
}

async function canLimit (file: string): Promise<boolean> {
  try {
    await run('unshare', ['-Ur', 'sh', '-c', `echo 100 > ${file}`])
    return true
  } catch {
    return false
  }
}
