import { type Static, Type } from '@sinclair/typebox'
import { named, StringEnum } from './typebox.ts'
import { ProblemSchema } from './problem.ts'

export const LivenessSchema = named('Liveness', Type.Object({
  status: Type.Literal('ok')
}), { status: 'ok' })

const WatcherSchema = Type.Object({
  status: StringEnum(['starting', 'watching', 'degraded', 'off']),
  mode: StringEnum(['events', 'polling']),
  errors: Type.Integer({ minimum: 0 }),
  lastError: Type.Optional(Type.String({ description: 'Code of the latest error' }))
})

/** Status of a source, for everybody who sees all its skills: it contains no address, local path or secret. */
export const SourceStatusSchema = Type.Object({
  name: Type.String(),
  kind: Type.String({
    description: 'What the configuration file calls it, such as `git`; `folder`: one with a layout'
  }),
  state: StringEnum(
    ['waiting', 'ok', 'stale', 'failed'],
    {
      description: '`waiting`: not fetched yet; `stale`: the last check failed, and the last revision is served; ' +
        '`failed`: no revision was ever published'
    }
  ),
  optional: Type.Optional(Type.Literal(true, { description: 'The service is ready without it' })),
  revision: Type.Optional(Type.String({ description: 'The revision that is served, such as `main@sha1:…`' })),
  skills: Type.Integer({ minimum: 0 }),
  changed_at: Type.Optional(Type.String({ description: 'When the revision was published, ISO 8601' })),
  checked_at: Type.Optional(Type.String({ description: 'When the source last answered, ISO 8601' })),
  next_at: Type.Optional(Type.String({ description: 'When it is checked again, ISO 8601' })),
  failing_since: Type.Optional(Type.String({ description: 'ISO 8601' })),
  error: Type.Optional(Type.Object({ code: Type.String(), message: Type.String() }, { description: 'Why it fails' })),
  layout: Type.Optional(
    StringEnum(['flat', 'single', 'tree', 'marketplace'], { description: 'The layout that was found or configured' })
  ),
  left_out: Type.Optional(Type.Object({
    count: Type.Integer({ minimum: 0 }),
    first: Type.Array(Type.Object({ path: Type.String(), reason: Type.String(), by: Type.Optional(Type.String()) }))
  }, { description: 'Entries that look like skills, and were skipped' }))
})

export const HookAnswerSchema = named('HookAnswer', Type.Object({
  sources: Type.Integer({ minimum: 1, description: 'How many sources will be checked' })
}), { sources: 1 })

const QuarantinedSchema = Type.Object({
  count: Type.Integer({ minimum: 0 }),
  first: Type.Array(Type.Object({
    name: Type.String(),
    root: Type.String(),
    code: Type.String({ description: 'Code of the finding, such as `pin_mismatch` or `signature_stale`' }),
    message: Type.String()
  }))
}, { description: 'Skills that the lock or the trust file refuses, 50 of them by name; absent where none can be' })

export type Quarantined = Static<typeof QuarantinedSchema>

export type SourceStatus = Static<typeof SourceStatusSchema>

/** State of the index and of the watcher, ready or not. */
const IndexStateSchema = Type.Object({
  version: Type.String(),
  commit: Type.Optional(Type.String({
    description: 'The git commit that the service was built from, where that is known'
  })),
  skills: Type.Integer({ minimum: 0 }),
  revision: Type.Optional(Type.String({
    description: 'Of the whole catalog, any file of any skill: equal on replicas of equal content. Absent until all ' +
      'skills have been read once, and while a change is compared'
  })),
  generation: Type.Integer({
    minimum: 0,
    description: 'Goes up with every change that this process has noticed; not comparable between replicas'
  }),
  roots: Type.Array(Type.Object({
    name: Type.String({ description: 'The last part of its path, or of its source' }),
    type: StringEnum(['project', 'personal']),
    state: StringEnum(
      ['ok', 'indexing', 'waiting', 'missing', 'unreadable', 'failed'],
      {
        description: '`indexing`: its skills are being read for the first time; `waiting`: of a source that is not ' +
          'fetched yet'
      }
    ),
    skills: Type.Integer({ minimum: 0 }),
    skipped: Type.Integer({
      minimum: 0,
      description: 'Links that lead out of the folder or to no folder, or whose disk fails or does not answer, and ' +
        'names that no skill may have; the log has the names'
    })
  })),
  watcher: WatcherSchema,
  failures: Type.Array(
    Type.String(), { description: 'Codes of errors at the last scan of a root; the last good state is served' }
  ),
  quarantined: Type.Optional(QuarantinedSchema)
})

/** Members are optional: with an access file, callers without credentials get none of them. */
const VisibleStateSchema = Type.Partial(IndexStateSchema)

export const ReadinessSchema = named('Readiness', Type.Object({
  status: Type.Literal('ready'),
  detail: Type.Optional(Type.String({
    description: 'What is wrong although the service is ready; folders by name and type'
  })),
  ...VisibleStateSchema.properties,
  sources: Type.Optional(Type.Array(SourceStatusSchema, { description: 'Only with sources other than plain folders' }))
}), {
  status: 'ready',
  version: '1.0.0',
  skills: 6,
  revision: '9c56cc51b374c3ba189210d5b6d4bf57790d351c96c47c02190ecf1e430635ab',
  generation: 2,
  roots: [{ name: 'skills', type: 'project', state: 'ok', skills: 6, skipped: 0 }],
  watcher: { status: 'watching', mode: 'events', errors: 0 },
  failures: [],
})

/** A problem with the members of readiness, for a service that is not ready. */
export const NotReadySchema = named('NotReady', Type.Object({
  ...ProblemSchema.properties,
  ...VisibleStateSchema.properties,
  sources: Type.Optional(Type.Array(SourceStatusSchema))
}), {
  type: 'urn:skillserve:problem:not_ready',
  title: 'Not ready',
  status: 503,
  detail: 'folder "skills" (project) is missing, or is a file',
  instance: '/readyz',
  error: 'folder "skills" (project) is missing, or is a file',
  code: 'not_ready',
  skills: 0,
  roots: [{ name: 'skills', type: 'project', state: 'missing', skills: 0, skipped: 0 }]
})
