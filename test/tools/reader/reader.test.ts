import t from 'tap'
import { mainFileError, fileError, folderError } from '../../../src/core/shared/errors.ts'
import { getSkill } from '../../../src/tools/reader/get-skill.ts'
import { createToolRegistry } from '../../../src/tools/registry.ts'
import { type FakeSkill, FakeSource, shown } from '../fake-source.ts'
import { readFileInSkill } from '../../../src/tools/reader/read-file-in-skill.ts'
import { listSkills } from '../../../src/tools/reader/list-skills.ts'
import { listSkillFiles } from '../../../src/tools/reader/list-skill-files.ts'
import { DEFAULT_FOUND_SKILLS, MAX_FOUND_SKILLS } from '../../../src/tools/limits.ts'
import { MAX_QUERY_CODE_POINTS } from '../../../src/schemas/catalog.ts'
import { DEFINITION_FORMATS } from '../../../src/tools/dialects/index.ts'
import { createTools } from '../../../src/tools/tools.ts'
import { searchSkills } from '../../../src/tools/reader/search-skills.ts'
import { toolDefinitions } from '../../../src/tools/tool-definitions.ts'

const DOCUMENT = '# Calculator Skill\n\nProvides basic arithmetic operations.\n\n## Usage\n\n```python\nresult = 2 + ' +
  '2\nprint(result)\n```'

function setUpDocuments (skills: Readonly<Record<string, FakeSkill>>) {
  const source = new FakeSource(skills)
  const tool = getSkill
  const registry = createToolRegistry([tool])
  return { source, tool, call: (name?: unknown) => registry.call(tool, { skill_name: name }, source) }
}

t.test('the definition is the seed\'s', async (t) => {
  const { name, description, parameters } = getSkill
  t.equal(JSON.stringify({ name, description, parameters }),
    '{"name":"get_skill","description":"Read the SKILL.MD documentation for a specific skill. Returns the full text ' +
    'content of the documentation file.",' +
    '"parameters":{"type":"object","properties":{"skill_name":{"type":"string","description":"Name of the skill ' +
    '(folder name)"}},"required":["skill_name"]}}')
})

t.test('K15, example 1: the whole document, keys in order', async (t) => {
  const { call } = setUpDocuments({ calculator: { files: { 'SKILL.md': DOCUMENT } } })
  const outcome = await call('calculator')
  t.equal(JSON.stringify(outcome.result), JSON.stringify({ skill_name: 'calculator', documentation: DOCUMENT }))
  t.equal(outcome.text, `{"skill_name": "calculator", "documentation": ${JSON.stringify(DOCUMENT)}}`)
  t.equal(outcome.isError, false)
})

t.test('K15: verbatim: frontmatter, CRLF, BOM, blanks and characters beyond ASCII', async (t) => {
  const text = '\ufeff---\r\nname: a\r\n---\r\n  é 😀 "q": 1, \\ \u2028 end \n\n'
  const { call } = setUpDocuments({ a: { files: { 'SKILL.md': text } } })
  const outcome = await call('a')
  t.same(outcome.result, { skill_name: 'a', documentation: text })
  t.same(JSON.parse(outcome.text), { skill_name: 'a', documentation: text })
})

t.test('K16: each error is the contract\'s sentence', async (t) => {
  const { call } = setUpDocuments({
    calculator: {},
    large: { files: { 'SKILL.md': mainFileError.tooLarge('large') } },
    secret: { files: { 'SKILL.md': mainFileError.permissionDenied('secret') } },
    binary: { files: { 'SKILL.md': Buffer.from([0xff, 0xff]) } },
    broken: { files: { 'SKILL.md': mainFileError.unreadable('broken') } }
  })
  const rows: ReadonlyArray<readonly [name: string, error: string]> = [
    [
      '../../../etc/passwd',
      "Invalid skill name: '../../../etc/passwd'. Skill names must not contain '/', '\\', or '..'"
    ],
    ['', "Invalid skill name: ''. Skill names must not contain '/', '\\', or '..'"],
    ['a\\b', "Invalid skill name: 'a\\b'. Skill names must not contain '/', '\\', or '..'"],
    ['nonexistent', "Skill 'nonexistent' not found in skills folder"],
    ['calculator', "SKILL.MD not found for skill 'calculator'"],
    ['large', "SKILL.MD too large (>1MB) for skill 'large'"],
    ['secret', "Permission denied reading SKILL.MD for skill 'secret'"],
    ['binary', "SKILL.MD contains invalid UTF-8 for skill 'binary'"],
    ['broken', "Error reading SKILL.MD for skill 'broken'"]
  ]
  for (const [name, error] of rows) {
    t.same(shown(await call(name)), { result: { error }, text: `{"error": ${JSON.stringify(error)}}`, isError: true })
  }
})

t.test('K37: an argument that is missing or no string is refused by name, with the schema', async (t) => {
  const { call, tool } = setUpDocuments({ 5: { files: { 'SKILL.md': 'x' } } })
  for (const value of [undefined, 5, null, true, ['5'], { toString: '5' }]) {
    const { result, isError } = await call(value)
    const problem =
      value === undefined ? "'skill_name' is missing, it must be a string" : "'skill_name' must be a string"
    t.same(result, { error: `Invalid tool arguments: ${problem}\n\nParameters: ${JSON.stringify(tool.parameters)}` })
    t.equal(isError, true)
  }
})

const BASIC_PY = '\ndef add(a, b):\n    return a + b\n\ndef subtract(a, b):\n    return a - b\n'
const SKILLS: Readonly<Record<string, FakeSkill>> = {
  calculator: {
    files: {
      'SKILL.md': '# Calculator',
      'examples/basic.py': BASIC_PY,
      'docs/advanced/deep.md': '# Deep',
      'empty.txt': '',
      'unicode.txt': 'é 日本語 😀\r\n',
      'latin.txt': Buffer.from([0x63, 0x61, 0x66, 0xe9]),
      'utf16.txt': Buffer.from('\ufeffhi', 'utf16le'),
      'data.bin': Buffer.from([1, 0, 2]),
      'large.txt': 'x'.repeat(2_000_000),
      'huge.txt': fileError.tooLarge('huge.txt', 10_485_761),
      'secret.txt': fileError.permissionDenied('secret.txt'),
      fifo: fileError.notRegular('fifo'),
      'bad.txt': fileError.ioError('bad.txt')
    }
  },
  weather: { files: { 'docs/api_reference.md': '# Weather API Reference\n\n## get_forecast(location)\n...' } },
  data_processor: {
    files: { 'config.json': '{"api_endpoint": "https://example.com", "timeout": 30}', 'a.yaml': 'a: 1\n' }
  },
  ml_model: { files: { 'data/samples/input.txt': 'sample1\nsample2\nsample3' } }
}

function setUpFiles () {
  const tool = readFileInSkill
  const source = new FakeSource(SKILLS)
  const registry = createToolRegistry([tool])
  return {
    tool, call: (name: unknown, path: unknown) => registry.call(tool, { skill_name: name, file_path: path }, source)
  }
}

t.test('the definition is the seed\'s', async (t) => {
  const { name, description, parameters } = setUpFiles().tool
  t.equal(JSON.stringify({ name, description, parameters }),
    '{"name":"read_file_in_skill","description":"Read any file within a skill\'s folder. Use this when SKILL.MD ' +
    'references additional documentation, ' +
    'examples, or configuration files. Path must be relative to skill ' +
    'folder.","parameters":{"type":"object","properties":{"skill_name":{"type":"string",' +
    '"description":"Name of the skill (folder name containing the ' +
    'file)"},"file_path":{"type":"string","description":"Relative path to file within skill ' +
    'folder (e.g., \'examples/usage.py\', \'docs/api.md\')"}},"required":["skill_name","file_path"]}}')
})

t.test('K17, examples 1, 2, 6 and 7: the result object, and the raw text for the model', async (t) => {
  const { call } = setUpFiles()
  const rows: ReadonlyArray<readonly [skill: string, path: string, content: string]> = [
    ['calculator', 'examples/basic.py', BASIC_PY],
    ['calculator', 'docs/advanced/deep.md', '# Deep'],
    ['weather', 'docs/api_reference.md', '# Weather API Reference\n\n## get_forecast(location)\n...'],
    ['data_processor', 'config.json', '{"api_endpoint": "https://example.com", "timeout": 30}'],
    ['data_processor', 'a.yaml', 'a: 1\n'],
    ['ml_model', 'data/samples/input.txt', 'sample1\nsample2\nsample3']
  ]
  for (const [skill, path, content] of rows) {
    const outcome = await call(skill, path)
    t.equal(JSON.stringify(outcome.result), JSON.stringify({
      success: true,
      skill_name: skill,
      file_path: path,
      content,
      size_bytes: Buffer.byteLength(content),
      encoding: 'utf-8'
    }))
    t.equal(outcome.text, content)
    t.equal(outcome.isError, false)
  }
})

t.test('K20: encodings, empty file, bytes counted and not characters', async (t) => {
  const { call } = setUpFiles()
  const rows: ReadonlyArray<readonly [path: string, content: string, bytes: number, encoding: string]> = [
    ['empty.txt', '', 0, 'utf-8'],
    ['unicode.txt', 'é 日本語 😀\r\n', 19, 'utf-8'],
    ['latin.txt', 'café', 4, 'latin-1'],
    ['utf16.txt', '\ufeffhi', 6, 'utf-16le']
  ]
  for (const [path, content, bytes, encoding] of rows) {
    t.same((await call('calculator', path)).result, {
      success: true, skill_name: 'calculator', file_path: path, content, size_bytes: bytes, encoding
    })
  }
})

t.test('K17: file_path is echoed as sent', async (t) => {
  const { call } = setUpFiles()
  t.match(
    (await call('calculator', './examples//basic.py')).result, { file_path: './examples//basic.py', content: BASIC_PY }
  )
  t.match(
    (await call('calculator', 'examples/../examples/basic.py')).result, { file_path: 'examples/../examples/basic.py' }
  )
})

t.test('K18, examples 3, 4 and 5: each error is the contract\'s sentence', async (t) => {
  const { call } = setUpFiles()
  const traversal = 'Path traversal detected: cannot access files outside skill folder'
  const invalidName = 'Invalid skill name: must not contain special characters'
  const rows: ReadonlyArray<readonly [skill: string, path: string, error: string]> = [
    ['calculator', 'examples/missing.py', "File 'examples/missing.py' not found in skill 'calculator'"],
    ['nonexistent', 'README.md', "Skill 'nonexistent' not found in skills folder"],
    ['calculator', '', 'Invalid file path'],
    ['calculator', '../../../etc/passwd', traversal],
    ['calculator', '..\\..\\..\\Windows\\System32', traversal],
    ['calculator', '/etc/passwd', traversal],
    ['calculator', 'C:\\x', traversal],
    ['calculator', '\\\\host\\share', traversal],
    ['', 'x', invalidName],
    ['..', 'x', invalidName],
    ['demo/../other', 'x', invalidName],
    ['a\\b', 'x', invalidName],
    ['calculator', 'SKILL.md\0.png', "File 'SKILL.md\0.png' not found in skill 'calculator'"],
    ['calculator', '\ud800', "File '\ud800' not found in skill 'calculator'"],
    ['calculator', '%2e%2e%2fetc', "File '%2e%2e%2fetc' not found in skill 'calculator'"],
    ['calculator', 'examples', "Cannot read file 'examples': is a directory"],
    ['calculator', '.', "Cannot read file '.': is a directory"],
    ['calculator', 'fifo', "Cannot read file 'fifo': not a regular file"],
    ['calculator', 'data.bin', "Cannot read file 'data.bin': not a text file"],
    ['calculator', 'secret.txt', "Cannot read file 'secret.txt': permission denied"],
    ['calculator', 'huge.txt', "Cannot read file 'huge.txt': file too large (10485761 bytes, limit 10485760)"],
    ['calculator', 'bad.txt', "Cannot read file 'bad.txt': I/O error"]
  ]
  for (const [skill, path, error] of rows) {
    const outcome = await call(skill, path)
    t.equal(JSON.stringify(outcome.result), JSON.stringify({ success: false, skill_name: skill, file_path: path, error }))
    t.equal(outcome.text, `ERROR: ${error}`)
    t.equal(outcome.isError, true)
  }
})

t.test('an argument that is no string is refused by name, and echoed as an empty one', async (t) => {
  const { call, tool } = setUpFiles()
  const schema = JSON.stringify(tool.parameters)
  t.same((await call(['x'], 'a')).result,
    {
      success: false,
      skill_name: '',
      file_path: 'a',
      error: 'Invalid tool arguments: \'skill_name\' must be a ' +
      `string\n\nParameters: ${schema}`
    })
  const outcome = await call('calculator', 5)
  t.same(outcome.result,
    {
      success: false,
      skill_name: 'calculator',
      file_path: '',
      error: 'Invalid tool arguments: \'file_path\' must be a ' +
      `string\n\nParameters: ${schema}`
    })
  t.ok(outcome.text.startsWith("ERROR: Invalid tool arguments: 'file_path' must be a string"))
})

t.test('the definition is the seed\'s', async (t) => {
  const { name, description, parameters } = listSkills
  t.equal(JSON.stringify({ name, description, parameters }),
    '{"name":"list_skills","description":"List all available skills in the skills folder. Returns skill names as a ' +
    'JSON array.",' +
    '"parameters":{"type":"object","properties":{},"required":[]}}')
})

t.test('K11, example 1: the names of all skills, spaced as in the seed', async (t) => {
  const source = new FakeSource({ weather: {}, web_search: {}, calculator: {} })
  const tool = listSkills
  t.same(shown(await tool.run({}, source)), {
    result: { skills: ['calculator', 'weather', 'web_search'] },
    text: '{"skills": ["calculator", "weather", "web_search"]}',
    isError: false
  })
})

t.test('K12, example 2: no skills', async (t) => {
  const source = new FakeSource()
  const tool = listSkills
  t.same(shown(await tool.run({}, source)), { result: { skills: [] }, text: '{"skills": []}', isError: false })
})

t.test('K14, example 3: no folder, or none that may be read', async (t) => {
  const source = new FakeSource()
  const tool = listSkills
  const registry = createToolRegistry([tool])
  source.failure = folderError.notFound('/path/to/skills')
  t.same(shown(await registry.call(tool, {}, source)), {
    result: { error: 'Skills folder not found at path: /path/to/skills' },
    text: '{"error": "Skills folder not found at path: /path/to/skills"}',
    isError: true
  })
  source.failure = folderError.permissionDenied()
  t.same((await registry.call(tool, {}, source)).result, { error: 'Permission denied reading skills folder' })
})

t.test('an unknown argument is ignored', async (t) => {
  const source = new FakeSource({ a: {} })
  const tool = listSkills
  t.same((await tool.run(JSON.parse('{"x":1,"__proto__":{}}'), source)).result, { skills: ['a'] })
})

const listFiles = listSkillFiles
const listFilesRegistry = createToolRegistry([listFiles])
const listFilesSource = new FakeSource({ demo: { files: { 'SKILL.md': '# Demo', 'docs/é.txt': 'é' } }, bare: {} })

t.test('K40: all files of a skill, with sizes and types', async (t) => {
  t.match(shown(await listFilesRegistry.call(listFiles, { skill_name: 'demo' }, listFilesSource)), {
    result: {
      skill_name: 'demo',
      files: [{ path: 'SKILL.md', size_bytes: 6, media_type: 'text/plain' }, { path: 'docs/é.txt', size_bytes: 2 }]
    },
    text: '{"skill_name": "demo", "files": [{"path": "SKILL.md", "size_bytes": 6, "media_type": "text/plain"}, ' +
      '{"path": "docs/é.txt", "size_bytes": 2, "media_type": "text/plain"}]}',
    isError: false
  })
  t.same((await listFilesRegistry.call(listFiles, { skill_name: 'bare' }, listFilesSource)).result, {
    skill_name: 'bare', files: []
  })
})

t.test('failures are sentences', async (t) => {
  t.match(shown(
    await listFilesRegistry.call(listFiles, { skill_name: 'nope' }, listFilesSource)
  ), { result: { error: "Skill 'nope' not found in skills folder" }, isError: true })
  t.match(shown(
    await listFilesRegistry.call(listFiles, {}, listFilesSource)
  ), { result: { error: /^Invalid tool arguments: 'skill_name' is missing, it must be a string\n/ } })
  t.match(shown(
    await listFilesRegistry.call(listFiles, { skill_name: 5 }, listFilesSource)
  ), { result: { error: /'skill_name' must be a string/ } })
})

const MANY = Object.fromEntries(
  Array.from({ length: 60 }, (_, index) => [`many-${String(index).padStart(2, '0')}`, {}])
)

t.test('the definition is in the style of the seeds', async (t) => {
  const { name, description, parameters } = searchSkills
  t.equal(JSON.stringify({ name, description, parameters }),
    '{"name":"search_skills","description":"Search the available skills by what they are for. Looks for the words of ' +
    'the query in names, descriptions and headings. Returns skill names with descriptions as a JSON array, the best ' +
    'match first.",' +
    '"parameters":{"type":"object","properties":{"query":{"type":"string","description":"Words that say what the ' +
    'skill should be about (e.g., \'fill pdf form\')"},' +
    '"limit":{"type":"integer","description":"Maximum number of skills to return, from 1 to 50. Default: ' +
    '10"}},"required":["query"]}}')
})

t.test('K46: names and descriptions in the order of the search, spaced as in the seeds', async (t) => {
  const source =
    new FakeSource({ pdf: { description: 'Reads PDF' }, 'pdf-form': { description: 'Fills "forms"' }, other: {} })
  const tool = searchSkills
  t.same(shown(await tool.run({ query: 'pdf' }, source)), {
    result: {
      skills: [
        { skill_name: 'pdf', description: 'Reads PDF' }, { skill_name: 'pdf-form', description: 'Fills "forms"' }
      ]
    },
    text: '{"skills": [{"skill_name": "pdf", "description": "Reads PDF"}, {"skill_name": "pdf-form", "description": ' +
      '"Fills \\"forms\\""}]}',
    isError: false
  })
  t.same(
    shown(await tool.run({ query: 'zzz' }, source)), { result: { skills: [] }, text: '{"skills": []}', isError: false }
  )
})

t.test('K46: as many as asked for, ten otherwise', async (t) => {
  const source = new FakeSource(MANY)
  const tool = searchSkills
  const count = async (args: object) =>
    ((await tool.run({ query: 'many', ...args }, source)).result as { skills: object[] }).skills.length
  t.equal(await count({}), DEFAULT_FOUND_SKILLS)
  t.equal(await count({ limit: 1 }), 1)
  t.equal(await count({ limit: MAX_FOUND_SKILLS }), MAX_FOUND_SKILLS)
})

t.test('K46: a skill that has just gone is passed over', async (t) => {
  const source = new FakeSource({ 'many-1': {}, 'many-2': {} })
  const tool = searchSkills
  source.search = async () => ['gone', 'many-2']
  t.same((await tool.run({ query: 'many', limit: 1 }, source)).result, {
    skills: [{ skill_name: 'many-2', description: '' }]
  })
})

t.test('K37: arguments are not converted', async (t) => {
  const source = new FakeSource(MANY)
  const tool = searchSkills
  const registry = createToolRegistry([tool])
  const rows: ReadonlyArray<readonly [args: object, problem: string]> = [
    [{}, "'query' is missing, it must be a string"],
    [{ query: 5 }, "'query' must be a string"],
    [{ query: ['many'] }, "'query' must be a string"],
    [{ query: '' }, "'query' must not be empty"],
    [{ query: ' \n' }, "'query' must not be empty"],
    [{ query: 'x'.repeat(MAX_QUERY_CODE_POINTS + 1) }, "'query' must not be longer than 1000 characters"],
    ...['5', 0, -1, 51, 1.5, 1e21, Number.NaN, null, true, [5], {}].map((limit) =>
      [{ query: 'many', limit }, "'limit' must be an integer from 1 to 50"] as const)
  ]
  for (const [args, problem] of rows) {
    const { result, isError } = await registry.call(tool, args as Readonly<Record<string, unknown>>, source)
    t.ok(isError)
    t.equal(
      (result as { error: string }).error,
      `Invalid tool arguments: ${problem}\n\nParameters: ${JSON.stringify(tool.parameters)}`
    )
  }
  t.match((await tool.run(JSON.parse('{"query":"many","__proto__":{"limit":1}}'), source)).result, {
    skills: { length: DEFAULT_FOUND_SKILLS }
  })
})

t.test('K14: without a root', async (t) => {
  const source = new FakeSource()
  const tool = searchSkills
  source.failure = folderError.notFound('/srv/skills')
  t.same(shown(await createToolRegistry([tool]).call(tool, { query: 'x' }, source)), {
    result: { error: 'Skills folder not found at path: /srv/skills' },
    text: '{"error": "Skills folder not found at path: /srv/skills"}',
    isError: true
  })
})

t.test('K40: the toolset `explore` is the reader\'s tools and two more, in every dialect', async (t) => {
  const registry = createToolRegistry(createTools())
  const skills = new FakeSource()
  for (const format of DEFINITION_FORMATS) {
    const text = JSON.stringify(toolDefinitions(registry, { format, toolset: 'explore', skills }))
    const names = Array.from(text.matchAll(/"name":"(\w+)"/g), ([, name]) => name)
    t.same(names, registry.list('explore').map((tool) => tool.name), format)
    t.match(text, '"limit":{"type":"integer"')
    t.notMatch(JSON.stringify(toolDefinitions(registry, { format, toolset: 'reader', skills })), 'search_skills')
    t.match(JSON.stringify(toolDefinitions(registry, { format, toolset: 'all', skills })), 'search_skills')
  }
})
