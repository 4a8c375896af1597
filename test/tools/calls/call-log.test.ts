import t from 'tap'
import fc from 'fast-check'
import { createSecret } from '../../../src/access/secret.ts'
import { MAX_LOG_LINE_CHARACTERS } from '../../../src/tools/limits.ts'
import { toolCallLine, toolResultLine } from '../../../src/tools/calls/call-log.ts'
import { createTools } from '../../../src/tools/tools.ts'
import { ToolOutcome } from '../../../src/tools/tool.ts'
import { codePoint } from '../../helper/code-point.ts'

const readTool = createTools().find(({ name }) => name === 'read_file_in_skill')
const tool = readTool ?? 'unknown'

t.test('K39: the line of a call is the seed\'s', async (t) => {
  t.equal(toolCallLine(tool, { skill_name: 'calculator', file_path: 'examples/basic.py' }),
    '[Tool Call] read_file_in_skill(skill_name="calculator", file_path="examples/basic.py")')
  t.equal(toolCallLine(tool, {}), '[Tool Call] read_file_in_skill()')
})

t.test('K39: the line of a result quotes the beginning of the text', async (t) => {
  t.equal(toolResultLine(new ToolOutcome({}, '\ndef add', false), false), '[Tool Result] "\\ndef add"')
  t.equal(
    toolResultLine(new ToolOutcome({}, "ERROR: File 'x'", true), false), '[Tool Result] error "ERROR: File \'x\'"'
  )
  const line = toolResultLine(new ToolOutcome({}, 'x'.repeat(10_000_000), false), false)
  t.equal(line.length, MAX_LOG_LINE_CHARACTERS)
  t.ok(line.endsWith('x…'))
})

t.test('K39: with an access file the line of a result has the size of the text', async (t) => {
  t.equal(toolResultLine(new ToolOutcome({}, '# Secret', false), true), '[Tool Result] 8 characters')
  t.equal(toolResultLine(new ToolOutcome({}, 'ERROR: x', true), true), '[Tool Result] error 8 characters')
})

t.test('K39: a name from outside is quoted and cut', async (t) => {
  t.equal(toolCallLine('evil\n[Tool Call] x', {}), '[Tool Call] "evil\\n[Tool Call] x"()')
  t.match(toolCallLine(tool, { 'a\nb': 1 }), '("a\\nb"=1)')
})

t.test('K39: what is no string is shown by its kind only', async (t) => {
  t.equal(toolCallLine(
    tool, { a: [1], b: { c: 1 }, d: null, e: 5, f: true }
  ), '[Tool Call] read_file_in_skill(a=[…], b={…}, d=null, e=5, f=true)')
})

t.test('terminal escapes, C1 controls, line separators and bidi controls are escaped', async (t) => {
  const line = toolResultLine(new ToolOutcome({}, '\u001b[31m\u007f\u0085\u009b\u2028\u2029\u202e\u2066', false), false)
  t.equal(line, '[Tool Result] "\\u001b[31m\\u007f\\u0085\\u009b\\u2028\\u2029\\u202e\\u2066"')
})

t.test('K39: no input makes a line too long or breaks it', async () => {
  const text = fc.string({ unit: codePoint, maxLength: 400 })
  fc.assert(fc.property(text, fc.dictionary(text, fc.oneof(text, fc.jsonValue())), (name, args) => {
    return [
      toolCallLine(name, args), toolCallLine(tool, args), toolResultLine(new ToolOutcome({}, name, true), false)
    ].every((line) =>
      line.length <= MAX_LOG_LINE_CHARACTERS && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(line))
  }))
})

t.test('K61: no line shows a secret of the service', async (t) => {
  const secret = createSecret('token')
  t.equal(toolCallLine(tool, { skill_name: secret }), '[Tool Call] read_file_in_skill(skill_name="-")')
  t.notMatch(toolResultLine(new ToolOutcome({}, `Skill '${secret}' not found`, true), false), secret.slice(12, 30))
})
