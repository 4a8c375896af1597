import type { FastifyContextConfig } from 'fastify'
import fp from 'fastify-plugin'

/** Notes the routes of an app as they are registered, and as requests reach them. */
export function followRoutes () {
  /** As registered, HEAD ones too: `GET`, `/skills/:name`. */
  const all: Array<{ readonly method: string, readonly url: string, readonly config: FastifyContextConfig }> = []
  const reached = new Set<string>()
  return {
    all,
    plugin: fp(async (app) => {
      app.addHook('onRoute', ({ method, url, config = {} }) => { for (const each of [method].flat()) all.push({ method: each, url, config }) })
      app.addHook('onRequest', ({ method, routeOptions: { url = '' } }, _reply, next) => {
        reached.add(`${method} ${url}`)
        next()
      })
    }),
    /** Those that no request has reached, as `GET /skills/:name`. */
    missed: () => all.map(({ method, url }) => `${method} ${url}`).filter((route) => !reached.has(route)).sort()
  }
}
