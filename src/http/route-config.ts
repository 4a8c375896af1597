import type { ToolRead } from '../tools/tool.ts'
import type { PinnedView } from '../core/view.ts'
import type { Problem } from '../schemas/problem.ts'
import type { Scope } from './callers.ts'
import type { TraceContext } from './request/traceparent.ts'

declare module 'fastify' {
  /** Properties of a route. */
  interface FastifyContextConfig {
    /** The scope that callers need. Default: `skills:read`. */
    scope?: Scope
    /** Whether the route answers everybody, and says nothing about skills. */
    isOpen?: boolean
    /** Whether the route is a page, for which people sign in by a cookie. */
    isPage?: boolean
    /** What requests read of skills, for the audit log. Every route has it, except those that are open to all. */
    reads?: RouteReads | ((request: FastifyRequest) => RouteReads)
    /** Under load `costly` routes are refused first. A `probe` is never refused, has no limit and no span. */
    load?: 'costly' | 'probe'
    /** What a request, its body included, counts beyond the usual towards its caller's limit. */
    weight?: (request: FastifyRequest) => Weight | undefined
  }

  interface FastifyRequest {
    /** Counts more than the header `traceparent`: what the message in the body says, or the span of the request. */
    trace: TraceContext | undefined
    /** The skills in the revision that the request asks for. */
    pinnedView: PinnedView | undefined
    /** The code of the problem in the answer. */
    problemCode: Problem['code'] | undefined
    /** The number of skills that a search has found. */
    found: number | undefined
  }
}

/** `costly` takes much work, as a search does. `stream` has an answer that stays open; a HEAD has none. */
export type Weight = 'costly' | 'stream'

/** What can be read of skills, by the names of the audit log. */
export type ReadEvent = ToolRead['event'] | 'skill.archive' | 'discovery.index' | 'events.open'

/** What a request reads, through which API. Without an event, each call in its body is reported by itself. */
export type RouteReads = { readonly event?: ReadEvent, readonly api: string } | 'nothing'
