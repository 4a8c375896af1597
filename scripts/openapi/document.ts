/** The OpenAPI document of the service, made from the schemas of its routes: no skills are needed for it, and no port. */

import swagger from '@fastify/swagger'
import fp from 'fastify-plugin'
import { pino } from 'pino'
import { buildApp } from '../../src/app.ts'
import { readPackageVersion } from '../../src/cli/package-files.ts'
import { createSkillManager } from '../../src/core/skill-manager.ts'
import { httpProblems, type ProblemCode, skillProblems } from '../../src/schemas/problem.ts'
import { createToolRegistry } from '../../src/tools/registry.ts'
import { createTools } from '../../src/tools/tools.ts'
import { problemExample } from './problem-examples.ts'

export interface OpenapiDocument {
  /** On one line. */
  readonly json: string
  readonly yaml: string
}

export async function createDocument (): Promise<OpenapiDocument> {
  const version = readPackageVersion()
  const skills = createSkillManager({ projectRoots: [], watcher: false })
  const registry = createToolRegistry(createTools())
  const app = await buildApp({ skills, registry, logger: pino({ level: 'silent' }), version, host: '127.0.0.1', plugins: [description(version)] })
  try {
    await app.ready()
    return { json: `${JSON.stringify(app.swagger())}\n`, yaml: app.swagger({ yaml: true }) }
  } finally {
    await app.close()
    await skills.close()
  }
}

const description = (version: string) => fp(async function description (app) {
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
      // Only a service with an access file asks for a token.
      security: [{}, { bearer: [] }],
      components: {
        examples: problemExamples(),
        securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: 'A token of the access file, or an access token (JWT) of one of its issuers. Without an access file none is needed' } }
      },
      tags: [
        { name: 'skills', description: 'Skills as resources' },
        { name: 'agent', description: "What a model's tool calls need" },
        { name: 'discovery', description: 'Skills at well-known addresses, for clients that install them' },
        { name: 'service', description: 'The service itself' }
      ]
    },
    refResolver: { buildLocalReference: (schema, _base, _fragment, index) => typeof schema.$id === 'string' ? schema.$id : `schema-${index}` },
    transform: ({ schema, url, route: { config } }) => nameWildcard({ ...schema as RouteSchema, ...config?.isOpen === true && { security: [] } }, url),
    transformObject: (document) => 'openapiObject' in document ? unescapeSchemaKeys(withoutUnusedExamples(document.openapiObject)) : document.swaggerObject
  })
}, { name: 'description', fastify: '5.x' })

/** An example of every problem there is, for the responses of the routes to refer to. */
function problemExamples (): Readonly<Record<string, { readonly summary: string, readonly value: object }>> {
  const kinds = { ...skillProblems, ...httpProblems }
  const codes = Object.keys(kinds) as ProblemCode[]
  return Object.fromEntries(codes.map((code) => [code, { summary: kinds[code].title, value: problemExample(code) }]))
}

/** Some problems, such as an unknown route, belong to no operation. */
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
