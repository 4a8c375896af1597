import { SkillListSchema } from '../../schemas/skills.ts'
import { ErrorResultSchema, failWithError, jsonOutcome, SharedOutcomes } from '../outcomes.ts'
import type { Tool } from '../tool.ts'

/** `list_skills`: `{"skills":[names]}`, failure `{"error"}`. */
export function createListSkillsTool (): Tool {
  const outcomes = new SharedOutcomes<readonly string[], undefined>()
  return {
    name: 'list_skills',
    toolset: 'reader',
    description: 'List all available skills in the skills folder. Returns skill names as a JSON array.',
    purpose: 'names them',
    parameters: { type: 'object', properties: {}, required: [] },
    reads: { event: 'skill.list' },
    resultSchema: SkillListSchema,
    failureSchema: ErrorResultSchema,
    example: { args: {}, outcome: jsonOutcome({ skills: ['calculator', 'weather'] }) },

    async run (_args, skills) {
      const names = await skills.list()
      return outcomes.get(names, undefined, () => jsonOutcome({ skills: names }))
    },

    fail: failWithError
  }
}
