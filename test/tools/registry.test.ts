import t from 'tap'
import { SkillError } from '../../src/core/shared/errors.ts'
import { createToolRegistry } from '../../src/tools/registry.ts'
import { createTools } from '../../src/tools/tools.ts'
import type { Tool } from '../../src/tools/tool.ts'
import { FakeSource, fakeTool } from './fake-source.ts'

const source = new FakeSource()

function brokenTool (members: Partial<Tool>): Tool {
  return fakeTool({ name: 'broken', run () { throw new TypeError('at /srv/secret') }, ...members })
}

t.test('K31: all tools, found by their exact names', async (t) => {
  const registry = createToolRegistry(createTools())
  const reader = ['list_skills', 'get_skill', 'read_file_in_skill']
  const explore = ['search_skills', 'list_skill_files']
  for (const [toolset, names] of [
    ['reader', reader], ['explore', [...reader, ...explore]], ['wave', ['Skill']], ['neovate', ['skill']],
    [undefined, [...reader, 'Skill', 'skill', ...explore]]
  ] as const) t.same(registry.list(toolset).map(({ name }) => name), names)
  t.not(registry.find('Skill'), registry.find('skill'))
  for (const name of [
    'constructor', '__proto__', 'toString', 'SKILL', 'List_Skills', ''
  ]) t.equal(registry.find(name), undefined)
})

t.test('names of tools fit every provider', async (t) => {
  for (const { name } of createTools()) t.match(name, /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/)
})

t.test('two tools of one name are refused', async (t) => {
  t.throws(() => createToolRegistry([brokenTool({}), brokenTool({})]), /same name/)
})

t.test('an unexpected error becomes the tool\'s own failure with a fixed sentence, and is reported', async (t) => {
  const reported: unknown[] = []
  const tool = brokenTool({})
  const registry = createToolRegistry([tool], { onError: (error, name) => reported.push([name, String(error)]) })
  const outcome = await registry.call(tool, {}, source)
  t.same(outcome.result, { error: 'The tool failed unexpectedly' })
  t.same(reported, [['broken', 'TypeError: at /srv/secret']])
})

t.test('what the operating system said is reported and not shown', async (t) => {
  const reported: unknown[] = []
  const tool = brokenTool({
    run () { throw new SkillError('file_io_error', "Cannot read file 'x': I/O error", new Error('EIO /srv')) }
  })
  const registry = createToolRegistry([tool], { onError: (error) => reported.push(error) })
  t.same((await registry.call(tool, {}, source)).result, { error: "Cannot read file 'x': I/O error" })
  t.equal(reported.length, 1)
})

t.test('K37: an unknown tool is named, with the names there are', async (t) => {
  const registry = createToolRegistry(createTools())
  t.equal(registry.unknownTool('nope'), 'Unknown tool: nope. Available tools: list_skills, get_skill, ' +
    'read_file_in_skill, Skill, skill, search_skills, list_skill_files')
  t.equal(
    registry.unknownTool('nope', 'wave'), 'Unknown tool: nope. Available tools: Skill', 'K40: of the toolset only'
  )
  t.equal(registry.find('Skill', 'reader'), undefined)
  t.equal(registry.find('get_skill', 'explore'), registry.find('get_skill'))
  t.match(registry.unknownTool('a\nb'), 'Unknown tool: a\\u000ab. ')
})
