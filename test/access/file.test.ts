import { chmodSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import t from 'tap'
import fc from 'fast-check'
import { openAccess } from '../../src/access/access.ts'
import { patternOf, readRules } from '../../src/access/entries.ts'
import { Policy } from '../../src/access/policy.ts'
import { createSkillManager } from '../../src/core/skill-manager.ts'
import { ConfigError } from '../../src/config/setting.ts'
import { buildGuarded, newSecret } from '../helper/guarded.ts'
import { startProcess } from '../helper/process.ts'
import { skill } from '../helper/skills.ts'
import { checkTime } from '../helper/timing.ts'

const ann = newSecret('ann', 'groups: [docs]')
const ACCESS = `tokens:\n  - ${ann.entry}\nrules:\n  - { groups: [docs], roots: [docs] }\n`
const DIGEST = 'a'.repeat(64)

t.test('K60: an access file among the skills is refused, through links too', async (t) => {
  const folder = t.testdir({ docs: { guide: skill('guide'), 'access.yaml': ACCESS }, 'access.yaml': ACCESS })
  const open = (file: string, docs = join(folder, 'docs')) => openAccess({ file, basePath: '', publicUrl: undefined, skills: createSkillManager({ projectRoots: [docs], watcher: false }), log: pino({ level: 'silent' }) }, [docs])
  symlinkSync(join(folder, 'docs', 'access.yaml'), join(folder, 'link.yaml'))
  symlinkSync(join(folder, 'docs'), join(folder, 'also-docs'))
  for (const [file, docs] of [[join(folder, 'docs', 'access.yaml')], [join(folder, 'link.yaml')], [join(folder, 'docs', 'access.yaml'), join(folder, 'also-docs')]] as const) {
    await t.rejects(open(file, docs), { name: 'ConfigError', message: /access|link\.yaml is inside .*docs, whose files are served/ })
  }
  // A name that begins with two dots is no way up.
  await t.rejects(open(join(folder, '..access.yaml')), { message: /cannot be read: ENOENT/ })
  const access = await open(join(folder, 'access.yaml'))
  access.close()
})

t.test('K60: a file that every user of the machine can write has a warning', async (t) => {
  const { folder } = await buildGuarded(t, { roots: { docs: {} }, access: ACCESS })
  chmodSync(join(folder, 'access.yaml'), 0o666)
  let lines = ''
  const log = pino({ level: 'warn' }, { write: (line: string) => { lines += line } })
  const skills = createSkillManager({ projectRoots: [join(folder, 'docs')], watcher: false })
  const access = await openAccess({ file: join(folder, 'access.yaml'), basePath: '', publicUrl: undefined, skills, log }, skills.rootPaths)
  t.match(lines, 'every user of this machine can write the access file')
  access.close()
  await skills.close()
})

const BROKEN: Readonly<Record<string, string>> = {
  'an unknown key': `${ACCESS}admins: []\n`,
  'a misspelt key of a rule': 'rules:\n  - { groups: [docs], root: [docs] }\n',
  'a rule for nobody': 'rules:\n  - { groups: [], roots: [docs] }\n',
  'a rule for no roots': 'rules:\n  - { groups: [docs], roots: [] }\n',
  'a rule for null roots': 'rules:\n  - { groups: [docs], roots: ~ }\n',
  'a rule with an empty key': 'rules:\n  - groups: [docs]\n    roots:\n',
  'an unknown scope': `tokens:\n  - { name: a, sha256: ${DIGEST}, scopes: ["skills:raed"] }\n`,
  'an unknown root': 'rules:\n  - { groups: [docs], roots: [dosc] }\n',
  'a pattern that is no text': 'rules:\n  - { groups: [docs], skills: [1] }\n',
  'a group that is no name': 'rules:\n  - { groups: ["a,b"] }\n',
  'a digest that is a token': `tokens:\n  - { name: a, sha256: ${ann.text} }\n`,
  'a name twice': `tokens:\n  - { name: a, sha256: ${DIGEST} }\n  - { name: a, sha256: ${'b'.repeat(64)} }\n`,
  'the name of callers without credentials': `tokens:\n  - { name: anonymous, sha256: ${DIGEST} }\n`,
  'a link with the name of a group': `links:\n  - { name: "group:docs", sha256: ${DIGEST} }\n`,
  'a link with the name of a token': `tokens:\n  - { name: a, sha256: ${DIGEST} }\nlinks:\n  - { name: a, sha256: ${'b'.repeat(64)} }\n`,
  'a digest twice': `tokens:\n  - { name: a, sha256: ${DIGEST} }\n  - { name: b, sha256: ${DIGEST.toUpperCase()} }\n`,
  'a key twice': 'rules: []\nrules:\n  - { groups: [anonymous] }\n',
  'no day of the calendar': `tokens:\n  - { name: a, sha256: ${DIGEST}, expires: 2027-13-01 }\n`,
  'no day of its month': `tokens:\n  - { name: a, sha256: ${DIGEST}, expires: 2027-02-30 }\n`,
  'an issuer without audiences': 'issuers:\n  - { issuer: https://id.example }\n',
  'an issuer twice': 'issuers:\n  - { issuer: https://id.example, audiences: [a] }\n  - { issuer: https://id.example, audiences: [b] }\n',
  'an issuer with no audience': 'issuers:\n  - { issuer: https://id.example, audiences: [] }\n',
  'a tolerance of clocks over a minute': 'issuers:\n  - { issuer: https://id.example, audiences: [a], clock_tolerance: 61 }\n',
  'an algorithm with a shared secret': 'issuers:\n  - { issuer: https://id.example, audiences: [a], algorithms: [HS256] }\n',
  'no algorithm': 'issuers:\n  - { issuer: https://id.example, audiences: [a], algorithms: [none] }\n',
  'a proxy from anywhere': 'proxy: { peers: [] }\n',
  'a proxy in a zone of this machine': 'proxy: { peers: ["fe80::1%eth0"] }\n',
  'a proxy by its name': 'proxy: { peers: [proxy.example] }\n',
  'an alias': 'anonymous: &a [x]\ntokens: []\nrules:\n  - { groups: *a }\n',
  'an open quote': 'rules:\n  - { groups: ["docs] }\n',
  'a list': '- docs\n',
  nothing: '',
  'a comment': '# rules:\n',
  'two documents': 'rules: []\n---\nrules:\n  - { groups: [anonymous] }\n',
  'a tab': 'rules:\n\t- { groups: [anonymous] }\n'
}

t.test('K60: what cannot be meant is refused, with file and line', async (t) => {
  for (const [label, text] of Object.entries(BROKEN)) {
    let error: unknown
    try {
      Policy.parse('access.yaml', text, { roots: ['docs'], resource: undefined })
    } catch (caught) {
      error = caught
    }
    t.ok(error instanceof ConfigError, label)
    t.match(error, { message: /^access\.yaml:\d+: [^\n]+$/ }, label)
    t.notMatch(error, { message: 'constant' }, 'what is allowed has a name')
    t.notMatch(error, { message: ann.text }, 'a secret in a wrong place is not repeated')
  }
})

t.test('K60: a broken file while running changes nobody\'s view', async (t) => {
  const service = await buildGuarded(t, { roots: { docs: { guide: skill('guide') }, ops: { pager: skill('pager') } }, access: ACCESS })
  for (const text of [BROKEN['a misspelt key of a rule'] ?? '', '', '\0\0', `${ACCESS}  - { groups: [docs], roots: [op`]) {
    await service.breakAccess(text)
    t.strictSame(await (await service.get('/skills', ann.text)).json(), { skills: ['guide'] })
    t.equal((await service.get('/skills')).status, 401)
    t.match(await (await service.get('/readyz', ann.text)).json(), { status: 'ready', detail: /the last good one stays in force/ })
  }
  await service.setAccess(`${ACCESS}  - { groups: [docs], roots: [ops] }\n`)
  t.strictSame(await (await service.get('/skills', ann.text)).json(), { skills: ['guide', 'pager'] })
})

t.test('K60: the start warns of patterns that fit no skill, and of no others', async (t) => {
  const folder = t.testdir({ docs: { demo: skill('demo') } })
  const file = join(folder, 'access.yaml')
  writeFileSync(file, ACCESS.replace('roots: [docs]', 'skills: ["de*", "nosuch*"]'))
  const { log, printed } = await startProcess(t, { args: [join(folder, 'docs'), '--access', file], env: { LOG_FORMAT: 'json' } })
  await printed('which fits no skill')
  t.match(log().map(({ problem }) => problem).filter((problem) => problem !== undefined), [/"nosuch\*", which fits no skill$/])
})

t.test('K60: a token or link that has expired is a warning, and opens nothing', (t) => {
  const { warnings } = Policy.parse('access.yaml', [
    `tokens: [{ name: old, sha256: ${DIGEST}, expires: 2020-01-01 }, { name: new, sha256: ${DIGEST.replace(/./, '0')}, expires: 2999-01-01 }]`,
    `links: [{ name: gone, sha256: ${DIGEST}, expires: "2020-01-01T00:00Z" }]`,
    'rules: [{ groups: [docs] }]'
  ].join('\n'), { roots: ['docs'], resource: undefined })
  t.strictSame(warnings, ['access.yaml:1: tokens[0].expires is past: "old" opens nothing', 'access.yaml:2: links[0].expires is past: "gone" opens nothing'])
  t.end()
})

t.test('K60: a group that no rule names is a warning, whoever is in it', (t) => {
  const { warnings } = Policy.parse('access.yaml', [
    'anonymous: [typo, docs]',
    `tokens: [{ name: a, sha256: ${DIGEST}, groups: [docs, typo] }]`,
    `links: [{ name: b, sha256: ${DIGEST}, groups: [typo] }]`,
    'issuers: [{ issuer: https://id.example, audiences: [a], groups: [docs, typo] }]',
    'rules: [{ groups: [docs] }]'
  ].join('\n'), { roots: ['docs'], resource: undefined })
  t.strictSame(warnings, ['1: anonymous[0]', '2: tokens[0].groups[1]', '3: links[0].groups[0]', '4: issuers[0].groups[1]'].map((place) => `access.yaml:${place} is a group that no rule names`))
  t.end()
})

t.test('K60: an issuer whose keys are read over http:// is a warning, but on this machine', (t) => {
  const { warnings } = Policy.parse('access.yaml', [
    'issuers:',
    '  - { issuer: http://id.example/realm, audiences: [a] }',
    '  - { issuer: https://id.example, audiences: [a], jwks_uri: http://id.example:8080/keys }',
    '  - { issuer: http://other.example, audiences: [a], jwks_uri: https://other.example/keys }',
    ...['http://127.0.0.1:9000', 'http://[::1]:9000/realm', 'http://localhost'].map((issuer) => `  - { issuer: '${issuer}', audiences: [a] }`)
  ].join('\n'), { roots: [], resource: undefined })
  t.match(warnings, [/^access\.yaml:2: issuers\[0\]\.issuer is not an https:\/\/ address: /, /^access\.yaml:3: issuers\[1\]\.jwks_uri is not an https:\/\/ address: /])
  t.equal(warnings.length, 2)
  t.end()
})

t.test('K64: a star stands for any characters, and no name takes long', async (t) => {
  fc.assert(fc.property(fc.stringMatching(/^[ab*]{0,8}$/), fc.stringMatching(/^[ab]{0,12}$/), (text, name) => {
    return patternOf(text)(name) === new RegExp(`^${text.replaceAll('*', '.*')}$`).test(name)
  }), { numRuns: 2_000 })
  for (const [text, name] of [['a.c', 'abc'], ['a.*', 'ab'], ['(a', 'a'], ['', 'a'], ['ab*ba', 'aba']] as const) t.notOk(patternOf(text)(name), text)
  t.notOk(await checkTime(t, 5, () => patternOf(`${'*-'.repeat(20)}x`)('-'.repeat(255))))
})

t.test('K60: a pattern is not called one that fits no skill while a folder that it is for has no skills yet', (t) => {
  const policy = Policy.parse('access.yaml', 'rules:\n  - { groups: [docs], roots: [source], skills: [style] }\n', { roots: ['source'], resource: undefined })
  t.strictSame(policy.unfitPatterns(() => []), [])
  t.strictSame(policy.unfitPatterns(() => ['style']), [])
  t.match(policy.unfitPatterns(() => ['other']), [/"style", which fits no skill$/])
  t.end()
})

t.test('K60: the line of a rule is looked up for a report, not at each reload', (t) => {
  let lines = 0
  const file = { path: 'f', value: { rules: [{ groups: ['g'] }] }, lineOf: () => ++lines, error: () => new ConfigError('') }
  const [rule] = readRules(file, ['r'])
  t.ok(rule?.admits('r', 'x'))
  t.equal(lines, 0)
  t.equal(rule?.where, 'f:1: rules[0]')
  t.end()
})
