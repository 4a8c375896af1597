import { documentError, SkillError } from '../core/errors.ts'
import type { FileContent } from '../core/files/file-content.ts'
import type { CatalogSkill } from '../core/skill.ts'
import { skillBody } from '../core/format/main-file.ts'
import type { SkillSource } from '../core/skill-source.ts'
import { stringArgument } from './arguments.ts'
import { neovateDefinition, neovateFailure, neovateSuccess, notFoundSentence } from './neovate-messages.ts'
import { own } from './json-object.ts'
import { loadSkill } from './load-skill.ts'
import { SharedOutcomes } from './shared-outcome.ts'
import { type Tool, ToolOutcome } from './tool.ts'

/** `skill`: `{"llmContent","returnDisplay"}`, failure `{"isError":true,"llmContent"}`. */
export function createNeovateSkillTool ({ source }: { readonly source: SkillSource }): Tool {
  const outcomes = new SharedOutcomes<FileContent, CatalogSkill>()
  return {
    ...neovateDefinition,
    toolset: 'neovate',

    async run (args) {
      const label = stringArgument(args, 'skill', neovateDefinition.parameters).trim()
      const { skill, content } = await loadSkill(source, label, () => source.findByLabel(label))
      const make = () => {
        if (content.utf8 === undefined) throw documentError.notUtf8(skill.name)
        const result = neovateSuccess(label, skill.metadata, skillBody(content.utf8))
        return new ToolOutcome(result, result.llmContent, false, content.revision)
      }
      return label === skill.metadata.name ? outcomes.get(content, skill, make) : make()
    },

    fail (error, args) {
      const missing = error instanceof SkillError && error.code === 'skill_not_found'
      const result = neovateFailure(missing ? notFoundSentence(String(own(args, 'skill')).trim()) : error.message)
      return new ToolOutcome(result, result.llmContent, true)
    }
  }
}
