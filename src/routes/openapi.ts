import { readFile } from 'node:fs/promises'
import type { FastifyPluginAsync } from 'fastify'
import { contentHeaders } from '../http/headers.ts'
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

const config = { reads: 'nothing' } as const

/** The OpenAPI document, as `npm run openapi` has written it from the routes, and a page that shows it. */
export const openapiRoutes: FastifyPluginAsync = async function openapiRoutes (app) {
  app.get('/openapi.json', {
    config,
    schema: documentSchema('getOpenapiJson', 'The OpenAPI document as JSON', 'application/json', DOCUMENT_SCHEMA, EXAMPLE)
  }, async (_request, reply) => reply.type('application/json; charset=utf-8').send(await readDocument('openapi.json', app.prefix)))

  app.get('/openapi.yaml', {
    config,
    schema: documentSchema('getOpenapiYaml', 'The OpenAPI document as YAML', 'application/yaml', { type: 'string' }, YAML_EXAMPLE)
  }, async (_request, reply) => reply.type('application/yaml; charset=utf-8').send(await readDocument('openapi.yaml', app.prefix)))

  await app.register(docsPage)
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

/** Swagger UI has its own scripts and styles, and fetches the document: nothing else may run on the page. */
const CSP = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** Files of Swagger UI that the page loads, with their media types. No other file of its folder can be asked for. */
const ASSETS = {
  'favicon-32x32.png': 'image/png',
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8'
} as const

/** URLs are relative, for a service behind a path prefix. */
const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>skillserve API</title>
<link rel="icon" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`
const START = "SwaggerUIBundle({ url: 'openapi.json', dom_id: '#swagger-ui', deepLinking: true })\n"

/**
 * Plain files of Swagger UI, read when they are asked for. Registering @fastify/swagger-ui loads a YAML parser and a file
 * server, a quarter of the start, for a page that few open.
 */
const docsPage: FastifyPluginAsync = async function docsPage (app) {
  const options = { config, schema: { hide: true } }
  app.addHook('onRequest', (_request, reply, next) => {
    reply.headers({ ...contentHeaders, 'content-security-policy': CSP })
    next()
  })

  app.get('/docs', options, async (_request, reply) => reply.type('text/html; charset=utf-8').send(PAGE))
  app.get('/docs/', options, async (_request, reply) => reply.redirect('../docs', 308))
  app.get('/docs/start.js', options, async (_request, reply) => reply.type('text/javascript; charset=utf-8').send(START))
  for (const [name, type] of Object.entries(ASSETS)) {
    app.get(`/docs/${name}`, options, async (_request, reply) => reply.type(type).send(await readFile(new URL(import.meta.resolve(`@fastify/swagger-ui/static/${name}`)))))
  }
}
