import t from 'tap'
import { createListSkillFilesTool } from '../../../src/tools/reader/list-skill-files.ts'
import { createToolRegistry } from '../../../src/tools/registry.ts'
import { FakeSource, shown } from '../fake-source.ts'

const tool = createListSkillFilesTool()
const registry = createToolRegistry([tool])
const source = new FakeSource({ demo: { files: { 'SKILL.md': '# Demo', 'docs/é.txt': 'é' } }, bare: {} })

t.test('K40: all files of a skill, with sizes and types', async (t) => {
  t.match(shown(await registry.call(tool, { skill_name: 'demo' }, source)), {
    result: { skill_name: 'demo', files: [{ path: 'SKILL.md', size_bytes: 6, media_type: 'text/plain' }, { path: 'docs/é.txt', size_bytes: 2 }] },
    text: '{"skill_name": "demo", "files": [{"path": "SKILL.md", "size_bytes": 6, "media_type": "text/plain"}, {"path": "docs/é.txt", "size_bytes": 2, "media_type": "text/plain"}]}',
    isError: false
  })
  t.same((await registry.call(tool, { skill_name: 'bare' }, source)).result, { skill_name: 'bare', files: [] })
})

t.test('failures are sentences', async (t) => {
  t.match(shown(await registry.call(tool, { skill_name: 'nope' }, source)), { result: { error: "Skill 'nope' not found in skills folder" }, isError: true })
  t.match(shown(await registry.call(tool, {}, source)), { result: { error: /^Invalid tool arguments: 'skill_name' is missing, it must be a string\n/ } })
  t.match(shown(await registry.call(tool, { skill_name: 5 }, source)), { result: { error: /'skill_name' must be a string/ } })
})
