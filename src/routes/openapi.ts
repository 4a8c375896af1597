import type { FastifyPluginAsync } from 'fastify'
import { answer, text } from '../openapi/responses.ts'

const DOCUMENT_SCHEMA = { type: 'object', additionalProperties: true }
const EXAMPLE = { openapi: '3.1.0', info: { title: 'skillserve' }, paths: {} }
const YAML_EXAMPLE = 'openapi: 3.1.0\ninfo:\n  title: skillserve\n'

/** The OpenAPI document of the routes. */
export const openapiRoutes: FastifyPluginAsync = async function openapiRoutes (app) {
  app.get('/openapi.json', {
    config: { reads: 'nothing' },
    schema: {
      operationId: 'getOpenapiJson',
      summary: 'The OpenAPI document as JSON',
      description: 'The OpenAPI document of the service.',
      tags: ['service'],
      response: { 200: answer('The document', text('application/json', EXAMPLE, DOCUMENT_SCHEMA)) }
    }
  }, async () => app.swagger())

  app.get('/openapi.yaml', {
    config: { reads: 'nothing' },
    schema: {
      operationId: 'getOpenapiYaml',
      summary: 'The OpenAPI document as YAML',
      description: 'The OpenAPI document of the service.',
      tags: ['service'],
      response: { 200: answer('The document', text('application/yaml', YAML_EXAMPLE)) }
    }
  }, async (_request, reply) => {
    reply.type('application/yaml; charset=utf-8')
    return app.swagger({ yaml: true })
  })
}
