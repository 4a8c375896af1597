import { Type } from '@sinclair/typebox'
import type { SkillStatus } from '../core/skill-source.ts'
import { describes } from './describes.ts'
import { ProblemSchema } from './problem.ts'
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

/** State of the index and of the watcher, ready or not. */
const IndexStateSchema = describes<Omit<SkillStatus, 'ready' | 'indexed'>>()(Type.Object({
  skills: Type.Integer({ minimum: 0 }),
  generation: Type.Integer({ minimum: 0, description: 'Goes up with every change of the catalog' }),
  roots: Type.Array(Type.Object({
    name: Type.String({ description: 'The last part of its path, or of its source' }),
    type: StringEnum(['project', 'personal']),
    state: StringEnum(['ok', 'missing', 'unreadable', 'failed']),
    skills: Type.Integer({ minimum: 0 }),
    skipped: Type.Integer({ minimum: 0, description: 'Links that lead out of the folder or to no folder, and names that no skill may have; the log has the names' })
  })),
  watcher: WatcherSchema,
  failures: Type.Array(Type.String(), { description: 'Codes of errors at the last scan of a root; the last good state is served' }),
  hanging: Type.Array(Type.String(), { description: 'Names of the skills whose disk does not answer; the last good state of each is listed' }),
  quarantined: Type.Optional(Type.Integer({ minimum: 0, description: 'Folders that the lock or the trust file keeps from being skills; absent without them' }))
}))

export const ReadinessSchema = Type.Object({
  status: Type.Literal('ready'),
  detail: Type.Optional(Type.String({ description: 'What is wrong although the service is ready; folders by position and type' })),
  ...IndexStateSchema.properties
}, {
  $id: 'Readiness',
  title: 'Readiness',
  examples: [{
    status: 'ready',
    skills: 6,
    generation: 2,
    roots: [{ name: 'skills', type: 'project', state: 'ok', skills: 6, skipped: 0 }],
    watcher: { status: 'watching', mode: 'events', errors: 0 },
    failures: [],
    hanging: []
  }]
})

/** The same while it is not: a problem with these members too. */
export const NotReadySchema = Type.Object({
  ...ProblemSchema.properties,
  ...IndexStateSchema.properties
}, {
  $id: 'NotReady',
  title: 'NotReady',
  examples: [{
    type: 'urn:skillserve:problem:not_ready',
    title: 'Not ready',
    status: 503,
    detail: 'No skills folder is there: folder 1 (project) is missing',
    instance: '/readyz',
    error: 'No skills folder is there: folder 1 (project) is missing',
    code: 'not_ready',
    requestId: '5f0c9a1e-1',
    skills: 0,
    generation: 0,
    roots: [{ name: 'skills', type: 'project', state: 'missing', skills: 0, skipped: 0 }],
    watcher: { status: 'watching', mode: 'events', errors: 0 },
    failures: [],
    hanging: []
  }]
})
