import type { FastifyPluginAsync } from 'fastify'
import { textAnswer } from '../openapi/responses.ts'

const FREE_OBJECT = { type: 'object', additionalProperties: true }
const DOCUMENT_SCHEMA = {
  type: 'object',
  required: ['openapi', 'info', 'paths'],
  properties: { openapi: { type: 'string' }, info: FREE_OBJECT, paths: FREE_OBJECT }
}
const EXAMPLE = { openapi: '3.1.0', info: { title: 'skillserve' }, paths: {} }
const YAML_EXAMPLE = 'openapi: 3.1.0\ninfo:\n  title: skillserve\n'

/** The OpenAPI document of the routes. */
export const openapiRoutes: FastifyPluginAsync = async function openapiRoutes (app) {
  const common = { description: 'The OpenAPI document of the service.', tags: ['service'] }

  app.get('/openapi.json', {
    config: { reads: 'nothing' },
    schema: {
      operationId: 'getOpenapiJson',
      summary: 'The OpenAPI document as JSON',
      ...common,
      bytes: textAnswer('application/json', EXAMPLE, 'The document', DOCUMENT_SCHEMA)
    }
  }, async () => app.swagger())

  app.get('/openapi.yaml', {
    config: { reads: 'nothing' },
    schema: {
      operationId: 'getOpenapiYaml',
      summary: 'The OpenAPI document as YAML',
      ...common,
      bytes: textAnswer('application/yaml', YAML_EXAMPLE, 'The document')
    }
  }, async (_request, reply) => {
    reply.type('application/yaml; charset=utf-8')
    return app.swagger({ yaml: true })
  })
}
