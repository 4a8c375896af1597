import { whenReady } from '../core/async.ts'
import { fileError } from '../core/errors.ts'
import type { FileContent } from '../core/files/file-content.ts'
import type { SkillSource } from '../core/skill-source.ts'
import { stringArgument } from './arguments.ts'
import { own } from './json-object.ts'
import { SharedOutcomes } from './shared-outcome.ts'
import { type Tool, type ToolArguments, ToolOutcome, type ToolParameters } from './tool.ts'

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

/**
 * `read_file_in_skill`: `{"success":true,"skill_name","file_path","content","size_bytes","encoding"}`, failure
 * `{"success":false,"skill_name","file_path","error"}`; what the model reads is the raw text or `ERROR: <error>`.
 */
export function createReadFileInSkillTool ({ source }: { readonly source: SkillSource }): Tool {
  const outcomes = new SharedOutcomes<FileContent, string>()
  return {
    name: 'read_file_in_skill',
    toolset: 'reader',
    description: "Read any file within a skill's folder. Use this when SKILL.MD references additional documentation, examples, or configuration files. Path must be relative to skill folder.",
    parameters,

    run (args) {
      const name = stringArgument(args, 'skill_name', parameters)
      const filePath = stringArgument(args, 'file_path', parameters)
      // No name of a skill holds a slash, so that the two together are unambiguous.
      return whenReady(source.readFile(name, filePath), (file) => outcomes.get(file, `${name}/${filePath}`, () => {
        const { text } = file
        if (text === undefined) throw fileError.notText(filePath)
        const result = {
          success: true,
          skill_name: name,
          file_path: filePath,
          content: text.content,
          size_bytes: file.bytes.length,
          encoding: text.encoding
        }
        return new ToolOutcome(result, text.content, false, file.revision)
      }))
    },

    fail (error, args) {
      const result = {
        success: false,
        skill_name: stringOrEmpty(args, 'skill_name'),
        file_path: stringOrEmpty(args, 'file_path'),
        error: error.message
      }
      return new ToolOutcome(result, `ERROR: ${error.message}`, true)
    }
  }
}

function stringOrEmpty (args: ToolArguments, key: string): string {
  const value = own(args, key)
  return typeof value === 'string' ? value : ''
}
