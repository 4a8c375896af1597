import type { FastifyContextConfig, FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'

/** A route as it was registered: `GET`, `/skills/:name`. */
export interface RegisteredRoute {
  readonly method: string
  readonly url: string
  readonly config: FastifyContextConfig
}

export interface FollowedRoutes {
  /** For `plugins` of the app. */
  readonly plugin: FastifyPluginAsync
  /** All routes, HEAD ones too. */
  readonly all: readonly RegisteredRoute[]
  /** Those that no request has reached, as `GET /skills/:name`. */
  missed (): readonly string[]
}

/** Notes the routes of an app as they are registered, and as requests reach them. */
export function followRoutes (): FollowedRoutes {
  const all: RegisteredRoute[] = []
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
    missed: () => all.map(({ method, url }) => `${method} ${url}`).filter((route) => !reached.has(route)).sort()
  }
}
