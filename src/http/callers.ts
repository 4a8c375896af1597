import type { FastifyRequest } from 'fastify'
import type { View } from '../core/view.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller. Undefined without an access file, and on routes that are open to all. */
    principal: Principal | undefined
  }
}

/** The scope that a route needs unless it names another. */
export const READ_SCOPE = 'skills:read'

export const SCOPES = [READ_SCOPE, 'metrics:read'] as const

export type Scope = typeof SCOPES[number]

/** The caller of a request, as its credentials prove it. Contains no secret. */
export interface Principal {
  /** Unique among callers and stable over restarts: `token:ci-docs`. For limits and audit, never for an answer. */
  readonly id: string
  /** The name that the operator or the issuer gave. */
  readonly name: string
  readonly kind: 'anonymous' | 'token' | 'link' | 'jwt' | 'proxy'
  readonly groups: readonly string[]
  readonly scopes: ReadonlySet<string>
  /** Key of the caller's view: callers with the same grants have the same key. */
  readonly view: string
  /** When the credentials expire, in milliseconds since 1970. */
  readonly expiresAt?: number
}

/** Returns the skills that a request may see, one object for each view. APIs get skills in no other way. */
export type SkillsOf = (request: FastifyRequest) => View

/** Calls `end` once if the caller of an open answer loses access. Returns a function that stops watching. */
export type OnAccessEnd = (request: FastifyRequest, end: () => void) => () => void
