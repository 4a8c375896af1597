import { type FileContent, mainFileText } from '../../core/read/file-content.ts'
import { SkillDocumentSchema } from '../../schemas/skills.ts'
import { exampleOf } from '../../schemas/typebox.ts'
import { ONE_SKILL, stringArgument } from '../arguments.ts'
import { ErrorResultSchema, failWithError, type Tool, ToolOutcome } from '../tool.ts'

/** Outcomes by file content, with the last name that it was read by: skills with equal files share one. */
const outcomes = new WeakMap<FileContent, { readonly name: string, readonly outcome: ToolOutcome }>()

/** Tool `get_skill`: returns `{"skill_name","documentation"}` with the whole file verbatim, or `{"error"}`. */
export const getSkill: Tool = {
  name: 'get_skill',
  toolset: 'reader',
  description: 'Read the SKILL.MD documentation for a specific skill. Returns the full text content of the ' +
    'documentation file.',
  purpose: 'reads the SKILL.md of one',
  parameters: ONE_SKILL,
  skillArgument: 'skill_name',
  reads: { event: 'skill.read' },
  resultSchema: SkillDocumentSchema,
  failureSchema: ErrorResultSchema,
  example: {
    args: { skill_name: 'calculator' },
    outcome: new ToolOutcome(exampleOf(SkillDocumentSchema))
  },

  async run (args, skills) {
    const name = stringArgument(args, 'skill_name', ONE_SKILL)
    const content = await skills.read(name, (skill) => skill.mainFile('SKILL.MD'))
    const known = outcomes.get(content)
    if (known?.name === name) return known.outcome
    const outcome = new ToolOutcome({ skill_name: name, documentation: mainFileText(content, name) })
    outcomes.set(content, { name, outcome })
    return outcome
  },

  fail: failWithError
}
