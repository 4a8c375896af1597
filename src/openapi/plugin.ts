import swagger, { type FastifyDynamicSwaggerOptions } from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifySchema } from 'fastify'
import fp from 'fastify-plugin'
import { SkillError, type SkillErrorCode, skillErrorCodes } from '../core/shared/errors.ts'
import { HttpProblem, toProblem } from '../http/problem.ts'
import { type ProblemCode, problems } from '../schemas/problem.ts'
import { DISCOVERY_EXAMPLE } from '../schemas/well-known.ts'
import { problemAnswers } from './responses.ts'

const NOT_MODIFIED = { description: 'The content is the one that If-None-Match names', type: 'null' }

interface OpenapiOptions {
  readonly version: string
  readonly basePath: string
}

/** Swagger UI has its own scripts and styles, and fetches the document: nothing else may run on the page. */
const CSP = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
  "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** The OpenAPI document of the routes that are registered afterwards, and a page that shows it. */
export const openapi = fp<OpenapiOptions>(async function openapi (app, options) {
  await app.register(swagger, documentOptions(options))
  await app.register(swaggerUi, { routePrefix: `${options.basePath}/docs`, staticCSP: CSP })
}, { name: 'openapi' })

/** What @fastify/swagger makes the OpenAPI document with, besides the schemas of the routes. */
function documentOptions ({ version, basePath }: OpenapiOptions): FastifyDynamicSwaggerOptions {
  return {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'skillserve',
        summary: 'Agent Skills over HTTP',
        description: 'Serves folders of Agent Skills to agents that have no file system of their own: the same ' +
          'skills, the same bytes and the same checks through REST and through tool calls.',
        version,
        license: { name: 'MIT', identifier: 'MIT' },
        contact: { name: 'skillserve maintainers', url: 'https://www.npmjs.com/package/skillserve' }
      },
      servers: [{ url: basePath || '/', description: 'This service' }],
      // Only a service with an access file asks for a token.
      security: [{}, { bearer: [] }],
      components: {
        examples: {
          ...problemExamples(),
          // In a schema @fastify/swagger would take the key `$schema` for a keyword, and drop it.
          DiscoveryIndex: { value: DISCOVERY_EXAMPLE }
        },
        securitySchemes: {
          bearer: {
            type: 'http',
            scheme: 'bearer',
            description: 'A token of the access file, or an access token (JWT) of one of its issuers. Without an ' +
              'access file none is needed'
          }
        }
      },
      tags: [
        { name: 'skills', description: 'Skills as resources' },
        { name: 'agent', description: "What a model's tool calls need" },
        { name: 'discovery', description: 'Skills at well-known addresses, for clients that install them' },
        { name: 'service', description: 'The service itself' }
      ]
    },
    refResolver: {
      buildLocalReference: (schema, _base, _fragment, index) => typeof schema.$id === 'string'
        ? schema.$id
        : `schema-${index}`
    },
    transform: ({ schema, url, route: { config } }) => {
      const { problems = [], response = {}, ...rest } = schema as RouteSchema
      const isOpen = config?.isOpen === true
      const { headers } = response['200'] ?? {}
      const answers = {
        ...problemAnswers(problems, isOpen),
        ...response,
        ...headers?.etag !== undefined && { 304: { ...NOT_MODIFIED, headers } }
      }
      return nameWildcard({ ...rest, response: answers, ...isOpen && { security: [] } }, url)
    }
  }
}

/** Codes of requests that reach no operation of the document. */
const NO_OPERATION = ['route_not_found', 'method_not_allowed', 'origin_not_allowed']

/** An example of every other problem, for the responses of the routes to refer to. */
function problemExamples (): Readonly<Record<string, { readonly summary: string, readonly value: object }>> {
  const codes = Object.keys(problems).filter((code) => !NO_OPERATION.includes(code)) as ProblemCode[]
  return Object.fromEntries(codes.map((code) => {
    const { title } = problems[code]
    const error = isOfSkills(code) ? new SkillError(code, title) : new HttpProblem(code)
    return [code, { summary: title, value: toProblem(error, '/skills/calculator', '5f0c9a1e-1') }]
  }))
}

interface RouteSchema extends Pick<FastifySchema, 'problems'> {
  readonly response?: Readonly<Record<string, { readonly headers?: { readonly etag?: object } }>>
  readonly params?: { readonly properties?: Readonly<Record<string, object>> }
}

/** OpenAPI has no wildcards: the rest of a path becomes a parameter called `path`. */
function nameWildcard<Schema extends RouteSchema> (schema: Schema, url: string): { schema: Schema, url: string } {
  if (!url.endsWith('/*')) return { schema, url }
  const { '*': path = {}, ...named } = schema.params?.properties ?? {}
  const params = { ...schema.params, properties: { ...named, path }, required: [...Object.keys(named), 'path'] }
  return { schema: { ...schema, params }, url: `${url.slice(0, -1)}:path` }
}

function isOfSkills (code: ProblemCode): code is SkillErrorCode {
  return skillErrorCodes.includes(code as SkillErrorCode)
}
