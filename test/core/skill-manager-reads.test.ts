import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { mainFileText } from '../../src/core/read/file-content.ts'
import { MAX_MAIN_FILE_BYTES, MAX_TEXT_FILE_BYTES } from '../../src/core/shared/limits.ts'
import type { SkillManager } from '../../src/core/skill-manager.ts'
import { createFaultyDisk, osError, skill, skillText, startManager, textOf } from '../helper/skills.ts'
import { checkTime } from '../helper/timing.ts'

const HOUR_MS = 3_600_000

async function document (manager: SkillManager, name: string) {
  const content = await manager.readMainFile(name, 'SKILL.MD')
  mainFileText(content, name)
  return content
}

t.test('K15: the whole main file, verbatim', async (t) => {
  const texts = { crlf: '---\r\nname: crlf\r\n---\r\n\r\n text \r\n', bom: '\uFEFF---\nname: bom\n---\n', empty: '', blank: '  \n\n', nul: 'a\0b', 'no-frontmatter': 'é 日本 \u{1F600}' }
  const manager = await startManager(t, [t.testdir(Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, { 'SKILL.md': text }])))])
  for (const [name, text] of Object.entries(texts)) {
    t.equal((await manager.readMainFile(name, 'SKILL.MD')).utf8, text, name)
    t.equal((await manager.loadSkill(name))?.content, text, name)
  }
})

t.test('K16: every error and their order', async (t) => {
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
      'large-and-locked': { 'SKILL.md': 'x'.repeat(MAX_MAIN_FILE_BYTES + 1) },
      latin: { 'SKILL.md': Buffer.from([0x63, 0xe9]) },
      utf16: { 'SKILL.md': Buffer.from('\uFEFFtext', 'utf16le') },
      locked: skill('locked'),
      broken: skill('broken')
    }
  })
  execFileSync('mkfifo', [join(base, 'root/fifo/SKILL.md')])
  const disk = createFaultyDisk()
  disk.intercept = (operation, path, file) => {
    // The kernel lets a file without permission be named, and refuses to open it for reading.
    if (operation === 'open' && path !== file && file.endsWith('locked/SKILL.md')) throw osError('EACCES')
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
    'large-and-locked': "main_file_too_large: SKILL.MD too large (>1MB) for skill 'large-and-locked'",
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
  t.match((await manager.find('large-and-locked'))?.findings, [{ code: 'main_file_too_large', severity: 'error' }])
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

t.test('K18 K19: every reason of read_file_in_skill', async (t) => {
  const link = (target: string) => t.fixture('symlink', target)
  const base = t.testdir({
    secret: 'secret',
    demo2: skill('demo2'),
    root: {
      demo: skill('demo', {
        docs: { 'a.md': 'a' }, inside: link('docs/a.md'), out: link('../../secret'), 'out-folder': link('../../demo2'), folder: link('docs'), '.env': '', huge: '', locked: '', broken: '', 'to-locked': link('locked')
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
    'out/x': traversal,
    'out-folder/SKILL.md': traversal,
    'out-folder/nothing': traversal,
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
