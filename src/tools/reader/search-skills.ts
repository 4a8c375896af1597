import { Type } from '@sinclair/typebox'
import type { View } from '../../core/view.ts'
import { countCodePoints } from '../../core/shared/text.ts'
import { MAX_QUERY_CODE_POINTS } from '../../schemas/catalog.ts'
import { invalidArguments, stringArgument } from '../arguments.ts'
import { DEFAULT_FOUND_SKILLS, MAX_FOUND_SKILLS } from '../limits.ts'
import {
  ErrorResultSchema, failWithError, type Tool, type ToolArguments, ToolOutcome, type ToolParameters
} from '../tool.ts'

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

const ResultSchema = Type.Object({
  skills: Type.Array(Type.Object({ skill_name: Type.String(), description: Type.String() }))
}, { title: 'search_skills' })

/** Tool `search_skills`: returns `{"skills":[{"skill_name","description"}]}`, the best match first, or `{"error"}`. */
export const searchSkills: Tool = {
  name: 'search_skills',
  toolset: 'explore',
  description: 'Search the available skills by what they are for. Looks for the words of the query in names, ' +
    'descriptions and headings. Returns skill names with descriptions as a JSON array, the best match first.',
  purpose: 'finds skills by words',
  parameters,
  reads: { event: 'skill.search', queryArgument: 'query' },
  isCostly: true,
  resultSchema: ResultSchema,
  failureSchema: ErrorResultSchema,
  example: {
    args: { query: 'exact decimal arithmetic', limit: 5 },
    outcome: new ToolOutcome({
      skills: [{ skill_name: 'calculator', description: 'Provides basic arithmetic operations' }]
    })
  },

  async skillsOf (args, skills) {
    const { query, limit } = readArguments(args)
    return (await skills.search(query)).slice(0, limit)
  },

  async run (args, skills) {
    const { query, limit } = readArguments(args)
    return new ToolOutcome(await findSkills(skills, query, limit))
  },

  fail: failWithError
}

function readArguments (args: ToolArguments): { readonly query: string, readonly limit: number } {
  const query = stringArgument(args, 'query', parameters)
  const { limit = DEFAULT_FOUND_SKILLS } = args
  if (typeof limit !== 'number' || !Number.isInteger(limit) || limit < 1 || limit > MAX_FOUND_SKILLS) {
    throw invalidArguments(`'limit' must be an integer from 1 to ${MAX_FOUND_SKILLS}`, parameters)
  }
  if (query.trim() === '') throw invalidArguments("'query' must not be empty", parameters)
  if (countCodePoints(query) > MAX_QUERY_CODE_POINTS) {
    throw invalidArguments(`'query' must not be longer than ${MAX_QUERY_CODE_POINTS} characters`, parameters)
  }
  return { query, limit }
}

/** Returns the best matches without skills that were removed since the search. */
async function findSkills (skills: View, query: string, limit: number) {
  const found: Array<{ readonly skill_name: string, readonly description: string }> = []
  const names = await skills.search(query)
  for (const name of names) {
    if (found.length === limit) break
    const skill = await skills.find(name)
    if (skill !== undefined) found.push({ skill_name: name, description: skill.metadata.description })
  }
  return { skills: found }
}
