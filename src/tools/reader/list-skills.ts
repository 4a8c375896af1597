import { SkillListSchema } from '../../schemas/skills.ts'
import { ErrorResultSchema, failWithError, type Tool, ToolOutcome } from '../tool.ts'

/** Outcomes by the list of names, which is the same array while nothing changes. */
const outcomes = new WeakMap<readonly string[], ToolOutcome>()

/** Tool `list_skills`: returns `{"skills":[names]}`, or `{"error"}`. */
export const listSkills: Tool = {
  name: 'list_skills',
  toolset: 'reader',
  description: 'List all available skills in the skills folder. Returns skill names as a JSON array.',
  purpose: 'names them',
  parameters: { type: 'object', properties: {}, required: [] },
  reads: { event: 'skill.list' },
  resultSchema: SkillListSchema,
  failureSchema: ErrorResultSchema,
  example: { args: {}, outcome: new ToolOutcome({ skills: ['calculator', 'weather'] }) },

  async run (_args, skills) {
    const names = await skills.list()
    const outcome = outcomes.get(names) ?? new ToolOutcome({ skills: names })
    outcomes.set(names, outcome)
    return outcome
  },

  fail: failWithError
}
