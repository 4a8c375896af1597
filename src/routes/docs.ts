import { readFile } from 'node:fs/promises'
import type { FastifyPluginAsync } from 'fastify'
import { contentHeaders } from '../http/headers.ts'

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
 * A page that shows the OpenAPI document. Plain files of Swagger UI, read when they are asked for. Registering
 * @fastify/swagger-ui loads a YAML parser and a file server, a quarter of the start, for a page that few open.
 */
export const docsRoutes: FastifyPluginAsync = async function docsRoutes (app) {
  const schema = { hide: true }
  app.addHook('onRequest', (_request, reply, next) => {
    reply.headers({ ...contentHeaders, 'content-security-policy': CSP })
    next()
  })

  app.get('/docs', { schema }, async (_request, reply) => reply.type('text/html; charset=utf-8').send(PAGE))
  app.get('/docs/', { schema }, async (_request, reply) => reply.redirect('../docs', 308))
  app.get('/docs/start.js', { schema }, async (_request, reply) => reply.type('text/javascript; charset=utf-8').send(START))
  for (const [name, type] of Object.entries(ASSETS)) {
    app.get(`/docs/${name}`, { schema }, async (_request, reply) => reply.type(type).send(await readFile(new URL(import.meta.resolve(`@fastify/swagger-ui/static/${name}`)))))
  }
}
