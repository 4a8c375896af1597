import { symlinkSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { Type } from '@sinclair/typebox'
import fc from 'fast-check'
import t from 'tap'
import { readRegularFileSync } from '../../src/operator/regular-file.ts'
import { ConfigError } from '../../src/operator/setting.ts'
import { parseYamlFile, readYamlFile } from '../../src/operator/yaml-file.ts'
import { checkTime } from '../helper/timing.ts'

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
    [GOOD.replace('groups', 'group'), 'people.yaml:4: people[0].group is no key here, there are name, groups, did you mean "groups"?'],
    [GOOD.replace('ops', '7'), 'people.yaml:4: people[0].groups[1] must be a name in small letters'],
    [GOOD.replace('level: 3', 'level: 0'), 'people.yaml:7: level must be >= 1'],
    [GOOD.replace('level: 3', '"two words": 0'), 'people.yaml:7: "two words" is no key here, there are people, level'],
    [`${GOOD}level: 4`, 'people.yaml:8: not valid YAML: duplicated mapping key'],
    [GOOD.replace('[docs, ops]', '[docs'), 'people.yaml:6: not valid YAML:'],
    [GOOD.replace('[docs, ops]', '&g [docs]').replace('bob', '*g'), 'people.yaml:6: a value that stands for another one (*name) is not taken: write that value out'],
    [GOOD.replace('[docs, ops]', '['.repeat(40)), 'people.yaml:4: values are nested more than 32 deep'],
    ['# nobody yet\n', 'people.yaml:1: the file is empty'],
    ['people: [ann]', 'people.yaml:1: people[0] must be a mapping with name, groups'],
    [`${'k'.repeat(100_000)}: 1\npeople: []`, `people.yaml:1: "${'k'.repeat(80)}…" is no key here`]
  ] as const) t.equal(refusal(text).slice(0, message.length), message, JSON.stringify(text))
})

t.test('of several errors the first line is told', async (t) => {
  t.equal(refusal('people:\n  - name: A\n  - name: B\nlevel: x'), 'people.yaml:2: people[0].name must be a name in small letters')
})

t.test('a file that is full of mistakes is refused in the time that a good one takes', async (t) => {
  const message = await checkTime(t, 500, () => refusal(`people: [{ name: ann, groups: [${'X,'.repeat(50_000)}] }]`))
  t.equal(message, 'people.yaml:1: people[0].groups[0] must be a name in small letters')
})

t.test('a value is not repeated in an error: it may be a secret', async (t) => {
  t.notMatch(refusal(GOOD.replace('bob', 'SECRET')), /SECRET/)
  t.notMatch(refusal(GOOD.replace('bob }', 'SECRET')), /SECRET/)
})

t.test('a file that is not there or is no text is named', async (t) => {
  const folder = t.testdir({ latin: Buffer.from([0x61, 0xe4]) })
  await t.rejects(readYamlFile(join(folder, 'nosuch.yaml'), Schema), { name: 'ConfigError', message: `${folder}/nosuch.yaml cannot be read: ENOENT, there is no such file` })
  await t.rejects(readYamlFile(folder, Schema), { name: 'ConfigError', message: `${folder} cannot be read: EISDIR, it is a folder` })
  symlinkSync('circle', join(folder, 'circle'))
  await t.rejects(readYamlFile(join(folder, 'circle'), Schema), { name: 'ConfigError', message: `${folder}/circle cannot be read: ELOOP, its links lead in a circle` })
  await t.rejects(readYamlFile(join(folder, 'latin'), Schema), { name: 'ConfigError', message: `${folder}/latin is not UTF-8 text` })
})

t.test('a file that is too large is not read', async (t) => {
  const path = join(t.testdir({ large: '' }), 'large')
  truncateSync(path, 4_000_000_000)
  await t.rejects(readYamlFile(path, Schema), { name: 'ConfigError', message: `${path} cannot be read: it is larger than 16777216 bytes` })
  t.throws(() => readRegularFileSync(path), /it is larger than 16777216 bytes/)
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
