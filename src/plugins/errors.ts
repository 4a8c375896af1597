import type { FastifyInstance, FastifyRequest, HTTPMethods } from 'fastify'
import fp from 'fastify-plugin'
import { HttpProblem, sendProblem } from '../http/problem.ts'

const CONTINUE = /(?:^|\W)100-continue(?:$|\W)/i

/** 404, or 405 with `Allow` when the path exists for other methods: Fastify has one answer for both. */
function noRoute (app: FastifyInstance, request: FastifyRequest): HttpProblem {
  const allowed = (app.supportedMethods as HTTPMethods[]).filter((method) => app.findRoute({ method, url: request.url }) !== null)
  // A route that takes the method has asked for this answer itself, with `callNotFound()`.
  if (allowed.length === 0 || allowed.some((method) => method === request.method)) return new HttpProblem('route_not_found')
  const allow = allowed.join(', ')
  return new HttpProblem('method_not_allowed', `This route does not take ${request.method}; it takes ${allow}`, { allow })
}

/** One shape for every error that passes through Fastify; `http/connections/client-errors.ts` has those that do not. */
export const errors = fp(function errors (app, _options, done) {
  app.setErrorHandler((error, request, reply) => { sendProblem(error, request, reply) })
  app.setNotFoundHandler((request) => { throw noRoute(app, request) })

  // Node answers an expectation that it does not know by itself, with a bare 417.
  app.server.on('checkExpectation', (request, response) => { app.server.emit('request', request, response) })
  // And sends 100 for every body, before anything has been decided: `jsonBody` sends it for those that it wants.
  app.server.on('checkContinue', (request, response) => { app.server.emit('request', request, response) })

  // Here and not in the handlers: before the body is read.
  app.addHook('onRequest', (request, _reply, next) => {
    const { expect } = request.headers
    if (expect !== undefined && !CONTINUE.test(expect)) next(new HttpProblem('expectation_failed'))
    else if (request.is404) next(noRoute(app, request))
    else next()
  })

  done()
}, { name: 'errors', fastify: '5.x' })
