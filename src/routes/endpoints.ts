import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { RouteShorthandOptions } from 'fastify'
import { answer, json, text } from '../openapi/responses.ts'
import { EndpointsSchema } from '../schemas/endpoints.ts'

interface EndpointsOptions {
  readonly version: string
  /** Options for browsers, which get a page with a query of its own. Default: they get the list too. */
  readonly forBrowsers?: Pick<RouteShorthandOptions, 'preValidation' | 'errorHandler' | 'config'> | undefined
}

const DOCUMENT_SCHEMA = { type: 'object', additionalProperties: true }
const EXAMPLE = { openapi: '3.1.0', info: { title: 'skillserve' }, paths: {} }
const YAML_EXAMPLE = 'openapi: 3.1.0\ninfo:\n  title: skillserve\n'

/** Routes that are missing in the OpenAPI document. */
export const MORE_ENDPOINTS = [
  { methods: ['GET'], path: '/docs', summary: 'The OpenAPI document as a page' },
  { methods: ['POST'], path: '/mcp', summary: 'The Model Context Protocol over Streamable HTTP' }
]

/** `GET /`, where to go from here, for those who try the address first; and the OpenAPI document of the routes. */
export const endpointRoutes: FastifyPluginAsyncTypebox<EndpointsOptions> = async (app, { version, forBrowsers }) => {
  app.get('/', {
    config: { reads: 'nothing' },
    ...forBrowsers,
    schema: {
      operationId: 'listEndpoints',
      summary: 'List the routes of the service',
      description: 'Every address that the service answers, and what it is for. Where `Accept` prefers `text/html`, ' +
        'as that of browsers, the catalog of skills as a page.',
      tags: ['service'],
      response: { 200: answer('The routes', { ...json(EndpointsSchema), ...text('text/html', '<!doctype html>') }) }
    }
  }, async (request, reply) => {
    // The router treats `*` as `/`, but it means the server as a whole and is for OPTIONS alone (RFC 9112 §3.2.4).
    if (request.url === '*') return reply.callNotFound()
    const paths = Object.entries(app.swagger().paths ?? {}) as Array<[string, Record<string, { summary: string }>]>
    const documented = paths.flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, { summary }]) => ({
        methods: [method.toUpperCase()],
        path: path.replace('{path}', '*').replaceAll(/\{(\w+)\}/g, ':$1'),
        summary
      })))
    // Members are in the order of the schema, since the answer to HEAD is not serialized by it.
    const endpoints = [...documented, ...MORE_ENDPOINTS].map(({ methods, path, summary }) =>
      ({ methods, path: path === '/' && app.prefix !== '' ? app.prefix : app.prefix + path, summary }))
    return { name: 'skillserve', version, endpoints }
  })
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
