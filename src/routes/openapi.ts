import type { FastifyPluginAsync } from 'fastify'
import { answerRendered } from '../http/send/json.ts'
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
  const config = { reads: 'nothing' } as const
  const yaml = {}

  app.get('/openapi.json', {
    config,
    schema: documentSchema(
      'getOpenapiJson', 'The OpenAPI document as JSON', 'application/json', DOCUMENT_SCHEMA, EXAMPLE
    )
  }, async (_request, reply) => {
    const document = app.swagger()
    return await answerRendered(reply, document, () => JSON.stringify(document))
  })

  app.get('/openapi.yaml', {
    config,
    schema: documentSchema(
      'getOpenapiYaml', 'The OpenAPI document as YAML', 'application/yaml', { type: 'string' }, YAML_EXAMPLE
    )
  }, async (_request, reply) => await answerRendered(
    reply, yaml, () => app.swagger({ yaml: true }), 'application/yaml; charset=utf-8'
  ))
}

function documentSchema (
  operationId: string, summary: string, mediaType: string, schema: object, example: unknown
): object {
  return {
    operationId,
    summary,
    description: 'The OpenAPI document of the service.',
    tags: ['service'],
    bytes: textAnswer(mediaType, example, 'The document', schema)
  }
}
