import type { preValidationHookHandler } from 'fastify'

const DECIMAL = /^-?\d{1,9}$/

/**
 * A query is text, and validation converts nothing. In the parameters of these names the text of a whole number or of a
 * boolean becomes that value, for the schema to check.
 */
export function readScalars (...names: readonly string[]): preValidationHookHandler {
  return (request, _reply, next) => {
    const query = request.query as Record<string, unknown>
    for (const name of names) query[name] = toScalar(query[name])
    next()
  }
}

function toScalar (value: unknown): unknown {
  if (value === 'true' || value === 'false') return value === 'true'
  return typeof value === 'string' && DECIMAL.test(value) ? Number(value) : value
}
