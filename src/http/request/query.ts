import type { ErrorObject } from 'ajv'
import { nearest } from '../../core/shared/nearest.ts'
import { quote } from '../../core/shared/text.ts'
import { HttpProblem } from '../problem.ts'

/** The part of a query's schema that a refusal speaks of. */
export interface QuerySchema {
  readonly properties?: Readonly<Record<string, object>>
}

/** Refuses a query with a parameter that its route does not have: mistyped, it would be ignored in silence. */
export function refuseUnknown (query: object, { properties = {} }: QuerySchema): HttpProblem | undefined {
  const unknown = Object.keys(query).find((name) => !Object.hasOwn(properties, name))
  if (unknown === undefined) return undefined
  const allowed = Object.keys(properties)
  return new HttpProblem('bad_query', `Unknown query parameter ${quote(unknown)}${suggestion(unknown, allowed)}`)
}

/** The refusal of a value, from what the validator found first. */
export function refuseValue (query: object, { properties = {} }: QuerySchema, errors: readonly ErrorObject[]): HttpProblem {
  const [error] = errors
  const name = error?.instancePath.split('/')[1] ?? ''
  const value: unknown = (query as Readonly<Record<string, unknown>>)[name]
  if (error === undefined || !Object.hasOwn(properties, name)) return new HttpProblem('bad_query')
  if (Array.isArray(value)) return new HttpProblem('bad_query', `Query parameter '${name}' is given ${value.length} times, send it once`)
  return new HttpProblem('bad_query', `Query parameter '${name}' is ${quote(String(value))}${expectation(error, String(value))}`)
}

function expectation ({ keyword, params, message = 'is not valid' }: ErrorObject, value: string): string {
  switch (keyword) {
    case 'enum': return suggestion(value, (params['allowedValues'] as readonly unknown[]).map(String))
    case 'const': return suggestion(value, [String(params['allowedValue'])])
    case 'type': return params['type'] === 'boolean' ? suggestion(value, ['true', 'false']) : `, it ${message}`
    default: return `, it ${message}`
  }
}

/** What a word might have been: the words that are allowed, and the nearest one. */
export function suggestion (word: string, allowed: readonly string[]): string {
  if (allowed.length === 0) return ', this address takes none'
  const near = nearest(word, allowed)
  return `, allowed: ${allowed.join(', ')}${near === undefined ? '' : `; did you mean '${near}'?`}`
}
