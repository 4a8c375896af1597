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
    /** Whether the route needs no credentials, and therefore reveals nothing about skills. */
    isOpen?: boolean
    /** Whether the route is a page, for which people sign in by a cookie. */
    isPage?: boolean
    /** What requests read of skills, for the audit log. Every route has it, except those that are open to all. */
    reads?: RouteReads | ((request: FastifyRequest) => RouteReads)
    /** `costly` routes are refused first under load. A `probe` is never refused or limited, and has no span. */
    load?: 'costly' | 'probe'
    /** Returns how much a request, with its parsed body, counts towards the rate limit. Default: one unit. */
    weight?: (request: FastifyRequest) => Weight | undefined
  }

  interface FastifyRequest {
    /** Trace context of the request's span or of the MCP message; it takes precedence over the header `traceparent`. */
    trace: TraceContext | undefined
    /** The skills in the revision that the request pins. */
    pinnedView: PinnedView | undefined
    /** The code of the problem in the answer. */
    problemCode: Problem['code'] | undefined
    /** The number of skills that a search has found. */
    found: number | undefined
  }
}

/** `costly`: as much work as a search. `stream`: an answer that stays open, except for HEAD. */
export type Weight = 'costly' | 'stream'

/** The audit events that read skills. */
export type ReadEvent = ToolRead['event'] | 'skill.archive' | 'discovery.index' | 'events.open'

/** The event of a request and its API. Without an event, each call in the body is reported by itself. */
export type RouteReads = { readonly event?: ReadEvent, readonly api: string } | 'nothing'
