import { Socket } from 'node:net'
import fp from 'fastify-plugin'
import type { SkillService } from '../core/service.ts'
import type { Connections } from '../http/connections/connections.ts'

interface PollPhaseOptions {
  readonly skills: Pick<SkillService, 'beginRequest'>
  readonly connections: Pick<Connections, 'isLate'>
}

/**
 * Reports each received request to the catalog, so that all requests of one poll phase of the event loop share their stats.
 * An injected request did not come through a poll phase, and one that has waited came through an earlier one. The requests of
 * the next phase must not use what it finds.
 */
export const pollPhase = fp<PollPhaseOptions>(function pollPhase (app, { skills, connections }, done) {
  app.addHook('onRequest', (request, reply, next) => {
    if (request.socket instanceof Socket && !connections.isLate(reply.raw)) skills.beginRequest(request.socket)
    next()
  })
  done()
}, { name: 'poll-phase' })
