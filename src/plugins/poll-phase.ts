import { Socket } from 'node:net'
import fp from 'fastify-plugin'
import type { SkillManager } from '../core/skill-manager.ts'

export interface FreshnessOptions {
  readonly skills: SkillManager
}

/**
 * Tells the catalog when a request has been received, so that all requests of one turn of the event loop share
 * their stats. Only real connections: an injected request did not wait for the network to be polled.
 */
export const freshness = fp<FreshnessOptions>(function freshness (app, { skills }, done) {
  app.addHook('onRequest', (request, _reply, next) => {
    if (request.socket instanceof Socket) skills.beginRequest(request.socket)
    next()
  })
  done()
}, { name: 'freshness', fastify: '5.x' })
