import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { CatalogChange } from '../../src/core/catalog/catalog.ts'
import { createNetworkDisk } from '../../src/core/disk/disk.ts'
import { SkillError } from '../../src/core/errors.ts'
import { MAX_MAIN_FILE_BYTES, MAX_TEXT_FILE_BYTES } from '../../src/core/limits.ts'
import type { SkillManager } from '../../src/core/skill-manager.ts'
import { countDescriptors, createFaultyDisk, createManager, failing, findByDisplayName, osError, outcome, skill, skills, skillText, startManager, until } from '../helper/skills.ts'
import { checkTime } from '../helper/timing.ts'

const HOUR_MS = 3_600_000
const SRC = fileURLToPath(new URL('../../src/core/', import.meta.url))

async function document (manager: SkillManager, name: string) {
  return await manager.readDocument(name, 'SKILL.MD')
}

/** Text of a document or a file, or the sentence of the refusal. */
async function textOf (question: () => unknown): Promise<unknown> {
  try {
    const { bytes } = await question() as { bytes: Buffer }
    return bytes.toString()
  } catch (error) {
    return error instanceof SkillError ? `${error.code}: ${error.message}` : error
  }
}

t.test('K11 K12: every skill of every root by name, sorted by code point', async (t) => {
  const base = t.testdir({
    a: { ...skills('zebra', 'Alpha', '\u{1F600}'), 'without main file': {} },
    b: skills('alpha', '\uFFFD', 'zebra'),
    personal: skills('mine', 'alpha'),
    empty: {}
  })
  const manager = await startManager(t, [join(base, 'a'), join(base, 'b')], { personalRoot: join(base, 'personal') })
  const names = await manager.list()
  t.strictSame(names, ['Alpha', 'alpha', 'mine', 'without main file', 'zebra', '\uFFFD', '\u{1F600}'])
  const empty = await startManager(t, [join(base, 'empty')])
  t.strictSame(await empty.list(), [])
})

t.test('the list is the same object while nothing changes', async (t) => {
  const manager = await startManager(t, [t.testdir(skills('a'))])
  t.equal(await manager.list(), await manager.list())
})

t.test('K5: a name is compared exactly', async (t) => {
  const manager = await startManager(t, [t.testdir({ ...skills('demo', 'é', 'sp ace'), constructor: skill('constructor') })])
  for (const name of ['demo', 'é', 'sp ace', 'constructor']) t.equal((await manager.find(name))?.name, name)
  for (const name of ['Demo', 'DEMO', 'demo ', ' demo', 'e\u0301', 'sp%20ace', '.', '..', '', 'demo/', './demo', '__proto__', 'toString', 'demo\0', '\uD800', 'x'.repeat(5_000)]) {
    t.equal(await manager.find(name), undefined, JSON.stringify(name.slice(0, 20)))
  }
  await fc.assert(fc.asyncProperty(fc.string({ unit: 'binary' }), async (name) => name === 'demo' || await manager.find(name) === undefined))
})

t.test('K6: casings of the main file, and who prefers which (L25)', async (t) => {
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
    await textOf(() => manager.readDocument(name, 'SKILL.MD')),
    await textOf(() => manager.readDocument(name, 'SKILL.md')),
    await textOf(() => manager.readFile(name, 'SKILL.MD')),
    await textOf(() => manager.readFile(name, './SKILL.md')),
    fs.readFileSync((await manager.find(name))?.metadata.path ?? '').toString()
  ]
  t.strictSame(await read('lower'), ['lower', 'lower', 'lower', 'lower', 'lower'])
  t.strictSame(await read('odd'), ['odd', 'odd', 'odd', 'odd', 'odd'])
  t.strictSame(await read('both'), ['MD', 'md', 'MD', 'md', 'md'])
  t.strictSame(await read('three'), ['MD', 'MD', 'MD', 'MD', 'MD'])
  t.equal(await textOf(() => document(manager, 'none')), "main_file_not_found: SKILL.MD not found for skill 'none'")
  t.equal(await textOf(() => document(manager, 'broken')), 'md', 'what is not a file is passed over')
  t.equal(await textOf(() => manager.readFile('lower', 'Skill.md')), "file_not_found: File 'Skill.md' not found in skill 'lower'", 'only the two usual spellings fall back')
  t.equal(await textOf(() => manager.readFile('lower', 'docs/SKILL.md')), "file_not_found: File 'docs/SKILL.md' not found in skill 'lower'", 'only at the top')
  t.match((await manager.find('both'))?.findings.map(({ code }) => code), ['main_file_ambiguous'])
  t.match((await manager.find('lower'))?.findings.map(({ code }) => code), ['main_file_casing'])
})

t.test('K7: the earlier root wins, a project root beats the personal one, the loser comes back (L22)', async (t) => {
  const version = (text: string) => ({ demo: { 'SKILL.md': skillText('demo', text) } })
  const base = t.testdir({ one: version('one'), two: version('two'), personal: { ...version('personal'), mine: skill('mine') } })
  const manager = await startManager(t, [join(base, 'one'), join(base, 'two')], { personalRoot: join(base, 'personal') })
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

t.test('K3 K14: no root, and the way back', async (t) => {
  const base = t.testdir({ file: '' })
  const root = join(base, 'root')
  const manager = await startManager(t, [root])
  const missing = `SkillError: Skills folder not found at path: ${root}`
  for (const question of [
    () => manager.list(), () => manager.find('demo'), () => document(manager, 'demo'), () => manager.readFile('demo', 'a'), () => manager.manifest('demo'),
    () => findByDisplayName(manager, 'demo'), () => manager.loadSkill('demo')
  ]) t.equal(await outcome(question), missing)
  t.match(await manager.freshStatus(), { ready: false, indexed: true, skills: 0, roots: [{ state: 'missing', skills: 0 }] })
  t.notOk(fs.existsSync(root), 'a root is never created')
  fs.writeFileSync(root, '')
  t.equal(await outcome(() => manager.list()), missing, 'a file is no folder')
  fs.rmSync(root)
  fs.mkdirSync(join(root, 'demo'), { recursive: true })
  t.strictSame(await manager.list(), ['demo'])
  t.match(await manager.freshStatus(), { ready: true, roots: [{ state: 'ok', skills: 1 }] })
  fs.rmSync(root, { recursive: true })
  t.equal(await outcome(() => manager.find('demo')), missing)
  t.match(await manager.freshStatus(), { ready: false })
  fs.symlinkSync('elsewhere', root)
  t.equal(await outcome(() => manager.list()), missing)
  fs.mkdirSync(join(base, 'elsewhere/other'), { recursive: true })
  t.strictSame(await manager.list(), ['other'])
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

t.test('K15: the whole main file, verbatim', async (t) => {
  const texts = { crlf: '---\r\nname: crlf\r\n---\r\n\r\n text \r\n', bom: '\uFEFF---\nname: bom\n---\n', empty: '', blank: '  \n\n', nul: 'a\0b', 'no-frontmatter': 'é 日本 \u{1F600}' }
  const manager = await startManager(t, [t.testdir(Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, { 'SKILL.md': text }])))])
  for (const [name, text] of Object.entries(texts)) {
    t.equal((await manager.readDocument(name, 'SKILL.MD')).utf8, text, name)
    t.equal((await manager.loadSkill(name))?.content, text, name)
  }
})

t.test('K16: every error and their order (L10, L11)', async (t) => {
  const link = (target: string) => t.fixture('symlink', target)
  const base = t.testdir({
    secret: 'secret',
    root: {
      demo: skill('demo'),
      empty: {},
      folder: { 'SKILL.md': {} },
      leaving: { 'SKILL.md': link('../../secret') },
      sibling: { 'SKILL.md': link('../demo/SKILL.md') },
      dangling: { 'SKILL.md': link('nothing') },
      hidden: { 'SKILL.md': link('.env'), '.env': 'secret' },
      inside: { 'SKILL.md': link('docs/main.md'), docs: { 'main.md': 'inside' } },
      fifo: {},
      exact: { 'SKILL.md': 'x'.repeat(MAX_MAIN_FILE_BYTES) },
      large: { 'SKILL.md': 'x'.repeat(MAX_MAIN_FILE_BYTES + 1) },
      'large-and-bad': { 'SKILL.md': Buffer.alloc(MAX_MAIN_FILE_BYTES + 1, 0xff) },
      latin: { 'SKILL.md': Buffer.from([0x63, 0xe9]) },
      utf16: { 'SKILL.md': Buffer.from('\uFEFFtext', 'utf16le') },
      locked: skill('locked'),
      broken: skill('broken')
    }
  })
  execFileSync('mkfifo', [join(base, 'root/fifo/SKILL.md')])
  const disk = createFaultyDisk()
  disk.intercept = (operation, path) => {
    if (operation === 'open' && path.endsWith('locked/SKILL.md')) throw osError('EACCES')
    if (operation === 'open' && path.endsWith('broken/SKILL.md')) throw osError('EIO')
  }
  const invalid = (name: string) => `invalid_skill_name: Invalid skill name: '${name}'. Skill names must not contain '/', '\\', or '..'`
  const noMainFile = (name: string) => `main_file_not_found: SKILL.MD not found for skill '${name}'`
  const table: Readonly<Record<string, string>> = {
    '': invalid(''),
    'a/b': invalid('a/b'),
    'a\\b': invalid('a\\b'),
    '..': invalid('..'),
    'a..b': invalid('a..b'),
    '/etc': invalid('/etc'),
    '.': "skill_not_found: Skill '.' not found in skills folder",
    '%2e%2e': "skill_not_found: Skill '%2e%2e' not found in skills folder",
    Demo: "skill_not_found: Skill 'Demo' not found in skills folder",
    'a\0': "skill_not_found: Skill 'a\0' not found in skills folder",
    empty: noMainFile('empty'),
    folder: noMainFile('folder'),
    leaving: noMainFile('leaving'),
    sibling: noMainFile('sibling'),
    dangling: noMainFile('dangling'),
    hidden: noMainFile('hidden'),
    fifo: noMainFile('fifo'),
    inside: 'inside',
    exact: 'x'.repeat(MAX_MAIN_FILE_BYTES),
    large: "main_file_too_large: SKILL.MD too large (>1MB) for skill 'large'",
    'large-and-bad': "main_file_too_large: SKILL.MD too large (>1MB) for skill 'large-and-bad'",
    latin: "main_file_not_utf8: SKILL.MD contains invalid UTF-8 for skill 'latin'",
    utf16: "main_file_not_utf8: SKILL.MD contains invalid UTF-8 for skill 'utf16'",
    locked: "main_file_permission_denied: Permission denied reading SKILL.MD for skill 'locked'",
    broken: "main_file_unreadable: Error reading SKILL.MD for skill 'broken'"
  }
  const manager = await startManager(t, [join(base, 'root')], { disk })
  for (const [name, expected] of Object.entries(table)) t.ok(await textOf(() => document(manager, name)) === expected, JSON.stringify(name))
  await checkTime(t, 500, () => document(manager, 'exact'), 'exactly 1,048,576 bytes')
  t.ok((await manager.list()).includes('folder'), 'whatever is wrong, the skill stays listed')
  t.match((await manager.find('locked'))?.findings, [{ code: 'main_file_permission_denied', severity: 'error' }])
  t.match((await manager.find('dangling'))?.findings, [{ code: 'main_file_not_a_file' }])
})

t.test('K16 K18: a disk that fails at any operation has a fixed sentence, and none of its text', async (t) => {
  const base = t.testdir({ demo: skill('demo', { docs: { 'a.md': 'a' } }) })
  for (const code of ['EIO', 'EMFILE', 'ESTALE', 'EWHATEVER']) {
    for (const operation of ['stat', 'realpath', 'readdir', 'open', 'readlink', 'fstat', 'read'] as const) {
      // Timestamps that lie ahead: nothing that was seen before is trusted.
      const disk = createFaultyDisk({ ageMs: -HOUR_MS })
      const manager = await startManager(t, [base], { disk })
      disk.intercept = (asked, path) => { if (asked === operation && path !== base) throw osError(code) }
      t.equal(await textOf(() => document(manager, 'demo')), "main_file_unreadable: Error reading SKILL.MD for skill 'demo'", `${operation}: ${code}`)
      const opens = !['stat', 'realpath', 'readdir'].includes(operation)
      t.equal(await textOf(() => manager.readFile('demo', 'docs/a.md')), opens ? "file_io_error: Cannot read file 'docs/a.md': I/O error" : 'a', `${operation}: ${code}`)
    }
  }
})

t.test('K18: every reason of read_file_in_skill (G1–G9)', async (t) => {
  const link = (target: string) => t.fixture('symlink', target)
  const base = t.testdir({
    secret: 'secret',
    demo2: skill('demo2'),
    root: {
      demo: skill('demo', {
        docs: { 'a.md': 'a' }, inside: link('docs/a.md'), out: link('../../secret'), folder: link('docs'), '.env': '', huge: '', locked: '', broken: '', 'to-locked': link('locked')
      }),
      calculator: skill('calculator'),
      calculator2: skill('calculator2')
    }
  })
  fs.truncateSync(join(base, 'root/demo/huge'), MAX_TEXT_FILE_BYTES + 1)
  execFileSync('mkfifo', [join(base, 'root/demo/fifo')])
  const disk = createFaultyDisk()
  disk.intercept = (operation, path) => {
    if (operation !== 'open') return
    const target = path.startsWith('/proc/') ? fs.readlinkSync(path) : path
    if (path.startsWith('/proc/') && target.endsWith('locked')) throw osError('EACCES')
    if (path.startsWith('/proc/') && target.endsWith('broken')) throw osError('EIO')
  }
  const manager = await startManager(t, [join(base, 'root')], { disk })
  const traversal = 'path_traversal: Path traversal detected: cannot access files outside skill folder'
  const missing = (file: string) => `file_not_found: File '${file}' not found in skill 'demo'`
  const cannot = (code: string, file: string, reason: string) => `${code}: Cannot read file '${file}': ${reason}`
  const table: Readonly<Record<string, string>> = {
    'SKILL.md': skillText('demo'),
    'examples/../SKILL.MD': skillText('demo'),
    './docs//a.md': 'a',
    inside: 'a',
    'folder/a.md': 'a',
    '': 'invalid_file_path: Invalid file path',
    '..': traversal,
    '../demo/SKILL.md': traversal,
    '../calculator2/SKILL.md': traversal,
    '/etc/passwd': traversal,
    [join(base, 'root/demo/SKILL.md')]: traversal,
    'C:\\Windows': traversal,
    '..\\..\\..\\Windows\\System32': traversal,
    '\\\\server\\share': traversal,
    'a\\b/../../x': traversal,
    out: traversal,
    'nothing.md': missing('nothing.md'),
    'SKILL.md/': missing('SKILL.md/'),
    'a\0b': missing('a\0b'),
    '\uD800': missing('\uD800'),
    'docs\\a.md': missing('docs\\a.md'),
    [`${'x'.repeat(5_000)}`]: missing('x'.repeat(5_000)),
    '.env': missing('.env'),
    '.git/config': missing('.git/config'),
    '.': cannot('file_is_directory', '.', 'is a directory'),
    docs: cannot('file_is_directory', 'docs', 'is a directory'),
    'docs/': cannot('file_is_directory', 'docs/', 'is a directory'),
    folder: cannot('file_is_directory', 'folder', 'is a directory'),
    fifo: cannot('file_not_regular', 'fifo', 'not a regular file'),
    huge: cannot('file_too_large', 'huge', `file too large (${MAX_TEXT_FILE_BYTES + 1} bytes, limit ${MAX_TEXT_FILE_BYTES})`),
    locked: cannot('file_permission_denied', 'locked', 'permission denied'),
    'to-locked': cannot('file_permission_denied', 'to-locked', 'permission denied'),
    broken: cannot('file_io_error', 'broken', 'I/O error')
  }
  for (const [file, expected] of Object.entries(table)) t.equal(await textOf(() => manager.readFile('demo', file)), expected, file.slice(0, 40))
  for (const name of ['', '.', '..', 'demo/docs', 'a\\b']) {
    const expected = name === '.' ? "skill_not_found: Skill '.' not found in skills folder" : 'invalid_skill_name: Invalid skill name: must not contain special characters'
    t.equal(await textOf(() => manager.readFile(name, 'demo/SKILL.md')), expected, `skill ${JSON.stringify(name)}`)
    t.equal(await textOf(() => manager.openFile(name, 'demo/SKILL.md')), expected)
  }
  t.equal(await textOf(() => manager.readFile('nothing', '../x')), "skill_not_found: Skill 'nothing' not found in skills folder", 'the skill is looked up before the path')
})

t.test('K21: up to 10 MiB', async (t) => {
  const root = t.testdir({ demo: skill('demo', { cap: 'x'.repeat(MAX_TEXT_FILE_BYTES), mega: 'x'.repeat(1_048_576) }) })
  const manager = await startManager(t, [root])
  t.equal((await manager.readFile('demo', 'cap')).bytes.length, MAX_TEXT_FILE_BYTES)
  const { text } = await manager.readFile('demo', 'mega')
  t.equal(text?.content.length, 1_048_576)
})

t.test('the sample reads no file below a relative or linked root; here every root is its real folder', async (t) => {
  const base = t.testdir({ real: skills('demo'), root: t.fixture('symlink', 'real') })
  for (const root of [join(base, 'root'), `${base}/./real`, `${base}/real/../root`]) {
    const manager = await startManager(t, [root])
    t.equal(await textOf(() => manager.readFile('demo', 'SKILL.md')), skillText('demo'), root)
    t.equal((await manager.find('demo'))?.metadata.skillPath, `${root}/demo`, 'K23: shown as configured')
  }
})

t.test('K29: a label is the frontmatter name, then the folder name, and never a path', async (t) => {
  const root = t.testdir({ folder: skill('label'), plain: { 'SKILL.md': 'no frontmatter' }, other: skill('plain2'), demo: skill('demo'), broken: { 'SKILL.md': '---\nname: [\n---\n' } })
  const manager = await startManager(t, [root])
  const found = async (label: string) => (await findByDisplayName(manager, label))?.name
  t.equal(await found('label'), 'folder')
  t.equal(await found('folder'), 'folder')
  t.equal(await found('plain'), 'plain')
  t.equal(await found('plain2'), 'other')
  t.equal(await found('broken'), 'broken')
  for (const label of ['Label', ' label', '', '..', 'demo/', '../root/demo', 'nothing', '\0']) t.equal(await found(label), undefined, JSON.stringify(label))
})

t.test('K29 K53: a label that goes from one skill to the next while all of them are looked at is never missed', async (t) => {
  const root = t.testdir({ c: skill('c'), m: skill('label'), z: skill('z') })
  const disk = createFaultyDisk()
  const manager = await startManager(t, [root], { disk })
  const relabel = (name: string, label: string) => fs.writeFileSync(join(root, name, 'SKILL.md'), skillText(label))
  // When m is looked at because it has the label, and when c and m have been looked at because any may have it: at each
  // moment one of the three has.
  const moves = [
    ['/m', () => { relabel('z', 'label'); relabel('m', 'm') }],
    ['/c', () => {}],
    ['/z', () => { relabel('c', 'label'); relabel('z', 'z') }]
  ] as const
  let next = 0
  disk.intercept = (operation, path) => {
    const [place, move] = moves[next] ?? []
    if (operation !== 'stat' || place === undefined || !path.endsWith(place)) return
    next++
    move?.()
  }
  t.equal((await findByDisplayName(manager, 'label'))?.name, 'c')
  t.equal(next, moves.length)
})

t.test('K33: the interfaces of the seeds', async (t) => {
  const base = t.testdir({ root: { good: skill('good'), bad: { 'SKILL.md': 'text' }, none: {} }, personal: skills('mine') })
  const manager = createManager(t, [join(base, 'root')], { personalRoot: join(base, 'personal') })
  await manager.initialize()
  const path = join(base, 'root/good')
  const metadata = { name: 'good', description: 'What good is for', type: 'project', skillPath: path, path: join(path, 'SKILL.md') }
  t.strictSame(manager.getAvailableSkills()[0], metadata)
  t.strictSame(manager.getAvailableSkills().map(({ name, type }) => `${name} ${type}`), ['good project', 'mine personal'])
  t.strictSame(manager.getSkills().map(({ name }) => name), ['bad', 'good', 'mine'])
  t.strictSame(await manager.available(), manager.getAvailableSkills())
  t.strictSame(manager.availableNow(), manager.getAvailableSkills())
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

t.test('changes are told once they are in place', async (t) => {
  const base = t.testdir({ root: skills('a', 'b') })
  const root = join(base, 'root')
  const manager = await startManager(t, [root], { times: { debounce: 0 } })
  const changes: CatalogChange[] = []
  const stop = manager.subscribe((change) => {
    t.equal(change.generation, manager.status.generation)
    changes.push(change)
  })
  fs.writeFileSync(join(root, 'a/SKILL.md'), skillText('a', 'changed'))
  await manager.find('a')
  fs.mkdirSync(join(root, 'c'))
  await manager.list()
  await manager.find('c')
  fs.rmSync(join(root, 'b'), { recursive: true })
  await manager.list()
  t.match(changes, [{ changed: ['a'] }, { added: ['c'] }, { removed: ['b'] }])
  t.equal(changes.length, 3)
  fs.utimesSync(join(root, 'a/SKILL.md'), 1, 1)
  await manager.find('a')
  t.equal(changes.length, 3, 'T7: a touch is no change')
  stop()
  fs.mkdirSync(join(root, 'd'))
  await manager.find('d')
  t.equal(changes.length, 3)
})

t.test('K50: ready as soon as the first index is complete and a root is there', async (t) => {
  const root = t.testdir(skills('a', 'b'))
  const disk = createFaultyDisk()
  let open = () => {}
  const gate = new Promise<void>((resolve) => { open = resolve })
  disk.intercept = (operation) => operation === 'open' ? gate : undefined
  const manager = createManager(t, [root], { disk })
  await manager.start()
  t.strictSame(await manager.list(), ['a', 'b'], 'the list does not wait for the index')
  t.match(manager.status, { ready: false, indexed: false, skills: 2 })
  t.same(manager.availableNow(), [])
  const available = manager.available()
  open()
  t.equal((await available).length, 2)
  t.match(manager.status, { ready: true, indexed: true })
})

/** The same questions to two managers over the same disk. */
async function answers (manager: SkillManager): Promise<unknown[]> {
  const all: unknown[] = [await manager.list()]
  for (const name of [...await manager.list(), 'nothing', '', '..']) {
    const found = await outcome(() => manager.find(name)) as { findings?: unknown, digest?: unknown } | undefined
    all.push(name, found?.findings, found?.digest, await outcome(() => manager.manifest(name)))
    for (const preference of ['SKILL.MD', 'SKILL.md'] as const) all.push(await textOf(() => manager.readDocument(name, preference)))
    for (const file of ['SKILL.md', 'SKILL.MD', 'docs/a.md', 'docs', 'out', 'inside', 'fifo', '../x', '', 'a\0', '.env', 'dangling']) all.push(await textOf(() => manager.readFile(name, file)))
  }
  return all
}

function createMixedRoot (t: Test): string {
  const link = (target: string) => t.fixture('symlink', target)
  const base = t.testdir({
    secret: 'secret',
    root: {
      demo: skill('demo', { docs: { 'a.md': 'a' }, out: link('../../secret'), inside: link('docs/a.md'), '.env': '', dangling: link('x') }),
      both: { 'SKILL.md': 'md', 'SKILL.MD': 'MD' },
      empty: {},
      folder: { 'SKILL.md': {} },
      latin: { 'SKILL.md': Buffer.from([0x63, 0xe9]) },
      leaving: { 'SKILL.md': link('../../secret') },
      alias: link('demo'),
      outside: link('..'),
      file: ''
    }
  })
  execFileSync('mkfifo', [join(base, 'root/demo/fifo')])
  return join(base, 'root')
}

t.test('a network disk, and one without /proc, give the same answers as a local one', async (t) => {
  const root = createMixedRoot(t)
  const expected = await answers(await startManager(t, [root]))
  for (const disk of [
    createNetworkDisk(), createFaultyDisk({ hasProc: false }), createFaultyDisk({ disk: createNetworkDisk(), hasProc: false }), createFaultyDisk({ ageMs: HOUR_MS })
  ]) {
    const manager = await startManager(t, [root], { disk })
    t.strictSame(await answers(manager), expected)
    t.strictSame(await answers(manager), expected, 'again')
  }
})

t.test('no descriptor stays open after 2,000 mixed reads, failures included', async (t) => {
  const root = createMixedRoot(t)
  fs.writeFileSync(join(root, 'demo/large'), Buffer.alloc(300_000))
  for (const disk of [createFaultyDisk(), createFaultyDisk({ disk: createNetworkDisk() }), createFaultyDisk({ hasProc: false })]) {
    const manager = await startManager(t, [root], { disk })
    await answers(manager)
    const before = countDescriptors()
    let operations = 0
    disk.intercept = (operation) => { if (operation !== 'close' && ++operations % 17 === 0) throw osError(operations % 2 === 0 ? 'EIO' : 'EACCES') }
    for (let round = 0; round < 8; round++) await answers(manager)
    await Promise.all(Array.from({ length: 100 }, async () => {
      const file = await Promise.resolve(manager.openFile('demo', 'large')).catch(() => undefined)
      if (file?.kind === 'stream') await file.file.close()
    }))
    t.ok(operations > 2_000, `${operations} operations`)
    // The index follows in the background, and a folder is open while it is listed.
    disk.intercept = () => {}
    await until(() => countDescriptors() <= before)
  }
})

const AS_NOBODY = ['--reuid=65534', '--regid=65534', '--clear-groups']
const canBecomeNobody = spawnSync('setpriv', [...AS_NOBODY, process.execPath, '-e', '0']).status === 0

t.test('K14 K16 K18: permissions, for real (L15)', { skip: canBecomeNobody ? false : 'needs root and setpriv' }, async (t) => {
  // Not below the checkout: another user may not be allowed to search its parents.
  const base = fs.mkdtempSync(join(tmpdir(), 'skills-'))
  t.teardown(() => execFileSync('rm', ['-rf', base]))
  fs.chmodSync(base, 0o755)
  fs.cpSync(SRC, join(base, 'src'), { recursive: true })
  fs.symlinkSync(fileURLToPath(new URL('../../node_modules', import.meta.url)), join(base, 'node_modules'))
  fs.writeFileSync(join(base, 'package.json'), '{"type":"module"}')
  const root = join(base, 'root')
  for (const name of ['open', 'mode-file', 'mode-folder', 'mode-skill', 'locked-link', 'unsearchable']) {
    fs.mkdirSync(join(root, name, 'docs'), { recursive: true })
    fs.writeFileSync(join(root, name, 'SKILL.md'), skillText(name))
    fs.writeFileSync(join(root, name, 'docs/a.md'), 'a')
  }
  fs.mkdirSync(join(base, 'private'))
  fs.writeFileSync(join(base, 'private/there'), '')
  fs.symlinkSync('../../private/there', join(root, 'locked-link/there'))
  fs.symlinkSync('../../private/not-there', join(root, 'locked-link/not-there'))
  fs.symlinkSync('docs/a.md', join(root, 'mode-file/link'))
  fs.mkdirSync(join(base, 'locked-root/demo'), { recursive: true })
  fs.chmodSync(join(base, 'private'), 0)
  fs.chmodSync(join(root, 'mode-file/SKILL.md'), 0)
  fs.chmodSync(join(root, 'mode-file/docs/a.md'), 0)
  fs.chmodSync(join(root, 'mode-folder/docs'), 0)
  fs.chmodSync(join(root, 'mode-skill'), 0)
  fs.chmodSync(join(root, 'unsearchable/docs'), 0o444)
  fs.chmodSync(join(base, 'locked-root'), 0)
  const script = `
    import { createSkillManager } from './src/skill-manager.ts'
    const root = process.argv[2]
    const create = async (root) => { const manager = createSkillManager({ projectRoots: [root], watcher: false }); await manager.initialize(); return manager }
    const ask = async (question) => { try { const answer = await question(); return answer.bytes?.toString() ?? answer.files?.map(({ path }) => path) ?? answer } catch (error) { return error.message } }
    const manager = await create(root + '/root')
    const out = {
      list: await ask(() => manager.list()),
      open: await ask(() => manager.readFile('open', 'docs/a.md')),
      document: await ask(() => manager.readDocument('mode-file', 'SKILL.MD')),
      file: await ask(() => manager.readFile('mode-file', 'docs/a.md')),
      link: await ask(() => manager.readFile('mode-file', 'link')),
      folder: await ask(() => manager.readFile('mode-folder', 'docs/a.md')),
      unsearchable: await ask(() => manager.readFile('unsearchable', 'docs/a.md')),
      skill: await ask(() => manager.readDocument('mode-skill', 'SKILL.MD')),
      skillFile: await ask(() => manager.readFile('mode-skill', 'docs/a.md')),
      there: await ask(() => manager.readFile('locked-link', 'there')),
      notThere: await ask(() => manager.readFile('locked-link', 'not-there')),
      manifests: [await ask(() => manager.manifest('mode-file')), await ask(() => manager.manifest('mode-folder')), await ask(() => manager.manifest('unsearchable'))],
      locked: await ask(async () => (await create(root + '/locked-root')).list())
    }
    console.log(JSON.stringify(out))`
  fs.writeFileSync(join(base, 'run.ts'), script)
  fs.chmodSync(join(base, 'run.ts'), 0o644)
  const tsx = fileURLToPath(new URL('../../node_modules/tsx/dist/loader.mjs', import.meta.url))
  const ran = spawnSync('setpriv', [...AS_NOBODY, process.execPath, '--import', tsx, join(base, 'run.ts'), base], { cwd: base })
  t.equal(ran.status, 0, ran.stderr.toString())
  const traversal = 'Path traversal detected: cannot access files outside skill folder'
  t.strictSame(JSON.parse(ran.stdout.toString() || '{}'), {
    list: ['locked-link', 'mode-file', 'mode-folder', 'mode-skill', 'open', 'unsearchable'],
    open: 'a',
    document: "Permission denied reading SKILL.MD for skill 'mode-file'",
    file: "Cannot read file 'docs/a.md': permission denied",
    link: "Cannot read file 'link': permission denied",
    folder: "Cannot read file 'docs/a.md': permission denied",
    unsearchable: "Cannot read file 'docs/a.md': permission denied",
    skill: "Permission denied reading SKILL.MD for skill 'mode-skill'",
    skillFile: "Cannot read file 'docs/a.md': permission denied",
    there: traversal,
    notThere: traversal,
    manifests: [[], ['SKILL.md'], ['SKILL.md']],
    locked: 'Permission denied reading skills folder'
  })
})

t.test('a manager that is closed early leaves nothing behind', async (t) => {
  const manager = createManager(t, [t.testdir(skills('a'))])
  await manager.start()
  await manager.close()
  await until(() => manager.status.indexed)
  t.match(manager.status.watcher, { status: 'off' })
})
