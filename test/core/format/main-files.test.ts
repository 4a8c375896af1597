import t from 'tap'
import { isMainFile, orderMainFiles } from '../../../src/core/format/main-files.ts'

t.test('a main file is known by its name, in any casing of ASCII', (t) => {
  for (const name of ['SKILL.md', 'SKILL.MD', 'skill.md', 'sKiLl.Md']) t.equal(isMainFile(name), true, name)
  for (const name of ['', 'SKILL', 'SKILL.md ', 'SKILL.md\n', 'a/SKILL.md', 'SKILL.mdx', 'my-SKILL.md', 'S\u212aILL.md', 'SK\u0130LL.md', '\u017fkill.md']) {
    t.equal(isMainFile(name), false, JSON.stringify(name))
  }
  t.end()
})

t.test('the preferred spelling comes first, the other one next, then the rest', (t) => {
  const names = ['skill.md', 'Skill.md', 'SKILL.md', 'SKILL.MD']
  t.same(orderMainFiles(names, 'SKILL.md'), ['SKILL.md', 'SKILL.MD', 'Skill.md', 'skill.md'])
  t.same(orderMainFiles(names, 'SKILL.MD'), ['SKILL.MD', 'SKILL.md', 'Skill.md', 'skill.md'])
  t.end()
})
