import type { FastifyReply, FastifyRequest } from 'fastify'
import type { SkillErrorKind } from '../core/shared/errors.ts'
import type { SkillsOf } from './callers.ts'
import type { ToolObserver } from '../tools/calls/observer.ts'

/** The method of MCP whose answer is a stream of notifications. */
export const LISTEN = 'subscriptions/listen'

/** An operation of MCP: one JSON-RPC request. */
export interface ObservedOperation {
  readonly method: string
  /** Sent by the client: read own properties only. */
  readonly params: unknown
  readonly id: string | number | undefined
  readonly origin: FastifyRequest
}

export interface OperationEnd {
  /** A JSON-RPC code or `tool_error`. */
  readonly error: string | undefined
  /** Kind of the `SkillError` that the handler threw. */
  readonly kind?: SkillErrorKind | undefined
}

/** Observes everything that callers ask for: metrics, traces, the audit log. Implementations must not throw. */
export interface Observer extends ToolObserver {
  /** Receives, before the first request, functions for the skills of a request and the revision of the catalog. */
  init? (skillsOf: SkillsOf, revision: () => string | undefined): void
  /** A request was routed; its body has not been read. */
  onRequest? (request: FastifyRequest): void
  /** Called when the head of an event stream is sent. `onResponse` follows when the stream ends. */
  onStream? (request: FastifyRequest): void
  /** Called when the response has closed. */
  onResponse? (request: FastifyRequest, reply: FastifyReply, end: ResponseEnd): void
  /** Returns a function that is called once, when the operation has ended. */
  onOperation (operation: ObservedOperation): ((end: OperationEnd) => void) | undefined
}

/** Status for a request whose connection closed before its answer began, named as in nginx. */
export const CLIENT_CLOSED_REQUEST = 499

export interface ResponseEnd {
  readonly milliseconds: number
  /** Status of the answer that was sent, or CLIENT_CLOSED_REQUEST. */
  readonly status: number
  /** Whether the client got all of it. */
  readonly isComplete: boolean
  /** Size of the body; undefined for HEAD and 304. */
  readonly bytes: number | undefined
}

export function combineObservers (observers: readonly Observer[]): Required<Observer> {
  return {
    init (...parts) { for (const observer of observers) observer.init?.(...parts) },
    onRequest (request) { for (const observer of observers) observer.onRequest?.(request) },
    onStream (request) { for (const observer of observers) observer.onStream?.(request) },
    onResponse (...parts) { for (const observer of observers) observer.onResponse?.(...parts) },
    onCall (...parts) { for (const observer of observers) observer.onCall(...parts) },
    onOperation (operation) {
      const ends = observers.map((observer) => observer.onOperation(operation))
      return (end) => { for (const notify of ends) notify?.(end) }
    }
  }
}
