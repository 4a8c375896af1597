import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { createChangeFeed } from '../../src/core/events/change-feed.ts'
import { findSkills } from '../../src/core/layout/find-skills.ts'
import type { SkillManager } from '../../src/core/skill-manager.ts'
import { createGitFetcher } from '../../src/sources/git/git-fetcher.ts'
import type { GitSource } from '../../src/sources/git/git-source.ts'
import type { Source } from '../../src/sources/kinds.ts'
import { KnownState } from '../../src/sources/publish/known-state.ts'
import { type SourceEntry, type SourceFiles, SourceTree } from '../../src/sources/publish/source-tree.ts'
import { createRepository, type Repository, skillFiles } from '../helper/git.ts'
import { skillText, startManager, until } from '../helper/skills.ts'
import { openSources, sourceAt } from '../helper/sources.ts'

/** The sources are pushed to so often; `PUSHES=100 npx tap test/sources/git-pushes.test.ts` for more. */
const PUSHES = Number(process.env['PUSHES'] ?? 3)

async function stateOf (skills: SkillManager): Promise<Record<string, string>> {
  return Object.fromEntries(await Promise.all((await skills.list()).map(async (name) => [name, (await skills.manifest(name)).revision] as const)))
}

/** What a source has after a push that it compares with the commit before; it is what one has that reads the whole commit. */
async function pushed (t: Test, before: Readonly<Record<string, string>>, push: (repository: Repository) => void, { fragment = '', ...more }: Partial<Source> & { readonly fragment?: string } = {}) {
  const repository = createRepository(t)
  repository.commit(before)
  const source = sourceAt(`git+file://${repository.path}${fragment}`, more)
  const { sources, skills, status } = await openSources(t, [source])
  push(repository)
  await sources.sync()
  const whole = await openSources(t, [source], { stateDir: join(t.testdirName, 'whole') })
  const { revision, layout } = whole.status()
  t.match(status(), { state: 'ok', revision, layout })
  t.strictSame(await stateOf(skills), await stateOf(whole.skills))
  return skills
}

/** Files with one of some contents, by path: no path is a folder of another one. */
type Contents = ReadonlyMap<string, number>

const TEXTS = [skillText('one'), skillText('two'), 'x']
const PATHS = [...['', 'x/', 'skills/x/', 'pack/', 'pack/x/'].flatMap((place) => ['SKILL.md', 'a.txt', 'd', 'd/x.txt'].map((name) => place + name)), 'skills/test/SKILL.md', '.claude/skills/x/SKILL.md', 'pack/x/sub/Skill.md']

function changed (before: Contents, changes: ReadonlyArray<readonly [path: string, content: number | undefined]>): Contents {
  const after = new Map(before)
  for (const [path, content] of changes) {
    if (content === undefined) after.delete(path)
    else {
      for (const other of after.keys()) if (other.startsWith(`${path}/`) || path.startsWith(`${other}/`)) after.delete(other)
      after.set(path, content)
    }
  }
  return after
}

function entryOf (path: string, content = 0): SourceEntry {
  return { path, kind: 'file', id: String(content), size: 50 }
}

function filesOf (contents: Contents): SourceFiles {
  return { entries: [...contents].map(([path, content]) => entryOf(path, content)), read: async ({ id }) => Buffer.from(TEXTS[Number(id)] ?? ''), write: async () => {} }
}

function shapeOf ({ tree, found }: KnownState): Record<string, readonly string[]> {
  return Object.fromEntries(found.skills.map(({ name, path }) => [name, tree.below(path).map(({ path, entry }) => `${path} ${entry.id}`).sort()]))
}

t.test('K84: after each push, a source that compares two commits has what one has that reads the whole commit', async (t) => {
  const repository = createRepository(t)
  repository.commit({ ...skillFiles('a', 'b', 'c'), 'skills/a/x/y.txt': 'y', 'other/d/SKILL.md': skillText('d') })
  const source = sourceAt(`git+file://${repository.path}`, { include: ['**'] })
  const { sources, skills, status } = await openSources(t, [source])
  const link = (path: string, target: string): void => {
    repository.git(['update-index', '--add', '--cacheinfo', `120000,${repository.git(['hash-object', '-w', '--stdin'], target)},${path}`])
    repository.git(['commit', '-q', '-m', 'link'])
    repository.git(['checkout', '-q', '--', '.'])
  }
  const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'a'.repeat(64)}\nsize 12345\n`
  const pushes: ReadonlyArray<readonly [what: string, push: () => void]> = [
    ['other bytes', () => { repository.commit({ 'skills/a/SKILL.md': skillText('a', 'More.\n'), 'skills/b/SKILL.md': skillText('b', 'More.\n') }) }],
    ['a new file, and one less', () => { repository.commit({ 'skills/a/new/file.txt': 'new', 'skills/a/x/y.txt': undefined }) }],
    ['a file in no skill', () => { repository.commit({ 'README.md': 'x' }) }],
    ['only that one', () => { repository.commit({ 'README.md': 'y' }) }],
    ['a file that is elsewhere', () => { repository.commit({ 'skills/b/model.bin': pointer }) }],
    ['and here again', () => { repository.commit({ 'skills/b/model.bin': 'bytes' }) }],
    ['an executable', () => { repository.git(['update-index', '--chmod=+x', 'skills/a/SKILL.md']); repository.git(['commit', '-q', '-m', 'x']) }],
    ['a new skill', () => { repository.commit(skillFiles('e')) }],
    ['a skill less', () => { repository.commit({ 'skills/b': undefined }) }],
    ['a link to a skill', () => { link('skills/near', '../other/d') }],
    ['bytes behind the link', () => { repository.commit({ 'other/d/SKILL.md': skillText('d', 'Behind.\n') }) }],
    ['a skill that moved', () => { repository.git(['mv', 'skills/c', 'skills/a/c']); repository.git(['commit', '-q', '-m', 'move']) }],
    ['a file of both', () => { repository.commit({ 'skills/a/c/more.txt': 'x' }) }],
    ['a marketplace', () => { repository.commit({ '.claude-plugin/marketplace.json': JSON.stringify({ plugins: [{ name: 'p', source: './other' }] }), 'other/skills/f/SKILL.md': skillText('f') }) }],
    ['another one', () => { repository.commit({ '.claude-plugin/marketplace.json': '{}' }) }]
  ]
  for (const [index, [what, push]] of pushes.entries()) {
    const { c: before } = await stateOf(skills)
    push()
    await sources.sync()
    if (what !== 'a file of both') t.equal((await stateOf(skills))['c'], before, 'address and revision stay, wherever the skill lies')
    t.equal(status().state, 'ok', `${what}: ${JSON.stringify(status().error)}`)
    const whole = await openSources(t, [source], { stateDir: join(t.testdirName, `state-${index}`) })
    t.strictSame(await stateOf(skills), await stateOf(whole.skills), what)
    const { revision, skills: count, layout, places, left_out: leftOut } = whole.status()
    t.match(status(), { revision, skills: count, layout, places }, what)
    t.strictSame(status().left_out, leftOut, what)
    await whole.sources.close()
  }
})

t.test('K84: a push that puts a file in the place of a folder, or a folder in the place of a file, is published with it', async (t) => {
  const skills = await pushed(t, { ...skillFiles('a', 'b'), 'skills/a/data/x.txt': 'x', 'skills/b/data': 'a file' }, (repository) => {
    for (const name of ['a', 'b']) rmSync(join(repository.path, 'skills', name, 'data'), { recursive: true })
    repository.commit({ 'skills/a/data': 'a file', 'skills/b/data/x.txt': 'x' })
  })
  t.strictSame((await skills.manifest('a')).files.map(({ path }) => path), ['SKILL.md', 'data'])
  t.strictSame((await skills.manifest('b')).files.map(({ path }) => path), ['SKILL.md', 'data/x.txt'])
})

t.test('K84: a push may rename the one skill that is all of a path, and add others below it', async (t) => {
  const before = { 'pack/SKILL.md': skillText('old-name'), 'README.md': 'x' }
  const pushes = [[{ 'pack/SKILL.md': skillText('new-name') }, 'new-name'], [{ 'pack/skills/z/SKILL.md': skillText('z') }, 'z'], [{ 'pack/skills/note.txt': 'x' }, 'old-name']] as const
  for (const [files, name] of pushes) {
    await t.test(name, async (t) => {
      const skills = await pushed(t, before, (repository) => { repository.commit(files) }, { fragment: '#main:pack' })
      t.ok((await skills.list()).includes(name))
    })
  }
})

t.test('K84: with the layout flat, a folder whose last file goes is no skill any more', async (t) => {
  const skills = await pushed(t, { 'a/SKILL.md': skillText('a'), 'docs/x.md': 'x' }, (repository) => { repository.commit({ 'docs/x.md': undefined }) }, { layout: 'flat' })
  t.strictSame(await skills.list(), ['a'])
})

t.test('K84: whatever a push changes, the state that follows from the changes is the one that follows from the whole commit', async () => {
  const content = fc.constantFrom(0, 1, 2)
  const commit = fc.array(fc.tuple(fc.constantFrom(...PATHS), content), { minLength: 1, maxLength: 8 })
  // A number is one of the files that are there.
  const push = fc.array(fc.tuple(fc.oneof(fc.nat(7), fc.constantFrom(...PATHS)), fc.option(content, { nil: undefined, freq: 3 })), { minLength: 1, maxLength: 2 })
  await fc.assert(fc.asyncProperty(commit, push, fc.constantFrom('', 'pack'), fc.constantFrom('auto', 'tree', 'flat', 'single'), async (first, second, base, layout) => {
    const before = changed(new Map(), first)
    const after = changed(before, second.map(([path, content]) => [typeof path === 'string' ? path : [...before.keys()].at(path) ?? 'a.txt', content]))
    const open = async (contents: Contents) => {
      const tree = await SourceTree.of(filesOf(contents), base)
      return new KnownState(tree, await findSkills(tree, { layout, name: 'source' }))
    }
    const known = await open(before)
    const old = shapeOf(known)
    // In the order of git.
    const changes = [...new Set([...before.keys(), ...after.keys()])].sort().filter((path) => before.get(path) !== after.get(path))
      .map((path) => ({ path, isNew: !before.has(path), entry: after.has(path) ? entryOf(path, after.get(path)) : undefined }))
    const names = await known.apply({ ...filesOf(after), entries: [] }, changes, 'it')
    if (names === undefined) return
    const [now, whole] = [shapeOf(known), shapeOf(await open(after))]
    assert.deepEqual(now, whole)
    for (const [name, files] of Object.entries(whole)) if (!names.has(name)) assert.deepEqual(files, old[name], 'others stay as they were')
  }), { numRuns: 1_000 })
})

t.test('K84: a push to what a manifest is a link to counts as one to the manifest', async (t) => {
  const manifestOf = (...names: readonly string[]) => JSON.stringify({ plugins: [{ name: 'p', source: './', skills: names.map((name) => `./x/${name}`) }] })
  const repository = createRepository(t)
  mkdirSync(join(repository.path, '.claude-plugin'))
  symlinkSync('../m.json', join(repository.path, '.claude-plugin/marketplace.json'))
  repository.commit({ 'm.json': manifestOf('a'), 'x/a/SKILL.md': skillText('a'), 'x/b/SKILL.md': skillText('b') })
  const { sources, skills } = await openSources(t, [sourceAt(`git+file://${repository.path}`)])
  t.strictSame(await skills.list(), ['a'])
  repository.commit({ 'm.json': manifestOf('a', 'b') })
  await sources.sync()
  t.strictSame(await skills.list(), ['a', 'b'])
})

t.test('K84: a commit that is refused does not count as the one before, and nothing of it is published later', async (t) => {
  const repository = createRepository(t)
  repository.commit(skillFiles('a', 'b'))
  const { sources, skills, status } = await openSources(t, [sourceAt(`git+file://${repository.path}`)])
  const deep = `skills/b/${'d/'.repeat(20)}x`
  repository.commit({ 'skills/a/SKILL.md': skillText('a', 'Refused.\n'), [deep]: 'x' })
  await sources.sync()
  t.match(status(), { state: 'stale', error: { code: 'refused_tree', message: /deeper than 20/ } })
  t.notMatch((await skills.readMainFile('a', 'SKILL.md')).utf8, /Refused/)
  repository.commit({ [deep]: undefined, 'skills/a/SKILL.md': skillText('a') })
  await sources.sync()
  t.match(status(), { state: 'ok', skills: 2 })
  t.strictSame((await skills.manifest('b')).files.map(({ path }) => path), ['SKILL.md'])
})

t.test('K84: a push of one file reads one file, and no list of all', async (t) => {
  const repository = createRepository(t)
  repository.commit(skillFiles(...Array.from({ length: 50 }, (_, index) => `s${index}`)))
  const bin = join(t.testdirName, 'bin')
  const calls = join(t.testdirName, 'calls')
  mkdirSync(bin)
  writeFileSync(join(bin, 'git'), `#!/bin/sh\nprintf '%s\\n' "$*" >> ${calls}\nPATH=\${PATH#*:}\nexec git "$@"\n`)
  chmodSync(join(bin, 'git'), 0o755)
  const { sources, skills } = await openSources(t, [sourceAt(`git+file://${repository.path}`)], { env: { PATH: `${bin}:${process.env.PATH}` } })
  t.match(readFileSync(calls, 'utf8'), 'ls-tree')
  repository.commit({ 'skills/s7/SKILL.md': skillText('s7', 'Pushed.\n') })
  writeFileSync(calls, '')
  const changes: unknown[] = []
  skills.subscribe(({ added, changed, removed }) => { changes.push({ added, changed, removed }) })
  await sources.sync()
  const commands = readFileSync(calls, 'utf8').trim().split('\n').map((line) => line.replace(/^--git-dir \S+ /, '').split(' ', 1)[0])
  t.strictSame(commands.filter((command) => command !== 'index-pack' && command !== 'unpack-objects' && command !== 'rev-list' && command !== 'upload-pack'), ['ls-remote', 'fetch', 'diff-tree', 'cat-file', 'cat-file'])
  t.match((await skills.readMainFile('s7', 'SKILL.md')).utf8, /Pushed/)
  await until(() => changes.length > 0)
  t.strictSame(changes, [{ added: [], changed: ['s7'], removed: [] }])
})

t.test(`K84: during ${PUSHES} pushes no question fails, no answer mixes two commits, and each changed skill has one event`, async (t) => {
  const repository = createRepository(t)
  const stateAt = (push: number): Record<string, string> => Object.fromEntries(['SKILL.md', 'a.txt', 'b/c.txt'].map((path) => [`skills/moving/${path}`, path === 'SKILL.md' ? skillText('moving', `push-${push}.\n`) : `push-${push}.`]))
  repository.commit({ ...skillFiles('still'), ...stateAt(0) })
  const { sources } = await openSources(t, [sourceAt(`git+file://${repository.path}`)])
  const skills = await startManager(t, sources.roots, { watcher: false })
  const feed = createChangeFeed({ skills })
  t.teardown(() => { feed.close() })
  const events: string[] = []
  feed.subscribe((event) => { if (event.type !== 'position') events.push(`${event.type} ${'name' in event ? event.name : ''}`) })
  // Files from a moment before the feed began may be reported too.
  await until(() => feed.revision !== undefined)
  events.length = 0

  const failures: string[] = []
  const ended = new AbortController()
  let answers = 0
  const ask = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      try {
        skills.beginRequest({})
        const chunks: Uint8Array[] = []
        for await (const chunk of (await skills.archive('moving')).chunks()) chunks.push(chunk)
        const { revision } = await skills.manifest('moving')
        const texts = await Promise.all(['SKILL.md', 'a.txt', 'b/c.txt'].map(async (path) => (await skills.at(revision).readFile('moving', path)).utf8 ?? ''))
        const commits = new Set(texts.map((text) => /push-\d+/.exec(text)?.[0]))
        if (commits.size !== 1) failures.push([...commits].join())
        await skills.readMainFile('still', 'SKILL.md')
        answers++
      } catch (error) {
        failures.push(String(error))
      }
      await new Promise(setImmediate)
    }
  }
  const readers = Array.from({ length: 4 }, ask)
  for (let push = 1; push <= PUSHES; push++) {
    repository.commit(stateAt(push))
    await sources.sync()
    await until(() => events.length >= push)
  }
  ended.abort()
  await Promise.all(readers)
  t.strictSame(failures.slice(0, 5), [])
  t.ok(answers > PUSHES, `${answers} answers`)
  t.strictSame(events, Array.from({ length: PUSHES }, () => 'changed moving'))
})

t.test('K85: a start without network serves the last state to the settings that it was fetched with, and to no others', async (t) => {
  const repository = createRepository(t)
  repository.commit(skillFiles('a', 'b'))
  const address = `git+file://${repository.path}`
  const first = await openSources(t, [sourceAt(address)])
  await first.sources.close()
  rmSync(repository.path, { recursive: true })
  const { stateDir } = first
  for (const [more, expected] of [
    [{ exclude: ['skills/b'] }, { state: 'failed', skills: 0 }], [{ include: ['skills/a'] }, { state: 'failed', skills: 0 }],
    [{ layout: 'single' }, { state: 'failed', skills: 0 }], [{ prefix: 'x-' }, { state: 'failed', skills: 0 }], [{}, { state: 'stale', skills: 2 }]
  ] as const) {
    const { sources, status } = await openSources(t, [sourceAt(address, more)], { stateDir })
    t.match(status(), expected, JSON.stringify(more))
    await sources.close()
  }
})

t.test('K84: sources of one repository are fetched one after the other', async (t) => {
  const queueOf = (address: string) => createGitFetcher(sourceAt(address) as GitSource, t.testdirName, {}).inTurn
  t.type(queueOf('git+https://git.example/team.git'), 'function')
  t.equal(queueOf('git+https://git.example/team.git#v1'), queueOf('git+https://git.example/team.git#main:skills'))
  t.not(queueOf('git+https://git.example/team.git'), queueOf('git+https://git.example/other.git'))
})
