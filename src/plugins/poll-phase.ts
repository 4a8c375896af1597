import { Socket } from 'node:net'
import fp from 'fastify-plugin'
import type { SkillService } from '../core/skill-source.ts'

export interface PollPhaseOptions {
  readonly skills: Pick<SkillService, 'beginRequest'>
}

/**
 * Reports each received request to the catalog, so that all requests of one poll phase of the event loop share their stats.
 * An injected request did not come through a poll phase and is left out.
 */
export const pollPhase = fp<PollPhaseOptions>(function pollPhase (app, { skills }, done) {
  app.addHook('onRequest', (request, _reply, next) => {
    if (request.socket instanceof Socket) skills.beginRequest(request.socket)
    next()
  })
  done()
}, { name: 'poll-phase', fastify: '5.x' })
