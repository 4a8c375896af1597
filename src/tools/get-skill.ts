import { whenReady } from '../core/async.ts'
import { documentError } from '../core/errors.ts'
import type { FileContent } from '../core/files/file-content.ts'
import type { SkillSource } from '../core/skill-source.ts'
import { stringArgument } from './arguments.ts'
import { failWithError } from './error-result.ts'
import { SharedOutcomes } from './shared-outcome.ts'
import { spacedJson } from './spaced-json.ts'
import { type Tool, ToolOutcome, type ToolParameters } from './tool.ts'

const parameters: ToolParameters = {
  type: 'object',
  properties: {
    skill_name: { type: 'string', description: 'Name of the skill (folder name)' }
  },
  required: ['skill_name']
}

/** `get_skill`: `{"skill_name","documentation"}`, the whole file verbatim, failure `{"error"}`. */
export function createGetSkillTool ({ source }: { readonly source: SkillSource }): Tool {
  const outcomes = new SharedOutcomes<FileContent, string>()
  return {
    name: 'get_skill',
    toolset: 'reader',
    description: 'Read the SKILL.MD documentation for a specific skill. Returns the full text content of the documentation file.',
    parameters,

    run (args) {
      const name = stringArgument(args, 'skill_name', parameters)
      return whenReady(source.readDocument(name, 'SKILL.MD'), (content) => outcomes.get(content, name, () => {
        if (content.utf8 === undefined) throw documentError.notUtf8(name)
        const result = { skill_name: name, documentation: content.utf8 }
        return new ToolOutcome(result, () => spacedJson(result), false, content.revision)
      }))
    },

    fail: failWithError
  }
}
