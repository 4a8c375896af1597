import serializerSelector from '@fastify/fast-json-stringify-compiler'
import { Ajv, type AnySchema, type ErrorObject, type ValidateFunction } from 'ajv'
import fp from 'fastify-plugin'
import { own } from '../core/shared/json.ts'
import { quote } from '../core/shared/text.ts'
import { HttpProblem } from '../http/problem.ts'

const NO_QUERY = { type: 'object', properties: {}, additionalProperties: false }

/**
 * Fastify's validation with other options for bodies: a number in JSON is not the text of one. And its serialization.
 * @param shared schemas that routes refer to by `$id`
 */
export const validation = fp<{ readonly shared: readonly object[] }>(function validation (app, { shared }, done) {
  for (const schema of shared) app.addSchema(schema)
  app.addHook('onRoute', (route) => {
    const { schema } = route
    if (schema === undefined || schema.hide === true) return
    schema.querystring = schema.querystring === undefined ? NO_QUERY : { ...NO_QUERY, ...schema.querystring }
  })
  // Checking TypeBox's own schemas takes longer than compiling them.
  const options = { strict: false, validateSchema: false }
  const forBodies = new Ajv(options)
  // `verbose` adds the schema and the value to errors.
  const forText = new Ajv({ ...options, verbose: true, coerceTypes: true, useDefaults: true })
  // Compiled for the first request that needs it, as is a serializer: most routes send bytes that are kept.
  app.setValidatorCompiler<AnySchema>(({ schema, httpPart }) => {
    // A body that the document calls a string arrives as bytes, which the route checks itself.
    if (httpPart === 'body' && own(schema, 'type') === 'string') return () => true
    let validate: ValidateFunction | undefined
    return (data) => {
      validate ??= (httpPart === 'body' ? forBodies : forText).compile(schema)
      return validate(data) || { error: validate.errors ?? [] }
    }
  })
  const compileSerializer = serializerSelector()(app.getSchemas(), {})
  app.setSerializerCompiler(({ httpStatus = '200', ...definition }) => {
    let serialize: ReturnType<typeof compileSerializer> | undefined
    return (answer) => (serialize ??= compileSerializer({ ...definition, httpStatus }))(answer)
  })
  app.setSchemaErrorFormatter(([error], part) => part === 'querystring' && error !== undefined
    ? queryProblem(error as ErrorObject)
    : new HttpProblem('bad_request', `${part}${error?.instancePath ?? ''} ${error?.message ?? 'is not valid'}`))
  done()
}, { name: 'validation' })

/** Returns a problem that names the parameter and its allowed values. */
function queryProblem ({ keyword, params, parentSchema, data, instancePath, message }: ErrorObject): HttpProblem {
  if (keyword === 'additionalProperties') {
    const allowed = Object.keys(own(parentSchema, 'properties') ?? {}).join(', ')
    const parameter = quote(String(params['additionalProperty']))
    const rule = allowed === '' ? 'this route has no query parameters' : `allowed: ${allowed}`
    return new HttpProblem('bad_query', `Unknown query parameter ${parameter}, ${rule}`)
  }
  const parameter = `Query parameter '${instancePath.slice(1)}' is`
  if (Array.isArray(data)) return new HttpProblem('bad_query', `${parameter} given ${data.length} times, send it once`)
  const isBoolean = keyword === 'type' && params['type'] === 'boolean'
  const allowed: unknown = isBoolean ? [true, false] : params['allowedValues'] ?? params['allowedValue']
  const rule = allowed === undefined ? `it ${message ?? 'is not valid'}` : `allowed: ${[allowed].flat().join(', ')}`
  return new HttpProblem('bad_query', `${parameter} ${quote(String(data))}, ${rule}`)
}
