import t from 'tap'
import { parseSkillUri, skillUri } from '../../src/mcp/skill-uri.ts'

t.test('a URI names a skill and a path in it, by its text alone', (t) => {
  for (const [uri, name, path] of [
    ['skill://demo', 'demo', ''], ['skill://demo/SKILL.md', 'demo', 'SKILL.md'], ['skill://demo/docs/a%20b.md', 'demo', 'docs/a b.md'], ['skill://d%C3%A9mo/%23%3F%25.md', 'démo', '#?%.md'],
    ['skill://demo/..%5Cx', 'demo', '..\\x']
  ] as const) {
    t.strictSame(parseSkillUri(uri), { name, path }, uri)
    t.equal(skillUri(name, path), uri)
  }
  for (const uri of [
    '', 'skill://', 'skill:///SKILL.md', 'skill://demo/', 'skill://demo//SKILL.md', 'skill://demo/docs%2Fa.md', 'skill://demo%2fSKILL.md', 'skill://demo/SKILL.md?x', 'skill://demo/SKILL.md#x',
    'skill://demo/%zz', 'skill://demo/%', 'skill://demo/%FF', 'SKILL://demo', 'http://demo/SKILL.md', 'demo/SKILL.md'
  ]) t.equal(parseSkillUri(uri), undefined, uri)
  t.end()
})
