import { chmodSync, chownSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import fc from 'fast-check'
import { MAX_MAIN_FILE_BYTES } from '../../src/core/shared/limits.ts'
import { parseSkillBytes } from '../../src/core/format/main-file.ts'
import { fixText as fixFile } from '../../src/validate/fix.ts'
import { runValidate as run } from '../helper/command-line.ts'
import { skill, skillText } from '../helper/skills.ts'

const fixText = (text: string, folder: string): string => fixFile(text, folder).text

t.test('K79: --fix fixes what is certain, once, and keeps comments and order', async (t) => {
  const text = '\uFEFF---\r\n# about\r\nname: Other # the name\r\nversion: 1.0 # of ours\r\ndescription: Use when: ' +
    'asked\r\nallowed-tools: [Read, "Bash(git:*)"]\r\nmetadata:\r\n  a: b\r\nargument-hint: x\r\n---\r\nBody\r\n'
  const cwd = t.testdir({ skills: { demo: { 'SKILL.md': text } } })
  t.match(await run(cwd, '--fix', '--dry-run'), { code: 1, out: /^--- skills\/demo\/SKILL\.md\n/ })
  const file = join(cwd, 'skills/demo/SKILL.md')
  t.equal(readFileSync(file, 'utf8'), text)
  t.match(await run(cwd, '--fix'),
    { code: 0, errors: /^skillserve: fixed skills\/demo\/SKILL\.md\n---[^]*\n-# about\\u000d\n/ })
  const fixed = readFileSync(file, 'utf8')
  t.equal(fixed, '---\n# about\nname: demo # the name\nversion: 1.0 # of ours\ndescription: \'Use when: ' +
    'asked\'\nallowed-tools: "Read Bash(git:*)"\nmetadata:\n  a: b\nargument-hint: x\n---\nBody\n')
  await run(cwd, '--fix')
  t.equal(readFileSync(file, 'utf8'), fixed)
  t.strictSame(await run(cwd, '--fix', '--dry-run'), { code: 0, out: '', errors: '' })
})

t.test('K79: fixing twice is fixing once, brings no error and leaves the body, whatever the file', async (t) => {
  const line = fc.constantFrom(
    'name: demo', 'name: "x" # c', 'name:', 'description: a: b', 'description: >', '  folded: x', 'tags: a',
    'version: 2',
    'x: "y" # z', 'metadata:', '  k: v', 'metadata: t', 'allowed-tools:', '  - Read', '- Write',
    'allowed-tools: [A, B]',
    '', '# c', '\tbad', 'author: {a: b}', '__proto__: x'
  )
  t.doesNotThrow(() => fc.assert(fc.property(fc.array(line, { maxLength: 8 }), fc.boolean(), (lines, isCrlf) => {
    const text = `---\n${lines.map((each) => `${each}\n`).join('')}---\nBody\n`
    const original = isCrlf ? text.replaceAll('\n', '\r\n') : text
    const once = fixText(original, 'demo')
    const severe = (each: string): number =>
      parseSkillBytes(Buffer.from(each), 'demo').findings.filter(({ severity }) => severity === 'error').length
    return fixText(once, 'demo') === once && severe(once) <= severe(original) && once.endsWith('---\nBody\n')
  }), { numRuns: 200, examples: [[['version: 2', 'version: 2', '# c', '  folded: x'], false]] }))
  const twice = '---\nname: demo\ndescription: x\n---\none\r\ntwo\r\r\nthree\r'
  t.equal(fixText(twice, 'demo'), '---\nname: demo\ndescription: x\n---\none\ntwo\r\r\nthree\r')
  t.equal(fixText(fixText(twice, 'demo'), 'demo'), fixText(twice, 'demo'),
    'a CRLF that was converted twice is no certain thing')
  for (const marks of ['\uFEFF', '\uFEFF\uFEFF', '\uFEFF\uFEFF\uFEFF']) {
    t.equal(fixText(`${marks}---\nname: other\n---\nBody\n`, 'demo'), '---\nname: demo\n---\nBody\n', `${marks.length}`)
  }
})

t.test('K79: --fix writes names that every reader takes as text, in quotes where YAML 1.1 would not', (t) => {
  const fixed = (folder: string) =>
    /^name: (.*)$/m.exec(fixText('---\nname: other\ndescription: x\n---\nBody\n', folder))?.[1]
  for (const name of ['demo', 'a1', 'yes-man']) t.equal(fixed(name), name)
  for (const name of ['yes', 'on', 'n', 'null', '123', '1e5', '0x1f', '0o7', '2024-01-02', '3d-print']) {
    t.equal(fixed(name), `"${name}"`)
  }
  t.end()
})

t.test('K79: --fix leaves owner and mode of a file as they are', async (t) => {
  const cwd = t.testdir({ demo: { 'SKILL.md': `\uFEFF${skillText('demo')}` } })
  const file = join(cwd, 'demo/SKILL.md')
  chmodSync(file, 0o664)
  if (process.getuid?.() === 0) chownSync(file, 12_345, 12_345)
  const before = statSync(file)
  const mask = process.umask(0o077)
  t.teardown(() => { process.umask(mask) })
  t.match((await run(cwd, 'demo', '--fix')).errors,
    /^skillserve: fixed demo\/SKILL\.md\n[^]*\n-(?:\uFEFF|\\ufeff)---\n\+---\n/)
  const { mode, uid, gid, ino } = statSync(file)
  t.strictSame({ mode, uid, gid }, { mode: before.mode, uid: before.uid, gid: before.gid })
  t.not(ino, before.ino, 'a new file in its place')
})

t.test('K79: --fix leaves links, large files, other encodings and files that need nothing', async (t) => {
  const text = (name: string) => `\uFEFF${skillText(name)}`
  const cwd = t.testdir({
    link: { 'SKILL.md': t.fixture('symlink', 'real.md'), 'real.md': text('link') },
    large: { 'SKILL.md': text('large').padEnd(MAX_MAIN_FILE_BYTES + 1) },
    latin: { 'SKILL.md': Buffer.from(`${text('latin')}\xe9`, 'latin1') },
    left: { 'SKILL.md': '---\nname: [\n---\n' },
    good: skill('good'),
    plain: { 'SKILL.md': '\uFEFFtext\n' }
  })
  const inodes = () => ['link/real.md', 'large/SKILL.md', 'latin/SKILL.md', 'left/SKILL.md', 'good/SKILL.md'].map(
    (name) => statSync(join(cwd, name)).ino
  )
  const before = inodes()
  const { errors } = await run(cwd, '.', '--fix')
  t.strictSame(inodes(), before)
  t.match(errors,
    /^skillserve: left\/SKILL\.md: the frontmatter is unchanged: .*\nskillserve: fixed plain\/SKILL\.md\n[^]*\n\+text\n$/)
  t.equal(readFileSync(join(cwd, 'plain/SKILL.md'), 'utf8'), 'text\n', 'without frontmatter')
})

t.test('K79: --fix goes on behind a skill that needs nothing, and its lines steer no terminal', async (t) => {
  const bad = (text: string) => ({ 'SKILL.md': `---\nname: other\ndescription: ${text}\n---\nBody\n` })
  const cwd = t.testdir({ 's\u001b': { a: skill('a'), b: {}, c: bad('a: \u001bc'), d: bad('"') } })
  const { code, out, errors } = await run(cwd, 's\u001b', '--fix', '--dry-run')
  t.equal(code, 1)
  t.match(out, /^--- "s\\033\/c\/SKILL\.md"\n[^]*\n-description: a: \\u001bc\n/)
  t.match(errors, /s\\u001b\/d\/SKILL\.md: the frontmatter is unchanged/)
  t.notMatch(out + errors, /[^\P{Cc}\n]/u)
})

t.test('K79: --fix leaves frontmatter alone of which a part is not read, and says so', async (t) => {
  const large = `x: ${'y'.repeat(9_000)}`
  for (const lines of [
    'name: "other\ndescription: x', 'name: [other\ndescription: x\nversion: 1', 'name: other\n\tbad: y',
    '- name: other', 'just text', 'name: other\nname: again', `name: other\n${large}`
  ]) {
    const text = `---\n${lines}\n---\nBody\n`
    t.equal(fixText(text, 'demo'), text)
    t.equal(fixText(`\uFEFF${text}`, 'demo'), text, 'a byte order mark is no part of it')
  }
  const text = '---\nname: "other\ndescription: x\n---\nBody\n'
  const cwd = t.testdir({ skills: { bad: { 'SKILL.md': text }, good: skill('good') } })
  for (const flags of [['--fix', '--dry-run'], ['--fix']]) {
    const { errors, out } = await run(cwd, ...flags)
    t.match(errors,
      /^(?:skillserve: )?skills\/bad\/SKILL\.md: the frontmatter is unchanged: line 2 of SKILL\.md is not .*\n$/)
    if (flags.length > 1) t.equal(out, '')
  }
  t.equal(readFileSync(join(cwd, 'skills/bad/SKILL.md'), 'utf8'), text)
})

/** Frontmatter before and after; without a second text it stays. */
const FIXES: ReadonlyArray<readonly [before: string, after?: string]> = [
  ['', 'name: demo\n'],
  ['description: x\n', 'name: demo\ndescription: x\n'],
  ["'name': other\n", "'name': demo\n"],
  ['name : other\n  # of ours\n', 'name : demo\n  # of ours\n'],
  ['name: "demo"\n'],
  ['name: ["a # b"]\n'],
  ['name: one\n  two\n', 'name: demo\n'],
  ['name:\n\n  - one\n'],
  [' ~\n'],
  ['? name\n: other\n', '? name\n: demo\n'],
  ['"n\\u0061me": other\n', '"n\\u0061me": demo\n'],
  ['{name: other, allowed-tools: [Read], tags: x}\n'],
  ['name: demo\ndescription: a: b  \n"": ""\nauthor: {a: b}\n',
    'name: demo\ndescription: \'a: b\'\n"": ""\nauthor: {a: b}\n'],
  ['name: demo\nallowed-tools:\n- Read\n- Write\n', 'name: demo\nallowed-tools: Read Write\n'],
  ['name: demo\nallowed-tools: [Bash(git), Read]\n', 'name: demo\nallowed-tools: Bash(git) Read\n'],
  ["name: demo\nallowed-tools: ['true']\n"],
  ['name: demo\nallowed-tools: []\n'],
  ['name: demo\nallowed-tools: [5]\n'],
  ['name: demo\nallowed-tools:\n  - Read # why\n'],
  ['name: demo\n? allowed-tools\n: [Read]\n'],
  // Text in YAML 1.2, and something else to readers of YAML 1.1.
  ['name: demo\ndate: 2024-01-02\nx: yes\n', 'name: demo\ndate: "2024-01-02"\nx: "yes"\n'],
  ['name: demo\nmetadata:\n  on: 2024-01-02 # c\n', 'name: demo\nmetadata:\n  "on": "2024-01-02" # c\n'],
  ['name: demo\nmodel: 1e3\ntags: x\n']
]

t.test('K79: --fix writes what reads as before to every reader, or nothing', (t) => {
  for (const [before, after = before] of FIXES) {
    t.equal(fixText(`---\n${before}---\nBody\n`, 'demo'), `---\n${after}---\nBody\n`, JSON.stringify(before))
  }
  t.equal(fixText('---\nname: other\n---\n', 'No Name'), '---\nname: other\n---\n', 'a folder without a valid name')
  t.end()
})
