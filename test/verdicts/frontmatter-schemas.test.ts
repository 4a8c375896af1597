import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { codesInSchema, frontmatterSchema } from '../../scripts/frontmatter-schemas.ts'
import { TARGET_NAMES, verdictsOf } from '../../src/verdicts/index.ts'
import { D, GOOD, RULES, text } from '../helper/rule-skills.ts'
import { subjectFor, type SkillParts } from '../helper/verdicts.ts'

/** Skills whose frontmatter no schema gets to read. */
const UNREAD = /^(?:frontmatter_missing|yaml_)/

const MORE: readonly SkillParts[] = [
  GOOD,
  ...[
    ['tags: a'], ['argument-hint: a'], [
      'allowed-tools:', '  - Read'
    ], ['allowed-tools: 3'], ['metadata:', '  a:', '    - b'], ['metadata: ~', 'license: ~'],
    ['license: 1'], ['compatibility: 1'], [
      "compatibility: ''"
    ], ['disable-model-invocation: true', 'user-invocable: no'], ['disable-model-invocation: true']
  ].map((lines) => ({ text: text('name: demo', D, ...lines) })),
  { text: text('name: ~', 'description: 3') },
  { text: text('name: demo', "description: ' '") }
]

t.test('K79: the schema of a target refuses the frontmatter that the target does not take as it is', async (t) => {
  const ajv = new Ajv2020({ strictTypes: false, allowUnionTypes: true })
  const skills = [...RULES.filter(([, , code]) => !UNREAD.test(code)).map(([, parts]) => parts), ...MORE]
  for (const target of TARGET_NAMES) {
    const validate = ajv.compile(frontmatterSchema(target))
    const codes = codesInSchema(target)
    for (const parts of skills) {
      const subject = await subjectFor(parts)
      const because = verdictsOf(subject, [target]).targets[0]?.because ?? []
      t.equal(validate(subject.skill.frontmatter), !because.some((code) =>
        codes.has(code)), `${target}: ${parts.text?.slice(0, 60)} ${because.join()}`)
    }
  }
})

t.test('K79: a schema has the rules of a target and not those of others', (t) => {
  t.ok(codesInSchema('spec').has('name_too_long'))
  t.notOk(codesInSchema('goose').has('name_too_long'))
  t.match(frontmatterSchema('codex'), {
    title: 'Frontmatter of a SKILL.md for Codex', properties: { description: { allOf: [{}, { maxLength: 1_024 }] } }
  })
  t.end()
})
