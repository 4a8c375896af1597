import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { View } from '../core/view.ts'
import type { SkillsOf } from '../http/callers.ts'
import { HttpProblem, PROBLEM_MEDIA_TYPE } from '../http/problem.ts'
import { readinessOf, type ReadinessParts, statusOf } from '../http/readiness.ts'
import { LivenessSchema, ReadinessSchema, NotReadySchema } from '../schemas/health.ts'
import { json, uncachedAnswer, text } from '../openapi/responses.ts'
import { exampleOf, reference } from '../schemas/typebox.ts'

interface HealthRoutesOptions {
  readonly skillsOf: SkillsOf
  readonly access?: { readonly everything: View } | undefined
  readonly readiness: ReadinessParts
  readonly version: string
  /** The git commit that the service was built from. */
  readonly commit?: string | undefined
}

/** Serves probes. No cache may keep the answers: each shows one process at one moment. */
export const healthRoutes: FastifyPluginAsyncTypebox<HealthRoutesOptions> = async function healthRoutes (
  app, { skillsOf, access, readiness, version, commit }
) {
  app.get('/livez', {
    config: { isOpen: true, load: 'probe' },
    schema: {
      operationId: 'getLiveness',
      summary: 'Whether the process answers',
      description: 'Touches no disk.',
      tags: ['service'],
      response: { 200: uncachedAnswer('The process answers', json(LivenessSchema)) }
    }
  }, async (_request, reply) => {
    reply.header('cache-control', 'no-store')
    return { status: 'ok' }
  })

  app.get('/readyz', {
    config: { isOpen: true, load: 'probe' },
    schema: {
      operationId: 'getReadiness',
      summary: 'Whether the service can do its work',
      description: 'Ready once the first index is built, each source that is not optional was fetched once, and ' +
        'while at least one root is there. The answer has the state of the index and of the watcher, ready or not, ' +
        'and `detail` says in words what is wrong. With an access file, callers without a credential get the status ' +
        'alone.',
      tags: ['service'],
      response: {
        200: uncachedAnswer('Ready', json(ReadinessSchema)),
        503: uncachedAnswer(
          'Not ready', text(PROBLEM_MEDIA_TYPE, exampleOf(NotReadySchema), reference(NotReadySchema))
        )
      }
    }
  }, async (request, reply) => {
    reply.header('cache-control', 'no-store')
    const isStranger = access !== undefined &&
      (request.principal === undefined || request.principal.kind === 'anonymous')
    const view = isStranger ? access.everything : skillsOf(request)
    await view.sync()
    const status = statusOf(view)
    const { isReady, reasons, sources, quarantined } = readinessOf(status, readiness)
    const detail = reasons.join('; ') || undefined
    if (isStranger) {
      if (!isReady) throw new HttpProblem('not_ready')
      return { status: 'ready' }
    }
    const { revision } = view.feed
    const { skills, generation, roots, watcher, failures } = status
    const state = { version, commit, skills, revision, generation, roots, watcher, failures, quarantined, sources }
    if (!isReady) throw new HttpProblem('not_ready', detail, {}, state)
    return { status: 'ready', detail, ...state }
  })
}
