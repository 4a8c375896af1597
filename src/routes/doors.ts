import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { RouteOptions, RouteShorthandOptions } from 'fastify'
import fp from 'fastify-plugin'
import { jsonAnswer, textAnswer } from '../openapi/responses.ts'
import { DoorsSchema } from '../schemas/doors.ts'

interface DoorsOptions {
  readonly version: string
  /** Answers browsers, which have no use for JSON; its query is its own. Default: they get the list too. */
  readonly forBrowsers?: Pick<RouteShorthandOptions, 'preValidation' | 'errorHandler' | 'config'> | undefined
}

interface Door {
  readonly methods: readonly string[]
  readonly path: string
  readonly what: string
}

/** Routes that the OpenAPI document does not have. */
export const MORE_DOORS: readonly Door[] = [
  { methods: ['GET'], path: '/docs', what: 'The OpenAPI document as a page' },
  { methods: ['POST'], path: '/mcp', what: 'The Model Context Protocol over Streamable HTTP' }
]

/**
 * `GET /`: where to go from here, for those who try the address first. Registered before the other routes, which it
 * lists.
 */
export const doorsRoute = fp<DoorsOptions>(async function doorsRoute (app, options) {
  const doors: Door[] = []
  app.addHook('onRoute', (route) => {
    const door = toDoor(route)
    if (door !== undefined) doors.push(door)
  })
  await app.register(route, { ...options, doors })
}, { name: 'doors' })

const route: FastifyPluginAsyncTypebox<DoorsOptions & { readonly doors: readonly Door[] }> = async function route (
  app, { version, forBrowsers, doors }
) {
  const more = MORE_DOORS.map(({ path, ...door }) => ({ ...door, path: app.prefix + path }))
  app.get('/', {
    config: { reads: 'nothing' },
    ...forBrowsers,
    schema: {
      operationId: 'listDoors',
      summary: 'List the routes of the service',
      description: 'Every address that the service answers, and what it is for. Where `Accept` prefers `text/html`, ' +
        'as that of browsers, the catalog of skills as a page.',
      tags: ['service'],
      response: { 200: jsonAnswer(DoorsSchema, 'The routes') },
      bytes: textAnswer('text/html', '<!doctype html>')
    }
  }, async (request, reply) => {
    // The router takes `*` for the root; it means the server as a whole, and is for OPTIONS alone (RFC 9112 §3.2.4).
    if (request.url === '*') return reply.callNotFound()
    return {
      name: 'skillserve' as const,
      version,
      doors: [...doors, ...more].map(({ methods, ...door }) => ({ methods: [...methods], ...door }))
    }
  })
}

/** Undefined for a route that is not documented, and for the HEAD that Fastify makes of a GET. */
function toDoor ({ method, url, schema }: RouteOptions): Door | undefined {
  const { summary, hide } = schema ?? {}
  // With a path prefix the first route is there twice, with a slash and without.
  if (summary === undefined || hide === true || method === 'HEAD' || (url !== '/' && url.endsWith('/'))) {
    return undefined
  }
  return { methods: [method].flat(), path: url, what: summary }
}
