import { Type } from '@sinclair/typebox'
import { StringEnum } from './string-enum.ts'

export const LivenessSchema = Type.Object({
  status: Type.Literal('ok')
}, { $id: 'Liveness', title: 'Liveness', examples: [{ status: 'ok' }] })

const WatcherSchema = Type.Object({
  status: StringEnum(['starting', 'watching', 'degraded', 'off']),
  mode: StringEnum(['events', 'polling']),
  errors: Type.Integer({ minimum: 0 }),
  lastError: Type.Optional(Type.String({ description: 'Code of the latest error' }))
})

/** K50. */
export const ReadinessSchema = Type.Object({
  status: Type.Literal('ready'),
  skills: Type.Integer({ minimum: 0 }),
  generation: Type.Integer({ minimum: 0, description: 'Goes up with every change of the catalogue' }),
  roots: Type.Array(Type.Object({
    type: StringEnum(['project', 'personal']),
    state: StringEnum(['ok', 'missing', 'unreadable', 'failed']),
    skills: Type.Integer({ minimum: 0 })
  })),
  watcher: WatcherSchema,
  failures: Type.Array(Type.String(), { description: 'Codes of what kept the last look at a root from succeeding; the last good state is served' }),
  hanging: Type.Array(Type.String(), { description: 'Names of the skills whose disk does not answer; the last good state of each is listed' })
}, {
  $id: 'Readiness',
  title: 'Readiness',
  examples: [{
    status: 'ready',
    skills: 6,
    generation: 2,
    roots: [{ type: 'project', state: 'ok', skills: 6 }],
    watcher: { status: 'watching', mode: 'events', errors: 0 },
    failures: [],
    hanging: []
  }]
})
