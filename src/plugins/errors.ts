import type { FastifyInstance, FastifyRequest, HTTPMethods } from 'fastify'
import fp from 'fastify-plugin'
import { nearestRoute, NoRoute } from '../http/request/nearest-route.ts'
import { HttpProblem, sendProblem } from '../http/problem.ts'
import { httpProblems } from '../schemas/problem.ts'

/** Of a route, up to its first parameter. */
const FIXED_PATH = /^(?:\/[\w.-]+)+/
const CONTINUE = /(?:^|\W)100-continue(?:$|\W)/i

interface ErrorsOptions {
  /** Path prefix of the routes. Default none. */
  readonly basePath?: string
  /** What an error is to the caller of a request. Default: itself. */
  readonly translate?: (error: unknown, request: FastifyRequest) => unknown
}

/** 404, or 405 with `Allow` when the path exists for other methods: Fastify has one answer for both. */
function noRoute (app: FastifyInstance, request: FastifyRequest, basePath: string, paths: ReadonlySet<string>): HttpProblem {
  // `cors` takes OPTIONS of any address: that makes none of them exist.
  const methodsOf = (url: string) => (app.supportedMethods as HTTPMethods[]).filter((method) => method !== 'OPTIONS' && app.findRoute({ method, url }) !== null)
  const allowed = methodsOf(request.url)
  // A route that takes the method has asked for this answer itself, with `callNotFound()`.
  if (allowed.length === 0 || allowed.some((method) => method === request.method)) {
    const near = nearestRoute(request.url, basePath, [...paths], (path) => methodsOf(path).length > 0)
    const detail = httpProblems.route_not_found.detail.replace('GET /', `GET ${basePath === '' ? '/' : basePath}`)
    return new NoRoute(detail, near)
  }
  const allow = allowed.join(', ')
  return new HttpProblem('method_not_allowed', `This route does not take ${request.method}; it takes ${allow}`, { allow })
}

/** One shape for every error that passes through Fastify; `http/connections/client-errors.ts` has those that do not. */
export const errors = fp<ErrorsOptions>(function errors (app, { basePath = '', translate = (error) => error }, done) {
  const paths = new Set<string>()
  app.addHook('onRoute', ({ url }) => {
    const [path] = FIXED_PATH.exec(url.slice(basePath.length)) ?? []
    if (path !== undefined) paths.add(path)
  })
  app.setErrorHandler((error, request, reply) => { sendProblem(translate(error, request), request, reply) })
  app.setNotFoundHandler((request) => { throw noRoute(app, request, basePath, paths) })

  // Node answers an expectation that it does not know by itself, with a bare 417.
  app.server.on('checkExpectation', (request, response) => { app.server.emit('request', request, response) })
  // Node also sends 100 for every body at once. Here `jsonBody` sends it, for bodies that are wanted.
  app.server.on('checkContinue', (request, response) => { app.server.emit('request', request, response) })

  // Here and not in the handlers: before the body is read. After every `onRequest`: `cors` lets pages read these answers too.
  app.addHook('preParsing', (request, _reply, _payload, next) => {
    const { expect } = request.headers
    if (expect !== undefined && !CONTINUE.test(expect)) next(new HttpProblem('expectation_failed'))
    else if (request.is404) next(noRoute(app, request, basePath, paths))
    else next()
  })

  done()
}, { name: 'errors' })
