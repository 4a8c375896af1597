import type {} from '@fastify/swagger'
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { content, notModified, problems } from '../openapi/responses.ts'

export interface OpenapiRoutesOptions {
  /** The service once more, never listening, that can describe itself: made at the first question. */
  readonly describe: () => Promise<FastifyInstance>
}

const DOCUMENT_SCHEMA = {
  type: 'object',
  required: ['openapi', 'info', 'paths'],
  properties: { openapi: { type: 'string' }, info: { type: 'object' }, paths: { type: 'object' } }
}
const EXAMPLE = { openapi: '3.1.0', info: { title: 'skillserve' }, paths: {} }

/** The OpenAPI document. */
export const openapiRoutes: FastifyPluginAsync<OpenapiRoutesOptions> = async function openapiRoutes (app, { describe }) {
  app.get('/openapi.json', {
    schema: documentSchema('getOpenapiJson', 'This document as JSON', 'application/json', DOCUMENT_SCHEMA, EXAMPLE)
  }, async (_request, reply) => reply.type('application/json; charset=utf-8').send(JSON.stringify((await describe()).swagger())))

  app.get('/openapi.yaml', {
    schema: documentSchema('getOpenapiYaml', 'This document as YAML', 'application/yaml', { type: 'string' }, 'openapi: 3.1.0\ninfo:\n  title: skillserve\n')
  }, async (_request, reply) => reply.type('application/yaml; charset=utf-8').send((await describe()).swagger({ yaml: true })))
}

/** The pages that show the document, handed over to the service that has them. */
export const docsRoutes: FastifyPluginAsync<OpenapiRoutesOptions> = async function docsRoutes (app, { describe }) {
  for (const url of ['/docs', '/docs/*']) app.get(url, { schema: { hide: true } }, handOver)

  async function handOver (request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const described = await describe()
    // One request, one id, whoever answers.
    request.raw.headers['x-request-id'] = request.id
    reply.hijack()
    described.routing(request.raw, reply.raw)
  }
}

function documentSchema (operationId: string, summary: string, mediaType: string, schema: object, example: unknown): object {
  return {
    operationId,
    summary,
    description: 'The OpenAPI document of the service.',
    tags: ['service'],
    response: { 200: content('The document', mediaType, schema, example), 304: notModified(), ...problems() }
  }
}
