import { chmodSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { FILE_SCHEMAS, schemaDocument } from '../../scripts/tables.ts'
import { patternOf } from '../../src/access/policy.ts'
import { Policy } from '../../src/access/policy.ts'
import { ConfigError } from '../../src/operator/setting.ts'
import { runHere } from '../helper/command-line.ts'
import { newSecret } from '../helper/guarded.ts'
import { startProcess } from '../helper/process.ts'
import { skill } from '../helper/skills.ts'
import { checkTime } from '../helper/timing.ts'

const ann = newSecret('ann', 'groups: [docs]')
const ACCESS = `tokens:\n  - ${ann.entry}\nrules:\n  - { groups: [docs], roots: [docs] }\n`
const DIGEST = 'a'.repeat(64)
const OTHER_DIGEST = 'b'.repeat(64)
const ISSUER = '{ issuer: https://id.example, audiences: [a] }'

function parse (text: string, roots = ['docs']): Policy {
  return new Policy('access.yaml', text, roots)
}

t.test('K60: an access file among the skills is refused', async (t) => {
  const folder = t.testdir({ docs: { guide: skill('guide'), 'access.yaml': ACCESS }, 'access.yaml': ACCESS })
  const at = (name: string) => join(folder, name)
  symlinkSync(at('docs/access.yaml'), at('link.yaml'))
  symlinkSync(at('docs'), at('also-docs'))
  for (const [file, docs] of [['docs/access.yaml', 'docs'], ['link.yaml', 'docs'],
    ['docs/access.yaml', 'also-docs']] as const) {
    const { code, stderr } = await runHere(['config', at(docs), '--access', at(file)])
    t.equal(code, 1)
    t.match(stderr, /ACCESS_FILE or --access: "[^"]+" is inside "[^"]+docs", whose files are served/)
  }
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
  'a name twice': `tokens:\n  - { name: a, sha256: ${DIGEST} }\n  - { name: a, sha256: ${OTHER_DIGEST} }\n`,
  'the name of callers without credentials': `tokens:\n  - { name: anonymous, sha256: ${DIGEST} }\n`,
  'a link with the name of a group': `links:\n  - { name: "group:docs", sha256: ${DIGEST} }\n`,
  'a link with the name of a token':
    `tokens:\n  - { name: a, sha256: ${DIGEST} }\nlinks:\n  - { name: a, sha256: ${OTHER_DIGEST} }\n`,
  'a digest twice': `tokens:\n  - { name: a, sha256: ${DIGEST} }\n  - { name: b, sha256: ${DIGEST.toUpperCase()} }\n`,
  'a key twice': 'rules: []\nrules:\n  - { groups: [anonymous] }\n',
  'no day of the calendar': `tokens:\n  - { name: a, sha256: ${DIGEST}, expires: 2027-13-01 }\n`,
  'no day of its month': `tokens:\n  - { name: a, sha256: ${DIGEST}, expires: 2027-02-30 }\n`,
  'an issuer without audiences': 'issuers:\n  - { issuer: https://id.example }\n',
  'an issuer twice': `issuers:\n  - ${ISSUER}\n  - ${ISSUER}\n`,
  'an issuer at no address': `issuers:\n  - ${ISSUER.replace('id.example', 'id.example:x')}\n`,
  'keys at no address': `issuers:\n  - ${ISSUER.replace(' }', ', jwks_uri: "https://[" }')}\n`,
  'an issuer with no audience': `issuers:\n  - ${ISSUER.replace('[a]', '[]')}\n`,
  'a tolerance of clocks over a minute': `issuers:\n  - ${ISSUER.replace(' }', ', clock_tolerance: 61 }')}\n`,
  'an algorithm with a shared secret': `issuers:\n  - ${ISSUER.replace(' }', ', algorithms: [HS256] }')}\n`,
  'no algorithm': `issuers:\n  - ${ISSUER.replace(' }', ', algorithms: [none] }')}\n`,
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
      parse(text)
    } catch (caught) {
      error = caught
    }
    t.ok(error instanceof ConfigError, label)
    t.match(error, { message: /^access\.yaml:\d+: [^\n]+$/ }, label)
    t.notMatch(error, { message: 'constant' }, 'what is allowed has a name')
    t.notMatch(error, { message: ann.text }, 'a secret in a wrong place is not repeated')
  }
  t.throws(() => parse(ACCESS, ['docs', 'docs']), { message: /two folders of skills are called "docs"/ })
})

t.test('K60: the start warns of a file that all can write', async (t) => {
  const folder = t.testdir({ docs: { demo: skill('demo') } })
  const file = join(folder, 'access.yaml')
  writeFileSync(file, ACCESS)
  chmodSync(file, 0o666)
  const { printed } = await startProcess(t, { args: [join(folder, 'docs'), '--access', file] })
  await printed('access file is writable by every user of this machine')
})

t.test('K64: a star stands for any characters, and no name takes long', async (t) => {
  fc.assert(fc.property(fc.stringMatching(/^[ab*]{0,8}$/), fc.stringMatching(/^[ab]{0,12}$/), (text, name) => {
    return patternOf(text)(name) === new RegExp(`^${text.replaceAll('*', '.*')}$`).test(name)
  }), { numRuns: 2_000 })
  for (const [text, name] of [['a.c', 'abc'], ['a.*', 'ab'], ['(a', 'a'], ['', 'a'], ['ab*ba', 'aba']] as const) {
    t.notOk(patternOf(text)(name), text)
  }
  t.notOk(await checkTime(t, 5, () => patternOf(`${'*-'.repeat(20)}x`)('-'.repeat(255))))
})

t.test('the published schemas of operators\' files are those of the service', async (t) => {
  for (const [document, schema] of Object.entries(FILE_SCHEMAS)) {
    t.strictSame(readFileSync(new URL(`../../${document}`, import.meta.url), 'utf8'), schemaDocument(schema))
  }
})
