import swagger, { type FastifyDynamicSwaggerOptions } from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import fp from 'fastify-plugin'
import { SkillError, type SkillErrorCode, skillErrorCodes } from '../core/shared/errors.ts'
import { HttpProblem, toProblem } from '../http/problem.ts'
import { type ProblemCode, problems } from '../schemas/problem.ts'
import { DISCOVERY_EXAMPLE } from '../schemas/well-known.ts'

const NOT_MODIFIED = { description: 'The content is the one that If-None-Match names', type: 'null' }

interface OpenapiOptions {
  readonly version: string
  readonly basePath: string
  /** Whether callers may need a token. */
  readonly hasAccess: boolean
}

/** Swagger UI loads its own scripts and styles and the document; nothing else may run on its page. */
const CSP = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
  "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** Makes the OpenAPI document of the routes that are registered afterwards, and serves it as a page. */
export const openapi = fp<OpenapiOptions>(async function openapi (app, options) {
  await app.register(swagger, documentOptions(options))
  await app.register(swaggerUi, {
    routePrefix: `${options.basePath}/docs`,
    staticCSP: CSP,
    transformSpecification: (document) => ({
      ...document,
      // Link from the page back to the skills.
      info: { ...document['info'], description: `[All skills](../)\n\n${document['info'].description}` },
      // Without an access file no operation needs a token, and the page shows no locks.
      ...!options.hasAccess && { security: [], components: { ...document['components'], securitySchemes: undefined } }
    })
  })
}, { name: 'openapi' })

/** Returns the options of @fastify/swagger; the operations come from the schemas of the routes. */
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
      // `{}`: a service without an access file needs no token.
      security: [{}, { bearer: [] }],
      components: {
        // In a schema, @fastify/swagger would drop the key `$schema` as a JSON Schema keyword.
        examples: { DiscoveryIndex: { value: DISCOVERY_EXAMPLE } },
        responses: {
          RequestProblem: problemResponse(4, 'The request is refused', {
            'WWW-Authenticate': header(
              'Of 401: `Bearer`, with what is wrong (RFC 6750 §3) and where OAuth clients begin (RFC 9728 §5.1)'
            ),
            'Content-Range': header('Of 416: `bytes */size`'),
            'Retry-After': header('Of 429: seconds to wait', 'integer')
          }),
          ServiceProblem: problemResponse(5, 'The service cannot answer', {
            'Retry-After': header('Of 503: seconds to wait', 'integer')
          })
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
      const { response = {}, ...rest } = schema as RouteSchema
      const { headers } = response['200'] ?? {}
      const answers = { ...response, ...headers?.etag !== undefined && { 304: { ...NOT_MODIFIED, headers } } }
      return nameWildcard({ ...rest, response: answers, ...config?.isOpen === true && { security: [] } }, url)
    },
    transformObject: (document) =>
      addProblems('openapiObject' in document ? document.openapiObject : document.swaggerObject)
  }
}

/** Adds the error answers that every operation can have. */
function addProblems<Document extends { readonly paths?: object }> (document: Document): Document {
  const paths: ReadonlyArray<Readonly<Record<string, { readonly responses: object }>>> =
    Object.values(document.paths ?? {})
  for (const { responses } of paths.flatMap((operations) => Object.values(operations))) {
    Object.assign(responses, {
      '4XX': { $ref: '#/components/responses/RequestProblem' },
      '5XX': { $ref: '#/components/responses/ServiceProblem' }
    })
  }
  return document
}

function header (description: string, type: 'string' | 'integer' = 'string') {
  return { description, schema: { type } }
}

type Headers = Readonly<Record<string, ReturnType<typeof header>>>

/** Returns an answer with all problems whose status begins with this digit, with an example of each. */
function problemResponse (digit: 4 | 5, description: string, headers: Headers) {
  const codes = (Object.keys(problems) as ProblemCode[])
    .filter((code) => Math.floor(problems[code].status / 100) === digit)
  const examples = codes.map((code) => {
    const { title } = problems[code]
    const error = isOfSkills(code) ? new SkillError(code, title) : new HttpProblem(code)
    return [code, { summary: title, value: toProblem(error, '/skills/calculator', '5f0c9a1e-1') }]
  })
  return {
    description: `${description}: \`code\` says why, \`detail\` what to do next`,
    headers: { 'Cache-Control': header('`no-store`: an error is not kept'), ...headers },
    content: {
      'application/problem+json': {
        schema: { $ref: '#/components/schemas/Problem' }, examples: Object.fromEntries(examples)
      }
    }
  }
}

interface RouteSchema {
  readonly response?: Readonly<Record<string, { readonly headers?: { readonly etag?: object } }>>
  readonly params?: { readonly properties?: Readonly<Record<string, object>> }
}

/** Replaces the wildcard of a route by a parameter called `path`, since OpenAPI has no wildcards. */
function nameWildcard<Schema extends RouteSchema> (schema: Schema, url: string): { schema: Schema, url: string } {
  if (!url.endsWith('/*')) return { schema, url }
  const { '*': path = {}, ...named } = schema.params?.properties ?? {}
  const params = { ...schema.params, properties: { ...named, path }, required: [...Object.keys(named), 'path'] }
  return { schema: { ...schema, params }, url: `${url.slice(0, -1)}:path` }
}

function isOfSkills (code: ProblemCode): code is SkillErrorCode {
  return skillErrorCodes.includes(code as SkillErrorCode)
}
