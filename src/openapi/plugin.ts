import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import fp from 'fastify-plugin'
import { documentOptions } from './document.ts'

interface OpenapiOptions {
  readonly version: string
  readonly basePath: string
}

/** Swagger UI has its own scripts and styles, and fetches the document: nothing else may run on the page. */
const CSP = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
  "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** The OpenAPI document of the routes that are registered afterwards, and a page that shows it. */
export const openapi = fp<OpenapiOptions>(async function openapi (app, options) {
  await app.register(swagger, documentOptions(options))
  await app.register(swaggerUi, { routePrefix: `${options.basePath}/docs`, staticCSP: CSP })
}, { name: 'openapi' })
