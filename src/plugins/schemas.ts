import { Ajv, type ValidateFunction } from 'ajv'
import type { FastifyInstance, FastifySchema, FastifySchemaCompiler } from 'fastify'
import fp from 'fastify-plugin'
import { type QuerySchema, refuseUnknown, refuseValue } from '../http/request/query.ts'

type Check = ReturnType<FastifySchemaCompiler<FastifySchema>>

interface SchemasOptions {
  /** Schemas that routes refer to by `$id`. */
  readonly shared: readonly object[]
}

/** The query of a documented route that names no parameters. */
const NO_QUERY: QuerySchema = { properties: {} }

const REHEARSED = { type: 'object', properties: { name: { type: 'string' } } }

/** What the schemas of routes are for: shared ones have names, requests are validated, answers are not serialised by them. */
export const schemas = fp<SchemasOptions>(function schemas (app, { shared }, done) {
  for (const schema of shared) app.addSchema(schema)

  // Answers are values of our own, which tests check against the schemas. Compiling a serialiser for each of them is a
  // third of the start, and a serialiser drops in silence what its schema lacks.
  app.setSerializerCompiler(() => JSON.stringify)

  app.addHook('onRoute', ({ schema }) => {
    if (schema !== undefined && schema.hide !== true) schema.querystring ??= { type: 'object', ...NO_QUERY }
  })

  let ajv: Ajv | undefined
  // Between the start and the first request, for which it would be a third of the time.
  app.addHook('onListen', (listening) => {
    setImmediate(() => {
      ajv ??= createAjv()
      // The first schema takes four times as long as others: most of the compiler has not run before.
      ajv.compile(REHEARSED)
    })
    listening()
  })

  // Each validator is compiled when the first request needs it: compiling them all is a third of the start.
  app.setValidatorCompiler(({ schema, httpPart }) => {
    let validate: ValidateFunction | undefined
    const check: Check = (data) => {
      ajv ??= createAjv()
      validate ??= ajv.compile(schema)
      const isValid = validate(data)
      check.errors = validate.errors ?? null
      return isValid
    }
    return httpPart === 'querystring' ? checkQuery(check, schema as QuerySchema) : check
  })
  done()
}, { name: 'schemas' })

/** Of a route whose body no schema refuses: its handler says what does not fit. All else is validated. */
export function takeAnyBody (app: FastifyInstance): FastifySchemaCompiler<FastifySchema> {
  return (part) => part.httpPart === 'body' ? () => true : app.validatorCompiler?.(part) ?? (() => true)
}

/** The same check, which says of a query what is wrong with it. */
function checkQuery (check: Check, schema: QuerySchema): Check {
  return (query: object) => {
    const unknown = refuseUnknown(query, schema)
    if (unknown !== undefined) return { error: unknown }
    return check(query) === true || { error: refuseValue(query, schema, check.errors ?? []) }
  }
}

/**
 * Values are checked as they came: nothing is converted, and nothing removed. The schemas themselves are not validated:
 * compiling the validator for them is most of the first request, 50 ms of a busy core. Nor does any request refer to the
 * shared ones, which describe answers.
 */
function createAjv (): Ajv {
  return new Ajv({ addUsedSchema: false, validateSchema: false })
}
