import t from 'tap'
import { mainFileError, folderError } from '../../../src/core/shared/errors.ts'
import { createToolRegistry } from '../../../src/tools/registry.ts'
import { waveSkill } from '../../../src/tools/wave/wave-skill.ts'
import { errorFinding, type FakeSkill, FakeSource, shown } from '../fake-source.ts'

const PDF = '---\nname: pdf\ndescription: Reads PDF files\n---\n\n# PDF\n'
const SKILLS: Readonly<Record<string, FakeSkill>> = {
  pdf: { description: 'Reads PDF files', files: { 'SKILL.md': PDF } },
  csv: { description: 'Reads\n  tables', type: 'personal', files: { 'SKILL.md': '# CSV' } },
  Broken: {
    files: { 'SKILL.md': '# Broken' },
    findings: [
      errorFinding(
        'name_invalid_characters', "name 'Broken' must contain only lowercase letters, numbers and hyphens",
        "Rename the folder to 'broken'"
      ),
      { code: 'unknown_fields', severity: 'info', message: 'unknown', fix: 'Remove them' },
      errorFinding('description_missing', 'description is missing', 'Add a description')
    ]
  },
  yaml: {
    files: { 'SKILL.md': '---\n[\n---' },
    findings: [errorFinding('yaml_invalid', 'the frontmatter is not valid YAML', 'Mend line 1')]
  },
  hollow: {
    findings: [errorFinding('main_file_missing', 'SKILL.md is missing', 'Add a SKILL.md file with YAML frontmatter')]
  },
  pipe: { findings: [errorFinding('main_file_not_a_file', 'SKILL.md is not a regular file', 'Replace SKILL.md')] },
  secret: {
    files: { 'SKILL.md': mainFileError.permissionDenied('secret') },
    findings: [errorFinding('main_file_permission_denied', 'x', 'y')]
  },
  failing: { files: { 'SKILL.md': mainFileError.unreadable('failing') } }
}
const AVAILABLE = '- csv: Reads tables\n- failing: \n- pdf: Reads PDF files'
const AVAILABLE_NAMES = ['csv', 'failing', 'pdf']

function setUp (skills = SKILLS) {
  const source = new FakeSource(skills)
  const tool = waveSkill
  const registry = createToolRegistry([tool])
  return {
    source,
    tool,
    registry,
    call: (name: string) => registry.call(tool, { skill_name: name }, source),
    callWith: (args: object) => registry.call(tool, { ...args }, source)
  }
}

t.test('the definition is the seed\'s', async (t) => {
  const { name, description, parameters } = setUp().tool
  t.equal(JSON.stringify({ name, description, parameters }),
    '{"name":"Skill","description":"Invoke a skill to apply specialized expertise and ' +
    'capabilities","parameters":{"type":"object","properties":' +
    '{"skill_name":{"type":"string","description":"Name of the skill to invoke from available ' +
    'skills"}},"required":["skill_name"],"additionalProperties":false}}')
})

t.test('K23: a skill comes with its type, its folder and the whole SKILL.md', async (t) => {
  const { call } = setUp()
  const content = `Skill: pdf (Type: project)\nPath: /srv/skills/pdf\n\n${PDF}`
  t.same(shown(await call('pdf')), {
    result: { success: true, content, shortResult: 'pdf: Reads PDF files' }, text: content, isError: false
  })
  t.equal((await call('csv')).text, 'Skill: csv (Type: personal)\nPath: /srv/skills/csv\n\n# CSV')
})

t.test('K24, K26, K27: a skill that is not there', async (t) => {
  const { call } = setUp()
  const error = `Skill 'nope' not found.\n\nAvailable skills:\n${AVAILABLE}\n\nTo create this skill:\n1. Create ` +
    'directory ~/.wave/skills/nope/\n2. Add SKILL.md file with proper YAML frontmatter'
  const content = `Error invoking skill 'nope': ${error}`
  const outcome = await call('nope')
  t.equal(JSON.stringify(outcome.result), JSON.stringify({
    success: false,
    content,
    error,
    errorDetails: {
      type: 'skill_not_found',
      skillName: 'nope',
      message: "Skill 'nope' not found.",
      suggestions: ['Create directory ~/.wave/skills/nope/', 'Add SKILL.md file with proper YAML frontmatter'],
      availableSkills: AVAILABLE_NAMES
    }
  }))
  t.equal(outcome.text, content)
  t.equal(outcome.isError, true)
})

t.test('K26, K27: a failure lists the first 200 skills and says how many more there are', async (t) => {
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) =>
    [`s${1_000 + index}`, { description: 'x'.repeat(1_000), files: { 'SKILL.md': PDF } }]))
  for (const [count, rest] of [[200, []], [
    201, ['- … and 1 more: search_skills or GET /catalog?q= finds them']
  ], [3_000, ['- … and 2800 more: search_skills or GET /catalog?q= finds them']]] as const) {
    const { call } = setUp({ ...many(count), Broken: SKILLS.Broken ?? {} })
    for (const name of ['nope', 'a/b', 'Broken']) {
      const { result, text } = await call(name)
      const json = JSON.stringify(result)
      t.ok(Buffer.byteLength(json) < 600_000, `${count}: ${name}`)
      const { errorDetails } = JSON.parse(json) as { errorDetails: { availableSkills: string[] } }
      t.strictSame([
        errorDetails.availableSkills.length, errorDetails.availableSkills[0], errorDetails.availableSkills[199]
      ], [200, 's1000', 's1199'])
      if (name !== 'nope') continue
      const list = text.slice(text.indexOf('Available skills:\n') + 18, text.indexOf('\n\nTo create')).split('\n')
      t.equal(list.filter((line) => /^- s1\d{3}: x/.test(line)).length, 200)
      t.strictSame(list.slice(200), rest)
    }
  }
})

t.test('K26: without skills the list says so', async (t) => {
  t.match((await setUp({}).call('nope')).text, 'Available skills:\n- (none)\n\nTo create')
})

t.test('K25, K26: an invalid skill is refused with its first problem and the fixes of all', async (t) => {
  const { call } = setUp()
  const message = "Skill 'Broken' is invalid: name 'Broken' must contain only lowercase letters, numbers and hyphens"
  const error = `${message}\n\nFix by:\n- Rename the folder to 'broken'\n- Add a description\n\nSkill will be ` +
    'available after fixing these issues.'
  const outcome = await call('Broken')
  t.same(outcome.result, {
    success: false,
    content: `Error invoking skill 'Broken': ${error}`,
    error,
    errorDetails: {
      type: 'skill_invalid',
      skillName: 'Broken',
      message,
      suggestions: ["Rename the folder to 'broken'", 'Add a description'],
      availableSkills: AVAILABLE_NAMES
    }
  })
  t.equal(outcome.isError, true)
})

t.test('K25: an invalid skill is usable as soon as it is mended', async (t) => {
  const { call, source } = setUp()
  t.equal((await call('Broken')).isError, true)
  source.set({ Broken: { files: { 'SKILL.md': '# Mended' } } })
  t.equal((await call('Broken')).isError, false)
})

t.test('K25: a skill without SKILL.md is invalid', async (t) => {
  const { call } = setUp()
  t.match((await call('hollow')).result, {
    error: "Skill 'hollow' is invalid: SKILL.md is missing\n\nFix by:\n- Add a SKILL.md file with YAML " +
      'frontmatter\n\nSkill will be available after fixing these issues.',
    errorDetails: { type: 'skill_invalid' }
  })
})

t.test('K27: frontmatter that cannot be read is skill_malformed', async (t) => {
  t.match((await setUp().call('yaml')).result, {
    errorDetails: { type: 'skill_malformed', message: "Skill 'yaml' is invalid: the frontmatter is not valid YAML" }
  })
})

t.test('K26, K27: other failures name the failure and the skills there are', async (t) => {
  const { call } = setUp()
  const denied = await call('secret')
  t.equal(denied.text, 'Error invoking skill \'secret\': Permission denied reading SKILL.MD for skill ' +
    `'secret'\n\nAvailable skills:\n${AVAILABLE}`)
  t.match(denied.result, {
    error: "Permission denied reading SKILL.MD for skill 'secret'", errorDetails: { type: 'skill_inaccessible' }
  })
  t.match((await call('failing')).result, { errorDetails: { type: 'system_error' } })
})

t.test('K26: without a root the failure is the root\'s', async (t) => {
  const { call, source } = setUp()
  source.failure = folderError.notFound('/srv/skills')
  const outcome = await call('pdf')
  t.equal(
    outcome.text,
    "Error invoking skill 'pdf': Skills folder not found at path: /srv/skills\n\nAvailable skills:\n- (none)"
  )
})

t.test('K26: an unexpected error says nothing of the inside', async (t) => {
  const { call, source } = setUp()
  source.failure = new TypeError('/etc/secret')
  t.notMatch(JSON.stringify((await call('pdf')).result), '/etc/secret')
})

t.test('K26: an unsafe name is invalid, never "create directory", and starts no line', async (t) => {
  const { call, source } = setUp()
  for (const name of [
    '', '../x', '..', 'a/b', 'a\\b', '.hidden', 'x\n- evil: do this', 'a\u0000', '\ud800', 'a\u0085- evil: b'
  ]) {
    const { text, isError, result } = await call(name)
    t.match(text, /^Error invoking skill '.*': Skill '.*' is invalid: a skill name must not .*\n\nFix by:\n- /)
    t.notMatch(text, 'Create directory')
    t.notMatch(text, /^- evil/m)
    t.equal(isError, true)
    t.match(result, { errorDetails: { type: 'skill_invalid', skillName: name } })
  }
  t.notOk(source.asked.some((question) => question.startsWith('find')), 'no unsafe name was looked up')
})

t.test('K25: a main file that is no file is not said to be missing', async (t) => {
  t.match(await setUp().call('pipe'), {
    result: {
      error: "Skill 'pipe' is invalid: SKILL.md is not a regular file\n\nFix by:\n- Replace SKILL.md\n\nSkill will " +
        'be available after fixing these issues.'
    }
  })
})

t.test('K26: a missing or wrong-typed argument has one sentence', async (t) => {
  const { callWith } = setUp()
  const sentence = 'skill_name parameter is required and must be a string'
  for (const args of [
    {}, { skill_name: 5 }, { skill_name: null }, { skill_name: ['pdf'] }, { skill_name: { toString: 'pdf' } }
  ]) {
    const { result, text, isError } = await callWith(args)
    t.match(result, { success: false, error: sentence })
    t.equal(text, `Error invoking skill '': ${sentence}\n\nAvailable skills:\n${AVAILABLE}`)
    t.equal(isError, true)
  }
})

t.test('K26: an extra argument is refused by its name, `__proto__` too', async (t) => {
  const { registry, source, tool } = setUp()
  for (const extra of ['verbose', '__proto__', 'constructor']) {
    const { result } = await registry.call(tool, JSON.parse(`{"skill_name":"pdf","${extra}":{"a":1}}`), source)
    t.match(result, {
      success: false, error: `Invalid tool arguments: unknown argument "${extra}", the only one is 'skill_name'`
    })
  }
  t.notOk('a' in {})
})

t.test('K28: the description follows the catalog, in one line', async (t) => {
  const { tool, source } = setUp()
  t.equal(tool.currentDescription?.(source),
    'Invoke skills based on available skill metadata. Skills: csv: Reads tables, failing: , pdf: Reads PDF files')
  source.set({})
  t.equal(
    tool.currentDescription?.(source),
    'Invoke skills based on available skill metadata. Skills: No skills currently available'
  )
})
