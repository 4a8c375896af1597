import t from 'tap'
import { fileError } from '../../../src/core/shared/errors.ts'
import { createReadFileInSkillTool } from '../../../src/tools/reader/read-file-in-skill.ts'
import { createToolRegistry } from '../../../src/tools/registry.ts'
import { type FakeSkill, FakeSource } from '../fake-source.ts'

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
  data_processor: { files: { 'config.json': '{"api_endpoint": "https://example.com", "timeout": 30}', 'a.yaml': 'a: 1\n' } },
  ml_model: { files: { 'data/samples/input.txt': 'sample1\nsample2\nsample3' } }
}

function setUp () {
  const tool = createReadFileInSkillTool()
  const source = new FakeSource(SKILLS)
  const registry = createToolRegistry([tool])
  return { tool, call: (name: unknown, path: unknown) => registry.call(tool, { skill_name: name, file_path: path }, source) }
}

t.test('the definition is the seed\'s', async (t) => {
  const { name, description, parameters } = setUp().tool
  t.equal(JSON.stringify({ name, description, parameters }),
    '{"name":"read_file_in_skill","description":"Read any file within a skill\'s folder. Use this when SKILL.MD references additional documentation, ' +
    'examples, or configuration files. Path must be relative to skill folder.","parameters":{"type":"object","properties":{"skill_name":{"type":"string",' +
    '"description":"Name of the skill (folder name containing the file)"},"file_path":{"type":"string","description":"Relative path to file within skill ' +
    'folder (e.g., \'examples/usage.py\', \'docs/api.md\')"}},"required":["skill_name","file_path"]}}')
})

t.test('K17, examples 1, 2, 6 and 7: the result object, and the raw text for the model', async (t) => {
  const { call } = setUp()
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
    t.equal(outcome.json, JSON.stringify({
      success: true, skill_name: skill, file_path: path, content, size_bytes: Buffer.byteLength(content), encoding: 'utf-8'
    }))
    t.equal(outcome.text, content)
    t.equal(outcome.isError, false)
  }
})

t.test('K20: encodings, empty file, bytes counted and not characters', async (t) => {
  const { call } = setUp()
  const rows: ReadonlyArray<readonly [path: string, content: string, bytes: number, encoding: string]> = [
    ['empty.txt', '', 0, 'utf-8'],
    ['unicode.txt', 'é 日本語 😀\r\n', 19, 'utf-8'],
    ['latin.txt', 'café', 4, 'latin-1'],
    ['utf16.txt', '\ufeffhi', 6, 'utf-16le']
  ]
  for (const [path, content, bytes, encoding] of rows) {
    t.same((await call('calculator', path)).result, { success: true, skill_name: 'calculator', file_path: path, content, size_bytes: bytes, encoding })
  }
})

t.test('K17: file_path is echoed as sent', async (t) => {
  const { call } = setUp()
  t.match((await call('calculator', './examples//basic.py')).result, { file_path: './examples//basic.py', content: BASIC_PY })
  t.match((await call('calculator', 'examples/../examples/basic.py')).result, { file_path: 'examples/../examples/basic.py' })
})

t.test('K18, examples 3, 4 and 5: each error is the contract\'s sentence', async (t) => {
  const { call } = setUp()
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
    t.equal(outcome.json, JSON.stringify({ success: false, skill_name: skill, file_path: path, error }))
    t.equal(outcome.text, `ERROR: ${error}`)
    t.equal(outcome.isError, true)
  }
})

t.test('an argument that is no string is refused by name, and echoed as an empty one', async (t) => {
  const { call, tool } = setUp()
  const schema = JSON.stringify(tool.parameters)
  t.same((await call(['x'], 'a')).result,
    { success: false, skill_name: '', file_path: 'a', error: `Invalid tool arguments: 'skill_name' must be a string\n\nParameters: ${schema}` })
  const outcome = await call('calculator', 5)
  t.same(outcome.result,
    { success: false, skill_name: 'calculator', file_path: '', error: `Invalid tool arguments: 'file_path' must be a string\n\nParameters: ${schema}` })
  t.ok(outcome.text.startsWith("ERROR: Invalid tool arguments: 'file_path' must be a string"))
})

t.test('an unchanged file is rendered once for one spelling of its path, and no spelling is kept beside it', async (t) => {
  const { call } = setUp()
  const first = await call('calculator', 'examples/basic.py')
  t.equal(await call('calculator', 'examples/basic.py'), first)
  const other = await call('calculator', './examples/basic.py')
  t.not(other, first)
  t.not(await call('calculator', 'examples/basic.py'), first)
})
