import AjvCompiler from '@fastify/ajv-compiler'
import type { FastifySchema, FastifySchemaCompiler } from 'fastify'
import fp from 'fastify-plugin'

type Validate = ReturnType<FastifySchemaCompiler<FastifySchema>>

/** Values are checked as they came: nothing is converted, and nothing taken away. */
const AJV_OPTIONS = { customOptions: { coerceTypes: false, removeAdditional: false } } as const

/**
 * Fastify's own validators, each compiled when the first request needs it: to compile them all is a third of the work
 * of a start, and most check a parameter of a route that this process may never be asked for.
 */
export const lazyValidation = fp(function lazyValidation (app, _options, done) {
  let compile: FastifySchemaCompiler<FastifySchema> | undefined

  app.setValidatorCompiler((route) => {
    let validate: Validate | undefined
    const check: Validate = (data) => {
      compile ??= AjvCompiler()(app.getSchemas() as Record<string, object>, AJV_OPTIONS) as unknown as FastifySchemaCompiler<FastifySchema>
      validate ??= compile(route)
      const result = validate(data)
      check.errors = validate.errors ?? null
      return result
    }
    return check
  })
  done()
}, { name: 'lazy-validation', fastify: '5.x' })
