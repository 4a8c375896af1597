import { whenReady } from '../core/async.ts'
import type { SkillSource } from '../core/skill-source.ts'
import { failWithError } from './error-result.ts'
import { SharedOutcomes } from './shared-outcome.ts'
import { spacedJson } from './spaced-json.ts'
import { type Tool, ToolOutcome } from './tool.ts'

/** `list_skills`: `{"skills":[names]}`, failure `{"error"}`. */
export function createListSkillsTool ({ source }: { readonly source: SkillSource }): Tool {
  const outcomes = new SharedOutcomes<readonly string[], undefined>()
  return {
    name: 'list_skills',
    toolset: 'reader',
    description: 'List all available skills in the skills folder. Returns skill names as a JSON array.',
    parameters: { type: 'object', properties: {}, required: [] },

    run: () => whenReady(source.list(), (names) => outcomes.get(names, undefined, () => {
      const result = { skills: names }
      return new ToolOutcome(result, () => spacedJson(result))
    })),

    fail: failWithError
  }
}
