import {
  appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import type { FolderRoot } from '../../src/sources/address/source-kind.ts'
import { StateFolder } from '../../src/sources/publish/state-folder.ts'
import { Sources } from '../../src/sources/sources.ts'
import type { Layout } from '../../src/layout/layout.ts'
import { zipOfTexts } from '../helper/archives.ts'
import { setSources } from '../helper/sources.ts'
import { outcome, skillText, startManager, textOf, until } from '../helper/skills.ts'

function write (folder: string, files: Readonly<Record<string, string | Buffer>>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
}

function skillsAt (...paths: readonly string[]): Record<string, string> {
  return Object.fromEntries(paths.map((path) => [`${path}/SKILL.md`, skillText(basename(path))]))
}

/** A service on one folder with a layout. */
async function openFolder (t: Test, folder: Omit<FolderRoot, 'kind' | 'name'>,
  { isWatched = false, linkTargets, stateDir = mkdtempSync(join(tmpdir(), 'state-')) }: {
    isWatched?: boolean
    linkTargets?: readonly string[]
    stateDir?: string
  } = {}) {
  const sources = new Sources({ state: new StateFolder(stateDir), env: {}, linkTargets })
  t.teardown(() => sources.close())
  await setSources(sources, [{ kind: 'folder', name: basename(folder.path), ...folder }])
  if (isWatched) sources.start()
  const skills = await startManager(t, sources.roots, isWatched ? { watcher: true } : {})
  return {
    sources,
    skills,
    status: () => sources.status[0],
    leftOut: () => sources.status[0]?.left_out?.first.map(({ path, reason }) => `${path}: ${reason}`)
  }
}

t.test('K86: a folder in each layout, served where it lies', async (t) => {
  const path = join(t.testdir(), 'repository')
  write(path, {
    ...skillsAt('skills/a', 'skills/group/b', '.claude/skills/c', 'docs/deep/d', 'node_modules/p/x'),
    'plain/readme.txt': ''
  })
  const table: ReadonlyArray<readonly [layout: Layout, taken: string, skills: readonly string[]]> = [
    ['auto', 'tree', ['a', 'b', 'c']], ['tree', 'tree', ['a', 'b', 'd']], ['single', 'single', ['repository']],
    ['marketplace', 'marketplace', []]
  ]
  for (const [layout, taken, names] of table) {
    const { skills, status } = await openFolder(t, { path, layout })
    t.strictSame(await skills.list(), names, layout)
    t.match(status(), { kind: 'folder', state: 'ok', layout: taken, skills: names.length })
  }
  const { skills, leftOut } = await openFolder(t, { path, layout: 'tree', prefix: 'x-', exclude: ['**/deep'] })
  t.strictSame(await skills.list(), ['x-a', 'x-b', 'x-x'], 'what the operator excludes takes the place of the default')
  t.strictSame(leftOut(), ['docs/deep: excluded'])
  t.equal((await skills.find('x-b'))?.metadata.path, join(path, 'skills/group/b/SKILL.md'), 'agents see where it lies')
})

t.test('K86: a prefix renames skills for every list and tool, and is no mistake of their authors', async (t) => {
  const path = t.testdir()
  write(path, { 'restart/SKILL.md': skillText('restart'), 'other/SKILL.md': skillText('another') })
  const { skills } = await openFolder(t, { path, layout: 'tree', prefix: 'ops-' })
  t.match(await skills.available(), [{ name: 'ops-restart' }])
  t.match(await skills.find('ops-restart'), {
    valid: true, frontmatter: { name: 'restart' }, findings: [{ code: 'name_prefixed', severity: 'info' }]
  })
  t.match(await skills.find('ops-other'),
    { valid: false, findings: [{ code: 'name_folder_mismatch', severity: 'error', message: /'another'.*'other'/ }] })
  t.equal(await skills.readByDisplayName('ops-restart', async ({ skill: { name } }) => name), 'ops-restart')
  t.match(await textOf(() => skills.readByDisplayName('restart', async ({ skill: { name } }) => name)),
    /^skill_not_found/)
})

t.test('K86: a folder that is a skill', async (t) => {
  const path = t.testdir()
  write(path, { 'SKILL.md': skillText('my-skill'), 'data/x.txt': 'x' })
  const { skills } = await openFolder(t, { path, layout: 'auto' })
  t.strictSame(await skills.list(), ['my-skill'])
  t.equal(await textOf(() => skills.read('my-skill', (skill) => skill.file('data/x.txt'))), 'x')
})

t.test('K86: one skill has one revision, and an edit counts at once without a watcher', async (t) => {
  const path = t.testdir()
  write(path, skillsAt('group/a'))
  const { skills } = await openFolder(t, { path, layout: 'tree' })
  const plain = await startManager(t, [join(path, 'group')])
  t.equal((await skills.read('a', (skill) => skill.manifest())).revision,
    (await plain.read('a', (skill) => skill.manifest())).revision)
  appendFileSync(join(path, 'group/a/SKILL.md'), 'More.\n')
  t.match(await textOf(() => skills.read('a', (skill) => skill.mainFile('SKILL.md'))), /More/)
  rmSync(join(path, 'group/a'), { recursive: true })
  t.equal(await skills.find('a'), undefined)
})

t.test('K86: what comes, goes and moves in a watched folder is followed', async (t) => {
  const path = t.testdir()
  write(path, skillsAt('group/a'))
  const { skills, status } = await openFolder(t, { path, layout: 'tree' }, { isWatched: true })
  const has = (...names: readonly string[]) =>
    until(async () => JSON.stringify(await outcome(() => skills.list())) === JSON.stringify(names))
  await has('a')
  write(path, skillsAt('new/deep/b'))
  await has('a', 'b')
  renameSync(join(path, 'group/a'), join(path, 'new/a'))
  await until(async () => (await skills.find('a'))?.metadata.path === join(path, 'new/a/SKILL.md'))
  await has('a', 'b')
  // Folders that change places have the names that they had.
  write(path, { ...skillsAt('x/c'), 'y/readme.txt': '' })
  await has('a', 'b', 'c')
  renameSync(join(path, 'x'), join(path, 'z'))
  renameSync(join(path, 'y'), join(path, 'x'))
  await until(async () => (await skills.find('c'))?.metadata.path === join(path, 'z/c/SKILL.md'))
  rmSync(path, { recursive: true })
  await until(() => status()?.state === 'failed')
  await t.rejects(async () => { await skills.list() }, { code: 'skills_folder_not_found' })
  write(path, skillsAt('back/d'))
  await has('d')
  t.match(status(), { state: 'ok', failing_since: undefined })
})

t.test('K86: packages in a folder are skills, and follow their files', async (t) => {
  const path = t.testdir()
  write(path, {
    'packed/a.skill': zipOfTexts(Object.entries({ 'a/SKILL.md': skillText('a'), 'a/x.txt': 'one' })),
    'bad.zip': 'no archive',
    'skill/SKILL.md': skillText('skill'),
    'skill/inner.zip': zipOfTexts(Object.entries({ 'SKILL.md': skillText('inner') }))
  })
  const { skills, sources, leftOut, status } = await openFolder(t, { path, layout: 'tree' })
  t.strictSame(await skills.list(), ['a', 'skill'])
  t.equal(await textOf(() => skills.read('a', (skill) => skill.file('x.txt'))), 'one')
  t.strictSame(leftOut(), ['bad.zip: bad_package'])
  write(path, { 'packed/a.skill': zipOfTexts(Object.entries({ 'a/SKILL.md': skillText('a'), 'a/x.txt': 'two' })) })
  utimesSync(join(path, 'packed/a.skill'), 1, 1)
  await sources.sync()
  t.equal(await textOf(() => skills.read('a', (skill) => skill.file('x.txt'))), 'two')
  rmSync(join(path, 'packed/a.skill'))
  await sources.sync()
  t.strictSame(await skills.list(), ['skill'])
  t.match(status(), { skills: 1 })
})

t.test('K86: packages that cannot be unpacked cost no skill that is there, and the status says why', async (t) => {
  const path = join(t.testdir({ file: '' }), 'repository')
  write(path, skillsAt('skills/a'))
  write(path, { 'skills/b.skill': zipOfTexts(Object.entries({ 'SKILL.md': skillText('b') })) })
  const { skills, status } = await openFolder(t, { path, layout: 'auto' }, { stateDir: join(t.testdirName, 'file') })
  t.strictSame(await skills.list(), ['a'])
  t.match(status(), {
    state: 'stale',
    skills: 1,
    error: { code: 'disk', message: /state folder cannot be used; choose another with --state-dir or STATE_DIR$/ }
  })
})

t.test('K86: nothing outside of the folder is served, whatever links say', async (t) => {
  const path = join(t.testdir(), 'root')
  const outside = join(path, '..', 'outside')
  write(path, skillsAt('group/a'))
  write(outside, {
    ...skillsAt('secret'),
    'b.zip': zipOfTexts(Object.entries({ 'b/SKILL.md': skillText('b') })),
    'marketplace.json': JSON.stringify({ plugins: [{ source: './group' }] })
  })
  symlinkSync(join(outside, 'secret'), join(path, 'secret'))
  symlinkSync(outside, join(path, 'group2'))
  symlinkSync(join(outside, 'b.zip'), join(path, 'b.zip'))
  symlinkSync('.', join(path, 'loop'))
  symlinkSync('group/a', join(path, 'again'))
  mkdirSync(join(path, '.claude-plugin'))
  symlinkSync(join(outside, 'marketplace.json'), join(path, '.claude-plugin/marketplace.json'))
  const { skills, leftOut, status } = await openFolder(t, { path, layout: 'tree' })
  t.strictSame(await skills.list(), ['a', 'again'], 'a link is a name of its own')
  t.strictSame(leftOut()?.sort(), ['b.zip: link_outside', 'group2: link_outside', 'secret: link_outside'])
  t.match(status(), { layout: 'tree' })
  const allowed = await openFolder(t, { path, layout: 'tree' }, { linkTargets: [outside] })
  t.strictSame(await allowed.skills.list(), ['a', 'again', 'b', 'secret'])
})

t.test('K86: the ignore file of the folder counts by paths in the folder', async (t) => {
  const path = t.testdir()
  write(path, {
    ...skillsAt('group/a', 'drafts/b'),
    '.skillignore': 'drafts/\ngroup/a/private\n*.log\n',
    'group/a/private': 'x',
    'group/a/x.log': 'x',
    'group/a/y.txt': 'y'
  })
  const { skills, sources, leftOut } = await openFolder(t, { path, layout: 'tree' })
  t.strictSame(await skills.list(), ['a'])
  t.strictSame((await skills.read('a', (skill) => skill.manifest())).files.map((file) => file.path),
    ['SKILL.md', 'y.txt'])
  t.strictSame(leftOut(), ['drafts/b: ignored'])
  writeFileSync(join(path, '.skillignore'), '')
  await sources.sync()
  t.strictSame(await skills.list(), ['a', 'b'])
  t.equal((await skills.read('a', (skill) => skill.manifest())).files.length, 4)
})

t.test('K8: a skill of a folder with a layout that is hidden whole is not read in a kept revision', async (t) => {
  const path = t.testdir()
  write(path, skillsAt('group/a', 'drafts/b'))
  const { skills, sources } = await openFolder(t, { path, layout: 'tree', prefix: 'x-' })
  const read = (name: string, revision: string) =>
    textOf(() => skills.at(revision).read(name, (skill) => skill.file('SKILL.md')))
  const [a, b] = [await skills.read('x-a', (skill) => skill.manifest()),
    await skills.read('x-b', (skill) => skill.manifest())]
  writeFileSync(join(path, '.skillignore'), 'drafts/\n')
  rmSync(join(path, 'group'), { recursive: true })
  await sources.sync()
  t.strictSame(await skills.list(), [])
  t.match(await read('x-b', b.revision), /^skill_not_found/)
  t.equal(await read('x-a', a.revision), skillText('a'), 'one that is removed is kept')
})
