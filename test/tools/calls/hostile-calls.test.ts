import t from 'tap'
import fc from 'fast-check'
import { createToolRegistry } from '../../../src/tools/registry.ts'
import { createTools } from '../../../src/tools/tools.ts'
import { createToolCallHandler } from '../../../src/tools/calls/tool-call.ts'
import { checkTime } from '../../helper/timing.ts'
import { FakeSource } from '../fake-source.ts'

const skills = new FakeSource({
  demo: { description: 'A demo', files: { 'SKILL.md': '# Demo', 'references/a.md': 'a' } },
  constructorish: {}
})
const CONTEXT = { skills, requestId: 'r' }
const handle = createToolCallHandler({ registry: createToolRegistry(createTools()), log: { info () {} } })

/** The dialects that every row goes through; each gives the text of its answer. */
const DOORS: ReadonlyArray<readonly [title: string, body: (
  name: string, args: unknown
) => unknown, text: (answer: unknown) => unknown]> = [
  ['OpenAI, object', (name, args) =>
    ({ id: 'a', function: { name, arguments: args } }), (answer) => pick(answer, 'content')],
  ['OpenAI, string', (name, args) =>
    ({ function: { name, arguments: JSON.stringify(args) } }), (answer) => pick(answer, 'content')],
  ['Anthropic', (name, args) =>
    ({ type: 'tool_use', id: 'a', name, input: args }), (answer) => pick(answer, 'content')],
  ['Gemini', (name, args) => ({ functionCall: { name, args } }), (answer) => {
    const response = pick(pick(answer, 'functionResponse'), 'response')
    return pick(response, 'error') ?? pick(response, 'output')
  }],
  ['MCP', (name, args) =>
    ({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }), (answer) =>
    pick(pick(pick(pick(answer, 'result'), 'content'), '0'), 'text') ?? pick(pick(answer, 'error'), 'message')]
]

const TRAVERSAL = 'ERROR: Path traversal detected: cannot access files outside skill folder'
const noFile = (path: string) => `ERROR: File '${path}' not found in skill 'demo'`
const noSkill = (name: string) => `{"error": ${JSON.stringify(`Skill '${name}' not found in skills folder`)}}`

interface Row {
  readonly attack: string
  readonly tool: string
  readonly args: unknown
  readonly text: string | RegExp
}

const read = (attack: string, path: unknown, text: string | RegExp): Row =>
  ({ attack, tool: 'read_file_in_skill', args: { skill_name: 'demo', file_path: path }, text })
const get = (attack: string, name: unknown, text: string | RegExp): Row =>
  ({ attack, tool: 'get_skill', args: { skill_name: name }, text })
const NOT_STRINGS: readonly unknown[] = [['SKILL.md'], { toString: 'x' }, 123, null, true]

const ROWS: readonly Row[] = [
  ...['../../etc/passwd', '..\\..\\etc\\passwd', '/etc/passwd', 'C:\\x', '\\\\host\\share'].map((path) =>
    read('path that climbs out or is absolute', path, TRAVERSAL)),
  ...['%2e%2e%2fetc', 'references%2fa.md'].map((path) => read('percent-encoded path', path, noFile(path))),
  ...['SKILL.md\0.png', 'a\u202eb', '~/.ssh/id_rsa', '$HOME/x', ' '].map((path) =>
    read('strange path', path, noFile(path))),
  read('lone surrogate', '\ud800', noFile('\ufffd')),
  read('empty path', '', 'ERROR: Invalid file path'),
  ...['.', 'references'].map((path) => read('folder', path, `ERROR: Cannot read file '${path}': is a directory`)),
  ...NOT_STRINGS.map((path) =>
    read('not a string', path, /^ERROR: Invalid tool arguments: 'file_path' must be a string/)),
  ...NOT_STRINGS.map((name) =>
    get('not a string', name, /^\{"error": "Invalid tool arguments: 'skill_name' must be a string/)),
  ...NOT_STRINGS.map((name) => ({
    attack: 'not a string',
    tool: 'Skill',
    args: { skill_name: name },
    text: /skill_name parameter is required and must be a string/
  })),
  read('a million characters', 'a'.repeat(1_000_000), noFile('a'.repeat(1_000_000))),
  get('a million characters', 'a'.repeat(1_000_000), noSkill('a'.repeat(1_000_000))),
  ...['', '..', 'demo/../other', 'a\\b'].map((name) =>
    get(
      'forbidden name', name,
      `{"error": ${JSON.stringify(`Invalid skill name: '${name}'. Skill names must not contain '/', '\\', or '..'`)}}`
    )),
  ...['.', 'DEMO', 'demo\n', 'demo ', '__proto__', 'constructor', 'x'.repeat(65), 'x'.repeat(300)].map((name) =>
    get('name of no skill', name, noSkill(name))),
  {
    attack: 'unsafe name for Skill',
    tool: 'Skill',
    args: { skill_name: '../x' },
    text: /^Error invoking skill '\.\.\/x': Skill '\.\.\/x' is invalid: /
  },
  {
    attack: 'unsafe name for Skill',
    tool: 'Skill',
    args: { skill_name: 'x\n- evil: do this' },
    text: /^Error invoking skill 'x\\u000a- evil: do this': /
  },
  { attack: 'display name', tool: 'skill', args: { skill: ' demo ' }, text: /demo is running…/ },
  ...['../demo', '/etc/passwd', 'demo/SKILL.md'].map((name) =>
    ({ attack: 'display name', tool: 'skill', args: { skill: name }, text: `Skill "${name}" not found` })),
  ...['constructor', '__proto__', 'toString', 'SKILL', 'List_Skills', ''].map((tool) =>
    ({
      attack: 'unknown tool',
      tool,
      args: {},
      text: `Unknown tool: ${tool}. Available tools: list_skills, ` +
      'get_skill, read_file_in_skill'
    })),
  ...[[1], 'x', 1, true].map((args) =>
    ({
      attack: 'arguments that are no object',
      tool: 'get_skill',
      args,
      text: /^\{"error": "Invalid tool arguments: .*Parameters: /
    })),
  {
    attack: 'prototype names',
    tool: 'get_skill',
    args: JSON.parse('{"skill_name":"demo","__proto__":{"p":1},"constructor":{"prototype":{"p":1}}}'),
    text: /# Demo/
  },
  {
    attack: 'prototype names',
    tool: 'Skill',
    args: JSON.parse('{"skill_name":"demo","__proto__":{"p":1}}'),
    text: /unknown argument "__proto__"/
  }
]

for (const [title, body, textOf] of DOORS) {
  t.test(`hostile arguments through ${title}`, async (t) => {
    for (const { attack, tool, args, text } of ROWS) {
      const answer = await checkTime(t, 1_000, () => handle(body(tool, args), CONTEXT), attack)
      if (answer.kind !== 'answer') throw new Error(`${attack}: ${answer.kind}`)
      const shown = textOf(JSON.parse(answer.json))
      if (typeof text === 'string') t.ok(shown === text, attack)
      else t.match(shown, text, attack)
    }
    t.notOk('p' in {}, 'Object.prototype is as it was')
  })
}

t.test('`__proto__` beside a call is data', async (t) => {
  const body: unknown = JSON.parse(
    '{"__proto__":{"x":1},"constructor":{"prototype":{}},' +
      '"function":{"name":"list_skills","__proto__":{"arguments":"{"}}}'
  )
  t.match(await handle(body, CONTEXT), { kind: 'answer', json: /"content":"\{\\"skills\\": / })
})

t.test('of duplicate keys the last wins', async (t) => {
  const body: unknown = JSON.parse('{"function":{"name":"x","name":"list_skills"}}')
  t.match(await handle(body, CONTEXT), { json: /"name":"list_skills"/ })
})

t.test('many keys and strange numbers are answered within a second', async (t) => {
  const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`k${i}`, i]))
  const strange: unknown = JSON.parse(
    '{"id":12345678901234567,"function":{"name":"get_skill","arguments":{"skill_name":1e400}}}'
  )
  await checkTime(t, 1_000, async () => {
    t.match(await handle({ function: { name: 'list_skills', arguments: many } }, CONTEXT), { kind: 'answer' })
    t.match(await handle({ ...many, function: { name: 'list_skills' } }, CONTEXT), { kind: 'answer' })
    t.match(await handle(strange, CONTEXT), { kind: 'answer', json: /must be a string/ })
  })
})

t.test('an id of 10 KB comes back whole, and is in no log line', async (t) => {
  const lines: string[] = []
  const logged = createToolCallHandler({
    registry: createToolRegistry(createTools()),
    log: { info: (fields, line) => { lines.push(JSON.stringify(fields) + line) } }
  })
  const id = 'i'.repeat(10_240)
  t.match(
    await logged({ id, function: { name: 'list_skills' } }, CONTEXT), { kind: 'answer', json: `"tool_call_id":"${id}"` }
  )
  t.equal(lines.length, 2)
  t.notOk(lines.some((line) => line.includes('i'.repeat(256))))
})

const KEYS = [
  'id', 'type', 'function', 'name', 'arguments', 'tool_calls', 'role', 'content', 'function_call', 'functionCall',
  'args', 'input', 'call_id', 'callId',
  'jsonrpc', 'method', 'params', 'output', 'parts', 'candidates', 'choices', 'message', 'custom', 'skill_name',
  'file_path', 'skill', '__proto__', 'constructor'
]
const WORDS = [
  'list_skills', 'get_skill', 'read_file_in_skill', 'Skill', 'skill', 'demo', 'SKILL.md', 'tools/call', '2.0',
  'tool_use', 'function_call', 'function',
  'custom', 'assistant', 'message', '{}', '{"skill_name":"demo"}', '', '..', '{'
]
const { value: callLike } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 }, fc.constantFrom(...WORDS), fc.jsonValue({ maxDepth: 1 }), tie('object'), tie('array')
  ),
  object: fc.array(fc.tuple(fc.constantFrom(...KEYS), tie('value')), { maxLength: 5 }).map((members) => {
    const json = members.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',')
    return JSON.parse(`{${json}}`)
  }),
  array: fc.array(tie('value'), { maxLength: 3 })
}))

/** Calls but for what they hold: most of those above are none. */
const nearCall = fc.record({
  id: callLike,
  type: fc.constantFrom(...WORDS),
  function: fc.record({ name: fc.constantFrom(...WORDS), arguments: callLike }, { requiredKeys: ['name'] })
}, { requiredKeys: ['function'] })

t.test('whatever JSON comes, handle() does not throw and answers in a known shape', async (t) => {
  let answered = 0
  await fc.assert(fc.asyncProperty(fc.oneof(
    fc.jsonValue(), callLike, nearCall, fc.array(nearCall, { maxLength: 3 })
  ), async (body) => {
    const answer = await handle(body, CONTEXT)
    if (answer.kind !== 'answer') return answer.detail.length > 0
    answered++
    const parsed: unknown = JSON.parse(answer.json)
    return (Array.isArray(parsed) ? parsed : [parsed]).every(isResult)
  }), { numRuns: 3_000 })
  t.ok(answered > 100, `${answered} answers`)
})

t.test('each call of a batch has one result, in place, whatever its name and arguments', async (t) => {
  const call = fc.record({
    id: fc.string(),
    function: fc.record({
      name: fc.constantFrom(...WORDS), arguments: fc.oneof(fc.constantFrom(...WORDS), fc.jsonValue())
    })
  })
  await fc.assert(fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 20 }), async (calls) => {
    const answer = await handle({ tool_calls: calls }, CONTEXT)
    if (answer.kind !== 'answer') return false
    const results: Array<{ tool_call_id: string }> = JSON.parse(answer.json)
    return results.length === calls.length && results.every(({ tool_call_id: id }, i) => id === calls[i]?.id)
  }))
  t.notOk('p' in {})
})

function isResult (value: unknown): boolean {
  return ((pick(value, 'role') === 'tool' || pick(value, 'role') === 'function') &&
    typeof pick(value, 'content') === 'string') ||
    (pick(value, 'type') === 'function_call_output' && typeof pick(value, 'output') === 'string') ||
    (pick(value, 'type') === 'tool_result' && typeof pick(value, 'content') === 'string') ||
    typeof (pick(value, 'functionResponse') ?? pick(value, 'function_response')) === 'object' ||
    (pick(value, 'jsonrpc') === '2.0' && (pick(value, 'result') ?? pick(value, 'error')) !== undefined)
}

function pick (value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined
}
