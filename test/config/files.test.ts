import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Type } from '@sinclair/typebox'
import fc from 'fast-check'
import t from 'tap'
import { replaceFile } from '../../src/config/files/files.ts'
import { FollowedFile } from '../../src/config/files/followed-file.ts'
import { parseYamlFile, readYamlFile } from '../../src/config/files/yaml-file.ts'
import { ConfigError } from '../../src/config/setting.ts'

const Name = Type.String({ pattern: '^[a-z]+$', title: 'a name in small letters' })
const Schema = Type.Object({
  people: Type.Array(Type.Object({ name: Name, groups: Type.Optional(Type.Array(Name)) }, { additionalProperties: false })),
  level: Type.Optional(Type.Integer({ minimum: 1 }))
}, { additionalProperties: false, title: 'a mapping' })

const GOOD = `# who is who
people:
  - name: ann
    groups: [docs, ops]

  - { name: bob }
level: 3
`

function refusal (text: string): string {
  try {
    parseYamlFile('people.yaml', text, Schema)
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  return 'accepted'
}

t.test('a file gives its value, and the lines of all that is in it', async (t) => {
  const folder = t.testdir({ 'people.yaml': GOOD })
  const path = join(folder, 'people.yaml')
  const file = await readYamlFile(path, Schema)
  t.strictSame(file.value, { people: [{ name: 'ann', groups: ['docs', 'ops'] }, { name: 'bob' }], level: 3 })
  t.strictSame([[], ['people'], ['people', 0], ['people', 0, 'groups'], ['people', 0, 'groups', 1], ['people', 1, 'name'], ['level']].map(file.lineOf), [1, 2, 3, 4, 4, 6, 7])
  t.equal(file.lineOf(['people', 1, 'groups', 4]), 6, 'of what is not there, the line of what should hold it')
  t.equal(file.error(['people', 1, 'name'], 'is taken').message, `${path}:6: people[1].name is taken`)
})

t.test('what does not fit the schema is one line with file, line and key', async (t) => {
  for (const [text, message] of [
    ['', 'people.yaml:1: the file is empty'],
    ['- a', 'people.yaml:1: must be a mapping'],
    ['level: 3', 'people.yaml:1: people is missing'],
    [GOOD.replace('bob', 'Bob'), 'people.yaml:6: people[1].name must be a name in small letters'],
    [GOOD.replace('groups', 'group'), 'people.yaml:4: people[0].group is an unknown key; allowed: name, groups, did you mean "groups"?'],
    [GOOD.replace('ops', '7'), 'people.yaml:4: people[0].groups[1] must be a name in small letters'],
    [GOOD.replace('level: 3', 'level: 0'), 'people.yaml:7: level must be >= 1'],
    [GOOD.replace('level: 3', '"two words": 0'), 'people.yaml:7: "two words" is an unknown key; allowed: people, level'],
    [`${GOOD}level: 4`, 'people.yaml:8: not valid YAML: duplicated mapping key'],
    [GOOD.replace('[docs, ops]', '[docs'), 'people.yaml:6: not valid YAML:'],
    [GOOD.replace('[docs, ops]', '&g [docs]').replace('bob', '*g'), 'people.yaml:6: not valid YAML: aliases exceeded'],
    [GOOD.replace('[docs, ops]', '['.repeat(40)), 'people.yaml:4: not valid YAML: nesting exceeded'],
    ['# nobody yet\n', 'people.yaml:'],
    ['people: [ann]', 'people.yaml:1: people[0] must be object'],
    [`${'k'.repeat(100_000)}: 1\npeople: []`, `people.yaml:1: "${'k'.repeat(80)}…" is an unknown key`]
  ] as const) t.equal(refusal(text).slice(0, message.length), message, JSON.stringify(text))
})

t.test('a value is not repeated in an error: it may be a secret', async (t) => {
  t.notMatch(refusal(GOOD.replace('bob', 'SECRET')), /SECRET/)
  t.notMatch(refusal(GOOD.replace('bob }', 'SECRET')), /SECRET/)
})

t.test('a file that cannot be used is named, and one that is too large is not read', async (t) => {
  const folder = t.testdir({ latin: Buffer.from([0x61, 0xe4]), circle: t.fixture('symlink', 'circle'), large: '' })
  truncateSync(join(folder, 'large'), 4_000_000_000)
  for (const [name, problem] of [
    ['nosuch.yaml', 'cannot be read: ENOENT: no such file or directory'],
    ['.', 'cannot be read: EISDIR: illegal operation on a directory'],
    ['circle', 'cannot be read: ELOOP: too many symbolic links encountered'],
    ['latin', 'is not UTF-8 text'],
    ['large', 'cannot be read: it is larger than 16777216 bytes']
  ] as const) await t.rejects(readYamlFile(join(folder, name), Schema), { name: 'ConfigError', message: `${join(folder, name)} ${problem}` })
})

t.test('any text is a value or one line of refusal', async () => {
  const pieces = fc.constantFrom('people', ':', ' ', '\n', '- ', 'name', '[', ']', '{', '}', ',', 'x', '"', '&a', '*a', '!!set', '? ', '#', '---\n', '|\n', '\t', '\u0000')
  fc.assert(fc.property(fc.array(pieces, { maxLength: 30 }), (parts) => {
    const message = refusal(parts.join(''))
    return message === 'accepted' || /^people\.yaml:[1-9]\d*: [^\n]+$/.test(message)
  }), { numRuns: 1_000 })
})

t.test('K61: no refusal repeats a token, wherever in the file it stands', (t) => {
  const token = `sks_${'a1B2'.repeat(9)}`
  for (const text of [`${token}: 1\n`, `people:\n  - { name: ann, ${token} }\n`, `people: [{ name: ${token} }]\n`, `people: !${token} x\n`, `people: *${token}\n`, `people: "${token}\n`, `level: ${token}\n`]) {
    const message = refusal(text)
    t.match(message, /^people\.yaml:\d+: /, text)
    t.notMatch(message, 'a1B2', text)
  }
  t.end()
})

/** A followed file, and its next event. */
async function follow (path: string, parse: Parameters<typeof FollowedFile.open<string>>[1] = parseText) {
  const file = await FollowedFile.open({ name: 'the lock', setting: 'FILE', path }, parse)
  // The timers of the file keep no process alive.
  const alive = setInterval(() => {}, 60_000)
  const next = async (event: 'changed' | 'failed'): Promise<unknown> => (await once(file, event))[0] as unknown
  return { file, next, stop: () => { clearInterval(alive); file.close() } }
}

function parseText (_path: string, text: string): string {
  if (text.startsWith('broken')) throw new ConfigError(text)
  return text
}

t.test('K60: a file is read again when it changes: in place, by rename, by links as Kubernetes replaces them, and after it was away', async (t) => {
  const folder = t.testdir({ v1: { file: 'first' }, v2: { file: 'second' }, link: t.fixture('symlink', 'data/file'), data: t.fixture('symlink', 'v1') })
  const { file, next, stop } = await follow(join(folder, 'link'))
  t.teardown(stop)
  t.equal(file.value, 'first')
  const steps: ReadonlyArray<readonly [string, () => void]> = [
    ['second', () => { symlinkSync('v2', join(folder, 'new')); renameSync(join(folder, 'new'), join(folder, 'data')) }],
    ['third', () => { writeFileSync(join(folder, 'v2', 'file'), 'third') }],
    ['fourth', () => { writeFileSync(join(folder, 'file'), 'fourth'); renameSync(join(folder, 'file'), join(folder, 'v2', 'file')) }]
  ]
  for (const [text, change] of steps) {
    const changed = next('changed')
    change()
    t.equal(await changed, text)
    t.equal(file.value, text)
  }
  const failed = next('failed')
  renameSync(join(folder, 'v2'), join(folder, 'away'))
  t.match(await failed, { message: /ENOENT: no such file or directory$/ })
  renameSync(join(folder, 'away'), join(folder, 'v2'))
  await file.reload()
  t.strictSame([file.value, file.remark], ['fourth', undefined])
})

t.test('K60: while a file cannot be used the last good value stays, and each reason is reported once', async (t) => {
  const path = join(t.testdir({ one: 'good' }), 'one')
  const { file, next, stop } = await follow(path)
  t.teardown(stop)
  const reasons: unknown[] = []
  file.on('failed', (error) => { reasons.push(error.message) })
  for (const [change, reason] of [
    [() => { writeFileSync(path, 'broken: line 1') }, 'broken: line 1'],
    [() => { rmSync(path); execFileSync('mkfifo', [path]) }, `${path} cannot be read: it is not a regular file`],
    [() => { rmSync(path); mkdirSync(path) }, `${path} cannot be read: EISDIR: illegal operation on a directory`]
  ] as const) {
    const failed = next('failed')
    change()
    await failed
    t.equal(reasons.at(-1), reason)
    await file.reload()
    t.equal(file.value, 'good')
    t.match(file.remark, /^the lock cannot be used/)
  }
  rmSync(path, { recursive: true })
  writeFileSync(path, 'good')
  await file.reload()
  t.equal(reasons.length, 3, 'once each')
  t.equal(file.remark, undefined)
})

t.test('K60: files that the text names are followed with it', async (t) => {
  const folder = t.testdir({ one: 'text', key: 'first' })
  const key = join(folder, 'key')
  const { file, next, stop } = await follow(join(folder, 'one'), async (path, _text, readNamed) => parseText(path, await readNamed(key)))
  t.teardown(stop)
  for (const [text, event] of [['second', 'changed'], ['broken', 'failed'], ['third', 'changed']] as const) {
    const reported = next(event)
    writeFileSync(key, text)
    await reported
    t.equal(file.value, text === 'broken' ? 'second' : text)
  }
})

t.test('a file that cannot be used at the start is refused', async (t) => {
  const folder = t.testdir({ one: 'broken' })
  for (const name of ['one', 'two']) await t.rejects(follow(join(folder, name)), ConfigError)
})

t.test('a file is replaced whole: links and modes stay, and no pipe or folder is replaced', async (t) => {
  const folder = t.testdir({ target: 'before', link: t.fixture('symlink', 'target') })
  const [link, target] = [join(folder, 'link'), join(folder, 'target')]
  chmodSync(target, 0o640)
  await replaceFile(link, 'after')
  t.ok(lstatSync(link).isSymbolicLink())
  t.strictSame([readFileSync(target, 'utf8'), statSync(target).mode & 0o777], ['after', 0o640])
  execFileSync('mkfifo', [join(folder, 'pipe')])
  await t.rejects(replaceFile(join(folder, 'pipe'), 'x'), { message: 'it is not a regular file' })
  await t.rejects(replaceFile(folder, 'x'))
  t.strictSame(readdirSync(folder).sort(), ['link', 'pipe', 'target'])
})
