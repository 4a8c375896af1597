import { DEFAULT_FOUND_SKILLS, MAX_FOUND_SKILLS } from './limits.ts'
import { MAX_QUERY_CODE_POINTS } from '../core/limits.ts'
import type { SkillSource } from '../core/skill-source.ts'
import { countCodePoints } from '../core/text.ts'
import { integerArgument, invalidArguments, stringArgument } from './arguments.ts'
import { failWithError } from './error-result.ts'
import { spacedJson } from './spaced-json.ts'
import { type Tool, ToolOutcome, type ToolParameters } from './tool.ts'

const parameters: ToolParameters = {
  type: 'object',
  properties: {
    query: { type: 'string', description: "Words that say what the skill should be about (e.g., 'fill pdf form')" },
    limit: {
      type: 'integer',
      description: `Maximum number of skills to return, from 1 to ${MAX_FOUND_SKILLS}. Default: ${DEFAULT_FOUND_SKILLS}`
    }
  },
  required: ['query']
}

const LIMIT = { min: 1, max: MAX_FOUND_SKILLS, absent: DEFAULT_FOUND_SKILLS }

/** `search_skills`: `{"skills":[{"skill_name","description"}]}`, the best match first, failure `{"error"}`. */
export function createSearchSkillsTool ({ source }: { readonly source: SkillSource }): Tool {
  return {
    name: 'search_skills',
    toolset: 'search',
    description: 'Search the available skills by what they are for. Looks for the words of the query in names, descriptions and documentation. Returns skill names with descriptions as a JSON array, the best match first.',
    parameters,

    async run (args) {
      const query = stringArgument(args, 'query', parameters)
      const limit = integerArgument(args, 'limit', LIMIT, parameters)
      if (query.trim() === '') throw invalidArguments("'query' must not be empty", parameters)
      if (countCodePoints(query) > MAX_QUERY_CODE_POINTS) {
        throw invalidArguments(`'query' must not be longer than ${MAX_QUERY_CODE_POINTS} characters`, parameters)
      }
      const result = { skills: await describe(await source.search(query), limit) }
      return new ToolOutcome(result, () => spacedJson(result))
    },

    fail: failWithError
  }

  async function describe (hits: Awaited<ReturnType<SkillSource['search']>>, limit: number) {
    const skills: Array<{ readonly skill_name: string, readonly description: string }> = []
    for (const { name } of hits) {
      if (skills.length === limit) break
      const skill = await source.find(name)
      if (skill !== undefined) skills.push({ skill_name: name, description: skill.metadata.description })
    }
    return skills
  }
}
