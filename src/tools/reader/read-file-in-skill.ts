import { Type } from '@sinclair/typebox'
import type { DecodedText } from '../../core/read/decode.ts'
import { readInSkill } from '../../core/view.ts'
import { fileError } from '../../core/shared/errors.ts'
import { SkillFileSchema } from '../../schemas/skills.ts'
import { stringArgument } from '../arguments.ts'
import { ownText } from '../../core/shared/json.ts'
import { type Tool, ToolOutcome, type ToolParameters } from '../tool.ts'

const parameters: ToolParameters = {
  type: 'object',
  properties: {
    skill_name: { type: 'string', description: 'Name of the skill (folder name containing the file)' },
    file_path: {
      type: 'string',
      description: "Relative path to file within skill folder (e.g., 'examples/usage.py', 'docs/api.md')"
    }
  },
  required: ['skill_name', 'file_path']
}

const FailureSchema = Type.Object({
  success: Type.Literal(false),
  skill_name: Type.String(),
  file_path: Type.String(),
  error: Type.String()
}, { title: 'Failure of read_file_in_skill' })

/**
 * Tool `read_file_in_skill`: returns `{"success":true,"skill_name","file_path","content","size_bytes","encoding"}`, or
 * `{"success":false,"skill_name","file_path","error"}`. The model reads the raw text, or `ERROR: <error>`.
 */
export const readFileInSkill: Tool = {
  name: 'read_file_in_skill',
  toolset: 'reader',
  description: "Read any file within a skill's folder. Use this when SKILL.MD references additional documentation, " +
    'examples, or configuration files. Path must be relative to skill folder.',
  purpose: 'reads the files that it refers to',
  parameters,
  skillArgument: 'skill_name',
  reads: { event: 'skill.file_read', pathArgument: 'file_path' },
  resultSchema: SkillFileSchema,
  failureSchema: FailureSchema,
  example: {
    args: { skill_name: 'calculator', file_path: 'examples/basic.py' },
    outcome: success(
      'calculator', 'examples/basic.py', { content: 'def add(a, b):\n    return a + b\n', encoding: 'utf-8' }, 32
    )
  },

  async run (args, skills) {
    const name = stringArgument(args, 'skill_name', parameters)
    const filePath = stringArgument(args, 'file_path', parameters)
    const { text, bytes } = await readInSkill(skills, name, (skill) => skill.file(filePath))
    if (text === undefined) throw fileError.notText(filePath)
    return success(name, filePath, text, bytes.length)
  },

  async fail (error, args) {
    const result = {
      success: false,
      skill_name: ownText(args, 'skill_name'),
      file_path: ownText(args, 'file_path'),
      error: error.message
    }
    return new ToolOutcome(result, `ERROR: ${error.message}`, error)
  }
}

function success (name: string, filePath: string, { content, encoding }: DecodedText, bytes: number): ToolOutcome {
  return new ToolOutcome(
    { success: true, skill_name: name, file_path: filePath, content, size_bytes: bytes, encoding }, content
  )
}
