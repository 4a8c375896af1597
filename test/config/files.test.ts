import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync
} from 'node:fs'
import { join } from 'node:path'
import { Type } from '@sinclair/typebox'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { readConfigFile } from '../../src/config/config-file.ts'
import { replaceFile } from '../../src/operator/files.ts'
import { FollowedFile } from '../../src/operator/followed-file.ts'
import { parseYamlFile, readYamlFile } from '../../src/operator/yaml-file.ts'
import { loadConfig } from '../../src/config/load.ts'
import { openRoots } from '../../src/config/roots.ts'
import { ConfigError } from '../../src/operator/setting.ts'
import type { Config } from '../../src/config/settings.ts'
import { SILENT } from '../../src/core/shared/log.ts'

const Name = Type.String({ pattern: '^[a-z]+$', title: 'a name in small letters' })
const Schema = Type.Object({
  people: Type.Array(Type.Object({ name: Name, groups: Type.Optional(Type.Array(Name)) },
    { additionalProperties: false })),
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

t.test('K60, K83: what does not fit the schema is one line with file, line and key', async (t) => {
  for (const [text, message] of [
    ['', 'people.yaml:1: the file is empty'],
    ['- a', 'people.yaml:1: must be a mapping'],
    ['level: 3', 'people.yaml:1: people is missing'],
    [GOOD.replace('bob', 'Bob'), 'people.yaml:6: people[1].name must be a name in small letters'],
    [GOOD.replace('groups', 'group'),
      'people.yaml:4: people[0].group is an unknown key; allowed: name, groups, did you mean "groups"?'],
    [GOOD.replace('ops', '7'), 'people.yaml:4: people[0].groups[1] must be a name in small letters'],
    [GOOD.replace('level: 3', 'level: 0'), 'people.yaml:7: level must be >= 1'],
    [GOOD.replace('level: 3', '"two words": 0'),
      'people.yaml:7: "two words" is an unknown key; allowed: people, level'],
    [`${GOOD}level: 4`, 'people.yaml:8: not valid YAML: Map keys must be unique'],
    [GOOD.replace('[docs, ops]', '[docs'), 'people.yaml:6: not valid YAML:'],
    [GOOD.replace('[docs, ops]', '&g [docs]').replace('bob', '*g'), 'people.yaml:6: YAML aliases are not supported'],
    [GOOD.replace('[docs, ops]', '['.repeat(40)), 'people.yaml:6: not valid YAML: '],
    ['# nobody yet\n', 'people.yaml:'],
    ['people: [ann]', 'people.yaml:1: people[0] must be object'],
    [`${'k'.repeat(1_000)}: 1\npeople: []`, `people.yaml:1: "${'k'.repeat(80)}…" is an unknown key`]
  ] as const) t.equal(refusal(text).slice(0, message.length), message, JSON.stringify(text))
})

t.test('K60, K83: a file that cannot be used is named, and one that is too large is not read', async (t) => {
  const folder = t.testdir({ latin: Buffer.from([0x61, 0xe4]), circle: t.fixture('symlink', 'circle'), large: '' })
  truncateSync(join(folder, 'large'), 4_000_000_000)
  for (const [name, problem] of [
    ['nosuch.yaml', 'cannot be read: ENOENT: no such file or directory'],
    ['.', 'cannot be read: EISDIR: illegal operation on a directory'],
    ['circle', 'cannot be read: ELOOP: too many symbolic links encountered'],
    ['latin', 'is not UTF-8 text'],
    ['large', 'cannot be read: it is larger than 16777216 bytes']
  ] as const) {
    await t.rejects(readYamlFile(join(folder, name), Schema),
      { name: 'ConfigError', message: `${join(folder, name)} ${problem}` })
  }
})

t.test('K60, K83: any text is a value or one line of refusal', async () => {
  const pieces = fc.constantFrom('people', ':', ' ', '\n', '- ', 'name', '[', ']', '{', '}', ',', 'x', '"', '&a',
    '*a', '!!set', '? ', '#', '---\n', '|\n', '\t', '\u0000')
  fc.assert(fc.property(fc.array(pieces, { maxLength: 30 }), (parts) => {
    const message = refusal(parts.join(''))
    return message === 'accepted' || /^people\.yaml:[1-9]\d*: [^\n]+$/.test(message)
  }), { numRuns: 1_000 })
})

t.test('K61: no refusal repeats a value or a token, wherever in the file it stands', (t) => {
  const token = `sks_${'a1B2'.repeat(9)}`
  for (const text of [`${token}: 1\n`, `people:\n  - { name: ann, ${token} }\n`, `people: [{ name: ${token} }]\n`,
    `people: !${token} x\n`, `people: *${token}\n`, `people: "${token}\n`, `level: ${token}\n`]) {
    const message = refusal(text)
    t.match(message, /^people\.yaml:\d+: /, text)
    t.notMatch(message, 'a1B2', text)
  }
  for (const value of ['bob', 'bob }']) t.notMatch(refusal(GOOD.replace(value, 'SECRET')), /SECRET/)
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

t.test('K60: a file is read again when it changes: in place, by rename, by links as Kubernetes replaces them, and ' +
  'after it was away', async (t) => {
  const folder = t.testdir({
    v1: { file: 'first' },
    v2: { file: 'second' },
    link: t.fixture('symlink', 'data/file'),
    data: t.fixture('symlink', 'v1')
  })
  const { file, next, stop } = await follow(join(folder, 'link'))
  t.teardown(stop)
  t.equal(file.value, 'first')
  const steps: ReadonlyArray<readonly [string, () => void]> = [
    ['second', () => { symlinkSync('v2', join(folder, 'new')); renameSync(join(folder, 'new'), join(folder, 'data')) }],
    ['third', () => { writeFileSync(join(folder, 'v2', 'file'), 'third') }],
    ['fourth',
      () => {
        writeFileSync(join(folder, 'file'), 'fourth'); renameSync(join(folder, 'file'),
          join(folder, 'v2', 'file'))
      }]
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
  t.strictSame([file.value, file.problem], ['fourth', undefined])
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
    t.match(file.problem, /^the lock cannot be used/)
  }
  rmSync(path, { recursive: true })
  writeFileSync(path, 'good')
  await file.reload()
  t.equal(reasons.length, 3, 'once each')
  t.equal(file.problem, undefined)
})

t.test('K60: files that the text names are followed with it', async (t) => {
  const folder = t.testdir({ one: 'text', key: 'first' })
  const key = join(folder, 'key')
  const { file, next, stop } = await follow(join(folder, 'one'),
    async (path, _text, readNamed) => parseText(path, await readNamed(key)))
  t.teardown(stop)
  for (const [text, event] of [['second', 'changed'], ['broken', 'failed'], ['third', 'changed']] as const) {
    const reported = next(event)
    writeFileSync(key, text)
    await reported
    t.equal(file.value, text === 'broken' ? 'second' : text)
  }
})

t.test('K95: a lock is replaced whole: links and modes stay, and no pipe or folder is replaced', async (t) => {
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

async function read (t: Test, text: string): Promise<unknown> {
  const file = join(t.testdir(), 'skillserve.yaml')
  writeFileSync(file, text)
  try {
    return await readConfigFile(file)
  } catch (error) {
    if (error instanceof ConfigError) return error.message.replace(file, 'FILE')
    throw error
  }
}

t.test('K83: a configuration file in YAML or JSON, with paths from its own folder', async (t) => {
  const expected = [
    {
      kind: 'git',
      name: 'team',
      url: 'https://git.example/team/skills.git',
      ref: 'main',
      path: 'skills',
      layout: 'auto',
      intervalMs: 60_000,
      auth: { secretFile: '/run/secrets/git' },
      webhookSecretFile: join(t.testdir(), 'hook')
    },
    { kind: 'folder', path: join(t.testdir(), 'skills') }
  ]
  const sources = [
    {
      name: 'team',
      git: 'https://git.example/team/skills.git',
      ref: 'main',
      path: 'skills',
      layout: 'auto',
      interval: '60s',
      auth: { token_file: '/run/secrets/git' },
      webhook: { secret_file: 'hook' }
    },
    { folder: './skills' }
  ]
  t.match(await read(t, JSON.stringify({ sources }, undefined, 2)), expected)
  const yaml = 'sources:\n  - archive: https://host.example/a.zip\n    optional: true\n    timeout: 5m\n  - oci: ' +
    'oci://host.example/team/skills:1\n    include: [a/**]\n  - s3: s3://bucket/x\n    endpoint: ' +
      'https://s3.example\n    marker: .revision\n'
  t.match(await read(t, yaml),
    [{ kind: 'archive', optional: true, timeoutMs: 300_000 }, { kind: 'oci', include: ['a/**'] },
      { kind: 's3', endpoint: 'https://s3.example', marker: '.revision' }])
})

t.test('K83: what is wrong stops the start with the line and the key', async (t) => {
  const table: ReadonlyArray<readonly [string, RegExp]> = [
    ['sources:\n  - folder: a\n    colour: red\n', /^FILE:3: sources\[0\]\.colour is an unknown key/],
    ['sources:\n  - git: https://h.example/r.git\n    interval: 5s\n',
      /^FILE:3: sources\[0\]\.interval must be at least 10s/],
    ['sources:\n  - git: https://h.example/r.git\n    interval: 720h\n',
      /^FILE:3: sources\[0\]\.interval must be a duration up to 499h/],
    ['sources:\n  - git: https://h.example/r.git\n    interval: soon\n', /^FILE:3: .*duration/],
    ['sources:\n  - name: x\n', /^FILE:2: sources\[0\] needs one of folder, archive, /],
    ['sources:\n  - git: https://h.example/r.git\n    s3: s3://bbb\n',
      /^FILE:3: sources\[0\]\.s3 is a second source next to git: keep one/],
    ['sources:\n  - folder: a\n    ref: main\n',
      /^FILE:3: sources\[0\]\.ref is not a setting of a source of kind folder$/],
    ['sources:\n  - folder: a\n    include: [b]\n', /^FILE:3: sources\[0\]\.include only applies to layouts other than flat$/],
    ['sources:\n  - git: https://u:hunter2@h.example/r.git\n', /^FILE:2: .*password/],
    ['sources:\n  - git: https://h.example/r.git#v1\n', /^FILE:2: sources\[0\]\.git cannot be used: .*# is not allowed here/],
    ['sources:\n  - s3: s3://bucket/x\n    endpoint: minio:9000\n',
      /^FILE:2: sources\[0\]\.s3 cannot be used: the endpoint of a bucket/],
    ['sources:\n  - s3: s3://bucket/x\n    endpoint: https://me:hunter2@s3.example\n',
      /^FILE:2: .*without credentials/],
    ['sources:\n  - s3: s3://bucket/x\n    endpoint: http://s3.example\n', /^FILE:2: .*https/],
    ['sources:\n  - git: github.com/owner/repo\n',
      /^FILE:2: sources\[0\]\.git cannot be used: not an address such as https:\/\/host/],
    ['sources:\n  - git: ext://h.example/x\n', /^FILE:2: .*must begin with https/],
    ['sources:\n  - git: git@h.example:team/skills.git\n', /^FILE:2: .*ssh:\/\/user@host\/path/],
    ['- folder: ./a\n', /^FILE:1: must be a mapping with the list sources$/],
    ['sources:\n  - ./a\n', /^FILE:2: sources\[0\] must be a mapping such as folder: \.\/skills$/],
    ['source: []\n', /^FILE:1: source is an unknown key; allowed: \$schema, sources, did you mean "sources"\?$/],
    ['sources:\n  - folder: ./a\n    layout: tre\n',
      /^FILE:3: sources\[0\]\.layout must be one of auto, .*, did you mean "tree"\?$/],
    ['sources: 3\n', /^FILE:1: sources must be a list/]
  ]
  for (const [text, expected] of table) {
    const refusal = await read(t, text)
    t.match(refusal, expected, text)
    t.notMatch(refusal, /hunter2/)
  }
})

const DEFAULTS = loadConfig({ env: {}, cwd: '/' })

async function open (config: Partial<Config>, env = {}) {
  return await openRoots({ ...DEFAULTS, ...config }, { log: SILENT, env })
}

t.test('K83: folders and sources keep their order, and folders alone need no state folder', async (t) => {
  const stateDir = join(t.testdir({ 'c.yaml': 'sources:\n  - folder: x\n    name: mine\n' }), 'state')
  const config = {
    skillsDirs: ['/a', '/b'], personalDir: '/p', configFile: join(t.testdirName, 'c.yaml'), stateDir
  }
  const { sources } = await open(config)
  const paths = ['/a', '/b', join(t.testdirName, 'x'), '/p']
  t.strictSame(sources.roots.map(({ path }) => path), paths)
  t.match(sources.roots, [{ name: 'a', type: 'project' }, {}, { name: 'mine' }, { type: 'personal' }])
  t.notOk(existsSync(stateDir))
  const personalDir = 'git+file:///srv/own'
  const mixed = await open({ ...config, skillsDirs: ['/a', 'git+file:///srv/none', '/b'], personalDir })
  t.teardown(() => mixed.sources.close())
  t.match(mixed.sources.roots,
    [{ path: '/a' }, { name: 'none', listed: Object }, { path: '/b' }, { name: 'mine' },
      { name: 'own', listed: Object, type: 'personal' }])
})

t.test('K83, K73: a state folder or an audit log among the skills is refused with both settings', async (t) => {
  const folder = t.testdir({ skills: {}, mine: {}, linked: {}, apart: {} })
  const at = (...names: string[]): string => join(folder, ...names)
  symlinkSync(at('skills'), at('also'))
  symlinkSync(at('skills', 'audit.jsonl'), at('later.jsonl'))
  writeFileSync(at('file.yaml'), 'sources:\n  - folder: ./skills\n')
  const source = 'https://127.0.0.1:1/a.zip'
  const skillsDirs = [source, at('skills')]
  const table: ReadonlyArray<readonly [folder: string, path: string, config: Partial<Config>]> = [
    ['skills', at('skills', '.state'), { skillsDirs }],
    ['skills', at('skills'), { skillsDirs, layout: 'tree' }],
    ['skills', at('also', 'a', 'b'), { skillsDirs }],
    ['also', at('skills', 'a'), { skillsDirs: [source, at('also')] }],
    ['skills', at('later.jsonl'), { skillsDirs }],
    ['mine', at('mine', 'a'), { skillsDirs: [source], personalDir: at('mine') }],
    ['linked', at('linked', 'a'), { skillsDirs: [source], linkTargets: [at('linked')] }],
    ['skills', at('skills', 'a'), { skillsDirs: [source], configFile: at('file.yaml') }]
  ]
  for (const [inside, path, config] of table) {
    const message = (setting: string) =>
      `${setting}: ${JSON.stringify(path)} is inside ${JSON.stringify(at(inside))}, ` +
      'whose files are served: choose a place outside all folders of skills'
    await t.rejects(open({ ...config, stateDir: path }),
      { name: 'ConfigError', message: message('STATE_DIR or --state-dir') })
    t.notOk(existsSync(join(path, 'lock')))
    const apart = { ...config, stateDir: at('apart') }
    await t.rejects(open({ ...apart, auditLog: path }), { name: 'ConfigError', message: message('AUDIT_LOG') })
    const { sources } = await open({ ...apart, auditLog: at('skillset') })
    await sources.close()
  }
  const plain = await open({ skillsDirs: [at('skills')], stateDir: at('skills') })
  t.strictSame(plain.sources.status, [], 'folders need no state')
  await t.rejects(open({ skillsDirs, stateDir: undefined }, { XDG_CACHE_HOME: at('skills') }),
    { name: 'ConfigError' }, 'the default counts too')
})
