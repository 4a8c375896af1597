import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { SkillError } from '../../src/core/shared/errors.ts'
import { MAX_MAIN_FILE_BYTES, MAX_TEXT_FILE_BYTES } from '../../src/core/shared/limits.ts'
import { MAX_QUERY_CODE_POINTS } from '../../src/schemas/catalog.ts'
import { parseArguments } from '../../src/tools/arguments.ts'
import { DEFINITION_FORMATS } from '../../src/tools/dialects/index.ts'
import { DEFAULT_FOUND_SKILLS, MAX_FOUND_SKILLS, MAX_JSON_DEPTH } from '../../src/tools/limits.ts'
import { createToolRegistry } from '../../src/tools/registry.ts'
import { spacedJson, type ToolParameters } from '../../src/tools/tool.ts'
import { type ToolDefinitionOptions, toolDefinitions } from '../../src/tools/tool-definitions.ts'
import { createTools } from '../../src/tools/tools.ts'
import { createFaultyDisk, osError, skill, skills, skillText } from '../helper/skills.ts'
import { fakeTool, startTools, toolOf } from './set-up.ts'

const HOUR_MS = 3_600_000

const READER = ['list_skills', 'get_skill', 'read_file_in_skill']
const EXPLORE = [...READER, 'search_skills', 'list_skill_files']
const ALL = [...READER, 'Skill', 'skill', 'search_skills', 'list_skill_files']

/** Name, description and parameters, to the letter. */
const DEFINITIONS = [
  '{"name":"list_skills","description":"List all available skills in the skills folder. Returns skill names as a ' +
    'JSON array.",' +
    '"parameters":{"type":"object","properties":{},"required":[]}}',
  '{"name":"get_skill","description":"Read the SKILL.MD documentation for a specific skill. Returns the full text ' +
    'content of the documentation file.",' +
    '"parameters":{"type":"object","properties":{"skill_name":{"type":"string","description":"Name of the skill ' +
      '(folder name)"}},"required":["skill_name"]}}',
  '{"name":"read_file_in_skill","description":"Read any file within a skill\'s folder. Use this when SKILL.MD ' +
    'references additional documentation, ' +
    'examples, or configuration files. Path must be relative to skill ' +
      'folder.","parameters":{"type":"object","properties":{"skill_name":{"type":"string",' +
    '"description":"Name of the skill (folder name containing the ' +
      'file)"},"file_path":{"type":"string","description":"Relative path to file within skill ' +
    'folder (e.g., \'examples/usage.py\', \'docs/api.md\')"}},"required":["skill_name","file_path"]}}',
  '{"name":"Skill","description":"Invoke a skill to apply specialized expertise and ' +
    'capabilities","parameters":{"type":"object","properties":' +
    '{"skill_name":{"type":"string","description":"Name of the skill to invoke from available ' +
      'skills"}},"required":["skill_name"],"additionalProperties":false}}',
  '{"name":"skill","description":"Execute a skill within the ' +
    'conversation","parameters":{"type":"object","properties":' +
    '{"skill":{"type":"string","description":"The skill name to execute"}},"required":["skill"]}}',
  '{"name":"search_skills","description":"Search the available skills by what they are for. Looks for the words of ' +
    'the query in names, descriptions and ' +
    'headings. Returns skill names with descriptions as a JSON array, the best match first.",' +
    '"parameters":{"type":"object","properties":{"query":{"type":"string","description":"Words that say what the ' +
      'skill should be about (e.g., \'fill pdf form\')"},' +
    '"limit":{"type":"integer","description":"Maximum number of skills to return, from 1 to 50. Default: ' +
      '10"}},"required":["query"]}}'
]

t.test('K31: the definitions of the tools are those of the seeds, and one in their style', async (t) => {
  for (const [index, tool] of createTools().slice(0, DEFINITIONS.length).entries()) {
    const { name, description, parameters } = tool
    t.equal(JSON.stringify({ name, description, parameters }), DEFINITIONS[index])
  }
})

t.test('K31 K37 K40: all tools, found by their exact names, in their toolsets', async (t) => {
  const registry = createToolRegistry(createTools())
  for (const [toolset, names] of [['reader', READER], ['explore', EXPLORE], ['wave', ['Skill']],
    ['neovate', ['skill']], [undefined, ALL]] as const) {
    t.same(registry.list(toolset).map(({ name }) => name), names)
    t.equal(registry.unknownTool('nope', toolset), `Unknown tool: nope. Available tools: ${names.join(', ')}`)
  }
  t.match(registry.unknownTool('a\nb'), 'Unknown tool: a\\u000ab. ')
  t.not(registry.find('Skill'), registry.find('skill'))
  t.equal(registry.find('Skill', 'reader'), undefined)
  for (const name of ['constructor', '__proto__', 'toString', 'SKILL', 'List_Skills', '']) {
    t.equal(registry.find(name), undefined)
  }
  for (const name of ALL) t.match(name, /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/, 'fits every provider')
  t.throws(() => createToolRegistry([fakeTool({}), fakeTool({})]), /same name/)
})

t.test('K18: an error of the program or of the system is reported, and callers get a fixed sentence', async (t) => {
  const { skills, registry } = await startTools(t, {})
  for (const [error, sentence] of [
    [new TypeError('at /srv/secret'), 'The tool failed unexpectedly'],
    [new SkillError('file_io_error', "Cannot read file 'x': I/O error", new Error('EIO /srv/secret')),
      "Cannot read file 'x': I/O error"]
  ] as const) {
    const reported: unknown[] = []
    const tool = fakeTool({ run () { throw error } })
    const outcome = await createToolRegistry([tool], { onError: (...args) => reported.push(args) }).call(tool, {},
      skills)
    t.same(outcome.result, { error: sentence })
    t.same(reported, [[error, 'fake']])
  }
  const broken = new Proxy(skills, { get () { throw new TypeError('at /srv/secret') } })
  for (const name of ALL) {
    t.notMatch(await registry.call(toolOf(registry, name), {
      skill_name: 'x', skill: 'x', file_path: 'x', query: 'x'
    }, broken), {
      text: 'secret'
    }, name)
  }
})

const DOCUMENT = '# Calculator Skill\n\nProvides basic arithmetic operations.\n\n```python\nresult = 2 + 2\n```'
const BASIC_PY = '\ndef add(a, b):\n    return a + b\n'
const ODD = '\ufeff---\r\nname: a\r\n---\r\n  é 😀 "q": 1, \\ \u2028 end \n\n'

t.test('K11 K15 K17 K20 K36: the results of the reader tools, keys in order, and their text ' +
  'for the model', async (t) => {
  const { call, skills } = await startTools(t, {
    calculator: {
      'SKILL.MD': DOCUMENT,
      examples: { 'basic.py': BASIC_PY },
      'empty.txt': '',
      'unicode.txt': 'é 日本語 😀\r\n',
      'latin.txt': Buffer.from([0x63, 0x61, 0x66, 0xe9]),
      'utf16.txt': Buffer.from('\ufeffhi', 'utf16le')
    },
    odd: { 'SKILL.md': ODD },
    empty: { 'SKILL.md': '' },
    nul: { 'SKILL.md': 'a\0b' }
  })
  const list = await call('list_skills', JSON.parse('{"x":1,"__proto__":{}}'))
  t.match(list, {
    json: '{"skills":["calculator","empty","nul","odd"]}',
    text: '{"skills": ["calculator", "empty", "nul", "odd"]}',
    isError: false
  })
  for (const [name, documentation] of [['calculator', DOCUMENT], ['odd', ODD], ['empty', ''],
    ['nul', 'a\0b']] as const) {
    const { json, text, isError } = await call('get_skill', { skill_name: name })
    t.equal(json, JSON.stringify({ skill_name: name, documentation }))
    t.equal(text, `{"skill_name": "${name}", "documentation": ${JSON.stringify(documentation)}}`)
    t.equal(isError, false)
    t.equal((await skills.loadSkill(name))?.content, documentation)
  }
  for (const [path, content, size, encoding] of [
    ['examples/basic.py', BASIC_PY, BASIC_PY.length, 'utf-8'],
    ['./examples//basic.py', BASIC_PY, BASIC_PY.length, 'utf-8'],
    ['examples/../SKILL.MD', DOCUMENT, DOCUMENT.length, 'utf-8'],
    ['empty.txt', '', 0, 'utf-8'],
    ['unicode.txt', 'é 日本語 😀\r\n', 19, 'utf-8'],
    ['latin.txt', 'café', 4, 'latin-1'],
    ['utf16.txt', '\ufeffhi', 6, 'utf-16le']
  ] as const) {
    const { json, text, isError } = await call('read_file_in_skill', { skill_name: 'calculator', file_path: path })
    t.equal(json,
      JSON.stringify({ success: true, skill_name: 'calculator', file_path: path, content, size_bytes: size, encoding }))
    t.strictSame([text, isError], [content, false])
  }
  t.match(await (await startTools(t, {})).call('list_skills'), { json: '{"skills":[]}', text: '{"skills": []}' }, 'K12')
})

t.test('K16: every error of get_skill and their order', async (t) => {
  const link = (target: string) => t.fixture('symlink', target)
  const large = 'x'.repeat(MAX_MAIN_FILE_BYTES + 1)
  const disk = createFaultyDisk({
    intercept: (operation, path, file) => {
      // The kernel lets a file without permission be named, and refuses to open it for reading.
      if (operation === 'open' && path !== file && file.endsWith('locked/SKILL.md')) throw osError('EACCES')
      if (operation === 'open' && path.endsWith('broken/SKILL.md')) throw osError('EIO')
    }
  })
  const { call, skills, root } = await startTools(t, {
    demo: skill('demo'),
    empty: {},
    folder: { 'SKILL.md': {} },
    leaving: { 'SKILL.md': link('/etc/hostname') },
    sibling: { 'SKILL.md': link('../demo/SKILL.md') },
    dangling: { 'SKILL.md': link('nothing') },
    hidden: { 'SKILL.md': link('.env'), '.env': 'secret' },
    inside: { 'SKILL.md': link('docs/main.md'), docs: { 'main.md': 'inside' } },
    fifo: {},
    exact: { 'SKILL.md': 'x'.repeat(MAX_MAIN_FILE_BYTES) },
    large: { 'SKILL.md': large },
    'large-and-bad': { 'SKILL.md': Buffer.alloc(MAX_MAIN_FILE_BYTES + 1, 0xff) },
    'large-and-locked': { 'SKILL.md': large },
    latin: { 'SKILL.md': Buffer.from([0x63, 0xe9]) },
    utf16: { 'SKILL.md': Buffer.from('\uFEFFtext', 'utf16le') },
    locked: skill('locked'),
    broken: skill('broken')
  }, { disk })
  execFileSync('mkfifo', [join(root, 'fifo/SKILL.md')])
  const table: ReadonlyArray<readonly [names: readonly string[], error: (name: string) => string]> = [
    [['', 'a/b', 'a\\b', '..', 'a..b', '/etc', '../../../etc/passwd'],
      (name) => `Invalid skill name: '${name}'. Skill names must not contain '/', '\\', or '..'`],
    [['.', '%2e%2e', 'Demo', 'a\0', 'nonexistent'], (name) => `Skill '${name}' not found in skills folder`],
    [['empty', 'folder', 'leaving', 'sibling', 'dangling', 'hidden', 'fifo'],
      (name) => `SKILL.MD not found for skill '${name}'`],
    [['large', 'large-and-bad', 'large-and-locked'], (name) => `SKILL.MD too large (>1MB) for skill '${name}'`],
    [['latin', 'utf16'], (name) => `SKILL.MD contains invalid UTF-8 for skill '${name}'`],
    [['locked'], (name) => `Permission denied reading SKILL.MD for skill '${name}'`],
    [['broken'], (name) => `Error reading SKILL.MD for skill '${name}'`]
  ]
  for (const [names, error] of table) {
    for (const name of names) {
      const { json, text, isError } = await call('get_skill', { skill_name: name })
      t.strictSame([json, text, isError],
        [JSON.stringify({ error: error(name) }), `{"error": ${JSON.stringify(error(name))}}`, true])
    }
  }
  t.match((await call('get_skill', { skill_name: 'inside' })).result, { documentation: 'inside' })
  t.equal(JSON.parse((await call('get_skill', { skill_name: 'exact' })).json).documentation.length, MAX_MAIN_FILE_BYTES)
  t.ok((await skills.list()).includes('folder'), 'whatever is wrong, the skill stays listed')
  for (const [name, code] of [['locked', 'main_file_permission_denied'], ['large-and-locked', 'main_file_too_large'],
    ['dangling', 'main_file_not_a_file']] as const) {
    t.match((await skills.find(name))?.findings, [{ code, severity: 'error' }])
  }
})

t.test('K18 K19: every error of read_file_in_skill', async (t) => {
  const link = (target: string) => t.fixture('symlink', target)
  const base = t.testdirName
  const disk = createFaultyDisk({
    intercept: (operation, path) => {
      if (operation !== 'open' || !path.startsWith('/proc/')) return
      const target = fs.readlinkSync(path)
      if (target.endsWith('locked')) throw osError('EACCES')
      if (target.endsWith('broken')) throw osError('EIO')
    }
  })
  const { call, root } = await startTools(t, {
    demo: {
      ...skill('demo', {
        docs: { 'a.md': 'a' }, '.env': '', huge: '', cap: '', locked: '', broken: '', 'data.bin': Buffer.from([1, 0, 2])
      }),
      ...Object.fromEntries(
        ([['inside', 'docs/a.md'], ['out', '/etc/hostname'], ['out-folder', '../demo2'], ['folder', 'docs'],
          ['to-locked', 'locked']] as const).map(([name, to]) => [name, link(to)]))
    },
    demo2: skill('demo2')
  }, { disk })
  execFileSync('mkfifo', [join(root, 'demo/fifo')])
  fs.truncateSync(join(root, 'demo/huge'), MAX_TEXT_FILE_BYTES + 1)
  fs.writeFileSync(join(root, 'demo/cap'), 'x'.repeat(MAX_TEXT_FILE_BYTES))
  const cannot = (reason: string) => (path: string) => `Cannot read file '${path}': ${reason}`
  const table: ReadonlyArray<readonly [paths: readonly string[], error: (path: string) => string]> = [
    [[''], () => 'Invalid file path'],
    [[
      '..', '../demo/SKILL.md', '../demo2/SKILL.md', '/etc/passwd', join(base, 'demo/SKILL.md'), 'C:\\Windows',
      '..\\..\\..\\Windows\\System32', '\\\\server\\share',
      'a\\b/../../x', 'out', 'out/x', 'out-folder/SKILL.md', 'out-folder/nothing'
    ], () => 'Path traversal detected: cannot access files outside skill folder'],
    [[
      'nothing.md', 'SKILL.md/', 'a\0b', '\uD800', 'docs\\a.md', 'x'.repeat(5_000), '.env', '.git/config',
      '%2e%2e%2fetc'
    ], (path) => `File '${path}' not found in skill 'demo'`],
    [['.', 'docs', 'docs/', 'folder'], cannot('is a directory')],
    [['fifo'], cannot('not a regular file')],
    [['data.bin'], cannot('not a text file')],
    [['huge'], cannot(`file too large (${MAX_TEXT_FILE_BYTES + 1} bytes, limit ${MAX_TEXT_FILE_BYTES})`)],
    [['locked', 'to-locked'], cannot('permission denied')],
    [['broken'], cannot('I/O error')]
  ]
  for (const [paths, error] of table) {
    for (const path of paths) {
      const { json, text, isError } = await call('read_file_in_skill', { skill_name: 'demo', file_path: path })
      t.equal(json, JSON.stringify({ success: false, skill_name: 'demo', file_path: path, error: error(path) }),
        path.slice(0, 40))
      t.strictSame([text, isError], [`ERROR: ${error(path)}`, true])
    }
  }
  for (const [name, error] of [
    ...['', '..', 'demo/docs', 'demo/../other', 'a\\b'].map((name) =>
      [name, 'Invalid skill name: must not contain special characters'] as const),
    ['.', "Skill '.' not found in skills folder"], ['nothing', "Skill 'nothing' not found in skills folder"]
  ] as const) {
    t.match((await call('read_file_in_skill', { skill_name: name, file_path: '../x' })).result,
      { success: false, error }, 'the skill is looked up before the path')
  }
  for (const path of ['./docs//a.md', 'inside', 'folder/a.md']) {
    t.equal((await call('read_file_in_skill', { skill_name: 'demo', file_path: path })).text, 'a')
  }
  t.equal((await call('read_file_in_skill', { skill_name: 'demo', file_path: 'cap' })).text.length,
    MAX_TEXT_FILE_BYTES, 'K21: up to 10 MiB')
})

t.test('K16 K18: a disk that fails at any operation has a fixed sentence, and none of its text', async (t) => {
  for (const code of ['EIO', 'EMFILE', 'ESTALE', 'EWHATEVER']) {
    for (const operation of ['stat', 'realpath', 'readdir', 'open', 'readlink', 'fstat', 'read'] as const) {
      // Timestamps that lie ahead: nothing that was seen before is trusted.
      const disk = createFaultyDisk({ ageMs: -HOUR_MS })
      const { call, root } = await startTools(t, { demo: skill('demo', { docs: { 'a.md': 'a' } }) }, { disk })
      disk.intercept = (asked, path) => { if (asked === operation && path !== root) throw osError(code) }
      t.same((await call('get_skill', { skill_name: 'demo' })).result,
        { error: "Error reading SKILL.MD for skill 'demo'" }, `${operation}: ${code}`)
      const opens = !['stat', 'realpath', 'readdir'].includes(operation)
      t.equal((await call('read_file_in_skill', { skill_name: 'demo', file_path: 'docs/a.md' })).text,
        opens ? "ERROR: Cannot read file 'docs/a.md': I/O error" : 'a', `${operation}: ${code}`)
    }
  }
})

t.test('K14 K26: without a root, or with one that may not be read, each tool says so', async (t) => {
  const disk = createFaultyDisk({
    intercept: (operation, path) => { if (operation === 'readdir' && path === root) throw osError('EACCES') }
  })
  const { root, call } = await startTools(t, {}, { disk })
  for (const error of ['Permission denied reading skills folder', `Skills folder not found at path: ${root}`]) {
    for (const [name, args] of [['list_skills', {}], ['get_skill', { skill_name: 'x' }], ['search_skills', {
      query: 'x'
    }], ['list_skill_files', {
      skill_name: 'x'
    }]] as const) {
      const { result, text, isError } = await call(name, args)
      t.strictSame([result, text, isError], [{ error }, `{"error": ${JSON.stringify(error)}}`, true])
    }
    t.equal((await call('Skill', { skill_name: 'pdf' })).text,
      `Error invoking skill 'pdf': ${error}\n\nAvailable skills:\n- (none)`)
    fs.rmSync(root, { recursive: true, force: true })
  }
})

t.test('K40: list_skill_files gives all files of a skill, with sizes and types', async (t) => {
  const { call } = await startTools(t, { demo: { 'SKILL.md': '# Demo', docs: { 'é.txt': 'é' } }, bare: {} })
  t.match(await call('list_skill_files', { skill_name: 'demo' }), {
    text: '{"skill_name": "demo", "files": [{"path": "SKILL.md", "size_bytes": 6, "media_type": "text/markdown"}, ' +
      '{"path": "docs/é.txt", "size_bytes": 2, "media_type": "text/plain"}]}',
    isError: false
  })
  t.same((await call('list_skill_files', { skill_name: 'bare' })).result, { skill_name: 'bare', files: [] })
  t.match(await call('list_skill_files', { skill_name: 'nope' }),
    { result: { error: "Skill 'nope' not found in skills folder" }, isError: true })
  t.match((await call('list_skill_files', { skill_name: '../x' })).result, { error: /^Invalid skill name/ })
})

t.test('K46: search_skills gives names and descriptions in the order of the search, ten or as many ' +
  'as asked for', async (t) => {
  const many = Array.from({ length: 60 }, (_, index) => `many-${index}`)
  const { call } = await startTools(t, {
    ...skills('pdf', 'other', ...many), form: { 'SKILL.md': '---\nname: form\ndescription: Fills a pdf\n---\n' }
  })
  t.same((await call('search_skills', { query: 'pdf' })).text,
    '{"skills": [{"skill_name": "pdf", "description": "What pdf is for"}, {"skill_name": "form", "description": ' +
      '"Fills a pdf"}]}')
  t.equal((await call('search_skills', { query: 'zzz' })).text, '{"skills": []}')
  for (const [limit, count] of [[{}, DEFAULT_FOUND_SKILLS], [{ limit: 1 }, 1], [{
    limit: MAX_FOUND_SKILLS
  }, MAX_FOUND_SKILLS]] as const) {
    t.match((await call('search_skills', { query: 'many', ...limit })).result, { skills: { length: count } })
  }
  t.match((await call('search_skills', JSON.parse('{"query":"many","__proto__":{"limit":1}}'))).result,
    { skills: { length: DEFAULT_FOUND_SKILLS } })
})

t.test('K37: an argument that is missing or of another type is refused by name, with the schema', async (t) => {
  const { call, registry } = await startTools(t, { 5: skill('5') })
  const notText = [5, null, true, ['5'], { toString: '5' }]
  const rows: ReadonlyArray<readonly [tool: string, args: object, problem: string]> = [
    ...['get_skill', 'list_skill_files', 'read_file_in_skill'].flatMap((tool) => [
      [tool, { file_path: 'x' }, "'skill_name' is missing: it must be a string"] as const,
      ...notText.map((value) => [tool, { skill_name: value, file_path: 'x' }, "'skill_name' must be a string"] as const)
    ]),
    ['get_skill', Object.create({ skill_name: '5' }), "'skill_name' is missing: it must be a string"],
    ...notText.map((value) =>
      ['read_file_in_skill', { skill_name: '5', file_path: value }, "'file_path' must be a string"] as const),
    ...notText.map((skill) => ['skill', { skill }, "'skill' must be a string"] as const),
    ['search_skills', {}, "'query' is missing: it must be a string"],
    ...notText.map((query) => ['search_skills', { query }, "'query' must be a string"] as const),
    ...['', ' \n'].map((query) => ['search_skills', { query }, "'query' must not be empty"] as const),
    ['search_skills', { query: 'x'.repeat(MAX_QUERY_CODE_POINTS + 1) },
      "'query' must not be longer than 1000 characters"],
    ...['5', 0, -1, 51, 1.5, 1e21, Number.NaN, null, true, [5], {}].map((limit) =>
      ['search_skills', { query: 'x', limit }, "'limit' must be an integer from 1 to 50"] as const)
  ]
  for (const [name, args, problem] of rows) {
    const { text, isError } = await call(name, args)
    const schema = JSON.stringify(toolOf(registry, name).parameters)
    const sentence = `Invalid tool arguments: ${problem}\n\nParameters: ${schema}`
    t.ok(isError)
    t.ok([sentence, `ERROR: ${sentence}`, `{"error": ${JSON.stringify(sentence)}}`].includes(text),
      `${name}: ${text.slice(0, 100)}`)
  }
  t.match((await call('read_file_in_skill', { skill_name: ['x'], file_path: 5 })).result,
    { success: false, skill_name: '', file_path: '' }, 'echoed as an empty one')
})

const PARAMETERS: ToolParameters = {
  type: 'object',
  properties: { skill_name: { type: 'string', description: 'Name' }, limit: { type: 'integer', description: 'Most' } },
  required: ['skill_name']
}

t.test('K37 K38: arguments are an object or the JSON text of one, and nothing is repaired', async (t) => {
  const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
  for (const [raw, args] of [
    ...['', '  \n', null, undefined, 'null', '{}', {}].map((raw) => [raw, {}] as const),
    ['{"skill_name":"a"}', { skill_name: 'a' }],
    [{ skill_name: 'a' }, { skill_name: 'a' }],
    ['{"skill_name":"a","limit":null}', { skill_name: 'a' }],
    [{ skill_name: null, other: null }, { skill_name: null, other: null }],
    ['{"skill_name":"a\\ud800b"}', { skill_name: 'a\ufffdb' }],
    [{ skill_name: 'a\ud800b' }, { skill_name: 'a\ufffdb' }],
    ['{"__proto__":{"skill_name":"x"}}', JSON.parse('{"__proto__":{"skill_name":"x"}}')],
    [nested(MAX_JSON_DEPTH), JSON.parse(nested(MAX_JSON_DEPTH))]
  ] as const) t.same(parseArguments(raw, PARAMETERS), args)
  for (const [raw, problem] of [
    // The words of V8.
    ['{"skill_name": calculator}', /Unexpected token 'c', .*calculator.* is not valid JSON/],
    [[1], 'expected a JSON object, got an array'],
    ['"{\\"skill_name\\":\\"a\\"}"', 'expected a JSON object, got a string'],
    ['true', 'expected a JSON object, got a boolean'],
    [nested(MAX_JSON_DEPTH + 1), 'nested deeper than 64 levels'],
    [nested(200_000), 'nested deeper than 64 levels']
  ] as const) {
    const refused = new RegExp(
      `^Invalid tool arguments: ${typeof problem === 'string' ? problem : problem.source}\n\nParameters: \\{"type"`)
    t.throws(() => parseArguments(raw, PARAMETERS), { message: refused })
  }
  t.notOk('polluted' in {})
})

t.test('K36: JSON for models has the spacing of Python, whatever it holds', async () => {
  fc.assert(fc.property(fc.json({ maxDepth: 4 }), (json) => {
    const value: unknown = JSON.parse(json)
    const text = spacedJson(value)
    const structure = text.split(/"(?:[^"\\]|\\.)*"/)
    return JSON.stringify(JSON.parse(text)) === JSON.stringify(value) &&
      !structure.some((part) => /[,:](?! )|(?<![,:]) /.test(part))
  }))
})

t.test("K28 K40: definitions in each provider's form, keys in order; descriptions follow the catalog", async (t) => {
  const { skills, registry } = await startTools(t,
    { pdf: { 'SKILL.md': '---\nname: pdf\ndescription: Reads PDF\n---\n' } })
  const list = {
    name: 'list_skills',
    description: 'List all available skills in the skills folder. Returns skill names as a JSON array.'
  }
  const parameters = { type: 'object', properties: {}, required: [] }
  const definitions = (format: ToolDefinitionOptions['format'], toolset: ToolDefinitionOptions['toolset']) =>
    toolDefinitions(registry, { format, toolset, skills })
  const forms = {
    openai: { type: 'function', function: { ...list, parameters } },
    'openai-responses': { type: 'function', ...list, parameters, strict: false },
    anthropic: { ...list, input_schema: parameters },
    mcp: {
      ...list,
      inputSchema: { ...parameters, additionalProperties: false },
      annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }
    },
    bedrock: { toolSpec: { ...list, inputSchema: { json: parameters } } }
  } as const
  for (const [format, form] of Object.entries(forms)) {
    t.equal(JSON.stringify(definitions(format as keyof typeof forms, 'reader')[0]), JSON.stringify(form))
  }
  t.ok(
    JSON.stringify(definitions('gemini', 'reader')[0]).startsWith(
      `{"functionDeclarations":[${JSON.stringify({ ...list, parametersJsonSchema: parameters })},`))
  for (const format of DEFINITION_FORMATS) {
    const description = format === 'openai'
      ? 'Invoke a skill to apply specialized expertise and capabilities'
      : 'Invoke skills based on available skill metadata. Skills: pdf: Reads PDF'
    t.match(JSON.stringify(definitions(format, 'wave')), `"description":"${description}"`)
  }
  const none = await startTools(t, {})
  t.equal(toolOf(registry, 'Skill').currentDescription?.(none.skills),
    'Invoke skills based on available skill metadata. Skills: No skills currently available')
})

const PDF = '---\nname: pdf\ndescription: |\n  Reads\n    PDF files\n---\n\n# PDF\n'
const AVAILABLE = 'Available skills:\n- csv: What csv is for\n- pdf: Reads PDF files'

function waveError (name: string, type: string, error: string, message: string,
  suggestions: readonly string[]): object {
  const errorDetails = { type, skillName: name, message, suggestions, availableSkills: ['csv', 'pdf'] }
  return { success: false, content: `Error invoking skill '${name}': ${error}`, error, errorDetails }
}

t.test('K23 K24 K25 K26 K27: results and errors of Skill, to the letter', async (t) => {
  const disk = createFaultyDisk({
    intercept: (operation, path, file) => {
      if (operation === 'open' && path !== file && file.endsWith('secret/SKILL.md')) throw osError('EACCES')
      if (operation === 'open' && path.endsWith('failing/SKILL.md')) throw osError('EIO')
    }
  })
  const { call, root } = await startTools(t, {
    pdf: { 'SKILL.md': PDF },
    csv: skill('csv'),
    Broken: { 'SKILL.md': '---\nname: Broken\nextra: 1\n---\n# Broken' },
    yaml: { 'SKILL.md': '---\n[\n---' },
    hollow: {},
    pipe: { 'SKILL.md': {} },
    secret: skill('secret'),
    failing: skill('failing')
  }, { disk })
  const invoke = (name: string) => call('Skill', { skill_name: name })
  const content = `Skill: pdf (Type: project)\nPath: ${root}/pdf\n\n${PDF}`
  t.match(await invoke('pdf'), {
    json: JSON.stringify({ success: true, content, shortResult: 'pdf: Reads\n  PDF files' }),
    text: content,
    isError: false
  })

  const create = ['Create directory ~/.wave/skills/nope/', 'Add SKILL.md file with proper YAML frontmatter']
  const broken = "Skill 'Broken' is invalid: name 'Broken' must contain only lowercase letters, numbers and hyphens"
  const fixes = ["Change name to 'broken' and rename the folder to 'broken'",
    'Add a description of 1 to 1024 characters that says what the skill does and when to use it']
  for (const [name, expected] of [
    ['nope', waveError('nope', 'skill_not_found',
      `Skill 'nope' not found.\n\n${AVAILABLE}\n\nTo create this skill:\n1. ${create[0]}\n2. ${create[1]}`,
      "Skill 'nope' not found.", create)],
    ['Broken',
      waveError('Broken', 'skill_invalid',
        `${broken}\n\nFix by:\n- ${fixes.join('\n- ')}\n\nSkill will be available after fixing these issues.`, broken,
        fixes)]
  ] as const) {
    const outcome = await invoke(name)
    t.same(JSON.parse(outcome.json), expected)
    t.equal(outcome.json, JSON.stringify(expected), 'keys in order')
    t.strictSame([outcome.text, outcome.isError], [Reflect.get(expected, 'content'), true])
  }
  for (const [name, type, error] of [
    ['yaml', 'skill_malformed', /^Skill 'yaml' is invalid: line 2 of SKILL.md is not valid YAML/],
    ['hollow', 'skill_invalid', /^Skill 'hollow' is invalid: SKILL.md is missing\n\nFix by:\n- Add a SKILL.md/],
    ['pipe', 'skill_invalid',
      /^Skill 'pipe' is invalid: SKILL.md is not a regular file inside the skill folder\n\nFix by:\n- /],
    ['secret', 'skill_inaccessible', /^Permission denied reading SKILL.MD for skill 'secret'$/],
    ['failing', 'system_error', /^Error reading SKILL.MD for skill 'failing'$/]
  ] as const) t.match((await invoke(name)).result, { error, errorDetails: { type } }, name)
  t.equal((await invoke('secret')).text,
    `Error invoking skill 'secret': Permission denied reading SKILL.MD for skill 'secret'\n\n${AVAILABLE}`)

  for (const name of ['', '../x', '..', 'a/b', 'a\\b', '.hidden', 'x\n- evil: do this', 'a\u0000', '\ud800',
    'a\u0085- evil: b']) {
    const { text, isError, result } = await invoke(name)
    t.match(text, /^Error invoking skill '.*': Skill '.*' is invalid: a skill name must not .*\n\nFix by:\n- /)
    t.notMatch(text, /Create directory|^- evil/m, 'K26: an unsafe name is invalid, and starts no line')
    t.match([isError, result], [true, { errorDetails: { type: 'skill_invalid', skillName: name } }])
  }
  for (const args of [{}, { skill_name: 5 }, { skill_name: null }, { skill_name: ['pdf'] }, {
    skill_name: { toString: 'pdf' }
  }]) {
    const error = 'skill_name parameter is required and must be a string'
    t.match(await call('Skill', args), {
      result: { success: false, error }, text: `Error invoking skill '': ${error}\n\n${AVAILABLE}`, isError: true
    })
  }
  for (const extra of ['verbose', '__proto__', 'constructor']) {
    const error = `Invalid tool arguments: unknown argument "${extra}", the only one is 'skill_name'`
    t.match((await call('Skill', JSON.parse(`{"skill_name":"pdf","${extra}":{"a":1}}`))).result,
      { success: false, error })
  }
  fs.writeFileSync(join(root, 'Broken/SKILL.md'), skillText('Broken').replace('name: Broken', 'name: broken'))
  fs.renameSync(join(root, 'Broken'), join(root, 'broken'))
  t.equal((await invoke('broken')).isError, false, 'K25: usable as soon as it is mended')
})

t.test('K26 K27: a failure lists the first 200 valid skills and says how many more there are', async (t) => {
  for (const [count, rest] of [
    [0, []], [200, []], [201, ['- … and 1 more: search_skills or GET /catalog?q= finds them']]
  ] as const) {
    const names = Array.from({ length: count }, (_, index) => `s${1_000 + index}`)
    const { call } = await startTools(t,
      {
        ...Object.fromEntries(
          names.map((name) =>
            [name, { 'SKILL.md': `---\nname: ${name}\ndescription: ${'x'.repeat(1_000)}\n---\n` }])),
        Broken: {}
      })
    for (const name of ['nope', 'a/b', 'Broken']) {
      const { json, text } = await call('Skill', { skill_name: name })
      t.ok(Buffer.byteLength(json) < 600_000, `${count}: ${name}`)
      t.strictSame(JSON.parse(json).errorDetails.availableSkills, names.slice(0, 200))
      if (name !== 'nope') continue
      const list = text.slice(text.indexOf('Available skills:\n') + 18, text.indexOf('\n\nTo create')).split('\n')
      t.strictSame(list.slice(Math.min(count, 200)), count === 0 ? ['- (none)'] : rest)
    }
  }
})

t.test('K29 K30: results and errors of skill', async (t) => {
  const { call, root } = await startTools(t, {
    demo: skill('demo', { 'SKILL.md': `${skillText('demo', '')}\n# Demo\n\n"quoted" é\n` }),
    folder: skill('Label', { 'SKILL.md': skillText('Label', 'by its label') }),
    Label: skill('other'),
    hollow: {},
    latin: { 'SKILL.md': Buffer.from([0xe9]) }
  })
  const invoke = (name: string) => call('skill', { skill: name })
  const llmContent = JSON.stringify([
    {
      type: 'text',
      text: '<command-message>demo is ' +
      'running\u2026</command-message>\n<command-name>demo</command-name>'
    },
    { type: 'text', text: `Base directory for this skill: ${root}/demo\n\n\n# Demo\n\n"quoted" é\n`, isMeta: true }
  ])
  for (const name of ['demo', ' \tdemo\n']) {
    t.match(await invoke(name), {
      json: JSON.stringify({ llmContent, returnDisplay: 'Loaded skill: demo' }), text: llmContent, isError: false
    })
  }
  t.match(await invoke('Label'), { result: { returnDisplay: 'Loaded skill: Label' }, text: 'by its label' },
    "the frontmatter's name comes before the folder's")
  t.match((await invoke('folder')).text, 'folder is running')
  for (const [name, error] of [
    ...['nope', '../demo', '/etc/passwd', 'demo/SKILL.md', '', '__proto__', 'label', '..', '\0'].map((name) =>
      [name, `Skill "${name}" not found`] as const),
    ['hollow', "SKILL.MD not found for skill 'hollow'"],
    ['latin', "SKILL.MD contains invalid UTF-8 for skill 'latin'"]
  ] as const) {
    const { result, text, isError } = await invoke(` ${name} `)
    t.strictSame([result, text, isError], [{ isError: true, llmContent: error }, error, true])
  }
})
