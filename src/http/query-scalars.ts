import type { preValidationHookHandler } from 'fastify'

const DECIMAL = /^\d{1,9}$/

/**
 * A query has nothing but text, and no schema of ours converts it: what is a whole number or a boolean in the parameters
 * of these names becomes one, for the schema to judge.
 */
export function readScalars (...names: readonly string[]): preValidationHookHandler {
  return (request, _reply, next) => {
    const query = request.query as Record<string, unknown>
    for (const name of names) if (Object.hasOwn(query, name)) query[name] = toScalar(query[name])
    next()
  }
}

function toScalar (value: unknown): unknown {
  if (value === 'true' || value === 'false') return value === 'true'
  return typeof value === 'string' && DECIMAL.test(value) ? Number(value) : value
}
