import { readFile } from 'node:fs/promises'
import type { FastifyPluginAsync } from 'fastify'
import { contentAnswer, notModifiedAnswer, problemAnswers } from '../openapi/responses.ts'

/** Two folders below the package's own, as every module of `src`, of `dist` and of its bundle that may hold this line. */
const FOLDER = new URL('../../openapi/', import.meta.url)

const FREE_OBJECT = { type: 'object', additionalProperties: true }
const DOCUMENT_SCHEMA = {
  type: 'object',
  required: ['openapi', 'info', 'paths'],
  properties: { openapi: { type: 'string' }, info: FREE_OBJECT, paths: FREE_OBJECT }
}
const EXAMPLE = { openapi: '3.1.0', info: { title: 'skillserve' }, paths: {} }
const YAML_EXAMPLE = 'openapi: 3.1.0\ninfo:\n  title: skillserve\n'

/** The OpenAPI document, as `npm run openapi` has written it from the routes. */
export const openapiRoutes: FastifyPluginAsync = async function openapiRoutes (app) {
  app.get('/openapi.json', {
    schema: documentSchema('getOpenapiJson', 'The OpenAPI document as JSON', 'application/json', DOCUMENT_SCHEMA, EXAMPLE)
  }, async (_request, reply) => reply.type('application/json; charset=utf-8').send(await readDocument('openapi.json', app.prefix)))

  app.get('/openapi.yaml', {
    schema: documentSchema('getOpenapiYaml', 'The OpenAPI document as YAML', 'application/yaml', { type: 'string' }, YAML_EXAMPLE)
  }, async (_request, reply) => reply.type('application/yaml; charset=utf-8').send(await readDocument('openapi.yaml', app.prefix)))
}

/** The address of the one server, in JSON and in YAML: an absolute path. */
const SERVER = /("?servers"?:[\s[{-]*"?url"?: ?"?)\//

async function readDocument (name: string, prefix: string): Promise<Buffer | string> {
  const document = await readFile(new URL(name, FOLDER))
  return prefix === '' ? document : document.toString().replace(SERVER, `$1${prefix}`)
}

function documentSchema (operationId: string, summary: string, mediaType: string, schema: object, example: unknown): object {
  return {
    operationId,
    summary,
    description: 'The OpenAPI document of the service.',
    tags: ['service'],
    response: { 200: contentAnswer('The document', mediaType, schema, example), 304: notModifiedAnswer(), ...problemAnswers() }
  }
}
