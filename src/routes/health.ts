import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { SkillsOf } from '../access/principal.ts'
import { HttpProblem } from '../http/problem.ts'
import { explainStatus } from '../http/readiness.ts'
import { LivenessSchema, ReadinessSchema, NotReadySchema } from '../schemas/health.ts'
import { extendedProblemAnswer, jsonAnswer, notModifiedAnswer, problemAnswers } from '../openapi/responses.ts'

export interface HealthRoutesOptions {
  readonly skillsOf: SkillsOf
  /** Whether the process has received a signal to stop: it answers, and takes no new work. */
  readonly isDraining: () => boolean
}

export const healthRoutes: FastifyPluginAsyncTypebox<HealthRoutesOptions> = async function healthRoutes (app, { skillsOf, isDraining }) {
  app.get('/livez', {
    schema: {
      operationId: 'getLiveness',
      summary: 'Whether the process answers',
      description: 'Touches no disk.',
      tags: ['service'],
      response: { 200: jsonAnswer(LivenessSchema, 'It does'), 304: notModifiedAnswer(), ...problemAnswers() }
    }
  }, async () => ({ status: 'ok' as const }))

  app.get('/readyz', {
    schema: {
      operationId: 'getReadiness',
      summary: 'Whether the service can do its work',
      description: 'Ready once the first index is built and while at least one root is there. The answer has the state of the index and of the watcher, ready or not, and `detail` says in words what is wrong.',
      tags: ['service'],
      response: { 200: jsonAnswer(ReadinessSchema, 'Ready'), 304: notModifiedAnswer(), ...problemAnswers(), ...extendedProblemAnswer('not_ready', NotReadySchema) }
    }
  }, async (request) => {
    const status = await skillsOf(request).freshStatus()
    const { ready, skills: count, generation, roots, watcher, failures, hanging, quarantined } = status
    const detail = explainStatus(status)
    const state = { skills: count, generation, roots: [...roots], watcher, failures: [...failures], hanging: [...hanging], ...quarantined !== undefined && { quarantined } }
    if (isDraining()) throw new HttpProblem('not_ready', 'The service is stopping', {}, state)
    if (!ready) throw new HttpProblem('not_ready', detail, {}, state)
    return { status: 'ready' as const, ...detail !== undefined && { detail }, ...state }
  })
}
