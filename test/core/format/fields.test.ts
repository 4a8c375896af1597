import t from 'tap'
import fc from 'fast-check'
import type { Frontmatter } from '../../../src/core/shared/skill.ts'
import { validateFrontmatter } from '../../../src/core/format/fields.ts'
import { codePoint } from '../../helper/code-point.ts'

const valid = { name: 'my-skill', description: 'Does a thing. Use when the thing is to be done.' }

function codes (frontmatter: Frontmatter, folder = 'my-skill'): string[] {
  return validateFrontmatter(frontmatter, folder).map(({ code }) => code)
}

function errors (frontmatter: Frontmatter, folder = 'my-skill'): string[] {
  return validateFrontmatter(frontmatter, folder).filter(({ severity }) => severity === 'error').map(({ code }) => code)
}

t.test('K9: a skill that follows the format has no findings', async t => {
  t.strictSame(codes(valid), [])
  t.strictSame(codes({
    ...valid, license: 'MIT', compatibility: 'Requires Python 3.11+', metadata: { author: 'A', version: '1.0' }, 'allowed-tools': 'Bash(jq:*) Bash(git add, git commit)'
  }), [])
  for (const name of ['a', '7', 'a1-b2-c3', 'a'.repeat(64)]) t.strictSame(codes({ ...valid, name }, name), [], name)
})

t.test('K9: the reference cases for names', async t => {
  const rows: Array<[string, string, string, string[]]> = [
    ['V5', 'MySkill', 'MySkill', ['name_invalid_characters']],
    ['V6', 'a'.repeat(70), 'a'.repeat(70), ['name_too_long']],
    ['V7', '-my-skill', '-my-skill', ['name_edge_hyphen']],
    ['V7 at the end', 'my-skill-', 'my-skill-', ['name_edge_hyphen']],
    ['V8', 'my--skill', 'my--skill', ['name_double_hyphen']],
    ['V9', 'my_skill', 'my_skill', ['name_invalid_characters']],
    ['V10', 'correct-name', 'wrong-name', ['name_folder_mismatch']],
    // skills-ref takes letters of any alphabet; Wave's rule, which K9 follows, takes a-z only.
    ['V14 deviates', '技能', '技能', ['name_invalid_characters']],
    ['V15 deviates', 'мой-навык', 'мой-навык', ['name_invalid_characters']],
    ['V16 deviates', 'навык', 'навык', ['name_invalid_characters']],
    ['V17', 'НАВЫК', 'НАВЫК', ['name_invalid_characters']],
    // skills-ref compares NFKC forms; K5 compares exactly.
    ['V21 deviates', 'cafe\u0301', 'caf\u00E9', ['name_invalid_characters']],
    ['blanks around it', ' my-skill', 'my-skill', ['name_invalid_characters']],
    ['everything at once', `-${'A'.repeat(70)}--b`, 'my-skill',
      ['name_too_long', 'name_invalid_characters', 'name_edge_hyphen', 'name_double_hyphen']]
  ]
  for (const [id, name, folder, expected] of rows) t.strictSame(errors({ ...valid, name }, folder), expected, id)
})

t.test('K9: name and description are required', async t => {
  for (const name of [undefined, null, '', ' \n']) t.strictSame(errors({ ...valid, name }), ['name_missing'], JSON.stringify(name))
  for (const description of [undefined, null, '', ' \n']) t.strictSame(errors({ ...valid, description }), ['description_missing'], JSON.stringify(description))
  t.strictSame(errors({}), ['name_missing', 'description_missing'])
  for (const value of [42, true, ['a'], { a: 1 }]) {
    t.strictSame(errors({ name: value, description: value }), ['name_not_text', 'description_not_text'], JSON.stringify(value))
  }
})

t.test('K9: lengths count code points', async t => {
  t.strictSame(errors({ ...valid, description: '😀'.repeat(1024) }), [])
  t.match(validateFrontmatter({ ...valid, description: '😀'.repeat(1025) }, 'my-skill'),
    [{ code: 'description_too_long', severity: 'error', message: 'description has 1025 characters, more than 1024' }])
  t.strictSame(errors({ ...valid, description: 'a'.repeat(1100) }), ['description_too_long'])
})

t.test('K9: fields that only strict readers mind are no errors', async t => {
  const rows: Array<[string, Frontmatter, string, string]> = [
    ['V11 deviates: no error', { unknown_field: 1 }, 'unknown_fields', 'info'],
    ['V20', { compatibility: 'a'.repeat(550) }, 'compatibility_too_long', 'warning'],
    ['compatibility at the limit', { compatibility: '😀'.repeat(501) }, 'compatibility_too_long', 'warning'],
    ['empty compatibility', { compatibility: '' }, 'compatibility_empty', 'warning'],
    ['compatibility as a list', { compatibility: ['a'] }, 'compatibility_not_text', 'warning'],
    ['license as a list', { license: ['MIT'] }, 'license_not_text', 'warning'],
    ['metadata as text', { metadata: 'a' }, 'metadata_not_mapping', 'warning'],
    ['metadata as a list', { metadata: ['a'] }, 'metadata_not_mapping', 'warning'],
    ['metadata with a number', { metadata: { author: 'A', version: 1 } }, 'metadata_not_text', 'warning'],
    ['nested metadata', { metadata: { a: { b: 'c' } } }, 'metadata_not_text', 'warning'],
    ['allowed-tools as a list', { 'allowed-tools': ['Read'] }, 'allowed_tools_list', 'info'],
    ['allowed-tools with commas', { 'allowed-tools': 'Read, Write' }, 'allowed_tools_commas', 'info'],
    ['allowed-tools as a number', { 'allowed-tools': 5 }, 'allowed_tools_not_text', 'warning'],
    ['an XML tag', { description: 'Use </available_skills> here' }, 'description_xml_tag', 'info']
  ]
  for (const [name, fields, code, severity] of rows) {
    t.match(validateFrontmatter({ ...valid, ...fields }, 'my-skill'), [{ code, severity }], name)
  }
  t.match(validateFrontmatter({ ...valid, name: 'claude-helper' }, 'claude-helper'), [{ code: 'name_reserved_word', severity: 'info' }])
})

t.test('K9: optional fields of the right shape are fine', async t => {
  for (const fields of [{ license: 'MIT' }, { metadata: {} }, { 'allowed-tools': 'Bash(jq:*) Bash(git:*)' }, { compatibility: 'a'.repeat(500) }, { license: null, metadata: null }]) {
    t.strictSame(codes({ ...valid, ...fields }), [], JSON.stringify(fields))
  }
})

const NO_PROPOSAL = 'Choose a name of lowercase letters a to z, numbers and hyphens, and give it to the folder too'

t.test('K9: one mistake in a name is one finding', async t => {
  t.strictSame(errors({ ...valid, name: 'A/B Testing' }, 'ab-testing'), ['name_invalid_characters'])
  t.strictSame(errors({ ...valid, name: 'pdf' }, 'pdf-tools'), ['name_folder_mismatch'])
})

t.test('K25: the message and the fix of a name belong to the problem', async t => {
  const rows: Array<[unknown, string, string, string]> = [
    ['Foo', 'foo', "name 'Foo' must contain only lowercase letters, numbers and hyphens", "Change name to 'foo'"],
    ['Foo', 'Foo', "name 'Foo' must contain only lowercase letters, numbers and hyphens", "Change name to 'foo' and rename the folder to 'foo'"],
    ['pdf', 'PDF Tools', "name 'pdf' does not match the folder name 'PDF Tools'", "Rename the folder to 'pdf'"],
    ['pdf', 'pdf-tools', "name 'pdf' does not match the folder name 'pdf-tools'", "Change name to 'pdf-tools'"],
    ['Übung', 'Übung', "name 'Übung' must contain only lowercase letters, numbers and hyphens", "Change name to 'ubung' and rename the folder to 'ubung'"],
    ['中文技能', '中文技能', "name '中文技能' must contain only lowercase letters, numbers and hyphens", NO_PROPOSAL],
    ['中文技能', 'chinese', "name '中文技能' must contain only lowercase letters, numbers and hyphens", "Change name to 'chinese'"],
    [undefined, '中文-pdf', 'name is missing', NO_PROPOSAL],
    ['!!', '!!', "name '!!' must contain only lowercase letters, numbers and hyphens", NO_PROPOSAL],
    [42, 'answer', 'name must be text, not a number', "Change name to 'answer'"],
    [undefined, 'answer', 'name is missing', "Add 'name: answer' to the frontmatter"],
    ['', 'The Answer', 'name is empty', "Change name to 'the-answer' and rename the folder to 'the-answer'"],
    [null, 'answer', 'name is empty', "Change name to 'answer'"],
    [42, '42', 'name must be text, not a number', "Change the line of name to 'name: \"42\"'"],
    ['other', '42', "name 'other' does not match the folder name '42'", "Change the line of name to 'name: \"42\"'"],
    [undefined, 'null', 'name is missing', "Add 'name: \"null\"' to the frontmatter"]
  ]
  for (const [name, folder, message, fix] of rows) {
    t.match(validateFrontmatter({ ...valid, name }, folder)[0], { field: 'name', message, fix }, `${name} in ${folder}`)
  }
})

t.test('K25: the name that a fix proposes is valid', async t => {
  t.doesNotThrow(() => fc.assert(fc.property(fc.string({ unit: codePoint, maxLength: 300 }), fc.string({ unit: 'grapheme', maxLength: 300 }), (name, folder) => {
    for (const { fix } of validateFrontmatter({ ...valid, name }, folder)) {
      if (fix === NO_PROPOSAL) continue
      const proposed = /(?:to|name:) ['"]?([a-z0-9-]+)["']/.exec(fix)?.[1]
      if (proposed === undefined || errors({ ...valid, name: proposed }, proposed).length > 0) return false
    }
    return true
  })))
})

t.test('K9: text of a skill inside a sentence is cut and cannot break the line', async t => {
  const [, finding] = validateFrontmatter({ ...valid, name: `a\n\u001b[2J\u202E${'b'.repeat(10_000)}` }, 'my-skill')
  t.match(finding?.message, "name 'a\\n\\u{1b}[2J\\u{202e}b")
  t.ok((finding?.message.length ?? 0) < 200)
})

t.test('K9: a misspelt field is renamed, not moved, where the field that it stands for is absent', async t => {
  const fixOf = (frontmatter: Frontmatter) => validateFrontmatter(frontmatter, 'my-skill').find(({ code }) => code === 'unknown_fields')?.fix
  t.equal(fixOf({ name: 'my-skill', desciption: 'x' }), "Rename 'desciption' to 'description'")
  t.equal(fixOf({ Name: 'my-skill', Description: 'x', tags: 'x', model: 'x' }),
    "Rename 'Name' to 'name'; rename 'Description' to 'description'; move 'tags' into metadata, or remove it; leave 'model' to the agents that read it: other readers pass over it, or refuse the skill")
  t.equal(fixOf({ date: '2026-01-01', description: 'x' }), "Move 'date' into metadata, or remove it")
  t.equal(fixOf({ ...valid, names: 'x', allowedTools: 'x' }), "Rename 'allowedTools' to 'allowed-tools'; move 'names' into metadata, or remove it")
})

t.test('K9: inherited properties are not fields', async t => {
  t.strictSame(errors(Object.create(valid)), ['name_missing', 'description_missing'])
  const fields: Frontmatter = JSON.parse('{"__proto__":{"name":"x"},"constructor":1,"metadata":{"__proto__":1}}')
  t.strictSame(codes({ ...valid }), [])
  t.strictSame(codes(fields), ['name_missing', 'description_missing', 'metadata_not_text', 'unknown_fields'])
})

t.test('K9: whatever the frontmatter, findings are well-formed and nothing throws', async t => {
  const field = fc.constantFrom('name', 'description', 'license', 'compatibility', 'metadata', 'allowed-tools', '__proto__', 'x')
  t.doesNotThrow(() => fc.assert(fc.property(fc.dictionary(field, fc.jsonValue()), fc.string({ unit: codePoint }), (frontmatter, folder) =>
    validateFrontmatter(frontmatter, folder).every(({ code, message, fix }) =>
      /^[a-z]+(?:_[a-z0-9]+)*$/.test(code) && /^[^\p{Cc}]+$/u.test(message + fix) && !message.endsWith('.') && /^[A-Z]/.test(fix) && !fix.endsWith('.')))))
})
