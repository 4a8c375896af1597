import type {} from '@fastify/swagger'
import fp from 'fastify-plugin'
import { contentHeaders } from '../http/headers.ts'
import { httpProblems, type ProblemCode, skillProblems } from '../schemas/problem.ts'
import { problemExample } from './problem-examples.ts'

export interface DescriptionOptions {
  readonly version: string
}

/** Swagger UI brings its own scripts and styles, and fetches the document: nothing else may run on its pages. */
const DOCS_CSP = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/**
 * The OpenAPI document of the routes that are registered after it, and pages that show it. Loaded at the first
 * question for them: with the libraries behind it, it takes a quarter of the time that the whole service needs to start.
 */
export const description = fp<DescriptionOptions>(async function description (app, { version }) {
  const [{ default: swagger }, { default: swaggerUi }] = await Promise.all([import('@fastify/swagger'), import('@fastify/swagger-ui')])

  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'skillserve',
        summary: 'Agent Skills over HTTP',
        description: 'Serves folders of Agent Skills to agents that have no file system of their own: the same skills, the same bytes and the same checks through REST and through tool calls.',
        version,
        license: { name: 'MIT', identifier: 'MIT' },
        contact: { name: 'skillserve maintainers', url: 'https://www.npmjs.com/package/skillserve' }
      },
      servers: [{ url: '/', description: 'This service' }],
      security: [],
      components: { examples: problemExamples() },
      tags: [
        { name: 'skills', description: 'Skills as resources' },
        { name: 'agent', description: "What a model's tool calls need" },
        { name: 'discovery', description: 'Skills at well-known addresses, for clients that install them' },
        { name: 'service', description: 'The service itself' }
      ]
    },
    refResolver: { buildLocalReference: (schema, _base, _fragment, index) => typeof schema.$id === 'string' ? schema.$id : `schema-${index}` },
    transform: ({ schema, url }) => nameWildcard(schema as RouteSchema, url),
    transformObject: (document) => 'openapiObject' in document ? unescapeSchemaKeys(withoutUnusedExamples(document.openapiObject)) : document.swaggerObject
  })

  await app.register(async (docs) => {
    docs.addHook('onRequest', (_request, reply, next) => {
      reply.headers({ ...contentHeaders, 'content-security-policy': DOCS_CSP })
      next()
    })
    await docs.register(swaggerUi, { routePrefix: '/docs', uiConfig: { deepLinking: true } })
  })
}, { name: 'description', fastify: '5.x' })

/** An example of every problem there is, for the responses of the routes to refer to. */
function problemExamples (): Readonly<Record<string, { readonly summary: string, readonly value: object }>> {
  const kinds = { ...skillProblems, ...httpProblems }
  const codes = Object.keys(kinds) as ProblemCode[]
  return Object.fromEntries(codes.map((code) => [code, { summary: kinds[code].title, value: problemExample(code) }]))
}

/** Of problems that no operation has, such as an unknown route. */
function withoutUnusedExamples<Document extends { paths?: object, components?: { examples?: Record<string, unknown> } }> (document: Document): Document {
  const { paths, components } = document
  const text = JSON.stringify(paths)
  const used = Object.entries(components?.examples ?? {}).filter(([code]) => text.includes(`"#/components/examples/${code}"`))
  return { ...document, components: { ...components, examples: Object.fromEntries(used) } }
}

/** A key `$schema` in an example would be taken for a keyword and dropped: such examples say `$$schema`. */
function unescapeSchemaKeys<Document extends object> (document: Document): Document {
  return JSON.parse(JSON.stringify(document).replaceAll('"$$schema":', () => '"$schema":')) as Document
}

interface RouteSchema {
  readonly params?: { readonly properties?: Readonly<Record<string, object>>, readonly required?: readonly string[] }
}

/** OpenAPI has no wildcards: the rest of a path becomes a parameter called `path`. */
function nameWildcard<Schema extends RouteSchema> (schema: Schema, url: string): { schema: Schema, url: string } {
  if (!url.endsWith('/*')) return { schema, url }
  const { '*': path = {}, ...named } = schema.params?.properties ?? {}
  const params = { ...schema.params, properties: { ...named, path }, required: [...Object.keys(named), 'path'] }
  return { schema: { ...schema, params }, url: `${url.slice(0, -1)}:path` }
}
