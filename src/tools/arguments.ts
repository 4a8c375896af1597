import { isJsonObject, isDeeperThan, own } from '../core/shared/json.ts'
import { MAX_JSON_DEPTH } from './limits.ts'
import { type ToolArguments, ToolArgumentsError, type ToolParameters } from './tool.ts'

/** Parameters of the tools that only take the name of a skill. */
export const ONE_SKILL: ToolParameters = {
  type: 'object',
  properties: { skill_name: { type: 'string', description: 'Name of the skill (folder name)' } },
  required: ['skill_name']
}

/**
 * Reads the arguments of a call in any dialect: an object, a JSON string of one, or nothing, which means `{}`. Nothing
 * is repaired: guessed arguments would run a call that nobody asked for. `null` for an optional parameter is absent:
 * strict modes send it for each parameter that the model has not chosen.
 * @throws {ToolArgumentsError} `Invalid tool arguments: <what and where>` with the schema
 */
export function parseArguments (raw: unknown, parameters: ToolParameters): ToolArguments {
  const value = typeof raw === 'string' ? parseText(raw, parameters) : raw
  if (value === undefined || value === null) return {}
  if (!isJsonObject(value)) throw invalidArguments(`expected a JSON object, got ${kindOf(value)}`, parameters)
  const given = Object.entries(value).filter(([key, argument]) => argument !== null || !isOptional(key, parameters))
  return Object.fromEntries(
    given.map(([key, argument]) => [key, typeof argument === 'string' ? argument.toWellFormed() : argument])
  )
}

function isOptional (key: string, { properties, required }: ToolParameters): boolean {
  return Object.hasOwn(properties, key) && !required.includes(key)
}

/**
 * Returns an argument that must be a string; `5` is not `"5"`.
 * @throws {ToolArgumentsError} if it is missing or not a string
 */
export function stringArgument (args: ToolArguments, key: string, parameters: ToolParameters): string {
  const value = own(args, key)
  if (value === undefined) throw invalidArguments(`'${key}' is missing: it must be a string`, parameters)
  if (typeof value !== 'string') throw invalidArguments(`'${key}' must be a string`, parameters)
  return value
}

/** Creates an error that helps a model to correct its call: the problem, and the parameters of the tool. */
export function invalidArguments (problem: string, parameters: ToolParameters): ToolArgumentsError {
  return new ToolArgumentsError(`Invalid tool arguments: ${problem}\n\nParameters: ${JSON.stringify(parameters)}`)
}

function parseText (text: string, parameters: ToolParameters): unknown {
  if (text.trim() === '') return undefined
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    // V8's message says what is wrong, and at which position.
    throw invalidArguments(error instanceof SyntaxError ? error.message : String(error), parameters)
  }
  if (isDeeperThan(value, MAX_JSON_DEPTH)) {
    throw invalidArguments(`nested deeper than ${MAX_JSON_DEPTH} levels`, parameters)
  }
  return value
}

function kindOf (value: unknown): string {
  return Array.isArray(value) ? 'an array' : `a ${typeof value}`
}
