import type { FastifyRequest } from 'fastify'
import type { View } from '../core/view.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller. Undefined when access is off, and on routes that are open to all. */
    principal: Principal | undefined
  }
}

/** What callers may be allowed. Routes ask for `skills:read` unless they say otherwise. */
export const SCOPES = ['skills:read', 'metrics:read'] as const

export type Scope = typeof SCOPES[number]

/** The caller of a request, as its credentials prove it. Contains no secret. */
export interface Principal {
  /** Unique among callers and stable over restarts: `token:ci-docs`. For limits and audit, never for an answer. */
  readonly id: string
  /** As the operator or the issuer calls it. */
  readonly name: string
  readonly kind: 'anonymous' | 'token' | 'link' | 'jwt' | 'proxy'
  readonly groups: readonly string[]
  readonly scopes: ReadonlySet<string>
  /** The key of what the caller sees: equal for callers who see the same for the same reasons. */
  readonly view: string
  /** When the credentials expire, in milliseconds since 1970. */
  readonly expiresAt?: number
}

/** Returns the skills that a request may see, one object for each view. APIs get skills in no other way. */
export type SkillsOf = (request: FastifyRequest) => View

/** Calls `end` once when the caller of a long answer loses access to it. Returns a function that stops the watch. */
export type OnAccessEnd = (request: FastifyRequest, end: () => void) => () => void
